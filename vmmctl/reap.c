/* SPDX-License-Identifier: ISC */
/*
 * Release of a VM, repeated until nothing is left or its time is over.  Runs
 * in vmm.  A process is signalled only when our cgroup holds it or its uid is
 * a slot's of this instance, and only through a pidfd that was opened before
 * that was looked up.
 */
#include <sys/stat.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <event2/event.h>

#include "cgroup.h"
#include "clock.h"
#include "helper.h"
#include "proc_id.h"
#include "reap.h"
#include "slot.h"

struct reap {
	char		 id[SBX_ID_LEN + 1];
	uid_t		 uid;
	struct boottime	 deadline;
	struct event	*timer;
	reap_cb		 cb;
	void		*arg;
	unsigned int	 found;		/* processes of the uid, last look */
};

static void	step(evutil_socket_t, short, void *);

/* ---- processes ---- */

static int
is_slot_uid(uid_t uid)
{
	return uid >= vmm.cfg.uid_first + SLOT_UIDS_RESERVED &&
	    uid - vmm.cfg.uid_first < vmm.cfg.uid_count;
}

void
reap_each_process(void (*cb)(pid_t, uid_t, void *), void *arg)
{
	struct dirent	*e;
	pid_t		 pid;
	uid_t		 uid;
	DIR		*d;

	d = opendir("/proc");
	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		pid = (pid_t)strtol(e->d_name, NULL, 10);
		uid = proc_uid(pid);
		/* The range may once have been another instance's. */
		if (uid != (uid_t)-1 && is_slot_uid(uid) &&
		    !proc_is_foreign(pid, vmm.cfg.tag))
			cb(pid, uid, arg);
	}
	(void)closedir(d);
}

static void
kill_if_same_uid(pid_t pid, uid_t uid, void *arg)
{
	struct reap	*r = arg;
	int		 fd;

	if (uid != r->uid)
		return;
	fd = pidfd_open_cloexec(pid);
	if (fd == -1)
		return;
	/* Looked up again: the pid may have changed hands before the pidfd. */
	if (proc_uid(pid) == r->uid) {
		r->found++;
		(void)pidfd_kill(fd);
	}
	(void)close(fd);
}

static int
processes_left(struct reap *r)
{
	r->found = 0;
	if (r->uid != 0)
		reap_each_process(kill_if_same_uid, r);
	return r->found != 0;
}

/* ---- files ---- */

void
reap_unlink_files(int dir)
{
	struct dirent	*e;
	DIR		*d;
	int		 fd;

	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return;
	d = fdopendir(fd);
	if (d == NULL) {
		(void)close(fd);
		return;
	}
	/* What cannot go keeps the directory, and that is reported. */
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dir, e->d_name, 0);
	(void)closedir(d);
}

static int
is_big(int dir)
{
	struct stat	 st;

	return fstatat(dir, "layer.img", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (uint64_t)st.st_blocks * 512 > VM_UNLINK_INLINE;
}

static int
remove_directory(void *arg)
{
	struct reap	*r = arg;
	int		 dir;

	dir = openat(vmm.vm_dir, r->id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir != -1) {
		reap_unlink_files(dir);
		(void)close(dir);
	}
	if (unlinkat(vmm.vm_dir, r->id, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return errno > 0 && errno < 125 ? errno : 125;
}

static void
finish(struct reap *r, const struct fault *f)
{
	reap_cb	 cb = r->cb;
	void	*arg = r->arg;

	event_free(r->timer);
	free(r);
	cb(f, arg);
}

static void
directory_removed(int status, const char *text, void *arg)
{
	struct reap	*r = arg;
	struct fault	 f;

	(void)text;
	if (status == 0) {
		finish(r, NULL);
		return;
	}
	(void)fault_set(&f, E_INTERNAL, "%s/vm/%s cannot be removed: %s",
	    vmm.cfg.state_dir, r->id,
	    status > 0 ? strerror(status) : "helper was killed");
	finish(r, &f);
}

static void
remove_files(struct reap *r)
{
	int	 dir, big;

	if (r->id[0] == '\0') {
		finish(r, NULL);
		return;
	}
	dir = openat(vmm.vm_dir, r->id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	big = dir != -1 && is_big(dir);
	if (dir != -1)
		(void)close(dir);
	if (big && helper_run(remove_directory, r, directory_removed, r) == 0)
		return;
	directory_removed(remove_directory(r), "", r);
}

/* ---- the loop ---- */

static void
step(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval	 again = { 0, VM_RELEASE_POLL_MS * 1000 };
	struct reap		*r = arg;
	struct fault		 f;
	int			 busy = 0;

	(void)fd;
	(void)what;
	if (r->id[0] != '\0' && !cgroup_remove(r->id)) {
		cgroup_kill(r->id);
		busy = 1;
	}
	if (processes_left(r))
		busy = 1;
	if (!busy) {
		remove_files(r);
		return;
	}
	if (boottime_now().ms >= r->deadline.ms) {
		(void)fault_set(&f, E_INTERNAL, "%s: still there after %d ms: "
		    "%u processes of uid %u, or its cgroup",
		    r->id[0] == '\0' ? "slot" : r->id, VM_RELEASE_MS, r->found,
		    r->uid);
		finish(r, &f);
		return;
	}
	(void)evtimer_add(r->timer, &again);
}

int
reap_start(const char *id, uid_t uid, reap_cb cb, void *arg)
{
	const struct timeval	 now = { 0, 0 };
	struct reap		*r;

	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -1;
	(void)strlcpy(r->id, id, sizeof(r->id));
	r->uid = uid;
	r->cb = cb;
	r->arg = arg;
	r->deadline.ms = boottime_now().ms + VM_RELEASE_MS;
	r->timer = evtimer_new(vmm.base, step, r);
	if (r->timer == NULL || evtimer_add(r->timer, &now) == -1) {
		if (r->timer != NULL)
			event_free(r->timer);
		free(r);
		return -1;
	}
	return 0;
}
