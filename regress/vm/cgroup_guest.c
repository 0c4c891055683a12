/* SPDX-License-Identifier: ISC */
/*
 * vmm's cgroup code on a kernel with all cgroup v2 controllers, whatever the
 * host has: cgroup_limits.py links it static and runs it in a guest.  Prints
 * "name value" lines; the script knows what they must be.
 */
#include <sys/wait.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"

#define ID	"sb-aaaaaaaaaaaaaaaa"

int	main(void);

static void
show(int leaf, const char *name)
{
	char	 buf[256];
	ssize_t	 n;
	int	 fd;

	fd = openat(leaf, name, O_RDONLY);
	n = fd == -1 ? -1 : read(fd, buf, sizeof(buf) - 1);
	buf[n < 0 ? 0 : n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	printf("%s %s\n", name, buf);
	(void)close(fd);
}

/* A child in the leaf that waits, or that uses all the memory it can get. */
static pid_t
start(int leaf, int greedy)
{
	char	 c = 0, *p;
	int	 go[2], fd;
	pid_t	 pid;

	if (pipe(go) == -1 || (pid = fork()) == -1)
		exit(1);
	if (pid == 0) {
		fd = openat(leaf, "cgroup.procs", O_WRONLY);
		if (fd == -1 || write(fd, "0", 1) != 1 ||
		    write(go[1], &c, 1) != 1)
			_exit(1);
		while (greedy && (p = malloc(1 << 20)) != NULL)
			memset(p, 1, 1 << 20);
		for (;;)
			(void)pause();
	}
	(void)!read(go[0], &c, 1);
	(void)close(go[0]);
	(void)close(go[1]);
	return pid;
}

int
main(void)
{
	struct cgroup_limits	 l = { 24 << 20, 3, 7 };
	struct cgroup_have	 have;
	struct fault		 f;
	int			 leaf, status, i;
	pid_t			 pid;

	cgroup_probe("test", &have);
	printf("have %d %d %d %d\n", have.tracking, have.memory, have.cpu,
	    have.pids);
	leaf = cgroup_create(ID, &l, &f);
	if (leaf < 0) {
		printf("create %s\n", leaf == -1 ? f.text : "none");
		return 1;
	}
	show(leaf, "memory.max");
	show(leaf, "memory.swap.max");
	show(leaf, "cpu.max");
	show(leaf, "pids.max");
	printf("again %d\n", cgroup_create(ID, &l, &f));
	pid = start(leaf, 0);
	printf("contains %d %d\n", cgroup_contains(leaf, pid),
	    cgroup_contains(leaf, getpid()));
	printf("busy %d oom %d\n", cgroup_remove(ID), cgroup_oom_killed(leaf));
	cgroup_kill(ID);
	(void)waitpid(pid, &status, 0);
	printf("killed %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	pid = start(leaf, 1);
	(void)waitpid(pid, &status, 0);
	printf("greedy %d oom %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	    cgroup_oom_killed(leaf));
	for (i = 0; i < 100 && !cgroup_remove(ID); i++)
		(void)usleep(10000);
	printf("gone %d %d\n", cgroup_remove(ID), cgroup_open(ID));
	l.pids = 0;
	l.vcpu = 0;
	printf("refused %d %s\n", cgroup_create(ID, &l, &f), f.text);
	printf("undone %d\n", cgroup_open(ID));
	cgroup_finish();
	printf("top %d\n", access("/sys/fs/cgroup/sandboxd-test", F_OK));
	return 0;
}
