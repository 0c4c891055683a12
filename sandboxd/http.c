/* SPDX-License-Identifier: ISC */
/*
 * The HTTP/1.1 request reader (RFC 9112; section numbers below are its own
 * unless another RFC is named).  Runs in front; every byte is hostile.  The
 * head is copied once, line by line, and checked as it comes, so that nonsense
 * is refused at its first byte; a body is never copied.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http.h"
#include "http_lex.h"

enum state {
	S_LINE = 0,	/* waiting for, or inside, the request line */
	S_FIELDS,
	S_HEAD,		/* HTTP_HEAD has been given */
	S_LENGTH,
	S_CHUNK_SIZE,
	S_CHUNK_EXT,
	S_CHUNK_LF,	/* after the CR of a chunk's line */
	S_CHUNK_DATA,
	S_DATA_CR,	/* after a chunk's data */
	S_DATA_LF,
	S_LAST_CR,	/* after the chunk of size 0 */
	S_LAST_LF,
	S_END,
	S_ERROR
};

static const char *const methods[] = {
	[HTTP_M_GET] = "GET",
	[HTTP_M_HEAD] = "HEAD",
	[HTTP_M_POST] = "POST",
	[HTTP_M_PUT] = "PUT",
	[HTTP_M_PATCH] = "PATCH",
	[HTTP_M_DELETE] = "DELETE",
	[HTTP_M_OPTIONS] = "OPTIONS",
	[HTTP_M_TRACE] = "TRACE",
	[HTTP_M_OTHER] = "?"
};

const char *
http_method_name(enum http_method method)
{
	return (unsigned int)method <= HTTP_M_OTHER ? methods[method] : "?";
}

void
http_reader_init(struct http_reader *r)
{
	memset(r, 0, sizeof(*r));
	r->state = S_LINE;
}

void
http_reader_clear(struct http_reader *r)
{
	/* It holds keys and tokens. */
	if (r->request != NULL)
		explicit_bzero(r->request, sizeof(*r->request));
	free(r->request);
	http_reader_init(r);
}

void
http_reader_next(struct http_reader *r)
{
	http_reader_clear(r);
}

int
http_reader_busy(const struct http_reader *r)
{
	return r->have > 0 && r->state != S_END;
}

/* Always non-zero, so that a caller can return it. */
static int
fail(struct http_reader *r, enum sbx_error error, const char *detail)
{
	r->state = S_ERROR;
	r->error = error;
	r->detail = detail;
	return -1;
}

static int
bad(struct http_reader *r, const char *detail)
{
	return fail(r, E_BAD_HTTP, detail);
}

/*
 * Path and query, from a NUL-terminated target.  The '?' becomes the path's
 * end.
 */
static int
split_target(struct http_reader *r, char *s)
{
	struct http_request	*req = r->request;
	size_t			 i, len;
	int			 query = 0;

	len = strlen(s);
	req->path = s;
	for (i = 0; i < len; i++) {
		if (s[i] == '?' && !query) {
			query = 1;
			req->query = s + i + 1;
			s[i] = '\0';
		} else if (s[i] != '/' && s[i] != '?' &&
		    !lex_is_pchar(s + i, len - i))
			return bad(r, "the request target has a byte that "
			    "must be percent-encoded");
	}
	return 0;
}

/* absolute-form (3.2.2): the authority is checked and dropped. */
static int
absolute_target(struct http_reader *r, char *s)
{
	struct http_request	*req = r->request;
	size_t			 len;

	len = strcspn(s, "/?");
	if (len == 0 || s[0] == ':' || !lex_is_authority(s, len))
		return bad(r, "bad authority in the request target");
	s += len;
	if (*s == '/')
		return split_target(r, s);
	/* No path: "*" for OPTIONS (3.2.4), else "/" (RFC 9110, 4.2.3). */
	if (split_target(r, s) != 0)
		return -1;
	req->path = "/";
	if (req->method == HTTP_M_OPTIONS && req->query == NULL)
		req->path = "*";
	return 0;
}

static int
parse_target(struct http_reader *r, char *s)
{
	struct http_request	*req = r->request;

	if (s[0] == '/')
		return split_target(r, s);
	if (strncasecmp(s, "http://", 7) == 0)
		return absolute_target(r, s + 7);
	if (strncasecmp(s, "https://", 8) == 0)
		return absolute_target(r, s + 8);
	if (strcmp(s, "*") == 0 && req->method == HTTP_M_OPTIONS) {
		req->path = s;
		return 0;
	}
	return bad(r, "the request target is neither a path nor an http URI");
}

static int
parse_version(struct http_reader *r, const char *s)
{
	/* Not "http/", not "HTTP/1.10" (2.3). */
	if (strlen(s) != 8 || strncmp(s, "HTTP/", 5) != 0 || s[6] != '.' ||
	    s[5] < '0' || s[5] > '9' || s[7] < '0' || s[7] > '9')
		return bad(r, "the request line does not end with a version");
	if (s[5] != '1' || s[7] > '1')
		return fail(r, E_HTTP_VERSION, "only HTTP/1.1 and HTTP/1.0");
	r->request->minor = s[7] - '0';
	return 0;
}

/* method SP request-target SP HTTP-version (3). */
static int
parse_request_line(struct http_reader *r, char *s)
{
	struct http_request	*req = r->request;
	char			*target, *version;
	size_t			 len;
	unsigned int		 i;

	len = lex_token(s);
	if (len == 0 || s[len] != ' ')
		return bad(r, "the request line does not start with a method "
		    "and a space");
	if (len > HTTP_METHOD_MAX)
		return fail(r, E_NOT_IMPLEMENTED, "no such method");
	s[len] = '\0';
	target = s + len + 1;
	version = strchr(target, ' ');
	if (version == NULL || version == target)
		return bad(r, "the request line has no version");
	*version++ = '\0';
	if (parse_version(r, version) != 0)
		return -1;
	if (strcmp(s, "CONNECT") == 0)
		return fail(r, E_NOT_IMPLEMENTED, "this is no proxy");
	for (i = 0; i < HTTP_M_OTHER; i++)
		if (strcmp(s, methods[i]) == 0)
			break;
	req->method = (enum http_method)i;
	if (parse_target(r, target) != 0)
		return -1;
	r->state = S_FIELDS;
	return 0;
}

/* field-name ":" OWS field-value OWS (5). */
static int
parse_field(struct http_reader *r, char *s, size_t len)
{
	struct http_request	*req = r->request;
	size_t			 n;

	if (s[0] == ' ' || s[0] == '\t')
		return bad(r, "a header line starts with white space");
	n = lex_token(s);
	if (n == 0 || s[n] != ':')
		return bad(r, "a header line has no valid name and colon");
	if (req->nfields == HTTP_FIELDS_MAX)
		return fail(r, E_HEADER_TOO_LARGE, "too many header fields");
	while (len > n + 1 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		s[--len] = '\0';
	s[n++] = '\0';
	while (s[n] == ' ' || s[n] == '\t')
		n++;
	req->fields[req->nfields].name = s;
	req->fields[req->nfields].value = s + n;
	req->nfields++;
	return 0;
}

/*
 * A field that may be there once: 0, or the request is refused.  The fields
 * that frame a message must mean one thing to every reader.
 */
static int
only_one(struct http_reader *r, const char *name, const char **value,
    const char *detail)
{
	if (http_field_once(r->request, name, value) != 0)
		return bad(r, detail);
	return 0;
}

/* 6.1: only "chunked", alone, and never from HTTP/1.0. */
static int
check_coding(struct http_reader *r, const char *te)
{
	const char	*last;

	if (r->request->minor == 0)
		return bad(r, "Transfer-Encoding in an HTTP/1.0 request");
	if (strcasecmp(te, "chunked") == 0) {
		r->request->framing = HTTP_BODY_CHUNKED;
		return 0;
	}
	/* 6.3: what does not end in chunked has no end we could know. */
	last = strrchr(te, ',');
	if (last == NULL || lex_token(te) == 0 ||
	    strncasecmp(te, "chunked", 7) == 0)
		return bad(r, "Transfer-Encoding is not \"chunked\"");
	last += 1 + strspn(last + 1, " \t");
	if (strcasecmp(last, "chunked") != 0)
		return bad(r, "Transfer-Encoding is not \"chunked\"");
	return fail(r, E_NOT_IMPLEMENTED, "only the chunked transfer coding");
}

/* 6.2: digits, nothing else; no list of equal values either. */
static int
check_length(struct http_reader *r, const char *s)
{
	uint64_t	 v = 0;
	size_t		 i;

	for (i = 0; s[i] != '\0'; i++) {
		if (s[i] < '0' || s[i] > '9')
			return bad(r, "Content-Length is not a number");
		if (v > (INT64_MAX - 9) / 10)
			return fail(r, E_TOO_LARGE, "Content-Length is too "
			    "large for any resource here");
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	if (i == 0)
		return bad(r, "Content-Length is empty");
	r->request->framing = HTTP_BODY_LENGTH;
	r->request->length = v;
	return 0;
}

static int
check_framing(struct http_reader *r)
{
	const char	*te, *cl;

	if (only_one(r, "Transfer-Encoding", &te,
	    "more than one Transfer-Encoding") != 0 ||
	    only_one(r, "Content-Length", &cl, "more than one Content-Length")
	    != 0)
		return -1;
	if (te != NULL && cl != NULL)
		return bad(r, "both Transfer-Encoding and Content-Length");
	if (te != NULL)
		return check_coding(r, te);
	return cl != NULL ? check_length(r, cl) : 0;
}

/* 3.2: exactly one, and valid; HTTP/1.0 may leave it out. */
static int
check_host(struct http_reader *r)
{
	const char	*host;

	if (only_one(r, "Host", &host, "more than one Host") != 0)
		return -1;
	if (host == NULL)
		return r->request->minor == 0 ? 0 : bad(r, "no Host");
	if (!lex_is_authority(host, strlen(host)))
		return bad(r, "Host is not a host name");
	return 0;
}

/* 9.3 and 9.6: what comes after this request; RFC 9110, 10.1.1: Expect. */
static int
check_connection(struct http_reader *r)
{
	struct http_request	*req = r->request;
	const char		*expect = NULL;
	unsigned int		 i;

	req->keep_alive = req->minor == 1;
	for (i = 0; i < req->nfields; i++) {
		if (strcasecmp(req->fields[i].name, "Connection") != 0)
			continue;
		if (!lex_list_valid(req->fields[i].value))
			return bad(r, "Connection is not a list of tokens");
		if (lex_list_has(req->fields[i].value, "close"))
			req->keep_alive = 0;
	}
	if (only_one(r, "Expect", &expect, "more than one Expect") != 0)
		return -1;
	if (expect == NULL || req->minor == 0)
		return 0;
	if (strcasecmp(expect, "100-continue") != 0)
		return fail(r, E_EXPECTATION, "only Expect: 100-continue");
	req->expect_continue = req->framing == HTTP_BODY_CHUNKED ||
	    (req->framing == HTTP_BODY_LENGTH && req->length > 0);
	return 0;
}

/* A line of the head is complete: text[line..] without its CRLF. */
static int
head_line(struct http_reader *r)
{
	char	*s = r->request->text + r->line;
	size_t	 len;

	len = r->have - 2 - r->line;
	s[len] = '\0';
	if (len > 0) {
		if (r->state == S_LINE ? parse_request_line(r, s) != 0 :
		    parse_field(r, s, len) != 0)
			return -1;
		r->line = r->have;
		return 0;
	}
	/* 2.2 would let us skip one, for clients of the last century. */
	if (r->state == S_LINE)
		return bad(r, "an empty line instead of a request");
	if (check_host(r) != 0 || check_framing(r) != 0 ||
	    check_connection(r) != 0)
		return -1;
	r->state = S_HEAD;
	return 0;
}

/* One byte of the head. */
static int
head_byte(struct http_reader *r, uint8_t c)
{
	char	*text = r->request->text;
	int	 after_cr;

	if (r->state == S_LINE && r->have == HTTP_REQUEST_LINE_MAX)
		return fail(r, E_URI_TOO_LONG, "the request line is too long");
	if (r->have == HTTP_HEADER_MAX)
		return fail(r, E_HEADER_TOO_LARGE, "the header is too long");
	after_cr = r->have > r->line && text[r->have - 1] == '\r';
	if (after_cr != (c == '\n'))
		return bad(r, after_cr ? "a CR without its LF" :
		    "a line ends with LF instead of CRLF");
	/* White space inside the request line is two spaces, no more (3). */
	if ((c < 0x20 && c != '\r' && c != '\n' &&
	    (c != '\t' || r->state == S_LINE)) || c == 0x7f)
		return bad(r, "a control byte in the header");
	text[r->have++] = (char)c;
	return c == '\n' ? head_line(r) : 0;
}

/* Begins the body, or tells that there is none. */
static void
body_begin(struct http_reader *r)
{
	switch (r->request->framing) {
	case HTTP_BODY_NONE:
		r->state = S_END;
		break;
	case HTTP_BODY_LENGTH:
		r->left = r->request->length;
		r->state = r->left > 0 ? S_LENGTH : S_END;
		if (r->left > r->room)
			(void)fail(r, E_TOO_LARGE, "the body is longer than "
			    "this resource takes");
		break;
	case HTTP_BODY_CHUNKED:
		r->state = S_CHUNK_SIZE;
		break;
	}
}

static int
chunk_digit(struct http_reader *r, uint8_t c)
{
	unsigned int	 v;

	if (!lex_is_hex((char)c)) {
		if (r->digits == 0 || (c != '\r' && c != ';'))
			return bad(r, "bad chunk size");
		r->state = c == '\r' ? S_CHUNK_LF : S_CHUNK_EXT;
		return 0;
	}
	if (r->digits == HTTP_CHUNK_DIGITS_MAX)
		return bad(r, "the chunk size has too many digits");
	r->digits++;
	v = c <= '9' ? c - '0' + 0u : (c | 0x20) - 'a' + 10u;
	r->left = r->left << 4 | v;
	return 0;
}

/* 7.1.1: ignored, but bounded over the whole body. */
static int
chunk_ext(struct http_reader *r, uint8_t c)
{
	if (c == '\r')
		r->state = S_CHUNK_LF;
	else if ((c < 0x20 && c != '\t') || c == 0x7f)
		return bad(r, "a control byte in a chunk extension");
	else if (++r->ext > HTTP_CHUNK_EXT_MAX)
		return bad(r, "chunk extensions are too long");
	return 0;
}

static int
chunk_start(struct http_reader *r)
{
	r->digits = 0;
	if (r->left == 0) {
		r->state = S_LAST_CR;
		return 0;
	}
	if (r->left > r->room)
		return fail(r, E_TOO_LARGE, "the body is longer than this "
		    "resource takes");
	r->room -= r->left;
	r->state = S_CHUNK_DATA;
	return 0;
}

/* One byte between chunks. */
static int
chunk_byte(struct http_reader *r, uint8_t c)
{
	switch ((enum state)r->state) {
	case S_CHUNK_SIZE:
		return chunk_digit(r, c);
	case S_CHUNK_EXT:
		return chunk_ext(r, c);
	case S_CHUNK_LF:
		return c == '\n' ? chunk_start(r) :
		    bad(r, "a CR without its LF in a chunk's line");
	case S_DATA_CR:
		r->state = S_DATA_LF;
		return c == '\r' ? 0 : bad(r, "a chunk longer than its size");
	case S_DATA_LF:
		r->state = S_CHUNK_SIZE;
		return c == '\n' ? 0 : bad(r, "a chunk longer than its size");
	case S_LAST_CR:
		/* 7.1.2 lets us ignore trailers; hidden fields are no use. */
		r->state = S_LAST_LF;
		return c == '\r' ? 0 : bad(r, "trailer fields are not taken");
	case S_LAST_LF:
		r->state = S_END;
		return c == '\n' ? 0 : bad(r, "a CR without its LF after the "
		    "last chunk");
	case S_LINE:
	case S_FIELDS:
	case S_HEAD:
	case S_LENGTH:
	case S_CHUNK_DATA:
	case S_END:
	case S_ERROR:
		break;
	}
	return bad(r, "out of order");
}

static enum http_event
body_piece(struct http_reader *r, const uint8_t *data, size_t len,
    struct http_piece *piece)
{
	size_t	 n = len;

	if (n > r->left)
		n = (size_t)r->left;
	r->left -= n;
	if (r->left == 0)
		r->state = r->state == S_LENGTH ? S_END : S_DATA_CR;
	piece->data = data;
	piece->len = n;
	piece->used += n;
	return HTTP_BODY;
}

static int
request_begin(struct http_reader *r)
{
	if (r->request != NULL)
		return 0;
	/* Only the bookkeeping needs to be 0, not the text. */
	r->request = malloc(sizeof(*r->request));
	if (r->request == NULL)
		return fail(r, E_HOST_MEMORY, "no memory for the request");
	memset(r->request, 0, offsetof(struct http_request, fields));
	r->request->method = HTTP_M_OTHER;
	r->request->path = "";
	return 0;
}

static enum http_event
give_error(struct http_reader *r, struct http_piece *piece)
{
	piece->error = r->error;
	piece->detail = r->detail;
	return HTTP_ERROR;
}

enum http_event
http_read(struct http_reader *r, const uint8_t *data, size_t len,
    struct http_piece *piece)
{
	memset(piece, 0, sizeof(*piece));
	if (r->state == S_HEAD)
		body_begin(r);
	for (;;) {
		if (r->state == S_ERROR)
			return give_error(r, piece);
		if (r->state == S_END)
			return HTTP_END;
		if (piece->used == len)
			return HTTP_NEED_MORE;
		if (r->state == S_LENGTH || r->state == S_CHUNK_DATA)
			return body_piece(r, data + piece->used,
			    len - piece->used, piece);
		if (r->state > S_FIELDS) {
			(void)chunk_byte(r, data[piece->used++]);
			continue;
		}
		if (request_begin(r) != 0 ||
		    head_byte(r, data[piece->used++]) != 0)
			continue;
		if (r->state == S_HEAD)
			return HTTP_HEAD;
	}
}

int
http_reader_accept(struct http_reader *r, uint64_t max)
{
	r->room = max;
	if (r->request != NULL && r->request->framing == HTTP_BODY_LENGTH &&
	    r->request->length > max)
		return -E_TOO_LARGE;
	return 0;
}
