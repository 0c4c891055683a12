/* SPDX-License-Identifier: ISC */
/*
 * Moves messages between sibling processes.  See imsg.h.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include <bsd/sys/queue.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "imsg.h"
#include "log.h"

struct outgoing {
	TAILQ_ENTRY(outgoing)	 entry;
	int			 fd;
	size_t			 len;
	uint8_t			 data[];
};

struct waiting {
	TAILQ_ENTRY(waiting)	 entry;
	struct ipeer		*peer;
	uint64_t		 id;
	enum msg_type		 type;
	ipeer_answer_cb		 cb;
	void			*arg;
	struct event		*deadline;
};

struct ipeer {
	int				 fd;
	enum proc_id			 self;
	enum proc_id			 peer;
	enum msg_phase			 phase;
	ipeer_msg_cb			 msg_cb;
	ipeer_gone_cb			 gone_cb;
	void				*arg;
	struct event_base		*base;
	struct event			*ev_read;
	struct event			*ev_write;
	uint64_t			 last_request;
	int				 broken;	/* of no more use */
	int				 gone;		/* gone_cb was called */
	int				 paused;	/* not reading now */
	TAILQ_HEAD(, outgoing)		 queue;
	TAILQ_HEAD(waiting_list, waiting) waiting;
	struct ipeer_stats		 stats;
};

static void	ipeer_on_read(evutil_socket_t, short, void *);
static void	ipeer_on_write(evutil_socket_t, short, void *);
static void	ipeer_break(struct ipeer *, const char *, ...)
		    __attribute__((format(printf, 2, 3)));

struct ipeer *
ipeer_new(struct event_base *base, int fd, enum proc_id self,
    enum proc_id peer, ipeer_msg_cb msg_cb, ipeer_gone_cb gone_cb, void *arg)
{
	struct ipeer	*p;

	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		(void)close(fd);
		return NULL;
	}
	*p = (struct ipeer){ .fd = fd, .self = self, .peer = peer,
	    .phase = MP_SETUP, .msg_cb = msg_cb, .gone_cb = gone_cb,
	    .arg = arg, .base = base };
	TAILQ_INIT(&p->queue);
	TAILQ_INIT(&p->waiting);
	p->ev_read = event_new(base, fd, EV_READ | EV_PERSIST, ipeer_on_read,
	    p);
	p->ev_write = event_new(base, fd, EV_WRITE, ipeer_on_write, p);
	if (p->ev_read == NULL || p->ev_write == NULL ||
	    evutil_make_socket_nonblocking(fd) == -1 ||
	    event_add(p->ev_read, NULL) == -1) {
		ipeer_free(p);
		return NULL;
	}
	return p;
}

static void
outgoing_free(struct outgoing *o)
{
	if (o->fd != -1)
		(void)close(o->fd);
	free(o);
}

static void
waiting_free(struct ipeer *p, struct waiting *w)
{
	TAILQ_REMOVE(&p->waiting, w, entry);
	p->stats.waiting--;
	event_free(w->deadline);
	free(w);
}

void
ipeer_free(struct ipeer *p)
{
	struct outgoing	*o;
	struct waiting	*w;
	ipeer_answer_cb	 cb;
	void		*arg;

	if (p == NULL)
		return;
	while ((w = TAILQ_FIRST(&p->waiting)) != NULL) {
		cb = w->cb;
		arg = w->arg;
		waiting_free(p, w);
		if (cb != NULL)
			cb(NULL, arg);
	}
	while ((o = TAILQ_FIRST(&p->queue)) != NULL) {
		TAILQ_REMOVE(&p->queue, o, entry);
		outgoing_free(o);
	}
	if (p->ev_read != NULL)
		event_free(p->ev_read);
	if (p->ev_write != NULL)
		event_free(p->ev_write);
	(void)close(p->fd);
	free(p);
}

void
ipeer_set_running(struct ipeer *p)
{
	p->phase = MP_RUN;
}

/*
 * The sibling has done what it may not.  A child ends, and the parent starts it
 * again; nobody starts the parent again, so there the channel ends and with it
 * the child.
 */
static void
ipeer_break(struct ipeer *p, const char *fmt, ...)
{
	char	 text[256];
	va_list	 ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (p->self != PROC_PARENT)
		fatalx("%s: %s", proc_name(p->peer), text);
	log_warnx("%s: %s", proc_name(p->peer), text);
	p->broken = 1;
	event_active(p->ev_read, EV_READ, 1);
}

/* 1: sent, 0: would block, -1: the peer is gone (its EOF will be read). */
static int
send_datagram(int sock, const uint8_t *data, size_t len, int fd)
{
	union {
		struct cmsghdr	 hdr;
		char		 space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec	 iov = { (void *)(uintptr_t)data, len };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr	*c;

	if (fd != -1) {
		memset(&control, 0, sizeof(control));
		mh.msg_control = &control;
		mh.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	for (;;) {
		if (sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) != -1)
			return 1;
		if (errno == EINTR)
			continue;
		/* ETOOMANYREFS: too many descriptors in flight; they drain. */
		if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ||
		    errno == ETOOMANYREFS)
			return 0;
		return -1;
	}
}

static int
ipeer_put(struct ipeer *p, enum msg_type type, uint16_t flags, uint64_t id,
    const void *body, int fd)
{
	uint8_t		 buf[MSG_MAX_BYTES];
	struct outgoing	*o;
	int		 len, sent;

	if (!msg_permitted(type, p->self, p->peer, p->phase) ||
	    (fd != -1) != msg_infos[type].fd)
		fatalx("%s may not go to %s now", msg_name(type),
		    proc_name(p->peer));
	if (p->broken)
		goto lost;
	len = msg_pack(buf, type, flags, id, body);
	if (len < 0) {
		log_warnx("%s to %s: %s", msg_name(type), proc_name(p->peer),
		    msg_strerror(len));
		goto fail;
	}
	p->stats.sent++;
	if (TAILQ_EMPTY(&p->queue)) {
		sent = send_datagram(p->fd, buf, (size_t)len, fd);
		if (sent != 0)
			goto lost;
	}
	if (p->stats.queued >= IPEER_QUEUE_MAX) {
		ipeer_break(p, "does not read its messages");
		goto lost;
	}
	o = malloc(sizeof(*o) + (size_t)len);
	if (o == NULL)
		goto fail;
	o->fd = fd;
	o->len = (size_t)len;
	memcpy(o->data, buf, o->len);
	TAILQ_INSERT_TAIL(&p->queue, o, entry);
	p->stats.queued++;
	(void)event_add(p->ev_write, NULL);
	return 0;
lost:		/* sent, or the peer is gone and its end will be read */
	if (fd != -1)
		(void)close(fd);
	return 0;
fail:
	if (fd != -1)
		(void)close(fd);
	return -1;
}

static void
ipeer_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct ipeer	*p = arg;
	struct outgoing	*o;

	(void)what;
	while ((o = TAILQ_FIRST(&p->queue)) != NULL) {
		if (send_datagram(fd, o->data, o->len, o->fd) == 0) {
			(void)event_add(p->ev_write, NULL);
			return;
		}
		TAILQ_REMOVE(&p->queue, o, entry);
		p->stats.queued--;
		outgoing_free(o);
	}
	if (p->paused && event_add(p->ev_read, NULL) == 0)
		p->paused = 0;
}

int
ipeer_send(struct ipeer *p, enum msg_type type, const void *body, int fd)
{
	return ipeer_put(p, type, 0, 0, body, fd);
}

int
ipeer_answer(struct ipeer *p, uint64_t id, uint16_t flags, enum msg_type type,
    const void *body, int fd)
{
	return ipeer_put(p, type, flags | MSGF_ANSWER, id, body, fd);
}

static void
request_expired(evutil_socket_t fd, short what, void *arg)
{
	struct waiting	*w = arg;
	struct ipeer	*p = w->peer;
	ipeer_answer_cb	 cb = w->cb;
	void		*cb_arg = w->arg;

	(void)fd;
	(void)what;
	log_warnx("%s: no answer to %s in time", proc_name(p->peer),
	    msg_name(w->type));
	waiting_free(p, w);
	if (cb != NULL)
		cb(NULL, cb_arg);
}

int
ipeer_request(struct ipeer *p, enum msg_type type, const void *body, int fd,
    unsigned int ms, ipeer_answer_cb cb, void *arg)
{
	struct timeval	 tv = { ms / 1000, (suseconds_t)(ms % 1000) * 1000 };
	struct waiting	*w = NULL;

	if (p->stats.waiting >= IPEER_REQUESTS_MAX)
		goto fail;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		goto fail;
	*w = (struct waiting){ .peer = p, .id = p->last_request + 1,
	    .type = type, .cb = cb, .arg = arg };
	w->deadline = evtimer_new(p->base, request_expired, w);
	if (w->deadline == NULL || evtimer_add(w->deadline, &tv) == -1)
		goto fail;
	p->last_request++;
	if (ipeer_put(p, type, 0, w->id, body, fd) == -1) {
		fd = -1;
		goto fail;
	}
	TAILQ_INSERT_TAIL(&p->waiting, w, entry);
	p->stats.waiting++;
	return 0;
fail:
	if (fd != -1)
		(void)close(fd);
	if (w != NULL && w->deadline != NULL)
		event_free(w->deadline);
	free(w);
	return -1;
}

uint64_t
ipeer_last_request(const struct ipeer *p)
{
	return p->last_request;
}

void
ipeer_forget(struct ipeer *p, void *arg)
{
	struct waiting	*w;

	/* The entry stays until its answer or deadline, without an effect. */
	TAILQ_FOREACH(w, &p->waiting, entry)
		if (w->arg == arg) {
			w->cb = NULL;
			w->arg = NULL;
		}
}

int
msg_take_fd(struct msg *m)
{
	int	 fd = m->fd;

	m->fd = -1;
	return fd;
}

static void
take_answer(struct ipeer *p, struct msg *m)
{
	struct waiting	*w;
	ipeer_answer_cb	 cb;
	void		*arg;

	TAILQ_FOREACH(w, &p->waiting, entry)
		if (w->id == m->request)
			break;
	if (w == NULL) {
		p->stats.late_answers++;
		return;
	}
	if (!msg_answers(w->type, m->type)) {
		ipeer_break(p, "answered %s with %s", msg_name(w->type),
		    msg_name(m->type));
		return;
	}
	cb = w->cb;
	arg = w->arg;
	if ((m->flags & MSGF_MORE) == 0)
		waiting_free(p, w);
	if (cb != NULL)
		cb(m, arg);
}

/*
 * The descriptor in the control data, -1 if none, -2 if it is not as it should
 * be.  A full descriptor table delivers the data with MSG_CTRUNC and no error,
 * and a buffer for one descriptor has room for two: both are refused.
 */
static int
take_control(struct msghdr *mh)
{
	struct cmsghdr	*c;
	int		 fd = -1, one, bad = 0;
	size_t		 i, n;

	for (c = CMSG_FIRSTHDR(mh); c != NULL; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&one, CMSG_DATA(c) + i * sizeof(int),
			    sizeof(one));
			if (fd == -1) {
				fd = one;
			} else {
				(void)close(one);
				bad = 1;
			}
		}
	}
	if (bad || (mh->msg_flags & MSG_CTRUNC) != 0) {
		if (fd != -1)
			(void)close(fd);
		return -2;
	}
	return fd;
}

/* The datagram's descriptor and message; -1 after ipeer_break(). */
static int
take_datagram(struct ipeer *p, struct msg *m, struct msghdr *mh, size_t n)
{
	int	 fd, r;

	fd = take_control(mh);
	if ((mh->msg_flags & MSG_TRUNC) != 0 || fd == -2) {
		ipeer_break(p, "a message lost its tail or its descriptor");
		goto bad;
	}
	r = msg_unpack(m, mh->msg_iov->iov_base, n);
	if (r != MSG_OK) {
		ipeer_break(p, "bad message: %s", msg_strerror(r));
		goto bad;
	}
	if (!msg_permitted(m->type, p->peer, p->self, p->phase)) {
		ipeer_break(p, "%s may not come from it now",
		    msg_name(m->type));
		goto bad;
	}
	if ((fd != -1) != msg_infos[m->type].fd) {
		ipeer_break(p, "%s: descriptor missing or not wanted",
		    msg_name(m->type));
		goto bad;
	}
	m->fd = fd;
	return 1;
bad:
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* 1: a message, 0: nothing more now, -1: the peer has closed or is broken. */
static int
receive(struct ipeer *p, struct msg *m)
{
	uint8_t		 buf[MSG_MAX_BYTES];
	char		 control[CMSG_SPACE(2 * sizeof(int))]
			    __attribute__((aligned(_Alignof(struct cmsghdr))));
	struct iovec	 iov = { buf, sizeof(buf) };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t		 n;
	int		 fd;

	do {
		n = recvmsg(p->fd, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n == -1 && errno == EINTR);
	if (n == -1 && (errno == EAGAIN || errno == ENOMEM))
		return 0;
	if (n == -1)
		return -1;
	if (n == 0) {
		/* The end, or an empty datagram, which may bring one along. */
		fd = take_control(&mh);
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	return take_datagram(p, m, &mh, (size_t)n);
}

static void
ipeer_gone(struct ipeer *p)
{
	(void)event_del(p->ev_read);
	if (p->gone)
		return;
	p->gone = 1;
	p->gone_cb(p, p->arg);
}

static void
ipeer_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct ipeer	*p = arg;
	struct msg	 m;
	int		 r, turns;

	(void)fd;
	(void)what;
	/* A few at a time, so that no sibling starves the loop. */
	for (turns = 0; turns < 16; turns++) {
		/*
		 * A request may bring a thousand answers.  Only the parent
		 * waits for them to be taken: children always read, so the two
		 * never wait for each other.
		 */
		if (p->self == PROC_PARENT && !p->broken &&
		    p->stats.queued >= IPEER_QUEUE_HIGH) {
			p->paused = 1;
			(void)event_del(p->ev_read);
			return;
		}
		r = p->broken ? -1 : receive(p, &m);
		if (r == 0)
			return;
		if (r == -1) {
			ipeer_gone(p);
			return;
		}
		p->stats.received++;
		if ((m.flags & MSGF_ANSWER) == 0)
			p->msg_cb(p, &m, p->arg);
		else
			take_answer(p, &m);
		if (m.fd != -1)
			(void)close(m.fd);
	}
}

void
child_check(const char *name)
{
	struct stat	 st;
	int		 type = 0, fd;
	socklen_t	 len = sizeof(type);

	for (fd = 0; fd < 3; fd++)
		if (fstat(fd, &st) == -1)
			_exit(1);
	if (getsockopt(CHILD_FD, SOL_SOCKET, SO_TYPE, &type, &len) == -1 ||
	    type != SOCK_SEQPACKET)
		fatalx("%s is started by sandboxd, not by hand", name);
	if (fcntl(CHILD_FD, F_SETFD, FD_CLOEXEC) == -1)
		fatal("descriptor %d", CHILD_FD);
}

void
ipeer_get_stats(const struct ipeer *p, struct ipeer_stats *out)
{
	*out = p->stats;
}
