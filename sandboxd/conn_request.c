/* SPDX-License-Identifier: ISC */
/*
 * From bytes to a request that a handler can work on: head, route, body.  Runs
 * in front, on a client's bytes; http.c reads them, this decides what follows.
 *
 * A request is answered before the next one is read (RFC 9112, 9.3.2), and none
 * is read while replies wait for the client to take them.
 */
#include <string.h>

#include <event2/buffer.h>

#include "conn.h"

/* What a route asks of the head: 0, or a negative code with a detail. */
static int
check_head(struct conn *c, const char **detail)
{
	const struct http_request	*req = c->reader.request;
	int				 e;

	*detail = NULL;
	e = route_find(req, &c->match);
	if (e != 0)
		return e;
	if ((c->match.route->flags & ROUTE_F_BODY) == 0)
		return 0;
	if (req->framing == HTTP_BODY_NONE) {
		*detail = "this request needs a body";
		return -E_LENGTH;
	}
	*detail = "the body has to be application/json";
	return http_check_json_type(req);
}

/* Answers a request whose body is still to come, and reads no further. */
static void
refuse_head(struct conn *c, int e, const char *detail)
{
	c->keep = 0;
	conn_reply_problem(c, (enum sbx_error)-e, detail,
	    c->match.sandbox_id, 0);
}

static void
take_head(struct conn *c)
{
	const struct http_request	*req = c->reader.request;
	const char			*detail;
	int				 e;

	c->method = req->method;
	c->http10 = req->minor == 0;
	c->keep = req->keep_alive && !c->http10;
	http_get_request_id(req, c->request_id);
	memset(&c->match, 0, sizeof(c->match));
	if (req->framing == HTTP_BODY_NONE ||
	    (req->framing == HTTP_BODY_LENGTH && req->length == 0))
		return;
	e = check_head(c, &detail);
	if (e == 0) {
		detail = "the body is longer than this route takes";
		e = http_reader_accept(&c->reader, c->match.route->body_max);
	}
	if (e == 0 && (c->body = evbuffer_new()) == NULL) {
		detail = "no memory for the body";
		e = -E_HOST_MEMORY;
	}
	if (e != 0) {
		refuse_head(c, e, detail);
		return;
	}
	conn_set_deadline(c, DEADLINE_BODY);
	if (req->expect_continue && evbuffer_get_length(c->in) == 0) {
		(void)evbuffer_add(c->out, HTTP_CONTINUE,
		    sizeof(HTTP_CONTINUE) - 1);
		conn_output(c);
	}
}

static void
take_end(struct conn *c)
{
	const char	*detail;
	int		 e = 0;

	if (c->body == NULL)
		e = check_head(c, &detail);
	c->state = CONN_HANDLE;
	conn_set_deadline(c, DEADLINE_NONE);
	if (e != 0)
		conn_reply_problem(c, (enum sbx_error)-e, detail,
		    c->match.sandbox_id, 0);
	else
		api_dispatch(c);
}

static void
take_error(struct conn *c, const struct http_piece *piece)
{
	c->keep = 0;
	http_get_request_id(c->reader.request, c->request_id);
	conn_reply_problem(c, piece->error, piece->detail, NULL, 0);
}

/* One event; 0 when there is nothing more to do this turn. */
static int
read_event(struct conn *c)
{
	struct http_piece	 piece;
	enum http_event		 ev;
	size_t			 len = evbuffer_get_length(c->in);
	const uint8_t		*data;

	data = evbuffer_pullup(c->in, -1);
	if (data == NULL && len != 0) {
		c->dead = 1;
		return 0;
	}
	ev = http_read(&c->reader, data, len, &piece);
	if (ev == HTTP_BODY &&
	    evbuffer_add(c->body, piece.data, piece.len) == -1)
		c->dead = 1;
	(void)evbuffer_drain(c->in, piece.used);
	switch (ev) {
	case HTTP_NEED_MORE:
		return 0;
	case HTTP_HEAD:
		take_head(c);
		break;
	case HTTP_BODY:
		break;
	case HTTP_END:
		take_end(c);
		return 0;
	case HTTP_ERROR:
		take_error(c, &piece);
		return 0;
	}
	return !c->dead && c->state == CONN_REQUEST;
}

void
conn_read_request(struct conn *c)
{
	if (evbuffer_get_length(c->out) >= WS_QUEUE_HIGH)
		return;
	while (read_event(c))
		;
	if (c->state != CONN_REQUEST || c->dead)
		return;
	if (http_reader_busy(&c->reader)) {
		if (c->body == NULL)
			conn_set_deadline(c, DEADLINE_HEAD);
	}
	if (!c->in_eof || evbuffer_get_length(c->in) != 0)
		return;
	/* A client that sends no more, and nothing to answer. */
	if (!http_reader_busy(&c->reader)) {
		conn_finish(c);
		return;
	}
	c->keep = 0;
	http_get_request_id(c->reader.request, c->request_id);
	conn_reply_problem(c, E_BAD_HTTP, "the request was cut short", NULL, 0);
}
