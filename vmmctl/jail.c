/* SPDX-License-Identifier: ISC */
/*
 * Starts a VMM in a jail of ours.  The first half runs in vmm, the rest in the
 * child between clone3 and exec, as root in its own namespaces; it trusts the
 * jail_spec and nothing else.  The order follows minijail's: namespaces,
 * mounts, root, limits, bounding set, ids, no_new_privs.
 */
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "jail.h"

#define FD_PARK		64	/* descriptors rest above it while renumbered */
#define REPORT_HEAD	2	/* bytes: error number, little endian */

static void __attribute__((noreturn))
report(int fd, const struct fault *f)
{
	uint8_t	 buf[REPORT_HEAD + SBX_DETAIL_MAX];
	size_t	 n = strlen(f->text);

	buf[0] = (uint8_t)f->error;
	buf[1] = (uint8_t)(f->error >> 8);
	memcpy(buf + REPORT_HEAD, f->text, n);
	/* A pipe takes this at once; if not, the exit status still tells. */
	if (write(fd, buf, REPORT_HEAD + n) == -1)
		_exit(126);
	_exit(127);
}

static int
make_parents(const char *path)
{
	char	 part[SBX_PATH_MAX + 1];
	size_t	 i;

	for (i = 1; path[i] != '\0' && i < sizeof(part); i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) == -1 && errno != EEXIST)
			return -1;
	}
	return 0;
}

static int
bind_one(const struct jail_spec *s, const struct jail_bind *b, struct fault *f)
{
	char		 to[2 * SBX_PATH_MAX + 2];
	struct stat	 st;
	unsigned long	 flags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID;
	int		 fd;

	if (stat(b->from, &st) == -1) {
		if (b->optional && errno == ENOENT)
			return 0;
		return fault_errno(f, E_START_FAILED, "%s", b->from);
	}
	(void)snprintf(to, sizeof(to), "%s%s", s->root, b->to);
	if (make_parents(to) == -1)
		return fault_errno(f, E_START_FAILED, "jail %s", b->to);
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(to, 0755) == -1 && errno != EEXIST)
			return fault_errno(f, E_START_FAILED, "jail %s", b->to);
	} else {
		fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd == -1)
			return fault_errno(f, E_START_FAILED, "jail %s", b->to);
		(void)close(fd);
	}
	if (!b->dev)
		flags |= MS_NODEV;
	if (mount(b->from, to, NULL, MS_BIND, NULL) == -1 ||
	    mount(NULL, to, NULL, flags, NULL) == -1)
		return fault_errno(f, E_START_FAILED, "bind %s in the jail",
		    b->from);
	return 0;
}

static int
make_kvm(const struct jail_spec *s, struct fault *f)
{
	char		 path[SBX_PATH_MAX + 16];
	struct stat	 st;

	if (stat("/dev/kvm", &st) == -1 || !S_ISCHR(st.st_mode))
		return fault_errno(f, E_START_FAILED, "/dev/kvm");
	(void)snprintf(path, sizeof(path), "%s/dev/kvm", s->root);
	if (make_parents(path) == -1 ||
	    mknod(path, S_IFCHR | 0600, st.st_rdev) == -1 ||
	    chown(path, s->uid, s->gid) == -1)
		return fault_errno(f, E_START_FAILED, "/dev/kvm in the jail");
	return 0;
}

static int
build_root(const struct jail_spec *s, struct fault *f)
{
	unsigned int	 i;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return fault_errno(f, E_START_FAILED, "private mounts");
	if (mount("jail", s->root, "tmpfs", MS_NOSUID | MS_NOEXEC,
	    "mode=0755,size=64k,nr_inodes=128") == -1)
		return fault_errno(f, E_START_FAILED, "tmpfs on %s", s->root);
	for (i = 0; i < s->nbinds; i++)
		if (bind_one(s, &s->binds[i], f) == -1)
			return -1;
	if (s->kvm && make_kvm(s, f) == -1)
		return -1;
	return 0;
}

static int
enter_root(const struct jail_spec *s, struct fault *f)
{
	unsigned long	 flags;

	/*
	 * pivot_root(2), "pivot_root(".", ".")": the old root ends up on top.
	 */
	if (chdir(s->root) == -1 ||
	    syscall(SYS_pivot_root, ".", ".") == -1 ||
	    umount2(".", MNT_DETACH) == -1 || chdir("/") == -1)
		return fault_errno(f, E_START_FAILED, "pivot_root to %s",
		    s->root);
	flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC;
	if (!s->kvm)
		flags |= MS_NODEV;
	if (mount(NULL, "/", NULL, flags, NULL) == -1)
		return fault_errno(f, E_START_FAILED, "read-only jail");
	return 0;
}

static int
set_limit(__rlimit_resource_t which, uint64_t value)
{
	struct rlimit	 rl = { value, value };

	return setrlimit(which, &rl);
}

/*
 * What no VMM needs once it runs, whatever filter it brings itself: above all
 * namespaces, which would give a taken-over one all capabilities in its own.
 */
static const struct confine_call	jail_deny[] = {
	CALL(unshare), CALL(setns), CALL(mount), CALL(umount2),
	CALL(pivot_root), CALL(chroot), CALL(move_mount), CALL(open_tree),
	CALL(fsopen), CALL(fsconfig), CALL(fsmount), CALL(fspick),
	CALL(mount_setattr), CALL(mknod), CALL(mknodat), CALL(pidfd_getfd)
};

static int
filter_calls(struct fault *f)
{
	const struct confine	 c = { .mode = CONFINE_DENY,
				    .calls = jail_deny, .ncalls =
				    sizeof(jail_deny) / sizeof(jail_deny[0]) };
	struct sock_filter	 code[64];
	struct sock_fprog	 prog = { .filter = code };

	prog.len = (unsigned short)confine_filter(&c, code, 64);
	if (prog.len == 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == -1)
		return fault_errno(f, E_START_FAILED, "seccomp");
	return 0;
}

static int
drop_privileges(const struct jail_spec *s, struct fault *f)
{
	cap_value_t	 cap, last = cap_max_bits() - 1;

	if (set_limit(RLIMIT_CORE, 0) == -1 ||
	    set_limit(RLIMIT_FSIZE, s->max_file) == -1 ||
	    set_limit(RLIMIT_NPROC, s->max_procs) == -1 ||
	    set_limit(RLIMIT_MSGQUEUE, 0) == -1 ||
	    set_limit(RLIMIT_NOFILE, s->max_fds) == -1)
		return fault_errno(f, E_START_FAILED, "resource limits");
	for (cap = 0; cap <= last; cap++)
		if (cap_drop_bound(cap) == -1)
			return fault_errno(f, E_START_FAILED,
			    "bounding set, capability %d", cap);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1 ||
	    setgroups(0, NULL) == -1 ||
	    setresgid(s->gid, s->gid, s->gid) == -1 ||
	    setresuid(s->uid, s->uid, s->uid) == -1)
		return fault_errno(f, E_START_FAILED, "ids %u:%u", s->uid,
		    s->gid);
	/* From 0 to another uid the kernel has emptied the other sets. */
	if (setuid(0) == 0)
		return fault_set(f, E_START_FAILED, "root could be regained");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return fault_errno(f, E_START_FAILED, "no_new_privs");
	return filter_calls(f);
}

/*
 * Gives every descriptor its number: first all go above FD_PARK, so that none
 * is overwritten, then down to their places; the rest is closed.
 */
static int
place_fds(struct jail_spec *s, int *err_pipe, struct fault *f)
{
	unsigned int	 i, top = 3;
	int		 null;

	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null == -1)
		return fault_errno(f, E_START_FAILED, "/dev/null");
	*err_pipe = fcntl(*err_pipe, F_DUPFD_CLOEXEC, FD_PARK);
	s->err_fd = fcntl(s->err_fd, F_DUPFD_CLOEXEC, FD_PARK);
	for (i = 0; i < s->nfds; i++) {
		s->fds[i].fd = fcntl(s->fds[i].fd, F_DUPFD_CLOEXEC, FD_PARK);
		if (s->fds[i].fd == -1)
			return fault_errno(f, E_START_FAILED, "descriptor %d",
			    s->fds[i].as);
		if (s->fds[i].as >= (int)top)
			top = (unsigned int)s->fds[i].as + 1;
	}
	if (dup2(null, STDIN_FILENO) == -1 ||
	    dup2(s->err_fd, STDOUT_FILENO) == -1 ||
	    dup2(s->err_fd, STDERR_FILENO) == -1)
		return fault_errno(f, E_START_FAILED, "standard descriptors");
	for (i = 0; i < s->nfds; i++)
		if (dup2(s->fds[i].fd, s->fds[i].as) == -1)
			return fault_errno(f, E_START_FAILED, "descriptor %d",
			    s->fds[i].as);
	/*
	 * The report's pipe is in there; exec closes it, and so tells success.
	 */
	if (syscall(SYS_close_range, top, ~0U, CLOSE_RANGE_CLOEXEC) == -1)
		return fault_errno(f, E_START_FAILED, "close_range");
	return 0;
}

static void
reset_signals(void)
{
	sigset_t	 none;
	int		 sig;

	for (sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);	/* KILL and STOP refuse */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The host's out-of-memory killer takes a VM before any daemon. */
static void
prefer_for_oom(void)
{
	int	 fd;

	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd == -1)
		return;
	/* A host without it only loses the preference. */
	(void)!write(fd, "500", 3);
	(void)close(fd);
}

static void __attribute__((noreturn))
child(struct jail_spec *s, int err_pipe)
{
	struct fault	 f;
	char *const	 env[] = { NULL };

	reset_signals();
	(void)setsid();
	/* The slot's uid walks through the jail's folders. */
	(void)umask(022);
	prefer_for_oom();
	if (s->prepare != NULL && s->prepare(s, s->prepare_arg, &f) == -1)
		report(err_pipe, &f);
	if (sethostname("jail", 4) == -1 && errno != EPERM) {
		(void)fault_errno(&f, E_START_FAILED, "host name");
		report(err_pipe, &f);
	}
	if (build_root(s, &f) == -1 || enter_root(s, &f) == -1 ||
	    place_fds(s, &err_pipe, &f) == -1 || drop_privileges(s, &f) == -1)
		report(err_pipe, &f);
	(void)umask(077);
	execve(s->argv[0], s->argv, env);
	(void)fault_errno(&f, E_START_FAILED, "execute %s", s->argv[0]);
	report(err_pipe, &f);
}

int
jail_spawn(struct jail_spec *s, pid_t *pid, int *pidfd, int *err_pipe,
    struct fault *f)
{
	struct clone_args	 ca;
	int			 p[2], fd = -1;
	long			 r;

	if (pipe2(p, O_CLOEXEC) == -1)
		return fault_errno(f, E_START_FAILED, "pipe");
	memset(&ca, 0, sizeof(ca));
	ca.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
	    CLONE_NEWUTS | CLONE_PIDFD;
	ca.pidfd = (uint64_t)(uintptr_t)&fd;
	ca.exit_signal = SIGCHLD;
	if (s->cgroup_fd >= 0) {
		ca.flags |= CLONE_INTO_CGROUP;
		ca.cgroup = (uint64_t)s->cgroup_fd;
	}
	/*
	 * One thread and no locks held: the child may use libc like a fork's.
	 */
	r = syscall(SYS_clone3, &ca, sizeof(ca));
	if (r == -1) {
		(void)fault_errno(f, E_START_FAILED, "clone3 with namespaces");
		(void)close(p[0]);
		(void)close(p[1]);
		return -1;
	}
	if (r == 0)
		child(s, p[1]);
	(void)close(p[1]);
	*pid = (pid_t)r;
	*pidfd = fd;
	*err_pipe = p[0];
	return 0;
}

int
jail_read_report(int fd, struct fault *f)
{
	uint8_t	 buf[REPORT_HEAD + SBX_DETAIL_MAX];
	ssize_t	 n;

	n = read(fd, buf, sizeof(buf) - 1);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (n == 0)
		return 0;
	if (n < REPORT_HEAD)
		return fault_set(f, E_START_FAILED, "jail ended early");
	buf[n] = '\0';
	f->error = (enum sbx_error)(buf[0] | buf[1] << 8);
	(void)snprintf(f->text, sizeof(f->text), "%s",
	    (const char *)buf + REPORT_HEAD);
	return -1;
}
