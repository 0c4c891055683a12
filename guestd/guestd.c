/* SPDX-License-Identifier: ISC */
/*
 * PID 1 of the guest: boots, then one poll(2) loop for channel, commands and
 * orphans.  Must neither block nor end, whatever host and sandbox do: the VM
 * ends with it.
 */
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guestd.h"

#define POLL_MAX	(GP_STREAMS_MAX * 4 + GUEST_DISCARD_MAX + 8)
#define SHORT_IDLE_US	20000	/* nothing happens: make a spare cgroup */
#define LONG_IDLE_US	1000000	/* ... load what was not needed to start */
#define FILES_MAX	16384

struct guest guest = { .signal_fd = -1, .proc_fd = -1, .pts_fd = -1,
    .random_fd = -1 };

static struct {
	size_t		 count;
	uint64_t	 deadline_us;
	struct pollfd	 fds[POLL_MAX];
	struct {
		poll_fn	 fn;
		void	*arg;
	} slots[POLL_MAX];
} ps;

uint64_t
now_us(void)
{
	struct timespec	 ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* The kernel log before anything else: console and dmesg(1) both have it. */
static void
say(const char *path, const char *prefix, const char *text)
{
	char	 line[600];
	int	 fd, n;

	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd == -1)
		return;
	n = snprintf(line, sizeof(line), "%sguestd: %s\n", prefix, text);
	if (n > 0)
		(void)!write(fd, line, (size_t)n);
	(void)close(fd);
}

void
guest_log(const char *fmt, ...)
{
	char	 text[512];
	va_list	 ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (guest.test)
		(void)fprintf(stderr, "guestd: %s\n", text);
	else
		say("/dev/kmsg", "<4>", text);
}

void
guest_die(const char *fmt, ...)
{
	struct timespec	 drain = { 0, 20000000 };
	char		 text[512];
	va_list		 ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (guest.test) {
		(void)fprintf(stderr, "guestd: %s\n", text);
		exit(1);
	}
	say("/dev/kmsg", "<2>", text);
	say("/dev/console", "", text);
	/* A console is written behind our back. */
	(void)nanosleep(&drain, NULL);
	(void)reboot(RB_AUTOBOOT);
	for (;;)
		(void)pause();
}

void
poll_add(int fd, short events, poll_fn fn, void *arg)
{
	if (ps.count == POLL_MAX)
		return;		/* its turn comes when others have ended */
	ps.fds[ps.count].fd = fd;
	ps.fds[ps.count].events = events;
	ps.slots[ps.count].fn = fn;
	ps.slots[ps.count].arg = arg;
	ps.count++;
}

void
poll_by(uint64_t deadline_us)
{
	if (deadline_us < ps.deadline_us)
		ps.deadline_us = deadline_us;
}

static void
reap(void)
{
	pid_t	 pid;
	int	 status, orphans = 0;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		orphans += !cmd_reaped(pid, status);
	if (orphans > 0)
		cgroup_sweep();
}

static void
signal_event(void *arg, int fd, short revents)
{
	struct signalfd_siginfo	 si;

	(void)arg;
	(void)revents;
	while (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			reap();
		else if (si.ssi_signo == SIGIO)
			carrier_check();
		else {
			/* reboot(8), halt(8) and poweroff(8) of busybox. */
			guest_log("signal %u: the guest ends", si.ssi_signo);
			sync();
			(void)reboot(RB_AUTOBOOT);
		}
	}
}

static void
signals_init(void)
{
	sigset_t	 set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGIO);
	if (!guest.test) {
		(void)sigaddset(&set, SIGTERM);
		(void)sigaddset(&set, SIGINT);
		(void)sigaddset(&set, SIGUSR1);
		(void)sigaddset(&set, SIGUSR2);
	}
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	guest.signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (guest.signal_fd == -1)
		guest_die("signalfd: %s", strerror(errno));
}

/* How long until somebody's deadline. */
static uint64_t
deadline_left_us(void)
{
	uint64_t	 now;

	if (ps.deadline_us == UINT64_MAX)
		return UINT64_MAX;
	now = now_us();
	return ps.deadline_us <= now ? 0 : ps.deadline_us - now;
}

static int
poll_for(uint64_t us)
{
	struct timespec	 ts;

	if (us == UINT64_MAX)
		return ppoll(ps.fds, ps.count, NULL, NULL);
	ts.tv_sec = (time_t)(us / 1000000);
	ts.tv_nsec = (long)(us % 1000000) * 1000;
	return ppoll(ps.fds, ps.count, &ts, NULL);
}

/* Once, when the host has its answer to CONFIG. */
static void
after_config(void)
{
	static int	 done;

	if (done || !guest.configured || guest.test)
		return;
	done = 1;
	stream_warm_up();
}

static int	late_done;

/* How long nothing must happen before there is time for what can wait. */
static uint64_t
idle_wait_us(void)
{
	if (cgroup_wants_spare())
		return SHORT_IDLE_US;
	return late_done || !guest.configured || guest.test ? UINT64_MAX :
	    LONG_IDLE_US;
}

static void
idle_work(void)
{
	if (cgroup_wants_spare()) {
		cgroup_prepare();
		return;
	}
	late_done = 1;
	modules_load("late");
	modules_close();
}

static int
wait_events(void)
{
	uint64_t	 idle, left;
	int		 n;

	for (;;) {
		left = deadline_left_us();
		idle = idle_wait_us();
		if (left <= idle)
			return poll_for(left);
		n = poll_for(idle);
		if (n != 0)
			return n;
		idle_work();
	}
}

static void
turn(void)
{
	struct stream	*s;
	size_t		 i;
	int		 n;

	ps.count = 0;
	ps.deadline_us = UINT64_MAX;
	poll_add(guest.signal_fd, POLLIN, signal_event, NULL);
	streams_rotate();
	for (s = streams; s != NULL; s = s->next)
		cmd_poll(s);
	streams_sweep();
	discard_poll();
	carrier_poll();
	after_config();
	n = wait_events();
	for (i = 0; n > 0 && i < ps.count; i++) {
		if (ps.fds[i].revents == 0)
			continue;
		n--;
		ps.slots[i].fn(ps.slots[i].arg, ps.fds[i].fd,
		    ps.fds[i].revents);
	}
}

static void
read_boot_id(void)
{
	char		 text[64];
	unsigned int	 byte;
	size_t		 i = 0;
	char		*p = text;

	if (file_read(guest.proc_fd, "sys/kernel/random/boot_id", text,
	    sizeof(text)) <= 0)
		return;
	while (i < sizeof(guest.boot_id) && *p != '\0') {
		p += *p == '-';
		if (sscanf(p, "%2x", &byte) != 1)
			return;
		guest.boot_id[i++] = (uint8_t)byte;
		p += 2;
	}
}

static void
common_init(void)
{
	struct sysinfo	 si;

	if (sysinfo(&si) == 0)
		guest.memory_bytes = (uint64_t)si.totalram * si.mem_unit;
	streams_init(guest.memory_bytes);
	chan_init();
	signals_init();
}

static void
std_null(void)
{
	int	 fd;

	fd = open("/dev/null", O_RDONLY);
	if (fd > 0) {
		(void)dup2(fd, 0);
		(void)close(fd);
	}
	if (guest.test)
		return;
	fd = open("/dev/null", O_WRONLY);
	(void)dup2(fd, 1);
	(void)dup2(fd, 2);
	if (fd > 2)
		(void)close(fd);
}

static void
boot(void)
{
	struct rlimit	 files = { FILES_MAX, FILES_MAX };
	int		 error;

	boot_mount_early();
	std_null();
	common_init();
	guest.random_fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	modules_open();
	modules_load("always");
	boot_switch_root();
	mount_all();
	error = net_loopback_up();
	if (error != 0)
		guest_log("lo up: %s", strerror(error));
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (file_write(guest.proc_fd, "self/oom_score_adj", "-1000") == -1)
		guest_log("oom_score_adj: %s", strerror(errno));
	read_boot_id();
	carrier_open_port();
}

/* Channel and commands on a descriptor, for tests: guestd(8). */
static int
test_main(int argc, char **argv)
{
	int	 fd, ch, channel = -1;

	guest.test = 1;
	while ((ch = getopt(argc, argv, "C:T:")) != -1) {
		switch (ch) {
		case 'C':
			fd = open(optarg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd == -1)
				guest_die("%s: %s", optarg, strerror(errno));
			cgroup_init(fd);
			break;
		case 'T':
			channel = atoi(optarg);
			break;
		default:
			channel = -1;
			optind = argc;
		}
	}
	if (channel < 3) {
		(void)fprintf(stderr, "guestd is PID 1 of a guest; in tests: "
		    "guestd [-C cgroup] -T fd\n");
		return 1;
	}
	std_null();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	common_init();
	guest.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	guest.pts_fd = open("/dev/pts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	read_boot_id();
	carrier_open_test(channel);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "-w") == 0)
		return 0;	/* stream_warm_up() */
	/* The kernel hands on what it does not know of its own command line. */
	if (getpid() == 1 && (argc < 2 || argv[1][0] != '-'))
		boot();
	else if (test_main(argc, argv) != 0)
		return 1;
	for (;;)
		turn();
}
