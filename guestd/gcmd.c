/* SPDX-License-Identifier: ISC */
/*
 * Running commands: fork, the answer of exec, timeout, signals, the end.  The
 * command and all of its children belong to the sandbox's user.
 */
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/sched.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "guestd.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER	_IO('T', 0x41)
#endif

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* Our end does not block; the command's must. */
static int
make_pipe(int *ours, int *theirs, int we_write)
{
	int	 fd[2];

	if (pipe2(fd, O_CLOEXEC) == -1)
		return errno;
	*ours = fd[we_write];
	*theirs = fd[!we_write];
	if (fcntl(*ours, F_SETFL, O_NONBLOCK) == -1)
		return errno;
	return 0;
}

static int
make_tty(struct stream *s, int *slave)
{
	int	 unlock = 0;

	s->out_fd[0] = openat(guest.pts_fd, "ptmx",
	    O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (s->out_fd[0] == -1)
		return errno;
	s->tty = 1;
	if (ioctl(s->out_fd[0], TIOCSPTLCK, &unlock) == -1)
		return errno;
	/* By descriptor: no path that the sandbox's user could have changed. */
	*slave = ioctl(s->out_fd[0], TIOCGPTPEER,
	    O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*slave == -1)
		return errno;
	cmd_resize(s);
	return 0;
}

static int
make_std(struct stream *s, uint32_t flags, struct exec_fds *fds)
{
	int	 error;

	error = make_pipe(&s->exec_fd, &fds->error, 0);
	if (error == 0 && (flags & GP_EXEC_TTY)) {
		fds->tty = 1;
		error = make_tty(s, &fds->std[0]);
		fds->std[1] = fds->std[2] = fds->std[0];
		return error;
	}
	if (error == 0 && (flags & GP_EXEC_STDIN))
		error = make_pipe(&s->in_fd, &fds->std[0], 1);
	if (error == 0)
		error = make_pipe(&s->out_fd[0], &fds->std[1], 0);
	if (error == 0)
		error = make_pipe(&s->out_fd[1], &fds->std[2], 0);
	return error;
}

/*
 * fork(2) into the cgroup: moving a process later waits for every other one
 * to stop forking, which costs milliseconds.
 */
static pid_t
fork_into(struct exec_fds *fds)
{
	struct clone_args	 ca;
	pid_t			 pid;

	if (fds->cgroup >= 0) {
		memset(&ca, 0, sizeof(ca));
		ca.flags = CLONE_INTO_CGROUP;
		ca.exit_signal = SIGCHLD;
		ca.cgroup = (uint64_t)fds->cgroup;
		pid = (pid_t)syscall(SYS_clone3, &ca, sizeof(ca));
		if (pid == 0)
			fds->cgroup = -1;
		if (pid >= 0 || (errno != ENOSYS && errno != EINVAL))
			return pid;
	}
	return fork();
}

int
cmd_start(struct stream *s, struct exec_args *args, int *stage)
{
	struct exec_fds	 fds = { { -1, -1, -1 }, -1, -1, 0 };
	int		 error, i;

	*stage = GP_STAGE_RESOURCES;
	error = make_std(s, args->flags, &fds);
	if (error == 0) {
		s->cgroup = cgroup_take(&s->cgroup_fd);
		fds.cgroup = s->cgroup_fd;
		s->start_us = now_us();
		s->pid = fork_into(&fds);
		if (s->pid == 0)
			exec_child(args, &fds);
		error = s->pid == -1 ? errno : 0;
	}
	if (args->timeout_ms != 0 && args->timeout_ms < UINT64_MAX / 2000)
		s->deadline_us = s->start_us + args->timeout_ms * 1000;
	close_fd(&fds.error);
	if (fds.tty)
		close_fd(&fds.std[0]);
	else
		for (i = 0; i < 3; i++)
			close_fd(&fds.std[i]);
	if (error != 0)
		s->pid = 0;
	return error;
}

void
cmd_stdin(struct stream *s, const uint8_t *p, size_t len)
{
	if (s->killed || s->in_eof || s->state == STREAM_DRAINING)
		/* Nobody reads it: the host shall not hang on it. */
		stream_owe(s, len);
	else if (pump_stdin_add(s, p, len) != 0)
		cmd_kill(s);
}

void
cmd_stdin_eof(struct stream *s)
{
	static const uint8_t	 eot = 4;	/* VEOF, termios(3) */

	if (s->in_eof)
		return;
	if (s->tty)
		cmd_stdin(s, &eot, sizeof(eot));
	s->in_eof = 1;
	pump_stdin(s);
}

void
cmd_signal(struct stream *s, int number, int tree)
{
	if (s->reaped || s->pid <= 0)
		return;
	if (!tree)
		/* EPERM, ESRCH and a bad number: as kill(1) would have it. */
		(void)kill(-s->pid, number);
	else if (s->cgroup == 0)
		(void)kill(-s->pid, number);
	else if (number != SIGKILL || cgroup_kill(s->cgroup_fd) == -1)
		cgroup_signal(s->cgroup_fd, number);
}

void
cmd_resize(struct stream *s)
{
	struct winsize	 ws;

	if (!s->tty || s->out_fd[0] < 0 || s->columns == 0 || s->rows == 0)
		return;
	memset(&ws, 0, sizeof(ws));
	ws.ws_col = s->columns;
	ws.ws_row = s->rows;
	(void)ioctl(s->out_fd[0], TIOCSWINSZ, &ws);
}

static void
kill_tree(struct stream *s)
{
	if (s->cgroup != 0 && cgroup_kill(s->cgroup_fd) == 0)
		return;
	if (s->reaped || s->pid <= 0)
		return;
	(void)kill(-s->pid, SIGKILL);
	/* Before its setsid(2) it has no group of its own. */
	(void)kill(s->pid, SIGKILL);
}

void
cmd_kill(struct stream *s)
{
	s->killed = 1;
	kill_tree(s);
}

static void
exec_answer(struct stream *s)
{
	uint8_t	 buf[5];
	ssize_t	 n;

	if (s->state != STREAM_STARTING)
		return;
	n = read(s->exec_fd, buf, sizeof(buf));
	if (n == -1 && (errno == EAGAIN || errno == EINTR) && !s->reaped)
		return;
	close_fd(&s->exec_fd);
	if (n == (ssize_t)sizeof(buf)) {
		stream_refused(s, buf[0], (int)gp_get_u32(buf + 1));
		return;
	}
	stream_started(s);
}

static void
exec_event(void *arg, int fd, short revents)
{
	(void)fd;
	(void)revents;
	exec_answer(arg);
}

int
cmd_reaped(pid_t pid, int status)
{
	struct stream	*s;

	for (s = streams; s != NULL; s = s->next)
		if (s->pid == pid && !s->reaped && s->state != STREAM_ENDED)
			break;
	if (s == NULL)
		return 0;
	s->reaped = 1;
	s->status = status;
	s->end_us = now_us();
	exec_answer(s);
	if (s->state == STREAM_ENDED)
		return 1;
	s->oom_killed = s->cgroup != 0 && cgroup_oom_killed(s->cgroup_fd);
	s->state = STREAM_DRAINING;
	pump_leader_ended(s);
	return 1;
}

static void
cmd_finish(struct stream *s)
{
	struct gp_exited	 e;

	memset(&e, 0, sizeof(e));
	e.signaled = WIFSIGNALED(s->status);
	e.code = (uint32_t)(e.signaled ? WTERMSIG(s->status) :
	    WEXITSTATUS(s->status));
	e.timed_out = s->timed_out != 0;
	e.oom_killed = s->oom_killed != 0;
	e.duration_us = s->end_us - s->start_us;
	e.stdout_bytes = s->out_bytes[0];
	e.stderr_bytes = s->out_bytes[1];
	pump_finish(s);
	stream_exited(s, &e);
}

void
cmd_poll(struct stream *s)
{
	if (s->state == STREAM_ARGS || s->state == STREAM_ENDED)
		return;
	if (s->deadline_us != 0 && !s->reaped) {
		if (now_us() >= s->deadline_us) {
			s->timed_out = 1;
			s->deadline_us = 0;
			kill_tree(s);
		} else
			poll_by(s->deadline_us);
	}
	if (s->state == STREAM_DRAINING && (s->killed || pump_drained(s))) {
		cmd_finish(s);
		return;
	}
	if (s->state == STREAM_STARTING)
		poll_add(s->exec_fd, POLLIN, exec_event, s);
	pump_poll(s);
}

void
cmd_free(struct stream *s)
{
	pump_close(s);
	close_fd(&s->exec_fd);
	if (s->cgroup != 0)
		cgroup_release(s->cgroup, s->cgroup_fd);
	s->cgroup = 0;
	s->cgroup_fd = -1;
}
