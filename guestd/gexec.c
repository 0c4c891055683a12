/* SPDX-License-Identifier: ISC */
/*
 * From fork to exec, in the command's own process: session, limits, user,
 * directory, environment.  An error goes up the pipe as stage and errno.
 */
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "guestd.h"

#define DEFAULT_PATH	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:" \
			"/sbin:/bin"
#define FILES_SOFT	1024		/* select(2) can take no more */
#define FILES_HARD	1048576
#define TTY_GID		5		/* devpts is mounted with it */

static int	error_fd;

static void fail(int stage) __attribute__((noreturn));

static void
fail(int stage)
{
	uint8_t	 buf[5];

	buf[0] = (uint8_t)stage;
	gp_put_u32(buf + 1, (uint32_t)errno);
	/* Five bytes are written whole; a dead agent needs no answer. */
	(void)!write(error_fd, buf, sizeof(buf));
	_exit(127);
}

/* What the agent has set for itself is not the command's. */
static void
reset_process(void)
{
	struct rlimit	 files = { FILES_SOFT, FILES_HARD };
	sigset_t	 none;
	int		 sig;

	/* Nothing that is ignored in us, or was in what started us. */
	for (sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)umask(022);
	if (!guest.test) {
		(void)setrlimit(RLIMIT_NOFILE, &files);
		(void)file_write(guest.proc_fd, "self/oom_score_adj", "0");
	}
}

static void
take_std(const struct exec_fds *fds, const struct user *u)
{
	int	 i;

	if (fds->tty) {
		if (ioctl(fds->std[0], TIOCSCTTY, 0) == -1)
			fail(GP_STAGE_RESOURCES);
		(void)fchown(fds->std[0], u->uid, TTY_GID);
		(void)fchmod(fds->std[0], 0620);
	}
	for (i = 0; i < 3; i++) {
		/* So that the user can open /dev/stdout again. */
		if (fds->std[i] > 2 && !fds->tty)
			(void)fchown(fds->std[i], u->uid, u->gid);
		/* Without stdin the agent's 0, /dev/null, is inherited. */
		if (fds->std[i] > 2 && dup2(fds->std[i], i) == -1)
			fail(GP_STAGE_RESOURCES);
	}
}

static void
become_user(const struct user *u)
{
	if (setgroups((size_t)u->group_count, u->groups) == -1 ||
	    setgid(u->gid) == -1 || setuid(u->uid) == -1)
		fail(GP_STAGE_USER);
}

static void
change_dir(const char *cwd, const struct user *u)
{
	if (cwd == NULL || cwd[0] != '/') {
		/* A user without a home has the root directory. */
		if (chdir(u->home) == -1 && chdir("/") == -1)
			fail(GP_STAGE_CWD);
	}
	if (cwd != NULL && chdir(cwd) == -1)
		fail(GP_STAGE_CWD);
}

static void
env_default(struct exec_args *a, char *buf, size_t size, const char *name,
    const char *value)
{
	size_t	 len = strlen(name), i;

	for (i = 0; i < a->env_count; i++)
		if (strncmp(a->envp[i], name, len) == 0 &&
		    a->envp[i][len] == '=')
			return;
	(void)snprintf(buf, size, "%s=%s", name, value);
	a->envp[a->env_count++] = buf;
}

static void
environment(struct exec_args *a, const struct user *u)
{
	static char	 path[128], home[4200], user[300], logname[300];

	env_default(a, path, sizeof(path), "PATH", DEFAULT_PATH);
	env_default(a, home, sizeof(home), "HOME", u->home);
	env_default(a, user, sizeof(user), "USER", u->name);
	env_default(a, logname, sizeof(logname), "LOGNAME", u->name);
}

static const char *
env_path(const struct exec_args *a)
{
	size_t	 i;

	for (i = 0; i < a->env_count; i++)
		if (strncmp(a->envp[i], "PATH=", 5) == 0)
			return a->envp[i] + 5;
	return DEFAULT_PATH;
}

/* As execvp(3), but it never runs a shell that nobody has named. */
static void
exec_search(const struct exec_args *a)
{
	static char	 file[8192];
	const char	*dir, *end;
	int		 n, denied = 0;

	errno = ENOENT;
	if (a->argv[0][0] == '\0')
		return;
	if (strchr(a->argv[0], '/') != NULL) {
		(void)execve(a->argv[0], a->argv, a->envp);
		return;
	}
	for (dir = env_path(a);; dir = end + 1) {
		end = dir + strcspn(dir, ":");
		n = snprintf(file, sizeof(file), "%.*s%s%s",
		    (int)(end - dir), dir, end == dir ? "" : "/", a->argv[0]);
		errno = ENAMETOOLONG;
		if (n >= 0 && (size_t)n < sizeof(file))
			(void)execve(file, a->argv, a->envp);
		if (errno == EACCES)
			denied = 1;
		else if (errno != ENOENT && errno != ENOTDIR &&
		    errno != ENAMETOOLONG && errno != ELOOP)
			return;
		if (*end == '\0')
			break;
	}
	errno = denied ? EACCES : ENOENT;
}

void
exec_child(struct exec_args *a, const struct exec_fds *fds)
{
	static struct user	 u;
	int			 error;

	error_fd = fds->error;
	/* Only where the kernel could not fork into the cgroup. */
	if (fds->cgroup >= 0 &&
	    file_write(fds->cgroup, "cgroup.procs", "0") == -1)
		fail(GP_STAGE_RESOURCES);
	if (setsid() == -1)
		fail(GP_STAGE_RESOURCES);
	reset_process();
	error = user_find(a->user, &u);
	if (error != 0) {
		errno = error;
		fail(GP_STAGE_USER);
	}
	take_std(fds, &u);
	become_user(&u);
	change_dir(a->cwd, &u);
	environment(a, &u);
	exec_search(a);
	fail(GP_STAGE_EXEC);
}
