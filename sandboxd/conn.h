/* SPDX-License-Identifier: ISC */
/*
 * A client's connection: requests one after the other, replies, deadlines,
 * back-pressure.  What a handler does with a request it does through this.
 *
 * A connection is freed only from the event loop, never inside one of these
 * calls; after `gone` the handler must not touch it any more.
 */
#ifndef SBX_CONN_H
#define SBX_CONN_H

#include <bsd/sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "http.h"
#include "limits.h"
#include "route.h"

struct evbuffer;
struct event;
struct json_out;

/* Who works on a connection's request. */
struct conn_user {
	/* The client vanished, or reads nothing: forget the connection. */
	void	(*gone)(void *);
	/* Output has fallen under WS_QUEUE_LOW after conn_output_high(). */
	void	(*drained)(void *);
	/* conn_upgrade() only: bytes came, or the client will send no more. */
	void	(*input)(void *);
	/* The process ends after this. */
	void	(*stop)(void *);
};

enum conn_state {
	CONN_IDENTIFY,	/* the parent says whose it is */
	CONN_REQUEST,	/* reading a request, or waiting for one */
	CONN_HANDLE,	/* a handler works on it */
	CONN_STREAM,	/* upgraded: bytes belong to the handler */
	CONN_FLUSH,	/* the last reply goes out */
	CONN_LINGER	/* all is sent; reads on for a moment */
};

enum conn_deadline {
	DEADLINE_NONE,
	DEADLINE_IDLE,		/* for a first byte */
	DEADLINE_HEAD,
	DEADLINE_BODY,
	DEADLINE_STALL,		/* output of which nothing is read */
	DEADLINE_LINGER
};

struct conn {
	TAILQ_ENTRY(conn)	 entry;
	int			 fd;
	enum conn_state		 state;
	uint64_t		 owner;		/* the parent's handle */
	uint32_t		 uid;
	int			 counted;	/* in its uid's number */
	struct event		*ev_read;
	struct event		*ev_write;
	struct event		*ev_turn;	/* what is due, once a turn */
	struct event		*deadline;
	struct event		*gone_check;
	enum conn_deadline	 deadline_for;
	struct evbuffer		*in;
	struct evbuffer		*out;
	uint64_t		 out_since_ms;	/* progress of the output */
	int			 in_eof;	/* the client sends no more */
	int			 dead;		/* free it in its turn */
	int			 want_drain;
	/* The request. */
	struct http_reader	 reader;
	struct route_match	 match;
	struct evbuffer		*body;
	enum http_method	 method;
	int			 http10;
	int			 keep;		/* another request may follow */
	int			 chunked;	/* 0: its end is the end */
	char			 request_id[HTTP_REQUEST_ID_MAX + 1];
	const struct conn_user	*user;
	void			*user_arg;
};

/* listen.c gives it its descriptor.  NULL: no memory; fd is closed. */
struct conn	*conn_new(int fd);
/* The parent has said whose it is. */
void		 conn_identified(struct conn *, uint64_t owner, uint32_t uid);
/* Answers and hangs up without having read a request. */
void		 conn_turn_away(struct conn *, enum sbx_error, const char *,
		    uint32_t retry_after_s);

/* ---- for handlers ---- */

void		 conn_set_user(struct conn *, const struct conn_user *, void *);

/* Each of these is a whole reply and ends the request. */
void		 conn_reply_problem(struct conn *, enum sbx_error,
		    const char *detail, const char *sandbox_id,
		    uint32_t retry_after_s);
/* Takes what the json_out holds. */
void		 conn_reply_json(struct conn *, unsigned int status,
		    struct json_out *, const char *location);
void		 conn_reply_empty(struct conn *, unsigned int status,
		    const char *location);

/* A reply in pieces. */
void		 conn_stream_begin(struct conn *, const char *type);
void		 conn_stream_piece(struct conn *, const void *, size_t);
void		 conn_stream_end(struct conn *);
/*
 * 101; from now on the user's `input` is called, and takes bytes off c->in.
 * What the handler sends it adds to c->out and calls conn_output().
 */
void		 conn_upgrade(struct conn *, const char *accept,
		    const char *protocol);
void		 conn_output(struct conn *);
/* Over WS_QUEUE_HIGH unsent?  Then `drained` will be called. */
int		 conn_output_high(struct conn *);
/* Sends what is left and hangs up. */
void		 conn_finish(struct conn *);
/* Another turn soon: `input` is called again, output goes out. */
void		 conn_schedule(struct conn *);

/* ---- between conn.c, conn_request.c and conn_reply.c ---- */

void		 conn_set_deadline(struct conn *, enum conn_deadline);
/* Reads as much of a request as there is; one request a turn. */
void		 conn_read_request(struct conn *);
/* The reply is complete in c->out. */
void		 conn_request_done(struct conn *);

/* ---- for listen.c and front.c ---- */

void		 conns_stop(void);	/* the end of the process */
unsigned int	 conns_count(void);
unsigned int	 conns_of_uid(uint32_t);
/* To the request's handler (api_native.c). */
void		 api_dispatch(struct conn *);
/* Called when a connection has been freed (listen.c). */
void		 listen_resume(void);

#endif
