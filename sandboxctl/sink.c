/* SPDX-License-Identifier: ISC */
/*
 * O_NONBLOCK belongs to the open file, which others share with us (a shell, the
 * other end's parent): it is never set on what we inherited.  A pipe is opened
 * once more through /proc, which gives an open file of our own.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "sink.h"

#define SINK_MAX	131072

void
sink_open(struct sink *s, int fd)
{
	struct stat	 st;
	char		 path[32];
	int		 again;

	s->fd = fd;
	s->own = 0;
	s->is_socket = 0;
	s->max = SINK_MAX;
	if (fstat(fd, &st) == -1 || S_ISREG(st.st_mode))
		return;
	s->is_socket = S_ISSOCK(st.st_mode);
	if (s->is_socket)
		return;
	/* Else: as much as poll(2) promises room for. */
	s->max = PIPE_BUF;
	if (!S_ISFIFO(st.st_mode))
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (again == -1)
		return;
	s->fd = again;
	s->own = 1;
	s->max = SINK_MAX;
}

void
sink_close(struct sink *s)
{
	if (s->own)
		(void)close(s->fd);
	s->own = 0;
}

ssize_t
sink_write(struct sink *s, const void *data, size_t len)
{
	ssize_t	 n;

	if (len > s->max)
		len = s->max;
	if (s->is_socket)
		n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = write(s->fd, data, len);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n;
}
