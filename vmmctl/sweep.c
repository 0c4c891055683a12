/* SPDX-License-Identifier: ISC */
/*
 * Removes what carries our tag and no known VM owns: directories, cgroup
 * leaves, processes with a slot's uid.  Runs in vmm when the parent has
 * adopted all that its ledger knows.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "id.h"
#include "log.h"
#include "msg_send.h"
#include "reap.h"
#include "vm.h"

struct sweep {
	uint64_t	 request;
	unsigned int	 pending;	/* one more while still looking */
	uint32_t	 removed;
	uint8_t		*met;		/* a bit for each uid of the range */
};

static void
one_done(struct sweep *s)
{
	struct m_vmm_sweep_ok	 b;

	if (--s->pending > 0)
		return;
	b.removed = s->removed;
	log_info("sweep removed=%u", s->removed);
	(void)answer_vmm_sweep_ok(vmm.parent, s->request, 0, &b);
	free(s->met);
	free(s);
}

static void
reaped(const struct fault *f, void *arg)
{
	struct sweep	*s = arg;

	if (f == NULL)
		s->removed++;
	else
		log_warnx("sweep: %s", f->text);
	one_done(s);
}

static void
sweep_id(const char *id, void *arg)
{
	struct sweep	*s = arg;

	if (vm_known_id(id))
		return;
	s->pending++;
	if (reap_start(id, 0, reaped, s) == -1)
		s->pending--;
}

static void
sweep_process(pid_t pid, uid_t uid, void *arg)
{
	struct sweep	*s = arg;
	uint32_t	 bit;

	if (vm_known_uid(uid))
		return;
	log_info("sweep process pid=%d uid=%u", pid, uid);
	/* One search for all that run under a uid. */
	bit = uid - vmm.cfg.uid_first;
	if ((s->met[bit / 8] & 1 << bit % 8) != 0)
		return;
	s->met[bit / 8] |= (uint8_t)(1 << bit % 8);
	s->pending++;
	if (reap_start("", uid, reaped, s) == -1)
		s->pending--;
}

static void
sweep_leaf(const char *id, void *arg)
{
	/* With a directory it has been met already. */
	if (faccessat(vmm.vm_dir, id, F_OK, AT_SYMLINK_NOFOLLOW) == -1)
		sweep_id(id, arg);
}

static void
sweep_directories(struct sweep *s)
{
	struct dirent	*e;
	DIR		*d;
	int		 fd;

	fd = openat(vmm.vm_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd == -1 ? NULL : fdopendir(fd);
	if (d == NULL) {
		log_warn("sweep: %s/vm", vmm.cfg.state_dir);
		if (fd != -1)
			(void)close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (id_valid(e->d_name))
			sweep_id(e->d_name, s);
	(void)closedir(d);
}

void
sweep_handle(struct msg *m)
{
	struct sweep	*s;

	s = calloc(1, sizeof(*s));
	if (s != NULL)
		s->met = calloc(1, vmm.cfg.uid_count / 8 + 1);
	if (s == NULL || s->met == NULL)
		fatalx("out of memory");
	s->request = m->request;
	s->pending = 1;
	/* Processes first: a directory goes when nothing uses it any more. */
	reap_each_process(sweep_process, s);
	sweep_directories(s);
	cgroup_each(sweep_leaf, s);
	one_done(s);
}
