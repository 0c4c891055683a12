/* SPDX-License-Identifier: ISC */
/*
 * Identity of a process of the host.
 */
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "limits.h"
#include "proc_id.h"

static int
read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char	 path[64];
	ssize_t	 n;
	int	 fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = read(fd, buf, size - 1);
	(void)close(fd);
	if (n <= 0)
		return -1;
	buf[n] = '\0';
	return 0;
}

uint64_t
proc_parse_start_time(const char *stat)
{
	const char	*p;
	int		 field;

	/*
	 * The name (field 2) may hold blanks and brackets: its last one ends
	 * it.
	 */
	p = strrchr(stat, ')');
	if (p == NULL)
		return 0;
	for (field = 2; field < 22; field++) {
		p = strchr(p, ' ');
		if (p == NULL)
			return 0;
		p++;
	}
	if (*p < '0' || *p > '9')
		return 0;
	return strtoull(p, NULL, 10);
}

uint64_t
proc_start_time(pid_t pid)
{
	char	 buf[1024];

	if (read_proc(pid, "stat", buf, sizeof(buf)) == -1)
		return 0;
	return proc_parse_start_time(buf);
}

uid_t
proc_uid(pid_t pid)
{
	char		 buf[2048];
	const char	*p;

	if (read_proc(pid, "status", buf, sizeof(buf)) == -1)
		return (uid_t)-1;
	/* A zombie runs nothing any more; its parent has to fetch it. */
	if (strstr(buf, "\nState:\tZ") != NULL)
		return (uid_t)-1;
	p = strstr(buf, "\nUid:\t");
	if (p == NULL)
		return (uid_t)-1;
	return (uid_t)strtoul(p + 6, NULL, 10);
}

int
proc_parse_foreign(const char *text, const char *tag)
{
	const char	*line, *end, *p;

	/* The line of the unified hierarchy. */
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (line == NULL)
		return 0;
	end = strchr(line + 1, '\n');
	for (p = line; (p = strstr(p, "/sandboxd-")) != NULL &&
	    (end == NULL || p < end); p++) {
		p += strlen("/sandboxd-");
		if (strlen(p) > SBX_TAG_LEN && p[SBX_TAG_LEN] == '/')
			return strncmp(p, tag, SBX_TAG_LEN) != 0;
	}
	return 0;
}

int
proc_is_foreign(pid_t pid, const char *tag)
{
	char	 buf[4096];

	if (read_proc(pid, "cgroup", buf, sizeof(buf)) == -1)
		return 0;
	return proc_parse_foreign(buf, tag);
}

int
pidfd_open_cloexec(pid_t pid)
{
	/* The kernel makes it close-on-exec. */
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int
pidfd_kill(int pidfd)
{
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == -1 &&
	    errno != ESRCH)
		return -1;
	return 0;
}
