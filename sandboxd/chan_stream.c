/* SPDX-License-Identifier: ISC */
/*
 * Exec streams in a channel to a guest: their order of frames and their credit.
 * Runs in front; what the guest sends is checked against what it may send in
 * that moment.
 *
 * A stream whose listener is gone stays until the guest has said EXITED,
 * because until then its frames are no fault; its output is dropped.
 */
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "channel_int.h"

static int
gstream_cmp(struct gstream *a, struct gstream *b)
{
	return a->id < b->id ? -1 : a->id > b->id;
}

RB_GENERATE(gstream_tree, gstream, entry, gstream_cmp)

static void
gstream_free(struct gstream *gs)
{
	if (gs->is_ready)
		TAILQ_REMOVE(&gs->ch->ready, gs, ready_entry);
	(void)RB_REMOVE(gstream_tree, &gs->ch->streams, gs);
	gs->ch->nstreams--;
	if (gs->args != NULL)
		evbuffer_free(gs->args);
	if (gs->input != NULL)
		evbuffer_free(gs->input);
	free(gs);
}

/* ---- sending ---- */

/* What a frame could be made of now; NULL: nothing, or no credit. */
static struct evbuffer *
sendable(const struct gstream *gs)
{
	struct evbuffer	*buf;

	if (gs->send_credit <= GP_FRAME_COST)
		return NULL;
	buf = gs->start_sent ? gs->input : gs->args;
	if (buf == NULL || evbuffer_get_length(buf) == 0 ||
	    (gs->start_sent && !gs->started))
		return NULL;
	return buf;
}

static int
eof_due(const struct gstream *gs)
{
	return gs->started && gs->input_eof && !gs->eof_sent &&
	    evbuffer_get_length(gs->input) == 0;
}

static void
gstream_check_ready(struct gstream *gs)
{
	if (gs->is_ready || (sendable(gs) == NULL && !eof_due(gs)))
		return;
	gs->is_ready = 1;
	TAILQ_INSERT_TAIL(&gs->ch->ready, gs, ready_entry);
	channel_schedule(gs->ch);
}

/* One frame of ARGS or DATA, and what follows from the last one. */
static void
gstream_send_frame(struct gstream *gs)
{
	struct channel	*ch = gs->ch;
	struct evbuffer	*buf;
	const uint8_t	*p;
	size_t		 n;

	buf = sendable(gs);
	if (buf != NULL) {
		n = evbuffer_get_length(buf);
		if (n > gs->send_credit - GP_FRAME_COST)
			n = gs->send_credit - GP_FRAME_COST;
		if (n > GP_PAYLOAD_MAX)
			n = GP_PAYLOAD_MAX;
		p = evbuffer_pullup(buf, (ev_ssize_t)n);
		if (p == NULL) {
			(void)channel_fail(ch, E_HOST_MEMORY,
			    "no memory for a frame");
			return;
		}
		n = gp_frame_room(p, n);
		channel_put_head(ch, gs->start_sent ? GP_DATA : GP_ARGS,
		    GP_STDIN, gs->id, n);
		(void)evbuffer_remove_buffer(buf, ch->out, n);
		gs->send_credit -= (uint32_t)n + GP_FRAME_COST;
	}
	if (!gs->start_sent && evbuffer_get_length(gs->args) == 0) {
		gs->start_sent = 1;
		evbuffer_free(gs->args);
		gs->args = NULL;
		channel_put(ch, GP_START, 0, gs->id, NULL, 0);
		/* The terminal has its size before the command looks. */
		if (gs->cols != 0)
			gstream_resize(gs, gs->cols, gs->rows);
	}
	if (eof_due(gs)) {
		gs->eof_sent = 1;
		channel_put(ch, GP_EOF, GP_STDIN, gs->id, NULL, 0);
	}
}

/* Streams take turns, a frame each, while the channel has room. */
void
streams_pump(struct channel *ch)
{
	struct gstream	*gs;

	while ((gs = TAILQ_FIRST(&ch->ready)) != NULL && ch->error == E_OK &&
	    evbuffer_get_length(ch->out) < GP_QUEUE_HIGH) {
		TAILQ_REMOVE(&ch->ready, gs, ready_entry);
		gs->is_ready = 0;
		gstream_send_frame(gs);
		gstream_check_ready(gs);
	}
}

int
gstream_blocked(struct gstream *gs)
{
	if (evbuffer_get_length(gs->input) < EXEC_STDIN_QUEUE_HIGH &&
	    evbuffer_get_length(gs->ch->out) < GP_QUEUE_HIGH)
		return 0;
	gs->want_drain = 1;
	return 1;
}

void
streams_drained(struct channel *ch)
{
	struct gstream	*gs;

	if (evbuffer_get_length(ch->out) >= GP_QUEUE_HIGH)
		return;
	/* A listener may close its stream here, but never frees one. */
	RB_FOREACH(gs, gstream_tree, &ch->streams) {
		if (!gs->want_drain || evbuffer_get_length(gs->input) >=
		    EXEC_STDIN_QUEUE_HIGH)
			continue;
		gs->want_drain = 0;
		if (gs->events != NULL)
			gs->events->drained(gs->arg);
	}
}

/* ---- what the listener asks ---- */

struct gstream *
gstream_open(struct channel *ch, struct evbuffer *records,
    const struct gstream_events *events, void *arg)
{
	static const uint8_t	 kind = GP_KIND_EXEC;
	struct gstream		*gs = NULL;

	if (ch->nstreams >= GP_STREAMS_MAX || ch->last_stream == UINT32_MAX)
		goto fail;
	gs = calloc(1, sizeof(*gs));
	if (gs == NULL || (gs->input = evbuffer_new()) == NULL)
		goto fail;
	gs->ch = ch;
	gs->id = ++ch->last_stream;
	gs->events = events;
	gs->arg = arg;
	gs->args = records;
	gs->send_credit = GP_WINDOW;
	gs->recv_credit = GP_WINDOW;
	(void)RB_INSERT(gstream_tree, &ch->streams, gs);
	ch->nstreams++;
	channel_put(ch, GP_OPEN, 0, gs->id, &kind, sizeof(kind));
	gstream_check_ready(gs);
	channel_watch(ch);
	return gs;
fail:
	evbuffer_free(records);
	free(gs);
	return NULL;
}

void
gstream_close(struct gstream *gs)
{
	if (gs->is_ready) {
		TAILQ_REMOVE(&gs->ch->ready, gs, ready_entry);
		gs->is_ready = 0;
	}
	gs->events = NULL;
	gs->arg = NULL;
	gs->paused = 0;
	(void)evbuffer_drain(gs->input, evbuffer_get_length(gs->input));
	if (gs->args != NULL)
		(void)evbuffer_drain(gs->args, evbuffer_get_length(gs->args));
	gs->input_eof = 0;
	channel_put(gs->ch, GP_CLOSE, 0, gs->id, NULL, 0);
}

void
gstream_input(struct gstream *gs, const uint8_t *data, size_t len)
{
	if (gs->input_eof || len == 0)
		return;
	if (evbuffer_add(gs->input, data, len) == -1) {
		(void)channel_fail(gs->ch, E_HOST_MEMORY,
		    "no memory for stdin");
		channel_schedule(gs->ch);
		return;
	}
	gstream_check_ready(gs);
}

void
gstream_input_eof(struct gstream *gs)
{
	gs->input_eof = 1;
	gstream_check_ready(gs);
}

void
gstream_signal(struct gstream *gs, uint8_t number, int tree)
{
	uint8_t	 body[2] = { number, tree ? 1 : 0 };

	channel_put(gs->ch, GP_SIGNAL, 0, gs->id, body, sizeof(body));
}

void
gstream_resize(struct gstream *gs, uint16_t cols, uint16_t rows)
{
	uint8_t	 body[4];

	if (!gs->start_sent) {
		gs->cols = cols;
		gs->rows = rows;
		return;
	}
	gp_put_u16(body, cols);
	gp_put_u16(body + 2, rows);
	channel_put(gs->ch, GP_RESIZE, 0, gs->id, body, sizeof(body));
}

static void
give_credit(struct gstream *gs)
{
	uint8_t	 body[4];

	if (gs->paused || gs->owed < GP_WINDOW / 4)
		return;
	gp_put_u32(body, gs->owed);
	channel_put(gs->ch, GP_CREDIT, 0, gs->id, body, sizeof(body));
	gs->recv_credit += gs->owed;
	gs->owed = 0;
}

void
gstream_pause(struct gstream *gs, int paused)
{
	gs->paused = paused ? 1 : 0;
	give_credit(gs);
}

/* ---- what the guest sends ---- */

static int
handle_credit(struct gstream *gs, const struct gp_frame *f)
{
	uint32_t	 n;

	/* It gives back what it has taken, no more: the sum is the window. */
	n = gp_get_u32(f->payload);
	if (n == 0 || n > GP_WINDOW - gs->send_credit)
		return channel_fail(gs->ch, E_GUEST_PROTOCOL,
		    "CREDIT of %u over the window", n);
	gs->send_credit += n;
	gstream_check_ready(gs);
	return 0;
}

static int
handle_started(struct gstream *gs, const struct gp_frame *f)
{
	if (gs->started || !gs->start_sent)
		return channel_fail(gs->ch, E_GUEST_PROTOCOL,
		    "STARTED out of place");
	gs->started = 1;
	gstream_check_ready(gs);
	if (gs->events != NULL)
		gs->events->started(gs->arg, gp_get_u32(f->payload));
	return 0;
}

static int
handle_refused(struct gstream *gs, const struct gp_frame *f)
{
	const struct gstream_events	*events = gs->events;
	void				*arg = gs->arg;

	if (gs->started || f->payload[0] < GP_STAGE_RECORDS ||
	    f->payload[0] > GP_STAGE_RESOURCES)
		return channel_fail(gs->ch, E_GUEST_PROTOCOL,
		    "REFUSED out of place");
	gstream_free(gs);
	if (events != NULL)
		events->refused(arg, (enum gp_stage)f->payload[0],
		    gp_get_u32(f->payload + 1));
	return 0;
}

static int
handle_data(struct gstream *gs, const struct gp_frame *f)
{
	uint32_t	 cost = f->len + GP_FRAME_COST;

	if (!gs->started || (gs->guest_eofs & 1u << f->flags) != 0)
		return channel_fail(gs->ch, E_GUEST_PROTOCOL,
		    "output before STARTED or after its end");
	if (cost > gs->recv_credit)
		return channel_fail(gs->ch, E_GUEST_PROTOCOL,
		    "output beyond the stream's credit");
	gs->recv_credit -= cost;
	/* An empty frame takes nobody's time but ours: its cost is gone. */
	if (f->len != 0)
		gs->owed += cost;
	if (gs->events != NULL && f->len != 0)
		gs->events->output(gs->arg, (enum gp_channel)f->flags,
		    f->payload, f->len);
	give_credit(gs);
	return 0;
}

static int
handle_eof(struct gstream *gs, const struct gp_frame *f)
{
	if (!gs->started || (gs->guest_eofs & 1u << f->flags) != 0)
		return channel_fail(gs->ch, E_GUEST_PROTOCOL,
		    "EOF out of place");
	gs->guest_eofs |= (uint8_t)(1u << f->flags);
	return 0;
}

static int
handle_exited(struct gstream *gs, const struct gp_frame *f)
{
	const struct gstream_events	*events = gs->events;
	void				*arg = gs->arg;
	struct gp_exited		 e;
	int				 r;

	r = gp_get_exited(f, &e);
	if (r != GP_OK)
		return channel_fail(gs->ch, E_GUEST_PROTOCOL, "EXITED: %s",
		    gp_strerror(r));
	/* A command that was given up may end before it began. */
	if (!gs->started && events != NULL)
		return channel_fail(gs->ch, E_GUEST_PROTOCOL,
		    "EXITED before STARTED");
	gstream_free(gs);
	if (events != NULL)
		events->exited(arg, &e);
	return 0;
}

int
streams_handle(struct channel *ch, const struct gp_frame *f)
{
	struct gstream	*gs, want;

	want.id = f->stream;
	gs = RB_FIND(gstream_tree, &ch->streams, &want);
	if (gs == NULL)
		return channel_fail(ch, E_GUEST_PROTOCOL,
		    "frame for stream %u, which is not open", f->stream);
	switch (f->type) {
	case GP_CREDIT:
		return handle_credit(gs, f);
	case GP_STARTED:
		return handle_started(gs, f);
	case GP_REFUSED:
		return handle_refused(gs, f);
	case GP_DATA:
		return handle_data(gs, f);
	case GP_EOF:
		return handle_eof(gs, f);
	case GP_EXITED:
		return handle_exited(gs, f);
	default:
		return channel_fail(ch, E_GUEST_PROTOCOL,
		    "frame of type 0x%02x is not for the host", f->type);
	}
}

void
streams_end(struct channel *ch, enum sbx_error error, const char *detail)
{
	const struct gstream_events	*events;
	struct gstream			*gs;
	void				*arg;

	while ((gs = RB_MIN(gstream_tree, &ch->streams)) != NULL) {
		events = gs->events;
		arg = gs->arg;
		gstream_free(gs);
		if (events != NULL)
			events->lost(arg, error, detail);
	}
}
