/* SPDX-License-Identifier: ISC */
/*
 * What each child is told at its start, what follows from its being ready or
 * gone, the API's listening socket, and the parent's own confinement.
 */
#include <sys/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <event2/event.h>

#include "confine.h"
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
	int	 first = !all_ready();

	(void)evtimer_del(c->timer);
	ipeer_set_running(c->peer);
	c->ready = 1;
	if (c->proc == PROC_VMM)
		sandboxd->host = m->body.vmm_ready;
	log_debug("child ready name=%s", proc_name(c->proc));
	if (!all_ready() || !first)
		return;
	if (c->proc == PROC_VMM || !sandboxd->vmm_known)
		recover_vmm();
	if (c->proc == PROC_FRONT && sandboxd->api_open)
		front_is_back();
}

void
setup_child_gone(struct child *c)
{
	struct sandbox	*sb;

	if (c->proc == PROC_VMM)
		sandboxd->vmm_known = 0;
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

static int
socket_in_use(const struct sockaddr_un *sun)
{
	int	 fd, r = -1, tries;

	/* A front whose parent was just killed listens for a moment more. */
	for (tries = 0; tries < 20; tries++) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd == -1)
			return 0;
		r = connect(fd, (const struct sockaddr *)sun, sizeof(*sun));
		(void)close(fd);
		if (r == -1)
			return 0;
		(void)usleep(100000);
	}
	return 1;
}

/*
 * Bound under another name with nobody's rights, then given its mode and group
 * and renamed into place: no client ever meets it half made.
 */
int
setup_listener(const struct config *c)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };
	char			 final[SUN_PATH_MAX + 1];
	mode_t			 old;
	int			 fd;

	(void)strlcpy(final, c->socket_path, sizeof(final));
	(void)strlcpy(sun.sun_path, final, sizeof(sun.sun_path));
	if (socket_in_use(&sun)) {
		log_warnx("%s: another daemon answers there", final);
		return -1;
	}
	if (strlcat(sun.sun_path, "~", sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path)) {
		log_warnx("%s: path is too long by one byte", final);
		return -1;
	}
	(void)unlink(sun.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	old = umask(0777);
	if (fd == -1 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		log_warn("%s", sun.sun_path);
		(void)umask(old);
		if (fd != -1)
			(void)close(fd);
		return -1;
	}
	(void)umask(old);
	if (chown(sun.sun_path, 0, c->socket_gid) == -1 ||
	    chmod(sun.sun_path, (mode_t)c->socket_mode) == -1 ||
	    listen(fd, 512) == -1 || rename(sun.sun_path, final) == -1) {
		log_warn("%s", final);
		(void)unlink(sun.sun_path);
		(void)close(fd);
		return -1;
	}
	return fd;
}

/*
 * Root, with what starting the three children and their children needs and a
 * list of calls that none of them may make.  Everything here is inherited: no
 * Landlock, no allow list (DESIGN 2).
 */
void
setup_confine(void)
{
	struct confine	 c = { .caps =
	    CONFINE_CAP(CAP_CHOWN) | CONFINE_CAP(CAP_DAC_OVERRIDE) |
	    CONFINE_CAP(CAP_FOWNER) | CONFINE_CAP(CAP_KILL) |
	    CONFINE_CAP(CAP_SETGID) | CONFINE_CAP(CAP_SETUID) |
	    CONFINE_CAP(CAP_SETPCAP) | CONFINE_CAP(CAP_NET_ADMIN) |
	    CONFINE_CAP(CAP_SYS_CHROOT) | CONFINE_CAP(CAP_SYS_ADMIN) |
	    CONFINE_CAP(CAP_MKNOD) | CONFINE_CAP(CAP_SYS_RESOURCE),
	    .keep_bounding = 1, .mode = CONFINE_DENY,
	    .calls = confine_deny_calls, .ncalls = confine_deny_ncalls };

	confine_apply(&c);
}

/* What an operator should know about this host's limits, for /healthz. */
void
setup_host_notes(const struct m_vmm_ready *h, char *out, size_t size)
{
	out[0] = '\0';
	if (!h->cgroup_tracking)
		(void)strlcat(out, "no cgroup2 mount: VMs are tracked by pid\n",
		    size);
	if (!h->cgroup_memory || !h->cgroup_cpu || !h->cgroup_pids)
		(void)snprintf(out + strlen(out), size - strlen(out),
		    "no cgroup v2 limit on%s%s%s\n",
		    h->cgroup_memory ? "" : " memory",
		    h->cgroup_cpu ? "" : " cpu", h->cgroup_pids ? "" : " pids");
	if (out[0] != '\0')
		out[strlen(out) - 1] = '\0';
}
