/* SPDX-License-Identifier: ISC */
/*
 * Accepting clients.  Runs in front.  Whose a connection is the parent says,
 * who reads it from the kernel; a client is not read before.  Too many clients
 * are told so; without descriptors the listener rests, and the backlog waits.
 */
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <event2/event.h>

#include "clock.h"
#include "conn.h"
#include "front.h"
#include "listen.h"
#include "log.h"

#define ACCEPTS_A_TURN	16
#define TURNED_AWAY_MAX	64	/* connections over the limit, being told so */
#define LOG_EVERY_MS	10000

static struct {
	struct event	*accept;
	struct event	*pause;
	int		 resting;
	uint64_t	 logged_ms;
} listener;

static void
rest(const char *why)
{
	struct timeval	 tv = front_time(HTTP_ACCEPT_PAUSE_MS);
	uint64_t	 now = boottime_now().ms;

	listener.resting = 1;
	(void)event_del(listener.accept);
	(void)evtimer_add(listener.pause, &tv);
	if (listener.logged_ms != 0 && now - listener.logged_ms < LOG_EVERY_MS)
		return;
	listener.logged_ms = now;
	log_warnx("accept paused clients=%u reason=\"%s\"", conns_count(), why);
}

void
listen_resume(void)
{
	if (!listener.resting ||
	    conns_count() >= HTTP_CLIENTS_MAX + TURNED_AWAY_MAX)
		return;
	listener.resting = 0;
	(void)evtimer_del(listener.pause);
	(void)event_add(listener.accept, NULL);
}

static void
on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct timeval	 tv = front_time(HTTP_ACCEPT_PAUSE_MS);

	(void)fd;
	(void)what;
	(void)arg;
	listen_resume();
	if (listener.resting)
		(void)evtimer_add(listener.pause, &tv);
}

static void
identified(struct msg *m, void *arg)
{
	struct conn				*c = arg;
	const struct m_parent_identify_ok	*ok;
	const struct m_parent_fail		*f;

	if (m == NULL) {
		conn_turn_away(c, E_RESTARTING,
		    "the daemon did not say whose this connection is", 1);
	} else if (m->type != M_PARENT_IDENTIFY_OK) {
		f = &m->body.parent_fail;
		conn_turn_away(c, f->error != E_OK && f->error < E_COUNT ?
		    (enum sbx_error)f->error : E_INTERNAL, f->detail,
		    f->retry_after_s);
	} else {
		ok = &m->body.parent_identify_ok;
		if (conns_of_uid(ok->uid) >= HTTP_CLIENTS_PER_UID)
			conn_turn_away(c, E_OWNER_LIMIT,
			    "too many connections of this user", 1);
		else
			conn_identified(c, ok->owner, ok->uid);
	}
}

static void
identify(struct conn *c)
{
	struct m_front_identify_client	 m = { 0 };
	int				 copy;

	copy = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
	if (copy == -1 || request_front_identify_client(front.parent, &m, copy,
	    FRONT_REQUEST_MS, identified, c) == -1)
		conn_turn_away(c, E_RESTARTING, "too many connections", 1);
}

/* 1: another may wait, 0: none does. */
static int
accept_one(int fd)
{
	struct conn	*c;
	int		 client;

	if (conns_count() >= HTTP_CLIENTS_MAX + TURNED_AWAY_MAX) {
		rest("too many connections");
		return 0;
	}
	client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client == -1) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return errno != EAGAIN;
		rest(errno == EMFILE || errno == ENFILE ?
		    "no descriptors left" : "accept failed");
		return 0;
	}
	c = conn_new(client);
	if (c == NULL) {
		rest("no memory");
		return 0;
	}
	if (conns_count() > HTTP_CLIENTS_MAX)
		conn_turn_away(c, E_CAPACITY, "too many connections", 1);
	else
		identify(c);
	return 1;
}

static void
on_accept(evutil_socket_t fd, short what, void *arg)
{
	int	 i;

	(void)what;
	(void)arg;
	for (i = 0; i < ACCEPTS_A_TURN; i++)
		if (!accept_one(fd))
			break;
}

void
listen_open(void)
{
	if (listener.accept != NULL)
		return;
	if (evutil_make_socket_nonblocking(front.listener) == -1)
		fatal("listener");
	listener.accept = event_new(front.base, front.listener,
	    EV_READ | EV_PERSIST, on_accept, NULL);
	listener.pause = evtimer_new(front.base, on_pause_over, NULL);
	if (listener.accept == NULL || listener.pause == NULL ||
	    event_add(listener.accept, NULL) == -1)
		fatalx("listener: no memory");
}
