/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/http.o sandboxd/http_lex.o sandboxd/http_field.o
   libs: -lbsd */
/*
 * The HTTP reader against hand-made requests (http_corpus.h) and families of
 * them, each read whole and byte by byte.  With -d it prints the whole corpus
 * as "hex TAB verdict" for the comparison with other readers
 * (api/http_oracle.py).
 */
#include <stdint.h>

#include "http.h"
#include "http_corpus.h"
#include "test.h"

TEST_PLAN_AUTO;

#define BODY_MAX	65536

static int	 dump;

struct line {
	char	 text[4096];
	size_t	 len;
};

static void
add(struct line *l, const char *s, size_t n)
{
	if (n > sizeof(l->text) - 1 - l->len)
		n = sizeof(l->text) - 1 - l->len;
	memcpy(l->text + l->len, s, n);
	l->len += n;
	l->text[l->len] = '\0';
}

static void
adds(struct line *l, const char *s)
{
	add(l, s, strlen(s));
}

static void
add_head(struct line *l, struct http_reader *r)
{
	const struct http_request	*req = r->request;

	if (l->len > 0)
		adds(l, " ; ");
	adds(l, http_method_name(req->method));
	adds(l, " ");
	adds(l, req->path);
	if (req->query != NULL) {
		adds(l, "?");
		adds(l, req->query);
	}
	if (!req->keep_alive)
		adds(l, " close");
	if (req->expect_continue)
		adds(l, " expect");
	/* A refusal comes out of the next http_read(), too. */
	(void)http_reader_accept(r, BODY_MAX);
}

/* Reads bytes in pieces of `step` and writes down what happened. */
static void
verdict(const uint8_t *bytes, size_t len, size_t step, struct line *l)
{
	struct http_reader	 r;
	struct http_piece	 piece;
	struct line		 whole;
	uint8_t			*copy;
	size_t			 pos = 0, n;
	int			 body = 0;
	enum http_event		 ev;

	l->len = whole.len = 0;
	l->text[0] = whole.text[0] = '\0';
	http_reader_init(&r);
	for (;;) {
		n = len - pos < step ? len - pos : step;
		/* A fresh exact copy: reading past it would be seen. */
		copy = malloc(n > 0 ? n : 1);
		memcpy(copy, bytes + pos, n);
		ev = http_read(&r, copy, n, &piece);
		pos += piece.used;
		if (ev == HTTP_HEAD)
			add_head(l, &r);
		if (ev == HTTP_BODY) {
			if (!body)
				adds(l, " [");
			body = 1;
			add(l, (const char *)piece.data, piece.len);
		}
		free(copy);
		if (ev == HTTP_END) {
			if (body)
				adds(l, "]");
			body = 0;
			whole = *l;
			http_reader_next(&r);
		}
		if (ev == HTTP_ERROR || (ev == HTTP_NEED_MORE && pos == len))
			break;
	}
	*l = whole;
	if (ev == HTTP_ERROR) {
		adds(l, l->len > 0 ? " ; !" : "!");
		adds(l, error_code(piece.error));
	} else if (http_reader_busy(&r))
		adds(l, l->len > 0 ? " ; ..." : "...");
	http_reader_clear(&r);
}

static void
check(const char *rule, const char *name, const void *bytes, size_t len,
    const char *want)
{
	static const size_t	 steps[] = { 65536, 1, 2, 3, 7 };
	struct line		 l;
	size_t			 i;

	if (dump) {
		for (i = 0; i < len; i++)
			printf("%02x", ((const uint8_t *)bytes)[i]);
		verdict(bytes, len, 65536, &l);
		printf("\t");
		for (i = 0; i < l.len; i++)
			printf(l.text[i] >= 0x20 && l.text[i] < 0x7f &&
			    l.text[i] != '\\' ? "%c" : "\\x%02x",
			    (unsigned char)l.text[i]);
		printf("\n");
		return;
	}
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		verdict(bytes, len, steps[i], &l);
		if (strcmp(l.text, want) != 0)
			break;
	}
	is_str(l.text, want, "http: %s %s", rule, name);
}

/* A request with one string or byte put in. */
static void
check_with(const char *rule, const char *name, const char *before,
    const char *in, size_t inlen, const char *after, const char *want)
{
	char	 buf[16384], label[128];
	size_t	 n, i;

	n = strlen(before);
	memcpy(buf, before, n);
	memcpy(buf + n, in, inlen);
	n += inlen;
	memcpy(buf + n, after, strlen(after));
	n += strlen(after);
	(void)snprintf(label, sizeof(label), "%s", name);
	if (inlen == 1)
		(void)snprintf(label, sizeof(label), "%s: byte %02x", name,
		    (unsigned int)(unsigned char)*in);
	else if (inlen < 40) {
		(void)snprintf(label, sizeof(label), "%s: ", name);
		for (i = 0; i < inlen; i++)
			(void)snprintf(label + strlen(label), 8,
			    in[i] >= 0x20 && in[i] < 0x7f && in[i] != '#' ?
			    "%c" : "\\x%02x", (unsigned char)in[i]);
	}
	check(rule, label, buf, n, want);
}

/* RFC 9110, 5.6.2: tchar, written down again by hand. */
static int
is_token_char(int c)
{
	return c != 0 && strchr("!#$%&'*+-.^_`|~0123456789"
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", c) != NULL;
}

/* Every byte in the places where bytes are let in by class. */
static void
check_bytes(void)
{
	char	 c, want[64];
	int	 i;

	for (i = 0; i < 256; i++) {
		c = (char)i;
		if (i == ' ' || i == '\n')
			continue;
		check_with("RFC 9110 5.6.2", "in a method", "G", &c, 1,
		    "T / HTTP/1.1\r\n" H "\r\n", is_token_char(i) ?
		    (i == 'E' ? "GET /" : "? /") : BAD);
		/* RFC 3986, 3.3: pchar; '%' and '?' are cases of their own. */
		if (i != '%' && i != '?') {
			(void)snprintf(want, sizeof(want), "GET /a%cb", i);
			check_with("RFC 3986 3.3", "in a path", "GET /a", &c, 1,
			    "b HTTP/1.1\r\n" H "\r\n",
			    i > 0x20 && i < 0x7f && (is_token_char(i) ||
			    strchr("()/:;=@,", i) != NULL) &&
			    strchr("#^`|", i) == NULL ? want : BAD);
		}
		if (i != ':')
			check_with("RFC 9110 5.1", "in a field name",
			    "GET / HTTP/1.1\r\n" H "X", &c, 1,
			    "Y: z\r\n\r\n", is_token_char(i) ? "GET /" : BAD);
		check_with("RFC 9110 5.5", "in a field value",
		    "GET / HTTP/1.1\r\n" H "X: y", &c, 1, "z\r\n\r\n",
		    i == '\t' || (i >= 0x20 && i != 0x7f) ? "GET /" : BAD);
	}
}

static void
check_lists(void)
{
	static const char *const lengths[] = { "", "+3", "-3", "3 3", "3,3",
	    "3, 3", "0x3", "3.0", "3a", "a3", "3;", "\"3\"", "3\t3", "- 3",
	    "1e1", "\xc2\xb3", "3,", ",3", "+0", "-0", "NaN" };
	static const char *const codings[] = { "", "identity", "gzip",
	    "chunked,", ",chunked", "chunked, chunked", "chunked,identity",
	    "chunked;q=1", "\"chunked\"", "chunked x", "x chunked", "chunke",
	    "chunkedx", "xchunked", "chunked\tx", "\xe7hunked",
	    "chunked, gzip", "c hunked", "gzip, identity", "chunked;",
	    "'chunked'", "gzip, chunkedx" };
	static const char *const sizes[] = { "", "+3", "-3", "0x3", "0X3", " 3",
	    "3 ", "3\t", "3 ;x", "g", "3g", "3,", "3.", "000000003",
	    "100000003", "\t3", "\"3\"", "3h", "\xb3", "3\x0b", "x" };
	size_t	 i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		check_with("6.2", "Content-Length", P "Content-Length: ",
		    lengths[i], strlen(lengths[i]), "\r\n\r\nabc", BAD);
	for (i = 0; i < sizeof(codings) / sizeof(codings[0]); i++)
		check_with("6.1", "Transfer-Encoding", P "Transfer-Encoding: ",
		    codings[i], strlen(codings[i]),
		    "\r\n\r\n3\r\nabc\r\n0\r\n\r\n", BAD);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_with("7.1", "chunk size", CK, sizes[i], strlen(sizes[i]),
		    "\r\nabc\r\n0\r\n\r\n", BAD);
}

/* Exactly at a bound, and one over it. */
static void
check_bounds(void)
{
	char	 buf[16384], tail[4096];
	size_t	 i, n;

	/* The longest target comes back whole. */
	memset(buf, 'a', sizeof(buf));
	(void)snprintf(tail, sizeof(tail), "GET /%.*s close",
	    HTTP_REQUEST_LINE_MAX - 16, buf);
	/* "GET /" and " HTTP/1.1\r\n" are 16 bytes. */
	check_with("3", "longest request line", "GET /", buf,
	    HTTP_REQUEST_LINE_MAX - 16, " HTTP/1.0\r\n\r\n", tail);
	check_with("3", "request line too long", "GET /", buf,
	    HTTP_REQUEST_LINE_MAX - 15, " HTTP/1.0\r\n\r\n", "!uri_too_long");
	check_with("3", "endless request line", "", buf,
	    HTTP_REQUEST_LINE_MAX + 1, "", "!uri_too_long");
	/* Head without the value: 18 + 3 + 4 bytes. */
	check_with("RFC 6585 5", "longest header",
	    "GET /b HTTP/1.0\r\nX: ", buf, HTTP_HEADER_MAX - 24, "\r\n\r\n",
	    "GET /b close");
	check_with("RFC 6585 5", "header too long",
	    "GET /b HTTP/1.0\r\nX: ", buf, HTTP_HEADER_MAX - 23, "\r\n\r\n",
	    "!header_too_large");
	check_with("RFC 6585 5", "endless header",
	    "GET /b HTTP/1.0\r\nX: ", buf, HTTP_HEADER_MAX, "",
	    "!header_too_large");
	for (i = n = 0; i < HTTP_FIELDS_MAX - 1; i++)
		n += (size_t)snprintf(tail + n, sizeof(tail) - n, "X: y\r\n");
	check_with("RFC 6585 5", "most fields", "GET / HTTP/1.1\r\n" H, tail, n,
	    "\r\n", "GET /");
	check_with("RFC 6585 5", "too many fields", "GET / HTTP/1.1\r\n" H,
	    tail, n, "X: y\r\n\r\n", "!header_too_large");
	check_with("7.1.1", "longest extensions", CK "1;", buf,
	    HTTP_CHUNK_EXT_MAX, "\r\na\r\n0\r\n\r\n", "POST /p [a]");
	check_with("7.1.1", "extensions too long", CK "1;", buf,
	    HTTP_CHUNK_EXT_MAX + 1, "\r\na\r\n0\r\n\r\n", BAD);
	check_with("7.1.1", "extensions too long together",
	    CK "1;xy\r\na\r\n1;", buf, HTTP_CHUNK_EXT_MAX - 1,
	    "\r\na\r\n0\r\n\r\n", BAD);
}

/* Every prefix of a pipeline is so many whole requests and a begun one. */
static void
check_prefixes(void)
{
	static const char	 one[] =
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhi";
	static const char	 two[] =
	    "POST /b HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
	    "2\r\nho\r\n0\r\n\r\n";
	char			 buf[256];
	size_t			 i, n1 = sizeof(one) - 1, n2 = sizeof(two) - 1;
	const char		*want;

	memcpy(buf, one, n1);
	memcpy(buf + n1, two, n2);
	for (i = 1; i <= n1 + n2; i++) {
		want = i < n1 ? "..." : i == n1 ? "POST /a [hi]" :
		    i < n1 + n2 ? "POST /a [hi] ; ..." :
		    "POST /a [hi] ; POST /b [ho]";
		(void)snprintf(buf + 200, 56, "prefix of %zu bytes", i);
		check("9.3.2", buf + 200, buf, i, want);
	}
}

/* Without http_reader_accept() no body may come; errors and ends stay. */
static void
check_protocol(void)
{
	static const char	 post[] = P "Content-Length: 1\r\n\r\nx";
	static const char	 chunk[] = CK "1\r\n";
	const uint8_t		*p = (const uint8_t *)post;
	struct http_reader	 r;
	struct http_piece	 piece;

	http_reader_init(&r);
	ok(!http_reader_busy(&r), "http: idle at the start");
	is_int(http_read(&r, p, sizeof(post) - 1, &piece), HTTP_HEAD,
	    "http: head first");
	is_int(piece.used, sizeof(post) - 2, "http: the body is not used yet");
	ok(http_reader_busy(&r), "http: busy inside a request");
	is_int(http_reader_accept(&r, 0), -E_TOO_LARGE,
	    "http: RFC 9110 15.5.14 accept says too large");
	is_int(http_reader_accept(&r, 1), 0, "http: accept of its length");
	is_int(http_read(&r, NULL, 0, &piece), HTTP_NEED_MORE,
	    "http: an empty read waits");
	is_int(http_read(&r, p + sizeof(post) - 2, 1, &piece), HTTP_BODY,
	    "http: body");
	ok(piece.data == p + sizeof(post) - 2,
	    "http: a body is not copied");
	is_int(http_read(&r, NULL, 0, &piece), HTTP_END, "http: end");
	ok(!http_reader_busy(&r), "http: idle after the end");
	is_int(http_read(&r, p, 1, &piece), HTTP_END,
	    "http: the end stays until http_reader_next()");
	is_int(piece.used, 0, "http: and uses nothing");
	http_reader_next(&r);
	is_int(http_read(&r, p, sizeof(post) - 1, &piece), HTTP_HEAD,
	    "http: next head");
	is_int(http_read(&r, p, 1, &piece), HTTP_ERROR,
	    "http: a body that nobody accepted");
	is_int(piece.error, E_TOO_LARGE, "http: is too large");
	is_int(http_read(&r, p, 1, &piece), HTTP_ERROR, "http: an error stays");
	http_reader_clear(&r);
	(void)http_read(&r, (const uint8_t *)chunk, sizeof(chunk) - 1, &piece);
	is_int(piece.used, sizeof(chunk) - 4, "http: chunks are not used yet");
	is_int(http_read(&r, (const uint8_t *)chunk + piece.used, 3, &piece),
	    HTTP_ERROR, "http: chunks that nobody accepted");
	http_reader_clear(&r);
}

int
main(int argc, char **argv)
{
	size_t	 i;

	dump = argc > 1 && strcmp(argv[1], "-d") == 0;
	for (i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++)
		check(corpus[i].rule, corpus[i].name, corpus[i].bytes,
		    corpus[i].len, corpus[i].verdict);
	check_bytes();
	check_lists();
	check_bounds();
	check_prefixes();
	if (dump)
		return 0;
	check_protocol();
	return done_testing();
}
