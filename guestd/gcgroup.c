/* SPDX-License-Identifier: ISC */
/*
 * One cgroup (v2) for each command: to kill all of it, also what has left its
 * session, and to tell an out-of-memory kill.  All are below one group whose
 * limits leave the agent memory and processes enough to go on.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guestd.h"

#define COMMANDS	"commands"

/* A cgroup whose command has ended and whose processes have not. */
struct linger {
	struct linger	*next;
	unsigned int	 number;
};

static struct {
	int		 dir;		/* of all commands; -1: no cgroups */
	unsigned int	 last;
	unsigned int	 spare;		/* made, not in use */
	int		 tried;		/* since the last one was taken */
	struct linger	*lingering;
} cg = { -1, 0, 0, 0, NULL };

static void
write_number(int dir, const char *file, uint64_t number)
{
	char	 text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	/* Absent without its controller. */
	(void)file_write(dir, file, text);
}

/* One by one: the kernel takes a list whole or not at all. */
static void
controllers_on(int dir)
{
	(void)file_write(dir, "cgroup.subtree_control", "+memory");
	(void)file_write(dir, "cgroup.subtree_control", "+pids");
	(void)file_write(dir, "cgroup.subtree_control", "+cpu");
}

static void
limits_set(void)
{
	char		 text[32];
	uint64_t	 reserve, threads;

	reserve = guest.memory_bytes / GUEST_RESERVE_SHARE;
	if (reserve < GUEST_RESERVE_MIN)
		reserve = GUEST_RESERVE_MIN;
	if (guest.memory_bytes > 2 * reserve)
		write_number(cg.dir, "memory.max",
		    guest.memory_bytes - reserve);
	if (file_read(guest.proc_fd, "sys/kernel/threads-max", text,
	    sizeof(text)) > 0) {
		threads = strtoull(text, NULL, 10);
		write_number(cg.dir, "pids.max", threads - threads / 8);
	}
}

void
cgroup_init(int root_fd)
{
	controllers_on(root_fd);
	if (mkdirat(root_fd, COMMANDS, 0755) == -1 && errno != EEXIST) {
		guest_log("no cgroups: mkdir: %s", strerror(errno));
		return;
	}
	cg.dir = openat(root_fd, COMMANDS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cg.dir == -1)
		return;
	if (!guest.test)
		limits_set();
	controllers_on(cg.dir);
}

static void
cgroup_name(char *buf, size_t size, unsigned int number)
{
	(void)snprintf(buf, size, "%u", number);
}

static unsigned int
cgroup_make(void)
{
	char	 name[16];

	if (cg.dir == -1)
		return 0;
	cgroup_name(name, sizeof(name), cg.last + 1);
	if (mkdirat(cg.dir, name, 0755) == -1) {
		guest_log("mkdir of cgroup %s: %s", name, strerror(errno));
		return 0;
	}
	return ++cg.last;
}

int
cgroup_wants_spare(void)
{
	return cg.dir != -1 && cg.spare == 0 && !cg.tried;
}

void
cgroup_prepare(void)
{
	cg.tried = 1;
	cg.spare = cgroup_make();
}

unsigned int
cgroup_take(int *fd)
{
	char		 name[16];
	unsigned int	 number;

	*fd = -1;
	number = cg.spare != 0 ? cg.spare : cgroup_make();
	cg.spare = 0;
	cg.tried = 0;
	if (number == 0)
		return 0;
	cgroup_name(name, sizeof(name), number);
	*fd = openat(cg.dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd == -1) {
		cgroup_release(number, -1);
		return 0;
	}
	return number;
}

int
cgroup_kill(int fd)
{
	return file_write(fd, "cgroup.kill", "1");
}

void
cgroup_signal(int fd, int number)
{
	static char	 text[65536];
	char		*p = text, *end;
	long		 pid;

	if (file_read(fd, "cgroup.procs", text, sizeof(text)) <= 0)
		return;
	for (;;) {
		pid = strtol(p, &end, 10);
		if (end == p)
			return;
		if (pid > 0)
			(void)kill((pid_t)pid, number);
		p = end;
	}
}

int
cgroup_oom_killed(int fd)
{
	char		 text[512];
	const char	*p;

	if (file_read(fd, "memory.events", text, sizeof(text)) <= 0)
		return 0;
	p = strstr(text, "\noom_kill ");
	return p != NULL && strtoull(p + 10, NULL, 10) > 0;
}

static int
cgroup_remove(unsigned int number)
{
	char	 name[16];

	cgroup_name(name, sizeof(name), number);
	return unlinkat(cg.dir, name, AT_REMOVEDIR);
}

void
cgroup_release(unsigned int number, int fd)
{
	struct linger	*l;

	if (fd >= 0)
		(void)close(fd);
	if (cgroup_remove(number) == 0 || errno != EBUSY)
		return;
	l = malloc(sizeof(*l));
	if (l == NULL)
		return;		/* an empty directory stays behind */
	l->number = number;
	l->next = cg.lingering;
	cg.lingering = l;
}

void
cgroup_sweep(void)
{
	struct linger	**lp = &cg.lingering, *l;

	while ((l = *lp) != NULL) {
		if (cgroup_remove(l->number) == -1 && errno == EBUSY) {
			lp = &l->next;
			continue;
		}
		*lp = l->next;
		free(l);
	}
}
