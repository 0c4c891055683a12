/* SPDX-License-Identifier: ISC */
/*
 * Replies of a connection: whole ones, replies in pieces, the switch to another
 * protocol.  Runs in front.
 */
#include <string.h>

#include <event2/buffer.h>

#include "clock.h"
#include "conn.h"
#include "json.h"
#include "log.h"
#include "problem.h"

static void
put_head(struct conn *c, struct http_reply *r)
{
	char	 head[HTTP_REPLY_HEAD_MAX];
	int	 n;

	r->request_id = c->request_id;
	r->close = !c->keep && r->status != 101;
	r->date_s = walltime_now().ms / 1000;
	n = http_put_reply(head, sizeof(head), r);
	if (n < 0 || evbuffer_add(c->out, head, (size_t)n) == -1) {
		log_warnx("reply of status %u could not be written", r->status);
		c->dead = 1;
	}
	conn_output(c);
}

static void
put_body(struct conn *c, unsigned int status, const void *data, size_t len)
{
	if (http_reply_has_body(c->method, status) &&
	    evbuffer_add(c->out, data, len) == -1)
		c->dead = 1;
}

void
conn_request_done(struct conn *c)
{
	c->user = NULL;
	/* The next request may be refused before its method is known. */
	c->method = HTTP_M_OTHER;
	if (c->body != NULL) {
		evbuffer_free(c->body);
		c->body = NULL;
	}
	if (!c->keep) {
		c->state = CONN_FLUSH;
	} else {
		http_reader_next(&c->reader);
		c->state = CONN_REQUEST;
		conn_set_deadline(c, DEADLINE_IDLE);
	}
	conn_schedule(c);
}

void
conn_reply_problem(struct conn *c, enum sbx_error error, const char *detail,
    const char *sandbox_id, uint32_t retry_after_s)
{
	char			 body[PROBLEM_MAX];
	struct problem		 p = { error, detail, c->request_id,
				    sandbox_id, retry_after_s };
	struct http_reply	 r;
	size_t			 n;

	n = problem_write(body, &p);
	memset(&r, 0, sizeof(r));
	r.status = (unsigned int)error_status(error);
	r.type = PROBLEM_TYPE;
	r.length = (int64_t)n;
	r.retry_after_s = retry_after_s;
	if (error == E_METHOD)
		r.allow = c->match.allow;
	r.upgrade = error == E_UPGRADE;
	put_head(c, &r);
	put_body(c, r.status, body, n);
	conn_request_done(c);
}

void
conn_reply_json(struct conn *c, unsigned int status, struct json_out *out,
    const char *location)
{
	struct http_reply	 r;
	int			 e;

	e = json_out_end(out);
	if (e != 0) {
		json_out_free(out);
		conn_reply_problem(c, (enum sbx_error)-e,
		    "the answer could not be written", NULL, 0);
		return;
	}
	memset(&r, 0, sizeof(r));
	r.status = status;
	r.type = "application/json";
	r.length = (int64_t)out->len;
	r.location = location;
	put_head(c, &r);
	put_body(c, status, out->text, out->len);
	json_out_free(out);
	conn_request_done(c);
}

void
conn_reply_empty(struct conn *c, unsigned int status, const char *location)
{
	struct http_reply	 r;

	memset(&r, 0, sizeof(r));
	r.status = status;
	r.location = location;
	put_head(c, &r);
	conn_request_done(c);
}

void
conn_stream_begin(struct conn *c, const char *type)
{
	struct http_reply	 r;

	c->chunked = !c->http10;
	memset(&r, 0, sizeof(r));
	r.status = 200;
	r.type = type;
	r.length = c->chunked ? HTTP_LENGTH_CHUNKED : HTTP_LENGTH_CLOSE;
	put_head(c, &r);
}

void
conn_stream_piece(struct conn *c, const void *data, size_t len)
{
	char	 head[HTTP_CHUNK_HEAD_MAX];
	int	 bad = 0;

	if (len == 0)
		return;
	if (c->chunked)
		bad = evbuffer_add(c->out, head,
		    http_put_chunk_head(head, len));
	if (bad || evbuffer_add(c->out, data, len) == -1 || (c->chunked &&
	    evbuffer_add(c->out, HTTP_CHUNK_END, 2) == -1))
		c->dead = 1;
	conn_output(c);
}

void
conn_stream_end(struct conn *c)
{
	if (c->chunked && evbuffer_add(c->out, HTTP_CHUNK_LAST,
	    sizeof(HTTP_CHUNK_LAST) - 1) == -1)
		c->dead = 1;
	conn_output(c);
	conn_request_done(c);
}

void
conn_upgrade(struct conn *c, const char *accept, const char *protocol)
{
	struct http_reply	 r;

	memset(&r, 0, sizeof(r));
	r.status = 101;
	r.ws_accept = accept;
	r.ws_protocol = protocol;
	put_head(c, &r);
	http_reader_clear(&c->reader);
	c->keep = 0;
	c->state = CONN_STREAM;
	conn_schedule(c);
}
