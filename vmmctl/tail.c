/* SPDX-License-Identifier: ISC */
/*
 * The last bytes of what a VM or its VMM writes.  Runs in vmm; the bytes may
 * be anything and are only kept, never read for a meaning.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "tail.h"
#include "vmm.h"

struct tail {
	int		 fd;
	struct event	*ev;
	uint64_t	 total;
	uint64_t	 budget;
	size_t		 keep;
	uint8_t		 ring[];
};

/* 1: read something, 0: nothing there now, -1: closed. */
static int
read_once(struct tail *t)
{
	uint8_t	 buf[4096];
	ssize_t	 n;
	size_t	 i;

	if (t->fd == -1)
		return -1;
	n = read(t->fd, buf, sizeof(buf));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		tail_close(t);
		return -1;
	}
	for (i = 0; i < (size_t)n; i++)
		t->ring[(t->total + i) % t->keep] = buf[i];
	t->total += (size_t)n;
	if (t->budget != 0 && t->total >= t->budget) {
		tail_close(t);
		return -1;
	}
	return 1;
}

static void
on_read(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	/* Once for each turn of the loop: a flood starves nobody. */
	(void)read_once(arg);
}

struct tail *
tail_new(int fd, size_t keep, uint64_t budget)
{
	struct tail	*t;

	t = calloc(1, sizeof(*t) + keep);
	if (t == NULL) {
		(void)close(fd);
		return NULL;
	}
	t->fd = fd;
	t->keep = keep;
	t->budget = budget;
	t->ev = event_new(vmm.base, fd, EV_READ | EV_PERSIST, on_read, t);
	if (t->ev == NULL || evutil_make_socket_nonblocking(fd) == -1 ||
	    event_add(t->ev, NULL) == -1) {
		tail_free(t);
		return NULL;
	}
	return t;
}

void
tail_drain(struct tail *t)
{
	int	 turns;

	/* The writer is dead: a pipe's and a socket's buffer end soon. */
	for (turns = 0; turns < 256; turns++)
		if (read_once(t) != 1)
			return;
}

void
tail_close(struct tail *t)
{
	if (t == NULL)
		return;
	if (t->ev != NULL)
		event_free(t->ev);
	t->ev = NULL;
	if (t->fd != -1)
		(void)close(t->fd);
	t->fd = -1;
}

size_t
tail_copy(const struct tail *t, uint8_t *out, size_t size)
{
	uint64_t	 at;
	size_t		 i, n;

	n = t->total < t->keep ? (size_t)t->total : t->keep;
	if (n > size)
		n = size;
	at = t->total - n;
	for (i = 0; i < n; i++)
		out[i] = t->ring[(at + i) % t->keep];
	return n;
}

void
tail_free(struct tail *t)
{
	tail_close(t);
	free(t);
}
