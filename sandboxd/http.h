/* SPDX-License-Identifier: ISC */
/*
 * A strict HTTP/1.1 request reader (RFC 9110, RFC 9112) and a writer of reply
 * heads: functions over bytes, no I/O, no clock.  Runs in front; every byte
 * read is a client's and may be hostile.  Where the RFCs let a server choose
 * between repairing and refusing, it refuses: two readers of one stream (a
 * proxy and we) must never see different requests in it.
 *
 * Use:
 *	ev = http_read(reader, data, len, &piece);
 *	drop piece.used bytes from the front of the input;
 *	act on ev; call again with the rest, also when that is empty, until
 *	ev is HTTP_NEED_MORE (wait for bytes) or HTTP_ERROR (answer and close).
 * Events of one request: HTTP_HEAD, then HTTP_BODY any number of times, then
 * HTTP_END; after HTTP_END http_reader_next() begins the next request, and
 * bytes that were not used belong to it (pipelining) or to the upgraded
 * protocol. Between HTTP_HEAD and the next http_read() the caller says with
 * http_reader_accept() how long a body may be; without that, none may come.
 */
#ifndef SBX_HTTP_H
#define SBX_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "limits.h"
#include "ws.h"

enum http_method {
	HTTP_M_GET,
	HTTP_M_HEAD,
	HTTP_M_POST,
	HTTP_M_PUT,
	HTTP_M_PATCH,
	HTTP_M_DELETE,
	HTTP_M_OPTIONS,
	HTTP_M_TRACE,
	HTTP_M_OTHER	/* well formed, but unknown to us: 501 */
};
/* "GET" ...; "?" for HTTP_M_OTHER. */
const char	*http_method_name(enum http_method);

enum http_framing {
	HTTP_BODY_NONE,		/* neither field: no body (RFC 9112, 6.3) */
	HTTP_BODY_LENGTH,	/* Content-Length, may be 0 */
	HTTP_BODY_CHUNKED
};

/* A field line.  Both are C strings: bytes that could end one are refused. */
struct http_field {
	const char	*name;		/* as sent; compare without case */
	const char	*value;		/* without white space around it */
};

/* A request's head.  Everything points into `text`. */
struct http_request {
	enum http_method	 method;
	int			 minor;		/* HTTP/1.minor: 0 or 1 */
	/*
	 * The target's path, still percent-encoded (route.h decodes, once), "/"
	 * at least; "*" for OPTIONS *.  An absolute-form target's scheme and
	 * authority are checked and dropped.
	 */
	const char		*path;
	const char		*query;	/* after '?', encoded; NULL: no '?' */
	enum http_framing	 framing;
	uint64_t		 length;	/* with HTTP_BODY_LENGTH */
	int			 keep_alive;	/* another may follow */
	/*
	 * The client waits for HTTP_CONTINUE before it sends the body.  Send it
	 * when the request is wanted and no byte of the body has come yet.
	 */
	int			 expect_continue;
	unsigned int		 nfields;
	struct http_field	 fields[HTTP_FIELDS_MAX];
	char			 text[HTTP_HEADER_MAX];
};
#define HTTP_CONTINUE	"HTTP/1.1 100 Continue\r\n\r\n"

enum http_event {
	HTTP_NEED_MORE,	/* all bytes are used; nothing to do before more come */
	HTTP_HEAD,	/* reader->request is complete */
	HTTP_BODY,	/* piece.data, .len (> 0): borrowed from the input */
	HTTP_END,	/* the request is over */
	HTTP_ERROR	/* piece.error, piece.detail; see http_read() */
};

struct http_piece {
	size_t		 used;		/* bytes of the input done with */
	const uint8_t	*data;
	size_t		 len;
	enum sbx_error	 error;
	const char	*detail;	/* fixed text, ASCII */
};

/* Members are http.c's own, except `request` (read only). */
struct http_reader {
	struct http_request	*request;	/* NULL before the first byte */
	int			 state;
	size_t			 have;		/* bytes of the head so far */
	size_t			 line;		/* where its last line starts */
	uint64_t		 left;		/* of the body or the chunk */
	uint64_t		 room;		/* the body may still take */
	unsigned int		 digits;	/* of a chunk size */
	unsigned int		 ext;		/* bytes of extensions so far */
	enum sbx_error		 error;
	const char		*detail;
};

void	http_reader_init(struct http_reader *);
/* Frees what the reader holds; it can be initialised again. */
void	http_reader_clear(struct http_reader *);
/*
 * See the head of this file.  After HTTP_ERROR the bytes that follow cannot be
 * told apart any more: the connection must be closed once the answer (error's
 * status, `Connection: close`) is out; every further call gives the same
 * error. reader->request is then NULL, or may hold an incomplete head: only
 * its method, minor and http_get_request_id() are good for anything.  Errors:
 * E_BAD_HTTP, E_URI_TOO_LONG, E_HEADER_TOO_LARGE, E_TOO_LARGE, E_EXPECTATION,
 * E_NOT_IMPLEMENTED (transfer coding, CONNECT, long method), E_HTTP_VERSION,
 * E_HOST_MEMORY (no memory for the head).
 */
enum http_event	http_read(struct http_reader *, const uint8_t *, size_t,
		    struct http_piece *);
/*
 * After HTTP_HEAD: the body may have this many bytes.  0, or -E_TOO_LARGE when
 * a Content-Length already says more: then answer and close without reading
 * on. A caller that has answered early and wants to keep the connection
 * accepts what it is willing to throw away, and throws it away.
 */
int	http_reader_accept(struct http_reader *, uint64_t max);
/* After HTTP_END: ready for the next request; `request` is gone. */
void	http_reader_next(struct http_reader *);
/* Has the first byte of a request been read, and not yet its end? */
int	http_reader_busy(const struct http_reader *);

/*
 * A field's value.  http_field: the first one, NULL if there is none.
 * http_field_once: 0 with *value set (NULL: none), or -E_BAD_HEADER when there
 * is more than one: for every field that has one value.
 */
const char	*http_field(const struct http_request *, const char *name);
int		 http_field_once(const struct http_request *, const char *name,
		    const char **value);

/*
 * X-Request-Id into HTTP_REQUEST_ID_MAX + 1 bytes: the client's if there is
 * exactly one of 1 to 64 of [A-Za-z0-9._-], else a fresh random one.  Never
 * fails; the request may be NULL.
 */
void	http_get_request_id(const struct http_request *, char *);
/*
 * Idempotency-Key into SBX_KEY_MAX + 1 bytes, "" if there is none.  Bare or an
 * RFC 8941 string ("..." with \" and \\): both forms of one key are the same
 * key. 0, or -E_BAD_HEADER: two of them, empty, too long, not printable ASCII.
 */
int	http_get_key(const struct http_request *, char *);
/*
 * Is the body JSON?  0 when Content-Type is absent, application/json, or what
 * curl -d sends by itself; else -E_MEDIA_TYPE, or -E_BAD_HEADER for two of
 * them.
 */
int	http_check_json_type(const struct http_request *);
/*
 * Chooses by Accept (RFC 9110, 12.5.1) among `n` media types, in the order of
 * the server's liking; *chosen is an index.  No Accept: 0.
 * 0, -E_NOT_ACCEPTABLE, or -E_BAD_HEADER.
 */
int	http_choose_type(const struct http_request *, const char *const *types,
	    unsigned int n, unsigned int *chosen);
/*
 * Does the request ask for the WebSocket protocol?  0 with the handshake's
 * fields, for ws_check_offer(); -E_UPGRADE when it does not ask (answer 426
 * with http_reply.upgrade); -E_BAD_HEADER when a field is there twice or the
 * request has a body.
 */
int	http_get_ws_offer(const struct http_request *, struct ws_offer *);

/*
 * A reply's head.  Always sends X-Request-Id, Cache-Control: no-store and,
 * where it is not the default, Connection.
 */
struct http_reply {
	unsigned int	 status;
	const char	*request_id;
	const char	*type;		/* Content-Type; NULL: none */
	int64_t		 length;	/* Content-Length, or HTTP_LENGTH_* */
	int		 close;		/* no request after this one */
	const char	*location;	/* the rest: NULL or 0 if unwanted */
	const char	*allow;
	uint32_t	 retry_after_s;
	int		 upgrade;	/* status 426: what to upgrade to */
	const char	*ws_accept;	/* status 101 */
	const char	*ws_protocol;
	uint64_t	 date_s;	/* seconds since 1970 for Date */
};
#define HTTP_LENGTH_CHUNKED	(-1)
/* HTTP/1.0 knows no chunks: no length, the end of the connection ends it. */
#define HTTP_LENGTH_CLOSE	(-2)

/*
 * Writes the head; returns its length, or -E_INTERNAL when it does not fit or a
 * value holds a byte that could start another field.  HTTP_REPLY_HEAD_MAX bytes
 * are enough for every reply of ours.  204, 304 and 1xx have no length whatever
 * the struct says.
 */
int	http_put_reply(char *, size_t, const struct http_reply *);
/* May a reply with this status to this method have body bytes? */
int	http_reply_has_body(enum http_method, unsigned int status);
/*
 * Chunks: head, the bytes, HTTP_CHUNK_END; the last is HTTP_CHUNK_LAST alone.
 * The writer returns the head's length (at most HTTP_CHUNK_HEAD_MAX); len > 0.
 */
#define HTTP_CHUNK_END		"\r\n"
#define HTTP_CHUNK_LAST		"0\r\n\r\n"
#define HTTP_CHUNK_HEAD_MAX	18
size_t	http_put_chunk_head(char *, size_t len);

#endif
