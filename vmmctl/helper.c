/* SPDX-License-Identifier: ISC */
/*
 * Helper processes of vmm.  They do one piece of slow work that vmm would do
 * itself if it did not block, with the same privileges, and end.
 */
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "helper.h"
#include "log.h"
#include "proc_id.h"
#include "tail.h"
#include "vmm.h"

struct helper {
	int		 pidfd;
	struct event	*ev;
	struct tail	*text;
	helper_cb	 cb;
	void		*arg;
};

static void
helper_free(struct helper *h)
{
	if (h->ev != NULL)
		event_free(h->ev);
	if (h->pidfd != -1)
		(void)close(h->pidfd);
	tail_free(h->text);
	free(h);
}

static void
last_line(struct tail *t, char *line, size_t size)
{
	char	*nl;
	size_t	 n;

	tail_drain(t);
	n = tail_copy(t, (uint8_t *)line, size - 1);
	line[n] = '\0';
	while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == ' '))
		line[--n] = '\0';
	nl = strrchr(line, '\n');
	if (nl != NULL)
		memmove(line, nl + 1, strlen(nl));
}

static void
on_exit_of(evutil_socket_t fd, short what, void *arg)
{
	struct helper	*h = arg;
	char		 text[256];
	siginfo_t	 si = { .si_pid = 0 };
	int		 status;

	(void)what;
	if (waitid(P_PIDFD, (id_t)fd, &si, WEXITED | WNOHANG) == -1 ||
	    si.si_pid == 0)
		return;
	status = si.si_code == CLD_EXITED ? si.si_status : -1;
	last_line(h->text, text, sizeof(text));
	(void)event_del(h->ev);
	h->cb(status, text, h->arg);
	helper_free(h);
}

static void __attribute__((noreturn))
run_child(int (*fn)(void *), void *fnarg, int err)
{
	sigset_t	 none;
	int		 null;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null == -1 || dup2(null, STDIN_FILENO) == -1 ||
	    dup2(null, STDOUT_FILENO) == -1 || dup2(err, STDERR_FILENO) == -1)
		_exit(126);
	_exit(fn(fnarg));
}

int
helper_run(int (*fn)(void *), void *fnarg, helper_cb cb, void *arg)
{
	struct helper	*h;
	pid_t		 pid;
	int		 err[2];

	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -1;
	*h = (struct helper){ .pidfd = -1, .cb = cb, .arg = arg };
	if (pipe2(err, O_CLOEXEC) == -1) {
		free(h);
		return -1;
	}
	pid = fork();
	if (pid == 0)
		run_child(fn, fnarg, err[1]);
	(void)close(err[1]);
	h->text = tail_new(err[0], 256, 0);
	if (pid == -1 || h->text == NULL)
		goto fail;
	h->pidfd = pidfd_open_cloexec(pid);
	if (h->pidfd == -1)
		goto fail;
	h->ev = event_new(vmm.base, h->pidfd, EV_READ | EV_PERSIST,
	    on_exit_of, h);
	if (h->ev == NULL || event_add(h->ev, NULL) == -1)
		goto fail;
	return 0;
fail:
	log_warn("helper process");
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	helper_free(h);
	return -1;
}
