/* SPDX-License-Identifier: ISC */
/*
 * The pump: one poll loop between the stream and us.  Memory is one buffer each
 * way: nothing is read from the socket while output waits for a slow stdout,
 * and nothing from stdin while the socket does not take what was read before.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "session.h"
#include "signals.h"
#include "sink.h"
#include "tty.h"
#include "wsc.h"

enum { STDIN_NONE, STDIN_OPEN, STDIN_EOF };

struct session {
	const struct session_spec	*spec;
	struct fault			*fault;
	struct wsc			 ws;
	struct sink			 sinks[3];	/* by channel */
	struct session_end		 end;
	int				 started;
	int				 over;		/* leave the loop */
	int				 failed;	/* with the fault */
	int				 in_state;
	/* The piece of output that waits for its sink; in ws.client->buf. */
	int				 channel;	/* -1: none open */
	const uint8_t			*piece;
	size_t				 piece_len;
	/* What is to be sent when there is room. */
	int				 signal;
	int				 resize;
	int				 pong;
	uint8_t				 pong_data[WS_CONTROL_MAX];
	size_t				 pong_len;
	/* Deadlines, 0: none. */
	uint64_t			 start_by, close_by, signal_by;
	uint64_t			 heard_ms, pong_ms;
};

static void
fail(struct session *s, const char *why)
{
	s->over = s->failed = 1;
	if (why != NULL)
		(void)fault_set(s->fault, CTL_ERROR, "%s: %s", s->spec->id,
		    why);
}

/* ---- to the server ---- */

static void
put_json(struct session *s, const char *text)
{
	(void)wsc_put(&s->ws, WS_OP_TEXT, text, strlen(text));
}

static void
put_control(struct session *s)
{
	uint16_t	 cols, rows;
	char		 text[96];

	if (s->pong) {
		s->pong = 0;
		(void)wsc_put(&s->ws, WS_OP_PONG, s->pong_data, s->pong_len);
	}
	if (!s->started)
		return;
	if (s->resize) {
		s->resize = 0;
		tty_size(&cols, &rows);
		(void)snprintf(text, sizeof(text),
		    "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}", cols,
		    rows);
		put_json(s, text);
	}
	if (s->signal != 0) {
		(void)snprintf(text, sizeof(text),
		    "{\"type\":\"signal\",\"name\":\"%s\"}",
		    signals_name(s->signal));
		s->signal = 0;
		put_json(s, text);
	}
}

static void
read_stdin(struct session *s)
{
	uint8_t	 buf[CTL_STDIN_PIECE];
	ssize_t	 n;

	n = read(STDIN_FILENO, buf, sizeof(buf));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1 && errno != EIO)
		say("stdin: %s", strerror(errno));
	if (n <= 0) {
		s->in_state = STDIN_EOF;
		put_json(s, "{\"type\":\"close_stdin\"}");
		return;
	}
	(void)wsc_put_channel(&s->ws, 0, buf, (size_t)n);
}

/* The second signal ends us; the first is forwarded, or ends us too late. */
static void
take_signals(struct session *s)
{
	int	 sig;

	signals_suspend();
	if (signals_resized() && s->spec->tty)
		s->resize = 1;
	sig = signals_take();
	if (sig == 0)
		return;
	if (signals_count() > 1) {
		s->over = 1;
		s->end.status = CTL_SIGNAL + sig;
		return;
	}
	s->signal = sig;
	s->signal_by = boottime_now().ms + CTL_SIGNAL_MS;
}

/* ---- from the server ---- */

static void
on_binary(struct session *s, const struct ws_piece *p)
{
	const uint8_t	*data = p->data;
	size_t		 len = p->len;

	if (p->first)
		s->channel = -1;
	if (s->channel == -1 && len > 0) {
		s->channel = data[0];
		data++;
		len--;
	}
	if (p->last && s->channel == -1)
		fail(s, "the stream has a message without a channel");
	else if (s->channel != -1 && s->channel != 1 && s->channel != 2)
		fail(s, "the stream has output on a channel that is none");
	else if (s->end.exited && len > 0)
		fail(s, "the stream has output after the command's end");
	s->piece = data;
	s->piece_len = s->over || s->channel == -1 ? 0 : len;
}

static void
on_close(struct session *s, const struct ws_piece *p)
{
	uint8_t	 payload[WS_CONTROL_MAX];
	char	 reason[WS_CONTROL_MAX + 1];
	size_t	 n;

	s->over = 1;
	n = ws_put_close(payload, WS_CODE_NORMAL, "");
	(void)wsc_put(&s->ws, WS_OP_CLOSE, payload, n);
	(void)wsc_flush(&s->ws);
	if (s->end.exited)
		return;
	s->failed = 1;
	if (s->end.failed)
		return;
	n = p->len < WS_CONTROL_MAX ? p->len : WS_CONTROL_MAX;
	if (n > 0)
		memcpy(reason, p->data, n);
	reason[n] = '\0';
	session_closed(p->code, reason, s->fault);
}

static void
on_text(struct session *s, const struct ws_piece *p)
{
	if (session_event((const char *)p->data, p->len, s->spec, &s->started,
	    &s->end, s->fault) == -1)
		fail(s, "sandboxd sent an event that makes no sense");
	if (s->started)
		s->start_by = 0;
	if ((s->end.exited || s->end.failed) && s->close_by == 0)
		s->close_by = boottime_now().ms + CTL_CLOSE_MS;
}

static void
on_ping(struct session *s, const struct ws_piece *p)
{
	s->pong = 1;
	s->pong_len = p->len < WS_CONTROL_MAX ? p->len : WS_CONTROL_MAX;
	if (s->pong_len > 0)
		memcpy(s->pong_data, p->data, s->pong_len);
}

/* Writes what waits; returns 0 when it still waits. */
static int
write_piece(struct session *s)
{
	ssize_t	 n;

	while (s->piece_len > 0) {
		n = sink_write(&s->sinks[s->channel], s->piece, s->piece_len);
		if (n == 0)
			return 0;
		if (n == -1) {
			s->over = 1;
			if (errno == EPIPE) {
				/* As if SIGPIPE had ended us. */
				s->end.status = CTL_SIGNAL + SIGPIPE;
				return 0;
			}
			(void)fault_set(s->fault, CTL_ERROR, "%s: %s",
			    s->channel == 1 ? "stdout" : "stderr",
			    strerror(errno));
			s->failed = 1;
			return 0;
		}
		s->piece += n;
		s->piece_len -= (size_t)n;
		s->pong_ms = boottime_now().ms;
	}
	return 1;
}

/* Handles what has been read, until a sink is slow. */
static void
handle_input(struct session *s)
{
	struct client	*c = s->ws.client;
	struct ws_piece	 p;
	enum ws_event	 ev;

	while (!s->over && write_piece(s)) {
		ev = ws_read(&s->ws.reader, c->buf + c->at, c->have - c->at,
		    &p);
		c->at += p.used;
		switch (ev) {
		case WS_NEED_MORE:
			return;
		case WS_TEXT:
			on_text(s, &p);
			break;
		case WS_BINARY:
			on_binary(s, &p);
			break;
		case WS_PING:
			on_ping(s, &p);
			break;
		case WS_PONG:
			break;
		case WS_CLOSE:
			on_close(s, &p);
			break;
		case WS_FAIL:
			fail(s, p.why);
			break;
		}
	}
}

static void
read_socket(struct session *s)
{
	struct client	*c = s->ws.client;
	int		 r;

	client_set_deadline(c, CTL_REQUEST_MS);
	r = client_fill(c, s->fault);
	if (r == 1) {
		s->heard_ms = boottime_now().ms;
		return;
	}
	s->over = 1;
	if (s->end.exited)
		return;
	s->failed = 1;
	if (r == 0 && !s->end.failed)
		(void)fault_set(s->fault, CTL_ERROR, "%s: the stream broke "
		    "before the command's end was reported (did sandboxd "
		    "end?)", s->spec->id);
}

/* ---- the loop ---- */

static void
soonest(uint64_t *by, uint64_t other)
{
	if (other != 0 && (*by == 0 || other < *by))
		*by = other;
}

/* What has waited too long; returns when to look again. */
static uint64_t
check_time(struct session *s, uint64_t now)
{
	uint64_t	 by = 0, silent;

	if (s->close_by != 0 && now >= s->close_by) {
		s->over = 1;
		s->failed = !s->end.exited;
		return now;
	}
	if (s->signal_by != 0 && now >= s->signal_by) {
		s->over = 1;
		s->end.status = CTL_SIGNAL + signals_first();
		return now;
	}
	if (s->start_by != 0 && now >= s->start_by)
		fail(s, "the command was not started in time");
	soonest(&by, s->close_by);
	soonest(&by, s->signal_by);
	soonest(&by, s->start_by);
	if (s->piece_len > 0) {
		/* The server's pings lie behind the output: say we live. */
		s->heard_ms = now;
		if (now >= s->pong_ms + CTL_PONG_MS) {
			s->pong_ms = now;
			s->pong = 1;
			s->pong_len = 0;
		}
		soonest(&by, s->pong_ms + CTL_PONG_MS);
	} else {
		silent = s->heard_ms + CTL_SILENT_MS;
		if (now >= silent)
			fail(s, "sandboxd has gone silent");
		soonest(&by, silent);
	}
	return by;
}

static void
wait_and_move(struct session *s, uint64_t now, uint64_t by)
{
	struct pollfd	 p[3] = { { .fd = s->ws.client->fd },
			    { .fd = -1 }, { .fd = -1 } };

	if (s->piece_len == 0)
		p[0].events |= POLLIN;
	else
		p[2] = (struct pollfd){ .fd = s->sinks[s->channel].fd,
		    .events = POLLOUT };
	if (wsc_pending(&s->ws))
		p[0].events |= POLLOUT;
	else if (s->in_state == STDIN_OPEN && s->started && !s->end.exited)
		p[1] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	if (s->piece_len > 0 && p[0].events == 0)
		p[0].fd = -1;	/* its hang-up would not let us sleep */
	if (signals_poll(p, 3, by > now ? (int)(by - now) : 0) == -1)
		return;
	if (p[1].revents != 0)
		read_stdin(s);
	if (s->piece_len == 0 && p[0].revents & (POLLIN | POLLHUP | POLLERR))
		read_socket(s);
	handle_input(s);
}

static void
pump(struct session *s)
{
	uint64_t	 now, by;

	now = boottime_now().ms;
	s->start_by = now + CTL_STARTED_MS;
	s->heard_ms = s->pong_ms = now;
	/* The start of the stream may have come with the handshake. */
	handle_input(s);
	while (!s->over) {
		take_signals(s);
		now = boottime_now().ms;
		by = check_time(s, now);
		if (s->over)
			break;
		if (!wsc_pending(&s->ws))
			put_control(s);
		/* Gone: what it said before that is still to be read. */
		if (wsc_flush(&s->ws) == -1) {
			s->ws.out_at = s->ws.out_len = 0;
			s->in_state = STDIN_NONE;
		}
		if (s->signal == 0 && !wsc_pending(&s->ws))
			s->signal_by = 0;
		wait_and_move(s, now, by);
	}
}

int
session_run(const struct session_spec *spec, struct fault *f)
{
	struct session	*s;
	char		*start, target[64];
	size_t		 len;
	int		 status = -1;

	s = calloc(1, sizeof(*s));
	start = session_start_message(spec, &len, f);
	if (s == NULL || start == NULL)
		goto done;
	s->spec = spec;
	s->fault = f;
	s->channel = -1;
	s->in_state = spec->with_stdin ? STDIN_OPEN : STDIN_NONE;
	(void)snprintf(target, sizeof(target), "/v1/sandboxes/%s/command",
	    spec->id);
	if (wsc_open(&s->ws, target, 0, f) == -1 ||
	    wsc_send_text(&s->ws, start, len, f) == -1)
		goto done;
	if (spec->tty && tty_set_raw() == -1) {
		(void)fault_set(f, CTL_ERROR, "terminal: %s", strerror(errno));
		goto done;
	}
	sink_open(&s->sinks[1], STDOUT_FILENO);
	sink_open(&s->sinks[2], STDERR_FILENO);
	pump(s);
	tty_restore();
	sink_close(&s->sinks[1]);
	sink_close(&s->sinks[2]);
	if (!s->failed)
		status = s->end.status;
done:
	if (s != NULL)
		wsc_close(&s->ws);
	free(start);
	free(s);
	return status;
}
