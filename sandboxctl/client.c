/* SPDX-License-Identifier: ISC */
/*
 * The connection: connecting, sending, reading, each with a deadline, and
 * errors that say what failed, on what, and what to do about it.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "signals.h"

static int
connect_fault(int err, struct fault *f)
{
	const char	*p = ctl.socket;

	switch (err) {
	case ENOENT:
	case ENOTDIR:
		return fault_set(f, CTL_ERROR, "%s: no such socket: start "
		    "sandboxd, or name its socket with -s or SANDBOXD_SOCKET",
		    p);
	case EACCES:
	case EPERM:
		return fault_set(f, CTL_ERROR, "%s: permission denied: only "
		    "root and the socket's group may use it (ls -l %s)", p, p);
	case ECONNREFUSED:
		return fault_set(f, CTL_ERROR, "%s: nobody listens there: "
		    "sandboxd is not running", p);
	case EAGAIN:
		return fault_set(f, CTL_TIMEOUT, "%s: sandboxd accepts no "
		    "connection: it is overloaded or stuck, see its log", p);
	default:
		return fault_set(f, CTL_ERROR, "%s: cannot connect: %s", p,
		    strerror(err));
	}
}

static int
connect_to(int fd, struct fault *f)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };
	uint64_t		 end = boottime_now().ms + CTL_CONNECT_MS;

	if (strlen(ctl.socket) > SUN_PATH_MAX)
		return fault_set(f, CTL_ERROR, "%s: a socket's path has at "
		    "most %d bytes", ctl.socket, SUN_PATH_MAX);
	memcpy(sun.sun_path, ctl.socket, strlen(ctl.socket) + 1);
	/* A unix socket connects at once, or its backlog is full: EAGAIN. */
	while (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == -1) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || boottime_now().ms >= end)
			return connect_fault(errno, f);
		(void)signals_poll(NULL, 0, 20);
	}
	return 0;
}

struct client *
client_new(struct fault *f)
{
	struct client	*c;

	c = malloc(sizeof(*c));
	if (c == NULL) {
		(void)fault_set(f, CTL_ERROR, "out of memory");
		return NULL;
	}
	c->at = c->have = 0;
	c->deadline_ms = 0;
	c->signals_max = 0;
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd == -1) {
		(void)fault_set(f, CTL_ERROR, "socket: %s", strerror(errno));
		client_free(c);
		return NULL;
	}
	if (connect_to(c->fd, f) == -1) {
		client_free(c);
		return NULL;
	}
	return c;
}

void
client_free(struct client *c)
{
	if (c == NULL)
		return;
	if (c->fd != -1)
		(void)close(c->fd);
	free(c);
}

void
client_set_deadline(struct client *c, unsigned int ms)
{
	c->deadline_ms = boottime_now().ms + ms;
}

/* 0: it is ready; -1: fault. */
static int
wait_for(struct client *c, short events, struct fault *f)
{
	struct pollfd	 p = { .fd = c->fd, .events = events };
	uint64_t	 now;
	int		 n;

	for (;;) {
		if (signals_count() > c->signals_max)
			return fault_set(f, CTL_ERROR,
			    "ended by signal %d before sandboxd answered",
			    signals_first());
		now = boottime_now().ms;
		if (now >= c->deadline_ms)
			return fault_set(f, CTL_TIMEOUT, "%s: sandboxd does "
			    "not answer: it is overloaded or stuck, see its "
			    "log", ctl.socket);
		n = signals_poll(&p, 1, (int)(c->deadline_ms - now));
		if (n > 0)
			return 0;
		if (n == -1 && errno != EINTR)
			return fault_set(f, CTL_ERROR, "poll: %s",
			    strerror(errno));
	}
}

int
client_send(struct client *c, const void *data, size_t len, struct fault *f)
{
	const uint8_t	*p = data;
	ssize_t		 n;

	while (len > 0) {
		n = send(c->fd, p, len, MSG_NOSIGNAL);
		if (n >= 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		/* It may have answered before it hung up: read that. */
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN)
			return fault_set(f, CTL_ERROR, "%s: sending: %s",
			    ctl.socket, strerror(errno));
		if (wait_for(c, POLLOUT, f) == -1)
			return -1;
	}
	return 0;
}

int
client_fill(struct client *c, struct fault *f)
{
	ssize_t	 n;

	if (c->at > 0) {
		memmove(c->buf, c->buf + c->at, c->have - c->at);
		c->have -= c->at;
		c->at = 0;
	}
	if (c->have == sizeof(c->buf))
		return fault_set(f, CTL_ERROR, "%s: sandboxd's answer is "
		    "malformed: a line without end", ctl.socket);
	for (;;) {
		n = recv(c->fd, c->buf + c->have, sizeof(c->buf) - c->have, 0);
		if (n > 0) {
			c->have += (size_t)n;
			return 1;
		}
		if (n == 0 || errno == ECONNRESET)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return fault_set(f, CTL_ERROR, "%s: reading: %s",
			    ctl.socket, strerror(errno));
		if (wait_for(c, POLLIN, f) == -1)
			return -1;
	}
}

static int
ended(struct fault *f)
{
	return fault_set(f, CTL_ERROR, "%s: sandboxd hung up before its answer "
	    "was complete: did it end? see its log", ctl.socket);
}

static int
malformed(const char *why, struct fault *f)
{
	return fault_set(f, CTL_ERROR, "%s: sandboxd's answer is malformed: "
	    "%s (is this really sandboxd's socket?)", ctl.socket, why);
}

/* One line, without its CRLF, with a NUL: the buffer's until the next call. */
static int
read_line(struct client *c, size_t max, char **line, struct fault *f)
{
	uint8_t	*lf;
	size_t	 len;
	int	 r;

	while ((lf = memchr(c->buf + c->at, '\n', c->have - c->at)) == NULL) {
		if (c->have - c->at > max)
			return malformed("a line is too long", f);
		r = client_fill(c, f);
		if (r == 0)
			return ended(f);
		if (r == -1)
			return -1;
	}
	len = (size_t)(lf - (c->buf + c->at));
	if (len == 0 || lf[-1] != '\r' || len > max)
		return malformed("a line is too long or does not end in CRLF",
		    f);
	*line = (char *)c->buf + c->at;
	(*line)[len - 1] = '\0';
	c->at += len + 1;
	if (strlen(*line) != len - 1)
		return malformed("there is a NUL in its header", f);
	return 0;
}

static int
read_one_head(struct client *c, struct reply *r, struct fault *f)
{
	const char	*why;
	char		*line;
	size_t		 fields, total;

	memset(r, 0, sizeof(*r));
	if (read_line(c, CTL_HEADER_MAX, &line, f) == -1)
		return -1;
	if (reply_status_line(r, line, &why) == -1)
		return malformed(why, f);
	total = strlen(line);
	for (fields = 0; fields <= CTL_FIELDS_MAX; fields++) {
		if (read_line(c, CTL_HEADER_MAX, &line, f) == -1)
			return -1;
		if (*line == '\0')
			return 0;
		total += strlen(line) + 2;
		if (total > CTL_HEADER_MAX)
			break;
		if (reply_field(r, line, &why) == -1)
			return malformed(why, f);
	}
	return malformed("its header is too long", f);
}

int
client_read_head(struct client *c, struct reply *r, struct fault *f)
{
	int	 i;

	for (i = 0; i < 4; i++) {
		if (read_one_head(c, r, f) == -1)
			return -1;
		if (r->status >= 200 || r->status == 101)
			return 0;
	}
	return malformed("it never comes to a final status", f);
}

/* Exactly n more bytes of the body. */
static int
read_bytes(struct client *c, struct reply *r, uint64_t n, struct fault *f)
{
	char	*more;
	size_t	 take;
	int	 got;

	if (n > CTL_BODY_MAX - r->len)
		return malformed("it is too large", f);
	more = realloc(r->body, r->len + n + 1);
	if (more == NULL)
		return fault_set(f, CTL_ERROR, "out of memory");
	r->body = more;
	while (n > 0) {
		take = c->have - c->at;
		if (take == 0) {
			got = client_fill(c, f);
			if (got <= 0)
				return got == 0 ? ended(f) : -1;
			continue;
		}
		if (take > n)
			take = n;
		memcpy(r->body + r->len, c->buf + c->at, take);
		r->len += take;
		c->at += take;
		n -= take;
	}
	r->body[r->len] = '\0';
	return 0;
}

static int
read_chunks(struct client *c, struct reply *r, struct fault *f)
{
	uint64_t	 n;
	char		*line;

	do {
		if (read_line(c, 256, &line, f) == -1)
			return -1;
		if (reply_chunk_size(line, CTL_BODY_MAX, &n) == -1)
			return malformed("a chunk's size is impossible", f);
		if (n > 0 && read_bytes(c, r, n, f) == -1)
			return -1;
		/* The end of the chunk; after the last one, no trailers. */
		if (read_line(c, 256, &line, f) == -1)
			return -1;
		if (*line != '\0')
			return malformed("a chunk is longer than it says", f);
	} while (n > 0);
	return r->body == NULL ? read_bytes(c, r, 0, f) : 0;
}

int
client_read_body(struct client *c, struct reply *r, struct fault *f)
{
	if (r->status == 204 || r->status == 304)
		return read_bytes(c, r, 0, f);
	if (r->chunked)
		return read_chunks(c, r, f);
	if (!r->has_length)
		return malformed("it does not say how long it is", f);
	return read_bytes(c, r, r->length, f);
}
