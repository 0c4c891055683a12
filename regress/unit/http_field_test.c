/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/http.o sandboxd/http_lex.o sandboxd/http_field.o
   sandboxd/http_reply.o libs: -lbsd -lmd */
/*
 * What front reads from a request's fields, and the heads that it writes.
 * Section numbers are RFC 9110's unless another RFC is named.
 */
#include "http.h"
#include "test.h"

TEST_PLAN_AUTO;

static struct http_reader	 reader;

/* A request with these field lines. */
static const struct http_request *
request(const char *lines)
{
	struct http_piece	 piece;
	char			 buf[4096];
	int			 n;

	http_reader_clear(&reader);
	n = snprintf(buf, sizeof(buf),
	    "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines);
	if (http_read(&reader, (uint8_t *)buf, (size_t)n, &piece) !=
	    HTTP_HEAD) {
		ok(0, "http: the test's own request: %s", lines);
		exit(1);
	}
	return reader.request;
}

static void
check_request_id(void)
{
	static const char	 c64[] = "012345678901234567890123456789"
	    "0123456789012345678901234567890123";
	static const char *const refused[] = { "", "a b", "a/b", "a\"", "\xe4",
	    "a,b", "a:b" };
	char			 id[HTTP_REQUEST_ID_MAX + 1], line[256];
	size_t			 i;

	http_get_request_id(request("X-Request-Id: aZ0._-\r\n"), id);
	is_str(id, "aZ0._-", "http: request id of every kind of character");
	(void)snprintf(line, sizeof(line), "x-request-id: %s\r\n", c64);
	http_get_request_id(request(line), id);
	is_str(id, c64, "http: request id of 64 bytes");
	(void)snprintf(line, sizeof(line), "X-Request-Id: %s4\r\n", c64);
	http_get_request_id(request(line), id);
	is_int(strlen(id), 32, "http: request id of 65 bytes is replaced");
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		(void)snprintf(line, sizeof(line), "X-Request-Id: %s\r\n",
		    refused[i]);
		http_get_request_id(request(line), id);
		ok(strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32,
		    "http: request id \"%s\" is replaced", refused[i]);
	}
	http_get_request_id(request("X-Request-Id: a\r\nX-Request-Id: b\r\n"),
	    id);
	is_int(strlen(id), 32, "http: two request ids are replaced");
	http_get_request_id(NULL, id);
	is_int(strlen(id), 32, "http: request id without a request");
	http_get_request_id(NULL, line);
	ok(strcmp(id, line) != 0, "http: made request ids differ");
}

static void
check_key(void)
{
	static const struct {
		const char	*value;
		const char	*key;	/* NULL: refused */
	} rows[] = {
		{ "abc", "abc" }, { "a b", "a b" }, { "a\"b", "a\"b" },
		{ "a,b", "a,b" }, { "\"abc\"", "abc" },
		{ "\"a\\\"b\\\\c\"", "a\"b\\c" }, { "\"\"", NULL },
		{ "\"abc", NULL }, { "\"a\"b\"", NULL }, { "\"a\\n\"", NULL },
		{ "\"a\\", NULL }, { "\"abc\";x=1", NULL },
		{ "\"a\", \"b\"", NULL }, { "\"", NULL }, { "", NULL },
		{ "\xc3\xa4", NULL }, { "a\tb", NULL },
		{ "\"\xc3\xa4\"", NULL },
		{ "\\", "\\" }
	};
	char	 key[SBX_KEY_MAX + 1], line[512], c128[SBX_KEY_MAX + 1];
	size_t	 i;
	int	 ret;

	is_int(http_get_key(request(""), key), 0, "http: no key");
	is_str(key, "", "http: is the empty key");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(line, sizeof(line), "Idempotency-Key: %s\r\n",
		    rows[i].value);
		ret = http_get_key(request(line), key);
		is_int(ret, rows[i].key == NULL ? -E_BAD_HEADER : 0,
		    "http: RFC 8941 3.3.3 key %s", rows[i].value);
		is_str(key, rows[i].key == NULL ? "" : rows[i].key,
		    "http: value of key %s", rows[i].value);
	}
	memset(c128, 'k', SBX_KEY_MAX);
	c128[SBX_KEY_MAX] = '\0';
	(void)snprintf(line, sizeof(line), "Idempotency-Key: %s\r\n", c128);
	is_int(http_get_key(request(line), key), 0, "http: key of 128 bytes");
	is_str(key, c128, "http: comes whole");
	(void)snprintf(line, sizeof(line), "Idempotency-Key: \"%s\"\r\n", c128);
	is_int(http_get_key(request(line), key), 0, "http: the same, quoted");
	(void)snprintf(line, sizeof(line), "Idempotency-Key: %sk\r\n", c128);
	is_int(http_get_key(request(line), key), -E_BAD_HEADER,
	    "http: key of 129 bytes");
	is_int(http_get_key(request("Idempotency-Key: a\r\n"
	    "Idempotency-Key: a\r\n"), key), -E_BAD_HEADER, "http: two keys");
}

static void
check_type(void)
{
	static const struct {
		const char	*lines;
		int		 want;
	} rows[] = {
		{ "", 0 },
		{ "Content-Type: application/json\r\n", 0 },
		{ "Content-Type: Application/JSON\r\n", 0 },
		{ "Content-Type: application/json; charset=utf-8\r\n", 0 },
		{ "Content-Type: application/json;charset=\"UTF-8\"\r\n", 0 },
		{ "Content-Type: application/json ; x=y\r\n", 0 },
		{ "Content-Type: application/json;\r\n", 0 },
		{ "Content-Type: application/x-www-form-urlencoded\r\n", 0 },
		{ "Content-Type: application/json; charset=latin1\r\n",
		    -E_MEDIA_TYPE },
		{ "Content-Type: application/json; charset\r\n",
		    -E_MEDIA_TYPE },
		{ "Content-Type: application/json; charset=\r\n",
		    -E_MEDIA_TYPE },
		{ "Content-Type: application/json; x=\"y\r\n", -E_MEDIA_TYPE },
		{ "Content-Type: application/json x\r\n", -E_MEDIA_TYPE },
		{ "Content-Type: application/jsonx\r\n", -E_MEDIA_TYPE },
		{ "Content-Type: text/plain\r\n", -E_MEDIA_TYPE },
		{ "Content-Type: application\r\n", -E_MEDIA_TYPE },
		{ "Content-Type: application/\r\n", -E_MEDIA_TYPE },
		{ "Content-Type:\r\n", -E_MEDIA_TYPE },
		{ "Content-Type: application/json\r\n"
		    "Content-Type: application/json\r\n", -E_BAD_HEADER }
	};
	size_t	 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_int(http_check_json_type(request(rows[i].lines)),
		    rows[i].want, "http: 8.3 type %zu: %.*s", i,
		    (int)strcspn(rows[i].lines, "\r"), rows[i].lines);
}

static void
check_accept(void)
{
	static const char *const types[] =
	    { "application/json", "application/x-ndjson" };
	static const struct {
		const char	*lines;
		int		 want;	/* index, or the error */
	} rows[] = {
		{ "", 0 },
		{ "Accept:\r\n", 0 },
		{ "Accept: */*\r\n", 0 },
		{ "Accept: application/*\r\n", 0 },
		{ "Accept: application/json\r\n", 0 },
		{ "Accept: application/x-ndjson\r\n", 1 },
		{ "Accept: APPLICATION/X-NDJSON\r\n", 1 },
		{ "Accept: text/html, application/x-ndjson;q=0.1\r\n", 1 },
		{ "Accept: application/x-ndjson, */*;q=0.5\r\n", 1 },
		{ "Accept: application/x-ndjson, application/json\r\n", 0 },
		{ "Accept: application/json;q=0.2, application/*;q=0.3\r\n",
		    1 },
		{ "Accept: application/json;q=0, */*\r\n", 1 },
		{ "Accept: application/json;q=0.001\r\n", 0 },
		{ "Accept: application/json;q=1.000\r\n", 0 },
		{ "Accept: application/json; version=1;q=0.5\r\n", 0 },
		{ "Accept: text/html;x=\"a,b\\\"c\", application/x-ndjson\r\n",
		    1 },
		{ "Accept: text/html\r\nAccept: application/x-ndjson\r\n", 1 },
		{ "Accept: , ,application/json,\r\n", 0 },
		{ "Accept: text/html\r\n", -E_NOT_ACCEPTABLE },
		{ "Accept: text/*\r\n", -E_NOT_ACCEPTABLE },
		{ "Accept: */*;q=0\r\n", -E_NOT_ACCEPTABLE },
		{ "Accept: application/json;q=0\r\n", -E_NOT_ACCEPTABLE },
		{ "Accept: application/json;q=0.0\r\n", -E_NOT_ACCEPTABLE },
		{ "Accept: application/json;q=1.001\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;q=2\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;q=0.1234\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;q=.5\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;q=-1\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;q=0x1\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;q=\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;q=\"1\"\r\n", -E_BAD_HEADER },
		{ "Accept: application/json text/html\r\n", -E_BAD_HEADER },
		{ "Accept: json\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;x\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;x=\"a\\\r\n", -E_BAD_HEADER },
		{ "Accept: application/json;x=\"a\r\n", -E_BAD_HEADER }
	};
	unsigned int	 chosen;
	size_t		 i;
	int		 ret;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ret = http_choose_type(request(rows[i].lines), types, 2,
		    &chosen);
		is_int(ret == 0 ? (int)chosen : ret, rows[i].want,
		    "http: 12.5.1 %zu: %.*s", i,
		    (int)strcspn(rows[i].lines, "\r"), rows[i].lines);
	}
}

static void
check_offer(void)
{
#define UP	"Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define V13	"Sec-WebSocket-Version: 13\r\n"
#define KEY	"Sec-WebSocket-Key: x\r\n"
	static const struct {
		const char	*lines;
		int		 want;
	} rows[] = {
		{ UP V13 KEY, 0 },
		{ "Upgrade: x, WebSocket\r\n"
		    "Connection: keep-alive, upgrade\r\n", 0 },
		{ UP "Content-Length: 0\r\n", 0 },
		{ "", -E_UPGRADE },
		{ "Upgrade: websocket\r\n", -E_UPGRADE },
		{ "Connection: Upgrade\r\n", -E_UPGRADE },
		{ "Upgrade: h2c\r\nConnection: Upgrade\r\n", -E_UPGRADE },
		{ "Upgrade: websocket\r\nConnection: close\r\n", -E_UPGRADE },
		{ UP "Upgrade: websocket\r\n", -E_BAD_HEADER },
		{ UP V13 V13 KEY, -E_BAD_HEADER },
		{ UP V13 KEY KEY, -E_BAD_HEADER },
		{ UP V13 KEY "Sec-WebSocket-Protocol: a\r\n"
		    "Sec-WebSocket-Protocol: b\r\n", -E_BAD_HEADER },
		{ UP V13 KEY "Content-Length: 1\r\n", -E_BAD_HEADER },
		{ UP V13 KEY "Transfer-Encoding: chunked\r\n", -E_BAD_HEADER }
	};
	static const char	 old[] = "GET / HTTP/1.0\r\n" UP V13 KEY "\r\n";
	static const char	 post[] =
	    "POST / HTTP/1.1\r\nHost: a\r\n" UP V13 KEY "\r\n";
	struct ws_offer		 offer;
	struct http_piece	 piece;
	size_t			 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_int(http_get_ws_offer(request(rows[i].lines), &offer),
		    rows[i].want, "http: RFC 6455 4.2.1 offer %zu", i);
	(void)http_get_ws_offer(request(UP V13 KEY
	    "Sec-WebSocket-Protocol: p\r\n"), &offer);
	is_str(offer.version, "13", "http: offer's version");
	is_str(offer.key, "x", "http: offer's key");
	is_str(offer.protocols, "p", "http: offer's protocols");
	http_reader_clear(&reader);
	(void)http_read(&reader, (const uint8_t *)old, sizeof(old) - 1, &piece);
	is_int(http_get_ws_offer(reader.request, &offer), -E_UPGRADE,
	    "http: 7.8 no upgrade from HTTP/1.0");
	http_reader_clear(&reader);
	(void)http_read(&reader, (const uint8_t *)post, sizeof(post) - 1,
	    &piece);
	is_int(http_get_ws_offer(reader.request, &offer), -E_UPGRADE,
	    "http: RFC 6455 4.1 no upgrade by POST");
}

static void
is_reply(const struct http_reply *rep, const char *want, const char *name)
{
	char	 buf[HTTP_REPLY_HEAD_MAX];
	int	 n;

	n = http_put_reply(buf, sizeof(buf), rep);
	if (n < 0)
		n = 0;
	buf[n < (int)sizeof(buf) ? n : 0] = '\0';
	is_str(buf, want, "http: reply: %s", name);
}

#define NS	"Cache-Control: no-store\r\n"
#define ID	"X-Request-Id: r\r\n"

static void
check_reply(void)
{
	is_reply(&(struct http_reply){ .status = 200, .request_id = "r",
	    .type = "application/json", .length = 12 },
	    "HTTP/1.1 200 OK\r\n" ID NS "Content-Type: application/json\r\n"
	    "Content-Length: 12\r\n\r\n", "plain");
	is_reply(&(struct http_reply){ .status = 201, .request_id = "r",
	    .type = "a/b", .length = 0, .close = 1, .location = "/x" },
	    "HTTP/1.1 201 Created\r\n" ID NS "Content-Type: a/b\r\n"
	    "Content-Length: 0\r\nConnection: close\r\nLocation: /x\r\n\r\n",
	    "created and close");
	is_reply(&(struct http_reply){ .status = 200, .request_id = "r",
	    .type = "a/b", .length = HTTP_LENGTH_CHUNKED },
	    "HTTP/1.1 200 OK\r\n" ID NS "Content-Type: a/b\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n", "RFC 9112 7.1 chunked");
	is_reply(&(struct http_reply){ .status = 200, .request_id = "r",
	    .type = "a/b", .length = HTTP_LENGTH_CLOSE },
	    "HTTP/1.1 200 OK\r\n" ID NS "Content-Type: a/b\r\n"
	    "Connection: close\r\n\r\n", "RFC 9112 6.3 until the end");
	is_reply(&(struct http_reply){ .status = 204, .request_id = "r",
	    .type = "a/b", .length = 0 },
	    "HTTP/1.1 204 No Content\r\n" ID NS "\r\n", "8.6 204 without it");
	is_reply(&(struct http_reply){ .status = 405, .request_id = "r",
	    .length = 1, .allow = "GET, HEAD" },
	    "HTTP/1.1 405 Method Not Allowed\r\n" ID NS
	    "Content-Length: 1\r\nAllow: GET, HEAD\r\n\r\n", "15.5.6 Allow");
	is_reply(&(struct http_reply){ .status = 503, .request_id = "r",
	    .length = 1, .retry_after_s = 7 },
	    "HTTP/1.1 503 Service Unavailable\r\n" ID NS
	    "Content-Length: 1\r\nRetry-After: 7\r\n\r\n", "Retry-After");
	is_reply(&(struct http_reply){ .status = 426, .request_id = "r",
	    .length = 1, .upgrade = 1, .close = 1 },
	    "HTTP/1.1 426 Upgrade Required\r\n" ID NS "Content-Length: 1\r\n"
	    "Upgrade: websocket\r\nConnection: Upgrade, close\r\n"
	    "Sec-WebSocket-Version: 13\r\n\r\n", "15.5.22 426");
	is_reply(&(struct http_reply){ .status = 101, .request_id = "r",
	    .ws_accept = "k", .ws_protocol = "p" },
	    "HTTP/1.1 101 Switching Protocols\r\n" ID NS
	    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
	    "Sec-WebSocket-Accept: k\r\nSec-WebSocket-Protocol: p\r\n\r\n",
	    "RFC 6455 4.2.2 101");
	/* 5.6.7 gives this date; date -u -d @951782400 gives the other. */
	is_reply(&(struct http_reply){ .status = 204, .request_id = "r",
	    .date_s = 784111777 },
	    "HTTP/1.1 204 No Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
	    ID NS "\r\n", "5.6.7 date");
	is_reply(&(struct http_reply){ .status = 204, .request_id = "r",
	    .date_s = 951782400 },
	    "HTTP/1.1 204 No Content\r\nDate: Tue, 29 Feb 2000 00:00:00 GMT\r\n"
	    ID NS "\r\n", "date of a leap day");
}

static void
check_injection(void)
{
	static const char *const bad[] = { "a\r\nX: y", "a\nb", "a\rb", "a\tb",
	    "\x7f", "\xc3\xa4", "\x1b" };
	struct http_reply	 rep;
	char			 buf[HTTP_REPLY_HEAD_MAX], big[2000];
	size_t			 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rep = (struct http_reply){ .status = 200,
		    .request_id = bad[i] };
		is_int(http_put_reply(buf, sizeof(buf), &rep), -E_INTERNAL,
		    "http: RFC 9112 11.1 request id %zu is refused", i);
		rep = (struct http_reply){ .status = 201, .request_id = "r",
		    .location = bad[i] };
		is_int(http_put_reply(buf, sizeof(buf), &rep), -E_INTERNAL,
		    "http: RFC 9112 11.1 location %zu is refused", i);
	}
	memset(big, 'a', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	rep = (struct http_reply){ .status = 201, .location = big };
	is_int(http_put_reply(buf, sizeof(buf), &rep), -E_INTERNAL,
	    "http: a head that does not fit is refused");
	rep = (struct http_reply){ .status = 99 };
	is_int(http_put_reply(buf, sizeof(buf), &rep), -E_INTERNAL,
	    "http: a status that is none is refused");
}

static void
check_rest(void)
{
	static const struct {
		size_t		 len;
		const char	*head;
	} rows[] = { { 1, "1\r\n" }, { 15, "f\r\n" }, { 16, "10\r\n" },
	    { 65536, "10000\r\n" }, { SIZE_MAX, "ffffffffffffffff\r\n" } };
	const char	*value;
	char		 buf[HTTP_CHUNK_HEAD_MAX + 1];
	size_t		 i, n;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		n = http_put_chunk_head(buf, rows[i].len);
		buf[n] = '\0';
		is_str(buf, rows[i].head, "http: RFC 9112 7.1 chunk of %zu",
		    rows[i].len);
	}
	ok(http_reply_has_body(HTTP_M_GET, 200), "http: 200 has a body");
	ok(!http_reply_has_body(HTTP_M_HEAD, 200), "http: 9.3.2 HEAD has none");
	ok(!http_reply_has_body(HTTP_M_GET, 204), "http: 204 has none");
	ok(!http_reply_has_body(HTTP_M_GET, 101), "http: 101 has none");
	ok(!http_reply_has_body(HTTP_M_GET, 304), "http: 304 has none");
	is_int(http_field_once(request("A: 1\r\na: 2\r\n"), "A", &value),
	    -E_BAD_HEADER, "http: a field twice, names without case");
	is_str(http_field(request("A: 1\r\na: 2\r\n"), "a"), "1",
	    "http: the first of two");
	is_int(http_field_once(request(""), "A", &value), 0,
	    "http: a field that is not there");
	ok(value == NULL && http_field(reader.request, "A") == NULL,
	    "http: is NULL");
	is_str(http_method_name(HTTP_M_DELETE), "DELETE", "http: method name");
	is_str(http_method_name((enum http_method)99), "?",
	    "http: no method's name");
}

int
main(void)
{
	http_reader_init(&reader);
	check_request_id();
	check_key();
	check_type();
	check_accept();
	check_offer();
	check_reply();
	check_injection();
	check_rest();
	http_reader_clear(&reader);
	return done_testing();
}
