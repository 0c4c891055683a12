/* SPDX-License-Identifier: ISC */
/*
 * GET /sandboxes/{id}/command: one command over a WebSocket, subprotocol
 * sandbox.v1 (sandboxd-api(7)).  Runs in front; every byte read is a client's.
 *
 * Order to the client: process_started, output, process_exited, close.  What
 * the client sends is read only as fast as the guest takes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "api.h"
#include "clock.h"
#include "exec.h"
#include "exec_event.h"
#include "front.h"
#include "ws.h"

enum phase {
	PHASE_ATTACH,	/* the parent is asked; no 101 yet */
	PHASE_START,	/* the client is to say what to run */
	PHASE_BEGIN,	/* the guest is asked */
	PHASE_RUN,
	PHASE_CLOSE	/* our close frame is out */
};

struct wsock {
	struct conn		*c;
	struct exec		*exec;		/* NULL: over */
	enum phase		 phase;
	struct ws_reader	 reader;
	struct event		*timer;
	uint64_t		 heard_ms;	/* last frame of the client's */
	int			 wants_stdin;	/* and has not closed it */
	int			 input_blocked;
	const char		*protocol;
	char			 accept[WS_ACCEPT_LEN + 1];
};

static const char *const protocols[] = { "sandbox.v1", NULL };

static void
wsock_free(struct wsock *w)
{
	if (w->timer != NULL)
		event_free(w->timer);
	ws_reader_clear(&w->reader);
	free(w);
}

static void
set_timer(struct wsock *w, unsigned int ms)
{
	struct timeval	 tv = front_time(ms);

	(void)evtimer_add(w->timer, &tv);
}

/* ---- sending ---- */

static void
send_frame(struct wsock *w, enum ws_opcode op, const void *data, size_t len)
{
	uint8_t	 head[WS_HEAD_MAX];

	if (evbuffer_add(w->c->out, head, ws_put_head(head, op, 1, len,
	    NULL)) == -1 || evbuffer_add(w->c->out, data, len) == -1)
		w->c->dead = 1;
	conn_output(w->c);
}

static void
send_event(struct wsock *w, struct json_out *out)
{
	if (json_out_end(out) == 0)
		send_frame(w, WS_OP_TEXT, out->text, out->len);
	else {
		w->c->dead = 1;
		conn_schedule(w->c);
	}
	json_out_free(out);
}

/* Our close frame; the client's answer is waited for a little. */
static void
send_close(struct wsock *w, unsigned int code, const char *reason)
{
	uint8_t	 body[WS_CONTROL_MAX];

	send_frame(w, WS_OP_CLOSE, body, ws_put_close(body, code, reason));
	w->phase = PHASE_CLOSE;
	set_timer(w, WS_CLOSE_MS);
}

static unsigned int
close_code(enum sbx_error error)
{
	switch (error) {
	case E_BAD_JSON:
	case E_BAD_HTTP:
		return WS_CODE_PROTOCOL;
	case E_GONE:
	case E_NO_SANDBOX:
		return WS_CODE_SANDBOX_GONE;
	case E_GUEST_LOST:
	case E_GUEST_PROTOCOL:
	case E_GUEST_TIMEOUT:
		return WS_CODE_GUEST_LOST;
	default:
		return error_status(error) < 500 ? WS_CODE_POLICY :
		    WS_CODE_INTERNAL;
	}
}

/* The error event and the close frame that belongs to it. */
static void
send_error(struct wsock *w, enum sbx_error error, const char *detail)
{
	struct json_out	 out = { .max = 0 };

	exec_event_error(&out, error, detail);
	send_event(w, &out);
	send_close(w, close_code(error), error_title(error));
}

/* The client broke the rules: that is the command's end, too. */
static void
refuse_client(struct wsock *w, enum sbx_error error, const char *detail)
{
	if (w->exec != NULL)
		exec_end(w->exec, w->phase == PHASE_RUN);
	w->exec = NULL;
	send_error(w, error, detail);
}

/* ---- messages of the client's ---- */

static void
take_start(struct wsock *w, struct json_object *obj)
{
	struct exec_request	 req;
	struct json_error	 err = { E_OK, "" };

	if (exec_request_read(&req, EXEC_FORM_START, obj, &err) != 0) {
		exec_request_clear(&req);
		refuse_client(w, err.code, err.detail);
		return;
	}
	w->wants_stdin = req.wants_stdin;
	w->phase = PHASE_BEGIN;
	set_timer(w, WS_PING_MS);
	exec_start(w->exec, &req);
}

static void
take_resize(struct wsock *w, struct json_reader *r)
{
	uint32_t	 cols = 0, rows = 0;

	(void)json_take_u32(r, "cols", JSON_REQUIRED, 1, UINT16_MAX, &cols);
	(void)json_take_u32(r, "rows", JSON_REQUIRED, 1, UINT16_MAX, &rows);
	if (json_end(r) == 0)
		exec_resize(w->exec, (uint16_t)cols, (uint16_t)rows);
}

static void
take_signal(struct wsock *w, struct json_reader *r)
{
	const char	*name = "";
	int		 number = 0;

	if (json_take_text(r, "name", JSON_REQUIRED, 1, 16, &name, NULL) == 0 &&
	    (number = exec_signal_number(name)) == 0)
		(void)json_refuse(r, "name", E_BAD_MEMBER,
		    "is not a signal's name");
	if (json_end(r) == 0)
		exec_signal(w->exec, (uint8_t)number);
}

static void
take_close_stdin(struct wsock *w, struct json_reader *r)
{
	if (json_end(r) != 0)
		return;
	if (w->wants_stdin)
		exec_input_eof(w->exec);
	w->wants_stdin = 0;
}

/* A message while the command runs. */
static void
take_control(struct wsock *w, struct json_object *obj)
{
	static const char *const	 types[] = { "resize", "signal",
					    "close_stdin" };
	struct json_error		 err = { E_OK, "" };
	struct json_reader		 r;
	unsigned int			 type = 0;

	json_open(&r, obj, &err);
	if (json_take_word(&r, "type", JSON_REQUIRED, types, 3, &type) == 0) {
		if (type == 0)
			take_resize(w, &r);
		else if (type == 1)
			take_signal(w, &r);
		else
			take_close_stdin(w, &r);
	}
	if (err.code != E_OK)
		refuse_client(w, err.code, err.detail);
}

static int
is_start(struct json_object *obj)
{
	struct json_object	*type;

	return json_object_is_type(obj, json_type_object) &&
	    json_object_object_get_ex(obj, "type", &type) &&
	    json_object_is_type(type, json_type_string) &&
	    strcmp(json_object_get_string(type), "start") == 0;
}

static void
take_text(struct wsock *w, const struct ws_piece *p)
{
	struct json_object	*obj = NULL;
	struct json_error	 err = { E_OK, "" };

	if (json_parse((const char *)p->data, p->len, EXEC_VALUES_MAX, &obj,
	    &err) != 0)
		refuse_client(w, err.code, err.detail);
	else if (w->phase == PHASE_RUN)
		take_control(w, obj);
	else if (is_start(obj))
		take_start(w, obj);
	else
		refuse_client(w, E_BAD_JSON,
		    "the first message has to be of type \"start\"");
	json_object_put(obj);
}

/* Channel byte, then bytes for stdin. */
static void
take_binary(struct wsock *w, const struct ws_piece *p)
{
	const uint8_t	*data = p->data;
	size_t		 len = p->len;

	if (w->phase != PHASE_RUN) {
		refuse_client(w, E_BAD_JSON,
		    "the first message has to be of type \"start\"");
		return;
	}
	if (p->first) {
		if (len == 0 || data[0] != GP_STDIN) {
			refuse_client(w, E_BAD_JSON,
			    "a binary message has to start with channel 0");
			return;
		}
		data++;
		len--;
	}
	if (len == 0)
		return;
	if (!w->wants_stdin) {
		refuse_client(w, E_BAD_JSON,
		    "stdin is closed, or was not asked for");
		return;
	}
	exec_input(w->exec, data, len);
}

/* The client says that it goes: before the end, that is vanishing. */
static void
take_close(struct wsock *w, const struct ws_piece *p)
{
	struct conn	*c = w->c;

	if (w->phase != PHASE_CLOSE)
		send_close(w, p->code == WS_CODE_NONE ? WS_CODE_NORMAL :
		    p->code, "");
	if (w->exec != NULL)
		exec_end(w->exec, 1);
	wsock_free(w);
	conn_finish(c);
}

static int
may_read(struct wsock *w)
{
	switch (w->phase) {
	case PHASE_ATTACH:
	case PHASE_BEGIN:
		return 0;
	case PHASE_START:
	case PHASE_CLOSE:
		return 1;
	case PHASE_RUN:
		break;
	}
	w->input_blocked = exec_blocked(w->exec);
	return !w->input_blocked;
}

/* One frame or piece; 0 when there is nothing more, or the wsock is freed. */
static int
take_event(struct wsock *w)
{
	struct evbuffer	*in = w->c->in;
	struct ws_piece	 p;
	enum ws_event	 ev;
	size_t		 len = evbuffer_get_length(in);
	uint8_t		*data;
	int		 closing = w->phase == PHASE_CLOSE;

	data = evbuffer_pullup(in, -1);
	if (data == NULL && len != 0) {
		w->c->dead = 1;
		return 0;
	}
	ev = ws_read(&w->reader, data, len, &p);
	if (ev != WS_NEED_MORE)
		w->heard_ms = boottime_now().ms;
	if (ev == WS_TEXT && !closing)
		take_text(w, &p);
	else if (ev == WS_BINARY && !closing)
		take_binary(w, &p);
	else if (ev == WS_PING && !closing)
		send_frame(w, WS_OP_PONG, p.data, p.len);
	else if (ev == WS_PONG)
		/* It reads nothing, and says that it will: no stall. */
		w->c->out_since_ms = w->heard_ms;
	(void)evbuffer_drain(in, p.used);
	if (ev == WS_CLOSE || (ev == WS_FAIL && closing)) {
		take_close(w, &p);
		return 0;
	}
	if (ev == WS_FAIL) {
		if (w->exec != NULL)
			exec_end(w->exec, w->phase == PHASE_RUN);
		w->exec = NULL;
		send_close(w, p.code, p.why);
	}
	return ev != WS_NEED_MORE;
}

static void
on_input(void *arg)
{
	struct wsock	*w = arg;
	struct conn	*c = w->c;

	while (may_read(w))
		if (!take_event(w))
			break;
	/* take_close() may have ended it. */
	if (c->user == NULL || !c->in_eof || evbuffer_get_length(c->in) != 0)
		return;
	if (w->phase == PHASE_CLOSE) {
		wsock_free(w);
		conn_finish(c);
	} else if (w->phase == PHASE_RUN && w->wants_stdin) {
		/* Half-closed: it can send no more, and still reads. */
		exec_input_eof(w->exec);
		w->wants_stdin = 0;
	}
}

/* ---- time ---- */

/*
 * Anything that the client sends shows that it is alive.  While it cannot be
 * heard (we do not read, or it has half-closed) the connection itself tells;
 * while output waits, conn.c's stall deadline does.
 */
static void
on_ping_time(struct wsock *w)
{
	uint8_t	 body[8];
	uint64_t now = boottime_now().ms;

	if (w->input_blocked || w->c->in_eof || w->phase == PHASE_BEGIN ||
	    evbuffer_get_length(w->c->out) != 0)
		w->heard_ms = now;
	if (now - w->heard_ms >= WS_PONG_DEADLINE_MS) {
		w->c->dead = 1;
		conn_schedule(w->c);
		return;
	}
	arc4random_buf(body, sizeof(body));
	send_frame(w, WS_OP_PING, body, sizeof(body));
	set_timer(w, WS_PING_MS);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct wsock	*w = arg;
	struct conn	*c = w->c;

	(void)fd;
	(void)what;
	switch (w->phase) {
	case PHASE_ATTACH:
		break;
	case PHASE_START:
		refuse_client(w, E_TIMEOUT, "no start message came");
		break;
	case PHASE_BEGIN:
	case PHASE_RUN:
		on_ping_time(w);
		break;
	case PHASE_CLOSE:
		wsock_free(w);
		conn_finish(c);
		break;
	}
}

/* ---- from the command ---- */

static void
on_attached(void *arg)
{
	struct wsock	*w = arg;

	w->phase = PHASE_START;
	w->heard_ms = boottime_now().ms;
	set_timer(w, WS_START_MS);
	conn_upgrade(w->c, w->accept, w->protocol);
}

static void
on_started(void *arg, uint32_t pid)
{
	struct wsock	*w = arg;
	struct json_out	 out = { .max = 0 };

	w->phase = PHASE_RUN;
	exec_event_started(&out, pid);
	send_event(w, &out);
}

static void
on_output(void *arg, enum gp_channel channel, const uint8_t *data, size_t len)
{
	struct wsock	*w = arg;
	struct evbuffer	*out = w->c->out;
	uint8_t		 head[WS_HEAD_MAX + 1];
	size_t		 n;

	n = ws_put_head(head, WS_OP_BINARY, 1, len + 1, NULL);
	head[n++] = (uint8_t)channel;
	if (evbuffer_add(out, head, n) == -1 ||
	    evbuffer_add(out, data, len) == -1)
		w->c->dead = 1;
	conn_output(w->c);
	if (conn_output_high(w->c))
		exec_pause(w->exec, 1);
}

static void
on_exec_drained(void *arg)
{
	struct wsock	*w = arg;

	conn_schedule(w->c);
}

static void
on_exited(void *arg, const struct exec_result *r)
{
	struct wsock	*w = arg;
	struct json_out	 out = { .max = 0 };

	w->exec = NULL;
	exec_event_exited(&out, r);
	send_event(w, &out);
	send_close(w, r->timed_out ? WS_CODE_EXEC_TIMEOUT : WS_CODE_NORMAL,
	    r->timed_out ? "timeout" : "");
	conn_schedule(w->c);
}

static void
on_failed(void *arg, enum sbx_error error, const char *detail,
    uint32_t retry_after_s)
{
	struct wsock	*w = arg;
	struct conn	*c = w->c;

	w->exec = NULL;
	if (w->phase == PHASE_ATTACH) {
		wsock_free(w);
		conn_reply_problem(c, error, detail, c->match.sandbox_id,
		    retry_after_s);
		return;
	}
	send_error(w, error, detail);
	conn_schedule(c);
}

static const struct exec_events command_events = {
	.attached = on_attached,
	.started = on_started,
	.output = on_output,
	.drained = on_exec_drained,
	.exited = on_exited,
	.failed = on_failed
};

/* ---- from the connection ---- */

static void
on_gone(void *arg)
{
	struct wsock	*w = arg;

	if (w->exec != NULL)
		exec_end(w->exec, 1);
	wsock_free(w);
}

static void
on_conn_drained(void *arg)
{
	struct wsock	*w = arg;

	if (w->exec != NULL && w->phase == PHASE_RUN)
		exec_pause(w->exec, 0);
}

static void
on_stop(void *arg)
{
	struct wsock	*w = arg;

	if (w->phase != PHASE_ATTACH && w->phase != PHASE_CLOSE)
		send_close(w, WS_CODE_GOING_AWAY, "the daemon stops");
}

static const struct conn_user command_user = {
	.gone = on_gone,
	.drained = on_conn_drained,
	.input = on_input,
	.stop = on_stop
};

/* ---- the handshake ---- */

static const char *
offer_detail(int e)
{
	return e == -E_UPGRADE ?
	    "this resource speaks the WebSocket protocol, version 13" :
	    "the WebSocket handshake's fields are not valid";
}

void
api_command(struct conn *c)
{
	struct ws_offer	 offer;
	struct wsock	*w;
	int		 e;

	w = calloc(1, sizeof(*w));
	if (w == NULL) {
		conn_reply_problem(c, E_HOST_MEMORY, NULL, NULL, 1);
		return;
	}
	w->c = c;
	e = c->method == HTTP_M_GET ?
	    http_get_ws_offer(c->reader.request, &offer) : -E_UPGRADE;
	if (e == 0)
		e = ws_check_offer(&offer, protocols, &w->protocol, w->accept);
	if (e != 0) {
		wsock_free(w);
		conn_reply_problem(c, (enum sbx_error)-e, offer_detail(e),
		    c->match.sandbox_id, 0);
		return;
	}
	ws_reader_init(&w->reader, WS_SERVER, WS_MESSAGE_MAX, WS_MESSAGE_MAX);
	w->timer = evtimer_new(front.base, on_timer, w);
	if (w->timer != NULL)
		w->exec = exec_new(c->owner, c->match.sandbox_id,
		    ON_DISCONNECT_UNSET, &command_events, w);
	if (w->exec == NULL) {
		wsock_free(w);
		conn_reply_problem(c, E_RESTARTING, "too many requests wait",
		    NULL, 1);
		return;
	}
	conn_set_user(c, &command_user, w);
}
