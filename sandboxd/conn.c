/* SPDX-License-Identifier: ISC */
/*
 * Clients' connections: reading, writing, deadlines, and finding out that a
 * client has gone.  Runs in front; trusts nothing that it reads.
 *
 * All that is due for a connection is done in its turn (conn_turn()); only
 * there is it freed.  A half-closed client (it sends no more, it still reads)
 * has not vanished: the end of its bytes is told from its end by POLLHUP, which
 * a unix socket shows when the other side is really closed.
 */
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "clock.h"
#include "conn.h"
#include "front.h"
#include "log.h"

#define WRITE_BYTES	262144	/* the most that one turn writes */

static struct {
	TAILQ_HEAD(, conn)	 list;
	unsigned int		 count;
} conns = { TAILQ_HEAD_INITIALIZER(conns.list), 0 };

static void	conn_turn(struct conn *);

unsigned int
conns_count(void)
{
	return conns.count;
}

unsigned int
conns_of_uid(uint32_t uid)
{
	struct conn	*c;
	unsigned int	 n = 0;

	TAILQ_FOREACH(c, &conns.list, entry)
		if (c->counted && c->uid == uid)
			n++;
	return n;
}

static void
conn_free(struct conn *c)
{
	const struct conn_user	*user = c->user;

	c->user = NULL;
	if (user != NULL)
		user->gone(c->user_arg);
	if (c->state == CONN_IDENTIFY)
		ipeer_forget(front.parent, c);
	TAILQ_REMOVE(&conns.list, c, entry);
	conns.count--;
	if (c->ev_read != NULL)
		event_free(c->ev_read);
	if (c->ev_write != NULL)
		event_free(c->ev_write);
	if (c->ev_turn != NULL)
		event_free(c->ev_turn);
	if (c->deadline != NULL)
		event_free(c->deadline);
	if (c->gone_check != NULL)
		event_free(c->gone_check);
	if (c->in != NULL)
		evbuffer_free(c->in);
	if (c->out != NULL)
		evbuffer_free(c->out);
	if (c->body != NULL)
		evbuffer_free(c->body);
	http_reader_clear(&c->reader);
	(void)close(c->fd);
	free(c);
	listen_resume();
}

/* ---- deadlines ---- */

static const unsigned int deadline_ms[] = {
	[DEADLINE_IDLE] = HTTP_IDLE_MS,
	[DEADLINE_HEAD] = HTTP_HEADER_DEADLINE_MS,
	[DEADLINE_BODY] = HTTP_BODY_DEADLINE_MS,
	[DEADLINE_STALL] = HTTP_STALL_MS,
	[DEADLINE_LINGER] = HTTP_LINGER_MS
};

/* Absolute: setting the one that already runs does not move it. */
void
conn_set_deadline(struct conn *c, enum conn_deadline which)
{
	struct timeval	 tv;

	if (c->deadline_for == which)
		return;
	c->deadline_for = which;
	if (which == DEADLINE_NONE) {
		(void)evtimer_del(c->deadline);
		return;
	}
	tv = front_time(deadline_ms[which]);
	(void)evtimer_add(c->deadline, &tv);
}

static void
conn_stalled(struct conn *c)
{
	uint64_t	 since = boottime_now().ms - c->out_since_ms;
	struct timeval	 tv;

	if (evbuffer_get_length(c->out) == 0) {
		conn_set_deadline(c, DEADLINE_NONE);
	} else if (since >= HTTP_STALL_MS) {
		c->dead = 1;
	} else {
		tv = front_time((unsigned int)(HTTP_STALL_MS - since));
		(void)evtimer_add(c->deadline, &tv);
	}
}

static void
conn_on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct conn	*c = arg;

	(void)fd;
	(void)what;
	switch (c->deadline_for) {
	case DEADLINE_NONE:
		break;
	case DEADLINE_IDLE:
		/* A long reply may still be on its way to a slow reader. */
		conn_stalled(c);
		if (!c->dead && evbuffer_get_length(c->out) != 0)
			break;
		c->dead = 1;
		break;
	case DEADLINE_LINGER:
		c->dead = 1;
		break;
	case DEADLINE_HEAD:
	case DEADLINE_BODY:
		c->keep = 0;
		http_get_request_id(c->reader.request, c->request_id);
		conn_reply_problem(c, E_TIMEOUT,
		    c->deadline_for == DEADLINE_HEAD ?
		    "the request's header did not arrive in time" :
		    "the request's body did not arrive in time", NULL, 0);
		break;
	case DEADLINE_STALL:
		conn_stalled(c);
		break;
	}
	conn_turn(c);
}

/* ---- has the client gone? ---- */

static int
conn_hung_up(const struct conn *c)
{
	struct pollfd	 p = { c->fd, 0, 0 };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

static void
conn_on_gone_check(evutil_socket_t fd, short what, void *arg)
{
	struct conn	*c = arg;

	(void)fd;
	(void)what;
	if (conn_hung_up(c))
		c->dead = 1;
	conn_turn(c);
}

/* ---- bytes in and out ---- */

static void
conn_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct conn		*c = arg;
	struct evbuffer_iovec	 space;
	ssize_t			 n;

	(void)what;
	if (evbuffer_reserve_space(c->in, HTTP_INPUT_MAX / 4, &space, 1) != 1) {
		c->dead = 1;
	} else {
		if (space.iov_len > HTTP_INPUT_MAX)
			space.iov_len = HTTP_INPUT_MAX;
		n = read(fd, space.iov_base, space.iov_len);
		if (n > 0) {
			space.iov_len = (size_t)n;
			(void)evbuffer_commit_space(c->in, &space, 1);
		} else if (n == 0) {
			c->in_eof = 1;
			if (conn_hung_up(c))
				c->dead = 1;
		} else if (errno != EAGAIN && errno != EINTR)
			c->dead = 1;
	}
	conn_turn(c);
}

static void
conn_on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_turn(arg);
}

static void
conn_take_input(struct conn *c)
{
	switch (c->state) {
	case CONN_IDENTIFY:
	case CONN_HANDLE:
		break;
	case CONN_REQUEST:
		conn_read_request(c);
		break;
	case CONN_STREAM:
		if (c->user != NULL)
			c->user->input(c->user_arg);
		break;
	case CONN_FLUSH:
	case CONN_LINGER:
		(void)evbuffer_drain(c->in, evbuffer_get_length(c->in));
		break;
	}
}

static void
conn_write(struct conn *c)
{
	int	 n;

	if (evbuffer_get_length(c->out) != 0) {
		n = evbuffer_write_atmost(c->out, c->fd, WRITE_BYTES);
		if (n > 0)
			c->out_since_ms = boottime_now().ms;
		else if (n == -1 && errno != EAGAIN && errno != EINTR) {
			c->dead = 1;
			return;
		}
	}
	if (c->want_drain && evbuffer_get_length(c->out) <= WS_QUEUE_LOW) {
		c->want_drain = 0;
		if (c->user != NULL && c->user->drained != NULL)
			c->user->drained(c->user_arg);
	}
	if (c->state == CONN_FLUSH && evbuffer_get_length(c->out) == 0) {
		if (c->in_eof || shutdown(c->fd, SHUT_WR) == -1) {
			c->dead = 1;
			return;
		}
		c->state = CONN_LINGER;
		conn_set_deadline(c, DEADLINE_LINGER);
	}
}

/* Which events this connection waits for now. */
static void
conn_watch(struct conn *c)
{
	struct timeval	 tv = front_time(HTTP_GONE_CHECK_MS);
	size_t		 unsent = evbuffer_get_length(c->out);
	int		 reading;

	reading = !c->in_eof && c->state != CONN_IDENTIFY &&
	    evbuffer_get_length(c->in) < HTTP_INPUT_MAX;
	if (reading)
		(void)event_add(c->ev_read, NULL);
	else
		(void)event_del(c->ev_read);
	if (unsent != 0)
		(void)event_add(c->ev_write, NULL);
	if (!reading && c->state != CONN_IDENTIFY &&
	    !evtimer_pending(c->gone_check, NULL))
		(void)evtimer_add(c->gone_check, &tv);
	if (c->state == CONN_HANDLE || c->state == CONN_STREAM ||
	    c->state == CONN_FLUSH)
		conn_set_deadline(c, unsent != 0 ? DEADLINE_STALL :
		    DEADLINE_NONE);
}

static void
conn_turn(struct conn *c)
{
	if (!c->dead)
		conn_take_input(c);
	if (!c->dead)
		conn_write(c);
	if (!c->dead && c->state == CONN_LINGER && c->in_eof)
		c->dead = 1;
	if (c->dead)
		conn_free(c);
	else
		conn_watch(c);
}

static void
conn_on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_turn(arg);
}

void
conn_schedule(struct conn *c)
{
	event_active(c->ev_turn, EV_READ, 0);
}

/* ---- begin and end ---- */

struct conn *
conn_new(int fd)
{
	struct conn	*c;

	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		(void)close(fd);
		return NULL;
	}
	c->fd = fd;
	c->state = CONN_IDENTIFY;
	TAILQ_INSERT_TAIL(&conns.list, c, entry);
	conns.count++;
	http_reader_init(&c->reader);
	c->ev_read = event_new(front.base, fd, EV_READ | EV_PERSIST,
	    conn_on_read, c);
	c->ev_write = event_new(front.base, fd, EV_WRITE, conn_on_write, c);
	c->ev_turn = event_new(front.base, -1, 0, conn_on_turn, c);
	c->deadline = evtimer_new(front.base, conn_on_deadline, c);
	c->gone_check = evtimer_new(front.base, conn_on_gone_check, c);
	c->in = evbuffer_new();
	c->out = evbuffer_new();
	if (c->ev_read == NULL || c->ev_write == NULL || c->ev_turn == NULL ||
	    c->deadline == NULL || c->gone_check == NULL || c->in == NULL ||
	    c->out == NULL) {
		conn_free(c);
		return NULL;
	}
	return c;
}

void
conn_identified(struct conn *c, uint64_t owner, uint32_t uid)
{
	c->owner = owner;
	c->uid = uid;
	c->counted = 1;
	c->state = CONN_REQUEST;
	conn_set_deadline(c, DEADLINE_IDLE);
	conn_schedule(c);
}

void
conn_turn_away(struct conn *c, enum sbx_error error, const char *detail,
    uint32_t retry_after_s)
{
	c->state = CONN_REQUEST;
	c->keep = 0;
	http_get_request_id(NULL, c->request_id);
	conn_reply_problem(c, error, detail, NULL, retry_after_s);
}

void
conn_set_user(struct conn *c, const struct conn_user *user, void *arg)
{
	c->user = user;
	c->user_arg = arg;
}

void
conn_output(struct conn *c)
{
	/* From here on the client has its time to read something. */
	if (!event_pending(c->ev_write, EV_WRITE, NULL))
		c->out_since_ms = boottime_now().ms;
	conn_schedule(c);
}

int
conn_output_high(struct conn *c)
{
	if (evbuffer_get_length(c->out) <= WS_QUEUE_HIGH)
		return 0;
	c->want_drain = 1;
	return 1;
}

void
conn_finish(struct conn *c)
{
	c->user = NULL;
	c->state = CONN_FLUSH;
	conn_schedule(c);
}

void
conns_stop(void)
{
	struct conn	*c, *next;

	for (c = TAILQ_FIRST(&conns.list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->user != NULL && c->user->stop != NULL)
			c->user->stop(c->user_arg);
		if (!c->dead)
			conn_write(c);
	}
}
