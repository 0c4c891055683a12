/* SPDX-License-Identifier: ISC */
/*
 * The child table: start, reap, restart, stop.  Each child is its own
 * executable, started by absolute path with one end of a socketpair as
 * descriptor 3 and nothing else but the standard three.
 */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/unistd.h>
#include <event2/event.h>

#include "log.h"
#include "sandboxd.h"

#define QUICK_MS	2000	/* a death so soon after the start is odd */
#define RESTART_MAX_MS	10000
#define STOP_MS		5000	/* then SIGKILL */

static void	proc_on_timer(evutil_socket_t, short, void *);

struct ipeer *
proc_peer(enum proc_id proc)
{
	struct child	*c = &sandboxd->children[proc];

	return c->ready ? c->peer : NULL;
}

/* In the child, between fork and exec. */
static void __attribute__((noreturn))
proc_exec(enum proc_id proc, int sock)
{
	char		 path[SBX_PATH_MAX + 16];
	const char	*san = getenv("ASAN_OPTIONS");
	const char	*journal = getenv("JOURNAL_STREAM");
	char		 env_san[256], env_journal[128];
	char		*argv[] = { path, NULL };
	char		*envp[3] = { NULL, NULL, NULL };
	sigset_t	 none;
	int		 n = 0, null;

	(void)snprintf(path, sizeof(path), "%s/%s", sandboxd->conf.libexec_dir,
	    proc_name(proc));
	if (san != NULL) {
		(void)snprintf(env_san, sizeof(env_san), "ASAN_OPTIONS=%s", san);
		envp[n++] = env_san;
	}
	if (journal != NULL) {
		(void)snprintf(env_journal, sizeof(env_journal),
		    "JOURNAL_STREAM=%s", journal);
		envp[n++] = env_journal;
	}
	/*
	 * An empty network namespace: front's sockets came as descriptors. 
	 * Done here because it needs the capability that front must not have.
	 */
	if (proc == PROC_FRONT &&
	    unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) == -1)
		fatal("front: namespaces");
	null = open("/dev/null", O_RDWR);
	if (null == -1 || dup2(null, STDIN_FILENO) == -1 ||
	    dup2(null, STDOUT_FILENO) == -1)
		fatal("%s: /dev/null", proc_name(proc));
	/* A descriptor's close-on-exec flag is not copied by dup2. */
	if (sock != CHILD_FD && dup2(sock, CHILD_FD) == -1)
		fatal("%s: socketpair", proc_name(proc));
	if (sock == CHILD_FD && fcntl(sock, F_SETFD, 0) == -1)
		fatal("%s: socketpair", proc_name(proc));
	closefrom(CHILD_FD + 1);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	(void)execve(path, argv, envp);
	fatal("%s", path);
}

static void
proc_gone(struct ipeer *p, void *arg)
{
	struct child	*c = arg;

	(void)p;
	/* SIGCHLD brings the rest; without the pair it is of no use anyway. */
	c->ready = 0;
	if (c->pid != 0)
		(void)kill(c->pid, SIGKILL);
}

void
proc_start(enum proc_id proc)
{
	static const ipeer_msg_cb	 dispatch[PROC_COUNT] = {
		[PROC_FRONT] = request_dispatch,
		[PROC_VMM] = setup_dispatch_vmm,
		[PROC_NETD] = setup_dispatch_netd
	};
	struct child	*c = &sandboxd->children[proc];
	struct timeval	 tv = { CHILD_READY_MS / 1000, 0 };
	int		 pair[2];
	pid_t		 pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		fatal("socketpair");
	pid = fork();
	if (pid == -1)
		fatal("fork");
	if (pid == 0)
		proc_exec(proc, pair[1]);
	(void)close(pair[1]);
	c->proc = proc;
	c->pid = pid;
	c->ready = 0;
	c->started_ms = boottime_now().ms;
	c->peer = ipeer_new(sandboxd->base, pair[0], PROC_PARENT, proc,
	    dispatch[proc], proc_gone, c);
	if (c->timer == NULL)
		c->timer = evtimer_new(sandboxd->base, proc_on_timer, c);
	if (c->peer == NULL || c->timer == NULL ||
	    evtimer_add(c->timer, &tv) == -1)
		fatalx("%s: out of memory", proc_name(proc));
	log_debug("child started name=%s pid=%d", proc_name(proc), (int)pid);
	setup_child(c);
}

void
proc_start_all(void)
{
	proc_start(PROC_NETD);
	proc_start(PROC_VMM);
	proc_start(PROC_FRONT);
}

/* Either a restart is due, or a child has not become ready in its time. */
static void
proc_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct child	*c = arg;

	(void)fd;
	(void)what;
	if (sandboxd->stopping)
		return;
	if (c->pid == 0) {
		proc_start(c->proc);
	} else if (!c->ready) {
		log_warnx("child %s is not ready in time", proc_name(c->proc));
		(void)kill(c->pid, SIGKILL);
	}
}

static void
proc_died(struct child *c, int status)
{
	struct ipeer	*peer = c->peer;
	struct timeval	 tv = { 0, 0 };
	uint64_t	 lived = boottime_now().ms - c->started_ms;
	unsigned int	 ms = 0;

	if (!sandboxd->stopping)
		log_warnx("child died name=%s pid=%d %s=%d", proc_name(c->proc),
		    (int)c->pid, WIFSIGNALED(status) ? "signal" : "status",
		    WIFSIGNALED(status) ? WTERMSIG(status) :
		    WEXITSTATUS(status));
	c->pid = 0;
	c->ready = 0;
	c->peer = NULL;
	/* Answers NULL to whoever waits: those must see it as gone already. */
	ipeer_free(peer);
	if (sandboxd->stopping)
		return;
	if (!sandboxd->api_open && lived < QUICK_MS && c->quick_deaths >= 2)
		fatalx("%s does not start", proc_name(c->proc));
	setup_child_gone(c);
	c->quick_deaths = lived < QUICK_MS ? c->quick_deaths + 1 : 0;
	if (c->quick_deaths > 1)
		ms = 250U << (c->quick_deaths < 6 ? c->quick_deaths : 6);
	if (ms > RESTART_MAX_MS)
		ms = RESTART_MAX_MS;
	tv.tv_sec = ms / 1000;
	tv.tv_usec = (suseconds_t)(ms % 1000) * 1000;
	(void)evtimer_add(c->timer, &tv);
}

/*
 * SIGCHLD: signals coalesce, so loop.  VMMs of a vmm that died come to us, the
 * subreaper: they are reaped without a word, vmm sees their end by pidfd.
 */
void
proc_reap(void)
{
	enum proc_id	 p;
	pid_t		 pid;
	int		 status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (p = PROC_FRONT; p < PROC_COUNT; p++)
			if (sandboxd->children[p].pid == pid)
				proc_died(&sandboxd->children[p], status);
}

static int
proc_wait_all(unsigned int ms)
{
	enum proc_id	 p;
	uint64_t	 end = boottime_now().ms + ms;
	int		 alive;

	do {
		proc_reap();
		alive = 0;
		for (p = PROC_FRONT; p < PROC_COUNT; p++)
			alive += sandboxd->children[p].pid != 0;
		if (alive == 0)
			return 0;
		(void)usleep(5000);
	} while (boottime_now().ms < end);
	return -1;
}

/* SIGTERM, some time, SIGKILL.  VMs are no children of ours: they go on. */
void
proc_stop_all(void)
{
	enum proc_id	 p;

	for (p = PROC_FRONT; p < PROC_COUNT; p++)
		if (sandboxd->children[p].pid != 0)
			(void)kill(sandboxd->children[p].pid, SIGTERM);
	if (proc_wait_all(STOP_MS) == 0)
		return;
	for (p = PROC_FRONT; p < PROC_COUNT; p++)
		if (sandboxd->children[p].pid != 0) {
			log_warnx("child %s does not end: killed",
			    proc_name(p));
			(void)kill(sandboxd->children[p].pid, SIGKILL);
		}
	(void)proc_wait_all(STOP_MS);
}
