/* SPDX-License-Identifier: ISC */
/*
 * POST /sandboxes/{id}/exec: one command without a WebSocket.  The answer is
 * one JSON object, or with "Accept: application/x-ndjson" a line for each event
 * as it happens.  Runs in front; the request is a client's, the output a
 * guest's.
 */
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "api.h"
#include "exec.h"
#include "exec_event.h"
#include "exec_text.h"
#include "front.h"

struct post {
	struct conn		*c;
	struct exec		*exec;
	struct exec_request	 req;		/* until `attached` */
	struct evbuffer		*input;		/* until `started` */
	struct event		*timer;
	int			 base64;
	int			 lines;		/* NDJSON */
	int			 begun;		/* the reply's head is out */
	int			 spoke;		/* since the last tick */
	struct exec_text	 text[2];	/* NDJSON: stdout, stderr */
	struct evbuffer		*kept[2];	/* JSON: stdout, stderr */
	int			 cut[2];
};

static size_t	collected;	/* bytes in all kept buffers */

static void
post_free(struct post *p)
{
	unsigned int	 i;

	for (i = 0; i < 2; i++)
		if (p->kept[i] != NULL) {
			collected -= evbuffer_get_length(p->kept[i]);
			evbuffer_free(p->kept[i]);
		}
	if (p->input != NULL)
		evbuffer_free(p->input);
	if (p->timer != NULL)
		event_free(p->timer);
	exec_request_clear(&p->req);
	free(p);
}

/* ---- NDJSON ---- */

static void
begin_lines(struct post *p)
{
	struct timeval	 tv = front_time(EXEC_KEEPALIVE_MS / 2);

	if (p->begun)
		return;
	p->begun = 1;
	conn_stream_begin(p->c, "application/x-ndjson");
	(void)evtimer_add(p->timer, &tv);
}

static void
put_line(struct post *p, struct json_out *out)
{
	struct conn	*c = p->c;
	int		 e;

	p->spoke = 1;
	e = json_out_end(out);
	/* The newline takes the place of the text's NUL. */
	if (e == 0) {
		out->text[out->len] = '\n';
		conn_stream_piece(c, out->text, out->len + 1);
	} else {
		c->dead = 1;
		conn_schedule(c);
	}
	json_out_free(out);
}

static void
put_output(struct post *p, unsigned int i, const uint8_t *data, size_t len,
    int base64)
{
	struct json_out	 out = { .max = 0 };

	if (len == 0)
		return;
	json_put_object(&out);
	json_put_key_string(&out, "type", i == 0 ? "stdout" : "stderr");
	json_put_key(&out, "data");
	if (base64) {
		json_put_base64(&out, data, len);
		json_put_key_string(&out, "encoding", "base64");
	} else
		json_put_text(&out, (const char *)data, len);
	json_put_object_end(&out);
	put_line(p, &out);
}

static void
output_line(struct post *p, unsigned int i, const uint8_t *data, size_t len)
{
	struct exec_text_piece	 piece;

	if (p->base64) {
		put_output(p, i, data, len, 1);
		return;
	}
	exec_text_feed(&p->text[i], data, len, &piece);
	put_output(p, i, piece.head, piece.head_len, piece.bytes);
	put_output(p, i, piece.data, piece.len, piece.bytes);
}

/* What was kept back in the hope of the rest of a character. */
static void
flush_text(struct post *p)
{
	unsigned int	 i;

	for (i = 0; i < 2; i++) {
		put_output(p, i, p->text[i].kept, p->text[i].nkept, 1);
		p->text[i].nkept = 0;
	}
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct post	*p = arg;
	struct json_out	 out = { .max = 0 };
	struct timeval	 tv = front_time(EXEC_KEEPALIVE_MS / 2);

	(void)fd;
	(void)what;
	if (!p->spoke) {
		json_put_object(&out);
		json_put_key_string(&out, "type", "keepalive");
		json_put_object_end(&out);
		put_line(p, &out);
	}
	p->spoke = 0;
	(void)evtimer_add(p->timer, &tv);
}

/* ---- one JSON answer ---- */

static void
keep_output(struct post *p, unsigned int i, const uint8_t *data, size_t len)
{
	size_t	 room = EXEC_OUTPUT_MAX - evbuffer_get_length(p->kept[i]);

	if (len > room) {
		p->cut[i] = 1;
		len = room;
	}
	if (evbuffer_add(p->kept[i], data, len) == -1)
		p->cut[i] = 1;
	else
		collected += len;
}

static void
put_kept(struct post *p, unsigned int i, int base64, struct json_out *out)
{
	size_t		 len = evbuffer_get_length(p->kept[i]);
	const void	*data;

	data = evbuffer_pullup(p->kept[i], -1);
	if (data == NULL)
		json_put_string(out, "");
	else if (base64)
		json_put_base64(out, data, len);
	else
		json_put_text(out, data, exec_text_length(data, len,
		    p->cut[i]));
}

/* Both or none in base64, so that one member says it. */
static int
needs_base64(struct post *p)
{
	unsigned int	 i;
	size_t		 len;
	const void	*data;

	if (p->base64)
		return 1;
	for (i = 0; i < 2; i++) {
		len = evbuffer_get_length(p->kept[i]);
		data = evbuffer_pullup(p->kept[i], -1);
		if (data != NULL && exec_text_length(data, len, p->cut[i]) == 0)
			return 1;
	}
	return 0;
}

static void
put_answer(struct post *p, const struct exec_result *r)
{
	struct json_out	 out = { .max = 0 };
	struct conn	*c = p->c;
	int		 base64;

	base64 = needs_base64(p);
	json_put_object(&out);
	exec_put_result(&out, r);
	json_put_key(&out, "stdout");
	put_kept(p, 0, base64, &out);
	json_put_key(&out, "stderr");
	put_kept(p, 1, base64, &out);
	json_put_key_string(&out, "encoding", base64 ? "base64" : "utf-8");
	json_put_key_bool(&out, "stdout_truncated", p->cut[0]);
	json_put_key_bool(&out, "stderr_truncated", p->cut[1]);
	json_put_object_end(&out);
	post_free(p);
	conn_reply_json(c, 200, &out, NULL);
}

/* ---- from the command ---- */

static void
on_attached(void *arg)
{
	struct post	*p = arg;

	exec_start(p->exec, &p->req);
}

static void
on_started(void *arg, uint32_t pid)
{
	struct post	*p = arg;
	struct json_out	 out = { .max = 0 };
	size_t		 len;

	if (p->lines) {
		begin_lines(p);
		exec_event_started(&out, pid);
		put_line(p, &out);
	}
	if (p->input == NULL)
		return;
	len = evbuffer_get_length(p->input);
	if (len != 0)
		exec_input(p->exec, evbuffer_pullup(p->input, -1), len);
	exec_input_eof(p->exec);
	evbuffer_free(p->input);
	p->input = NULL;
}

static void
on_output(void *arg, enum gp_channel channel, const uint8_t *data, size_t len)
{
	struct post	*p = arg;
	unsigned int	 i = channel == GP_STDERR ? 1 : 0;

	if (!p->lines) {
		keep_output(p, i, data, len);
		return;
	}
	output_line(p, i, data, len);
	if (conn_output_high(p->c))
		exec_pause(p->exec, 1);
}

static void
on_exited(void *arg, const struct exec_result *r)
{
	struct post	*p = arg;
	struct conn	*c = p->c;
	struct json_out	 out = { .max = 0 };

	if (!p->lines) {
		put_answer(p, r);
		return;
	}
	begin_lines(p);
	flush_text(p);
	exec_event_exited(&out, r);
	put_line(p, &out);
	post_free(p);
	conn_stream_end(c);
}

static void
on_failed(void *arg, enum sbx_error error, const char *detail,
    uint32_t retry_after_s)
{
	struct post	*p = arg;
	struct conn	*c = p->c;
	struct json_out	 out = { .max = 0 };

	if (!p->begun) {
		post_free(p);
		conn_reply_problem(c, error, detail, c->match.sandbox_id,
		    retry_after_s);
		return;
	}
	/* The status is out already: the last line is no process_exited. */
	flush_text(p);
	exec_event_error(&out, error, detail);
	put_line(p, &out);
	post_free(p);
	conn_stream_end(c);
}

static void
on_exec_drained(void *arg)
{
	(void)arg;
}

static const struct exec_events post_events = {
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
	struct post	*p = arg;

	exec_end(p->exec, 1);
	post_free(p);
}

static void
on_conn_drained(void *arg)
{
	struct post	*p = arg;

	exec_pause(p->exec, 0);
}

static const struct conn_user post_user = {
	.gone = on_gone,
	.drained = on_conn_drained
};

/* ---- the request ---- */

/* 0, or after having answered -1. */
static int
read_request(struct conn *c, struct post *p)
{
	static const char *const types[] = { "application/json",
				    "application/x-ndjson" };
	struct json_object	*obj;
	struct json_error	 err = { E_OK, "" };
	unsigned int		 type = 0;
	int			 e;

	e = http_choose_type(c->reader.request, types, 2, &type);
	if (e != 0) {
		conn_reply_problem(c, (enum sbx_error)-e, "the answer can be "
		    "application/json or application/x-ndjson",
		    c->match.sandbox_id, 0);
		return -1;
	}
	p->lines = type == 1;
	obj = api_body(c, EXEC_VALUES_MAX);
	if (obj == NULL)
		return -1;
	e = exec_request_read(&p->req, EXEC_FORM_POST, obj, &err);
	json_object_put(obj);
	if (e != 0) {
		api_refuse(c, &err);
		return -1;
	}
	p->base64 = p->req.base64;
	p->input = p->req.input;
	p->req.input = NULL;
	return 0;
}

void
api_exec(struct conn *c)
{
	struct post	*p;
	int		 i, ready;

	if (collected >= EXEC_COLLECT_MAX) {
		conn_reply_problem(c, E_CAPACITY, "too much output is being "
		    "collected for other requests", NULL, 1);
		return;
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		conn_reply_problem(c, E_HOST_MEMORY, NULL, NULL, 1);
		return;
	}
	p->c = c;
	if (read_request(c, p) == -1) {
		post_free(p);
		return;
	}
	p->timer = evtimer_new(front.base, on_timer, p);
	ready = p->timer != NULL;
	for (i = 0; i < 2; i++) {
		p->kept[i] = evbuffer_new();
		ready = ready && p->kept[i] != NULL;
	}
	if (ready)
		p->exec = exec_new(c->owner, c->match.sandbox_id,
		    p->req.on_disconnect, &post_events, p);
	if (p->exec == NULL) {
		post_free(p);
		conn_reply_problem(c, E_RESTARTING, "too many requests wait",
		    NULL, 1);
		return;
	}
	conn_set_user(c, &post_user, p);
}
