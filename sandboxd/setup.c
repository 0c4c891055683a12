/* SPDX-License-Identifier: ISC */
/*
 * What each child is told at its start, and what follows from its being ready
 * or gone.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <event2/event.h>

#include "log.h"
#include "sandboxd.h"

#define EMPTY_DIR	"empty"		/* under the state directory */

static void
empty_root(char *out, size_t size)
{
	if ((size_t)snprintf(out, size, "%s/" EMPTY_DIR,
	    sandboxd->conf.state_dir) >= size)
		fatalx("%s: too long", sandboxd->conf.state_dir);
	if (mkdir(out, 0555) == -1 && errno != EEXIST)
		fatal("%s", out);
}

static void
setup_front(struct child *c)
{
	const struct config		*conf = &sandboxd->conf;
	struct m_parent_setup_front	 m = { .uid = conf->front_uid,
	    .gid = conf->front_gid, .verbose = (uint8_t)log_getverbose() };
	struct m_parent_give_listener	 l = { 0 };
	struct m_parent_start_front	 s = { 0 };
	int				 fd;

	empty_root(m.root, sizeof(m.root));
	(void)strlcpy(m.version, SBX_VERSION, sizeof(m.version));
	m.guest_boot_ms = GUEST_BOOT_TCG_MS;
	fd = fcntl(sandboxd->listener, F_DUPFD_CLOEXEC, 3);
	if (fd == -1)
		fatal("listener");
	(void)send_parent_setup_front(c->peer, &m);
	(void)send_parent_give_listener(c->peer, &l, fd);
	(void)send_parent_start_front(c->peer, &s);
}

static void
setup_vmm(struct child *c)
{
	const struct config		*conf = &sandboxd->conf;
	struct m_parent_setup_vmm	 m = { .uid_first = conf->uid_first,
	    .uid_count = conf->uid_count,
	    .verbose = (uint8_t)log_getverbose() };
	struct m_parent_start_vmm	 s = { 0 };

	(void)strlcpy(m.tag, conf->tag, sizeof(m.tag));
	(void)strlcpy(m.state_dir, conf->state_dir, sizeof(m.state_dir));
	(void)strlcpy(m.template_dir, conf->template_dir,
	    sizeof(m.template_dir));
	(void)strlcpy(m.kernel, conf->kernel, sizeof(m.kernel));
	(void)strlcpy(m.initramfs, conf->initramfs, sizeof(m.initramfs));
	(void)strlcpy(m.mke2fs, conf->mke2fs, sizeof(m.mke2fs));
	(void)strlcpy(m.qemu, conf->qemu, sizeof(m.qemu));
	(void)strlcpy(m.driver, "qemu", sizeof(m.driver));
	(void)send_parent_setup_vmm(c->peer, &m);
	(void)send_parent_start_vmm(c->peer, &s);
}

static void
setup_netd(struct child *c)
{
	const struct config		*conf = &sandboxd->conf;
	struct m_parent_setup_netd	 m = { .uid = conf->netd_uid,
	    .gid = conf->netd_gid, .pool = conf->pool,
	    .pool_prefix = (uint8_t)conf->pool_prefix,
	    .verbose = (uint8_t)log_getverbose() };
	struct m_parent_start_netd	 s = { 0 };

	empty_root(m.root, sizeof(m.root));
	(void)strlcpy(m.tag, conf->tag, sizeof(m.tag));
	(void)send_parent_setup_netd(c->peer, &m);
	(void)send_parent_start_netd(c->peer, &s);
}

void
setup_child(struct child *c)
{
	switch (c->proc) {
	case PROC_FRONT:
		setup_front(c);
		break;
	case PROC_VMM:
		setup_vmm(c);
		break;
	case PROC_NETD:
		setup_netd(c);
		break;
	case PROC_PARENT:
	case PROC_COUNT:
		break;
	}
}

/* The barrier: nothing is done before every child has said ready once. */
static int
all_ready(void)
{
	return sandboxd->children[PROC_FRONT].ready &&
	    sandboxd->children[PROC_VMM].ready &&
	    sandboxd->children[PROC_NETD].ready;
}

static void
front_is_back(void)
{
	struct m_parent_open_api	 m = { 0 };
	struct sandbox			*sb;

	(void)send_parent_open_api(proc_peer(PROC_FRONT), &m);
	TAILQ_FOREACH(sb, &sandboxd->ages, by_age)
		life_connect(sb);
}

void
setup_child_ready(struct child *c, struct msg *m)
{
	(void)evtimer_del(c->timer);
	ipeer_set_running(c->peer);
	c->ready = 1;
	if (c->proc == PROC_VMM)
		sandboxd->host = m->body.vmm_ready;
	log_debug("child ready name=%s", proc_name(c->proc));
	/* Whatever else is on its way back: this one can serve. */
	if (c->proc == PROC_FRONT && sandboxd->api_open)
		front_is_back();
	if (all_ready() && !sandboxd->vmm_known && !sandboxd->recovering)
		recover_vmm();
}

void
setup_child_gone(struct child *c)
{
	struct sandbox	*sb;

	if (c->proc == PROC_VMM) {
		sandboxd->vmm_known = sandboxd->recovering = 0;
		TAILQ_FOREACH(sb, &sandboxd->ages, by_age)
			sb->vmm_has = 0;
	}
	if (c->proc != PROC_FRONT)
		return;
	stream_front_died();
	owner_forget_all();
	TAILQ_FOREACH(sb, &sandboxd->ages, by_age) {
		sb->has_channel = 0;
		waiters_clear(&sb->creators);
		waiters_clear(&sb->deleters);
	}
}

void
setup_dispatch_vmm(struct ipeer *p, struct msg *m, void *arg)
{
	const struct m_vmm_vm_died_event	*d = &m->body.vmm_vm_died_event;
	struct sandbox				*sb;

	(void)p;
	if (m->type == M_VMM_READY) {
		setup_child_ready(arg, m);
		return;
	}
	if (m->type != M_VMM_VM_DIED_EVENT)
		fatalx("%s from vmm is not handled", msg_name(m->type));
	sb = table_find(d->id);
	if (sb != NULL && sb->generation == d->generation)
		life_vm_died(sb, (enum vm_cause)d->cause, d->detail);
}

void
setup_dispatch_netd(struct ipeer *p, struct msg *m, void *arg)
{
	(void)p;
	if (m->type != M_NETD_READY)
		fatalx("%s from netd is not handled", msg_name(m->type));
	setup_child_ready(arg, m);
}
