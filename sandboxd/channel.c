/* SPDX-License-Identifier: ISC */
/*
 * Connections to guest agents: handshake, reading, writing, liveness.  Runs in
 * front.  Trusts the parent's messages; trusts no byte that it reads here.
 *
 * One turn reads at most FRONT_IO_BYTES of one guest, so that a flood of one
 * sandbox leaves the others their turns.  What waits to be written is bounded:
 * data by GP_QUEUE_HIGH, and a guest that makes us answer without reading the
 * answers loses its channel at GP_QUEUE_MAX.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "channel_int.h"
#include "chan_config.h"
#include "clock.h"
#include "exec.h"
#include "front.h"
#include "log.h"

static struct channel_tree channels = RB_INITIALIZER(&channels);

static int
channel_cmp(struct channel *a, struct channel *b)
{
	return strcmp(a->about.id, b->about.id);
}

RB_GENERATE(channel_tree, channel, entry, channel_cmp)

static struct channel *
channel_by_id(const char *id)
{
	struct channel	*ch;

	/* A search by a whole struct channel would put 40 KiB on the stack. */
	ch = RB_ROOT(&channels);
	while (ch != NULL) {
		int	 r = strcmp(id, ch->about.id);

		if (r == 0)
			break;
		ch = r < 0 ? RB_LEFT(ch, entry) : RB_RIGHT(ch, entry);
	}
	return ch;
}

struct channel *
channel_find(const char *id)
{
	struct channel	*ch;

	ch = channel_by_id(id);
	return ch != NULL && ch->state == CH_READY && ch->error == E_OK ?
	    ch : NULL;
}

static void
channel_free(struct channel *ch, enum sbx_error error, const char *detail)
{
	(void)RB_REMOVE(channel_tree, &channels, ch);
	streams_end(ch, error, detail);
	if (ch->ev_read != NULL)
		event_free(ch->ev_read);
	if (ch->ev_write != NULL)
		event_free(ch->ev_write);
	if (ch->ev_flush != NULL)
		event_free(ch->ev_flush);
	if (ch->timer != NULL)
		event_free(ch->timer);
	if (ch->out != NULL)
		evbuffer_free(ch->out);
	(void)close(ch->fd);
	free(ch);
}

/*
 * Tells the parent of a channel that failed.  The streams stay open for the
 * moment that the parent needs to learn what became of the VM: its
 * PARENT_CLOSE_CHANNEL has the better cause.
 */
static void
channel_lost(struct channel *ch)
{
	struct timeval			 tv = front_time(CHANNEL_LOST_MS);
	struct m_front_guest_lost_event	 m;

	if (ch->state == CH_LOST)
		return;
	ch->state = CH_LOST;
	memset(&m, 0, sizeof(m));
	memcpy(m.id, ch->about.id, sizeof(m.id));
	m.generation = ch->about.generation;
	m.error = (uint16_t)ch->error;
	(void)snprintf(m.detail, sizeof(m.detail), "%s", ch->detail);
	log_warnx("channel lost id=%s error=%s detail=\"%s\"", m.id,
	    error_code(ch->error), log_vis(m.detail, strlen(m.detail)));
	(void)send_front_guest_lost_event(front.parent, &m);
	(void)event_del(ch->ev_read);
	(void)event_del(ch->ev_write);
	(void)event_del(ch->ev_flush);
	(void)evtimer_del(ch->timer);
	if (evtimer_add(ch->timer, &tv) == -1)
		channel_free(ch, (enum sbx_error)m.error, m.detail);
}

int
channel_fail(struct channel *ch, enum sbx_error error, const char *fmt, ...)
{
	va_list	 ap;

	if (ch->error == E_OK) {
		ch->error = error;
		va_start(ap, fmt);
		(void)vsnprintf(ch->detail, sizeof(ch->detail), fmt, ap);
		va_end(ap);
	}
	return 1;
}

/* ---- writing ---- */

void
channel_schedule(struct channel *ch)
{
	event_active(ch->ev_flush, EV_WRITE, 0);
}

void
channel_put_head(struct channel *ch, uint8_t type, uint16_t flags,
    uint32_t stream, size_t len)
{
	uint8_t	 head[GP_HEADER_BYTES];

	gp_put_header(head, type, flags, stream, (uint32_t)len);
	if (evbuffer_add(ch->out, head, sizeof(head)) == -1)
		(void)channel_fail(ch, E_HOST_MEMORY, "no memory for a frame");
	channel_schedule(ch);
}

void
channel_put(struct channel *ch, uint8_t type, uint16_t flags, uint32_t stream,
    const void *payload, size_t len)
{
	channel_put_head(ch, type, flags, stream, len);
	if (len != 0 && evbuffer_add(ch->out, payload, len) == -1)
		(void)channel_fail(ch, E_HOST_MEMORY, "no memory for a frame");
	if (evbuffer_get_length(ch->out) > GP_QUEUE_MAX)
		(void)channel_fail(ch, E_GUEST_PROTOCOL,
		    "guest agent does not read what it is sent");
}

static void
channel_write(struct channel *ch)
{
	int	 n;

	streams_pump(ch);
	if (ch->write_dead)
		(void)evbuffer_drain(ch->out, evbuffer_get_length(ch->out));
	if (evbuffer_get_length(ch->out) == 0)
		return;
	n = evbuffer_write_atmost(ch->out, ch->fd, 2 * FRONT_IO_BYTES);
	if (n == -1 && errno != EAGAIN && errno != EINTR) {
		/* What it said last is still to be read; the end follows. */
		ch->write_dead = 1;
		return;
	}
	if (evbuffer_get_length(ch->out) != 0)
		(void)event_add(ch->ev_write, NULL);
	else if (!TAILQ_EMPTY(&ch->ready))
		channel_schedule(ch);
	streams_drained(ch);
}

static void
channel_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct channel	*ch = arg;

	(void)fd;
	(void)what;
	if (ch->state == CH_LOST)
		return;
	if (ch->error == E_OK && !event_pending(ch->ev_write, EV_WRITE, NULL))
		channel_write(ch);
	if (ch->error != E_OK)
		channel_lost(ch);
}

/* ---- what the guest says about itself ---- */

static int
handle_hello(struct channel *ch, const struct gp_frame *f)
{
	struct gp_hello	 h;
	int		 r;

	if (ch->state != CH_HELLO)
		return channel_fail(ch, E_GUEST_PROTOCOL, "HELLO twice");
	r = gp_get_hello(f, &h);
	if (r != GP_OK)
		return channel_fail(ch, E_GUEST_PROTOCOL, "HELLO: %s",
		    gp_strerror(r));
	if (h.version_min != GP_VERSION || h.version_max != GP_VERSION)
		return channel_fail(ch, E_GUEST_PROTOCOL, "guest agent speaks "
		    "protocol version %u, this daemon %d", h.version_max,
		    GP_VERSION);
	ch->state = CH_CONFIG;
	return chan_config_send(ch);
}

static int
handle_config_done(struct channel *ch, const struct gp_frame *f)
{
	struct m_front_guest_ready_event	 m;
	uint32_t				 err;

	if (ch->state != CH_CONFIG)
		return channel_fail(ch, E_GUEST_PROTOCOL,
		    "CONFIG_DONE without CONFIG");
	err = gp_get_u32(f->payload);
	if (err != 0)
		return channel_fail(ch, E_START_FAILED,
		    "guest could not take its configuration: %s (errno %u)",
		    log_vis((const char *)f->payload + 4, f->len - 4), err);
	ch->state = CH_READY;
	(void)event_del(ch->timer);
	memset(&m, 0, sizeof(m));
	memcpy(m.id, ch->about.id, sizeof(m.id));
	m.generation = ch->about.generation;
	(void)send_front_guest_ready_event(front.parent, &m);
	log_debug("channel ready id=%s", m.id);
	exec_channel_ready(ch->about.id);
	return 0;
}

static int
handle_ping(struct channel *ch, const struct gp_frame *f)
{
	uint64_t	 now = boottime_now().ms;

	if (now - ch->pings_since_ms >= 1000) {
		ch->pings_since_ms = now;
		ch->pings = 0;
	}
	if (++ch->pings > GP_PINGS_PER_S)
		return channel_fail(ch, E_GUEST_PROTOCOL,
		    "PING more than %d times a second", GP_PINGS_PER_S);
	channel_put(ch, GP_PONG, 0, 0, f->payload, f->len);
	return ch->error != E_OK;
}

static int
handle_pong(struct channel *ch, const struct gp_frame *f)
{
	if (ch->pinged_ms == 0 || memcmp(f->payload, ch->ping, f->len) != 0)
		return channel_fail(ch, E_GUEST_PROTOCOL, "PONG without PING");
	ch->pinged_ms = 0;
	(void)evtimer_del(ch->timer);
	channel_watch(ch);
	return 0;
}

static int
channel_frame(const struct gp_frame *f, void *arg)
{
	struct channel	*ch = arg;

	ch->heard_ms = boottime_now().ms;
	if (ch->state == CH_HELLO && f->type != GP_HELLO)
		return channel_fail(ch, E_GUEST_PROTOCOL,
		    "first frame is not HELLO");
	switch (f->type) {
	case GP_HELLO:
		return handle_hello(ch, f);
	case GP_CONFIG_DONE:
		return handle_config_done(ch, f);
	case GP_PING:
		return handle_ping(ch, f);
	case GP_PONG:
		return handle_pong(ch, f);
	default:
		/* The reader lets only frames of streams come this far. */
		return streams_handle(ch, f) || ch->error != E_OK;
	}
}

/* ---- reading ---- */

/* Drops bytes up to the record with our nonce; what is left goes on. */
static size_t
find_sync(struct channel *ch, const uint8_t *p, size_t len)
{
	size_t	 used, at = 0;

	while (at < len) {
		if (gp_scan(&ch->scan, p + at, len - at, &used) == 1 &&
		    memcmp(ch->scan.nonce, ch->nonce, GP_NONCE_BYTES) == 0) {
			ch->state = CH_HELLO;
			return at + used;
		}
		at += used;
	}
	return len;
}

static void
channel_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct channel	*ch = arg;
	ssize_t		 n;
	size_t		 at = 0;
	int		 r;

	(void)what;
	n = read(fd, front.io, sizeof(front.io));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		(void)channel_fail(ch, E_GUEST_LOST, "guest agent's channel "
		    "ended%s%s", n == 0 ? "" : ": ", n == 0 ? "" :
		    strerror(errno));
	} else {
		if (ch->state == CH_SYNC)
			at = find_sync(ch, front.io, (size_t)n);
		r = gp_reader_feed(&ch->reader, front.io + at, (size_t)n - at,
		    channel_frame, ch);
		if (r < 0)
			(void)channel_fail(ch, E_GUEST_PROTOCOL,
			    "guest agent broke the protocol: %s",
			    gp_strerror(r));
	}
	if (ch->error != E_OK)
		channel_lost(ch);
}

/* ---- time ---- */

/* Since when the guest owes us a frame: the ping, or what it said later. */
static uint64_t
silent_since(const struct channel *ch)
{
	return ch->heard_ms > ch->pinged_ms ? ch->heard_ms : ch->pinged_ms;
}

/* Pings go round while there are streams; a silence is looked at on time. */
void
channel_watch(struct channel *ch)
{
	struct timeval	 tv = front_time(GP_PING_MS);
	uint64_t	 silent;

	if (ch->pinged_ms != 0) {
		silent = boottime_now().ms - silent_since(ch);
		tv = front_time(silent < GP_SILENT_MS ?
		    (unsigned int)(GP_SILENT_MS - silent) : 0);
	}
	if (ch->nstreams != 0 && !evtimer_pending(ch->timer, NULL))
		(void)evtimer_add(ch->timer, &tv);
}

static void
channel_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct channel	*ch = arg;
	uint64_t	 now = boottime_now().ms;

	(void)fd;
	(void)what;
	if (ch->state == CH_LOST) {
		channel_free(ch, ch->error, ch->detail);
		return;
	}
	if (ch->state != CH_READY) {
		(void)channel_fail(ch, E_GUEST_TIMEOUT, ch->state == CH_SYNC ?
		    "guest agent did not answer within %u ms" :
		    "guest agent did not finish its start within %u ms",
		    ch->about.deadline_ms);
	} else if (ch->pinged_ms == 0) {
		arc4random_buf(ch->ping, sizeof(ch->ping));
		ch->pinged_ms = now;
		channel_put(ch, GP_PING, 0, 0, ch->ping, sizeof(ch->ping));
	} else {
		if (now - silent_since(ch) >= GP_SILENT_MS)
			(void)channel_fail(ch, E_GUEST_LOST,
			    "guest agent is silent for %d ms", GP_SILENT_MS);
	}
	if (ch->error != E_OK)
		channel_lost(ch);
	else
		channel_watch(ch);
}

/* ---- begin and end ---- */

/* The guest may still be booting: what we send waits for it. */
static void
channel_hello(struct channel *ch)
{
	uint8_t		 sync[GP_SYNC_BYTES], body[GP_HELLO_BYTES];
	struct gp_hello	 h = { GP_VERSION, GP_VERSION, { 0 }, 0 };

	arc4random_buf(ch->nonce, sizeof(ch->nonce));
	gp_put_sync(sync, ch->nonce);
	if (evbuffer_add(ch->out, sync, sizeof(sync)) == -1)
		(void)channel_fail(ch, E_HOST_MEMORY, "no memory for a frame");
	channel_put(ch, GP_HELLO, 0, 0, body, gp_put_hello(body, &h));
}

static int
channel_events(struct channel *ch)
{
	struct timeval	 tv = front_time(ch->about.deadline_ms);

	ch->ev_read = event_new(front.base, ch->fd, EV_READ | EV_PERSIST,
	    channel_on_read, ch);
	ch->ev_write = event_new(front.base, ch->fd, EV_WRITE,
	    channel_on_write, ch);
	ch->ev_flush = event_new(front.base, -1, 0, channel_on_write, ch);
	ch->timer = evtimer_new(front.base, channel_on_timer, ch);
	ch->out = evbuffer_new();
	return ch->ev_read == NULL || ch->ev_write == NULL ||
	    ch->ev_flush == NULL || ch->timer == NULL || ch->out == NULL ||
	    evutil_make_socket_nonblocking(ch->fd) == -1 ||
	    event_add(ch->ev_read, NULL) == -1 ||
	    evtimer_add(ch->timer, &tv) == -1;
}

void
channel_open(const struct m_parent_open_channel *m, int fd)
{
	struct m_front_guest_lost_event	 lost;
	struct channel			*ch;

	ch = channel_by_id(m->id);
	if (ch != NULL)
		channel_free(ch, E_GUEST_LOST, "channel was opened again");
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL) {
		(void)close(fd);
		memset(&lost, 0, sizeof(lost));
		memcpy(lost.id, m->id, sizeof(lost.id));
		lost.generation = m->generation;
		lost.error = E_HOST_MEMORY;
		(void)send_front_guest_lost_event(front.parent, &lost);
		return;
	}
	ch->about = *m;
	ch->fd = fd;
	RB_INIT(&ch->streams);
	TAILQ_INIT(&ch->ready);
	gp_reader_init(&ch->reader, GP_TO_HOST);
	(void)RB_INSERT(channel_tree, &channels, ch);
	if (channel_events(ch)) {
		memset(&lost, 0, sizeof(lost));
		memcpy(lost.id, m->id, sizeof(lost.id));
		lost.generation = m->generation;
		lost.error = E_HOST_MEMORY;
		(void)send_front_guest_lost_event(front.parent, &lost);
		channel_free(ch, E_HOST_MEMORY, "no memory for a channel");
		return;
	}
	channel_hello(ch);
}

void
channel_close(const struct m_parent_close_channel *m)
{
	struct channel	*ch;
	enum sbx_error	 error;

	error = m->error != E_OK && m->error < E_COUNT ?
	    (enum sbx_error)m->error : E_GONE;
	ch = channel_by_id(m->id);
	if (ch != NULL && ch->about.generation == m->generation)
		channel_free(ch, error, m->detail);
	exec_channel_closed(m->id, error, m->detail);
}
