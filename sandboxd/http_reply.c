/* SPDX-License-Identifier: ISC */
/*
 * Heads of replies and chunks (RFC 9112, 4 and 7.1).  Runs in front.  Values
 * may stem from a client or a guest: one that could end its line is refused,
 * so that no reply can be split.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "http.h"

struct out {
	char	*buf;
	size_t	 size;
	size_t	 len;
	int	 failed;
};

static const char *
reason(unsigned int status)
{
	static const struct {
		unsigned int	 status;
		const char	*text;
	} reasons[] = {
		{ 101, "Switching Protocols" }, { 200, "OK" },
		{ 201, "Created" }, { 202, "Accepted" }, { 204, "No Content" },
		{ 400, "Bad Request" }, { 401, "Unauthorized" },
		{ 403, "Forbidden" }, { 404, "Not Found" },
		{ 405, "Method Not Allowed" }, { 406, "Not Acceptable" },
		{ 408, "Request Timeout" }, { 409, "Conflict" },
		{ 411, "Length Required" }, { 413, "Content Too Large" },
		{ 414, "URI Too Long" }, { 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" }, { 422, "Unprocessable Content" },
		{ 426, "Upgrade Required" }, { 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" }, { 501, "Not Implemented" },
		{ 502, "Bad Gateway" }, { 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" }
	};
	size_t	 i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "";	/* 4: may be empty */
}

static void __attribute__((format(printf, 2, 3)))
put(struct out *o, const char *fmt, ...)
{
	va_list	 ap;
	int	 n;

	if (o->failed)
		return;
	va_start(ap, fmt);
	n = vsnprintf(o->buf + o->len, o->size - o->len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= o->size - o->len)
		o->failed = 1;
	else
		o->len += (size_t)n;
}

static void
put_field(struct out *o, const char *name, const char *value)
{
	size_t	 i;

	if (value == NULL)
		return;
	for (i = 0; value[i] != '\0'; i++)
		if ((unsigned char)value[i] < 0x20 ||
		    (unsigned char)value[i] > 0x7e)
			o->failed = 1;
	put(o, "%s: %s\r\n", name, value);
}

/*
 * IMF-fixdate (RFC 9110, 5.6.7).  gmtime(3) would read the time zone file,
 * which a process in an empty chroot cannot.
 */
static void
put_date(struct out *o, uint64_t now)
{
	static const char	 days[] = "ThuFriSatSunMonTueWed";
	static const char	 months[] =
	    "JanFebMarAprMayJunJulAugSepOctNovDec";
	static const unsigned int len[] =
	    { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	uint64_t		 day, of_year;
	unsigned int		 year = 1970, m, dm, leap;

	if (now == 0 || now >= 253402300800)	/* year 10000 */
		return;
	of_year = day = now / 86400;
	for (;;) {
		leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
		if (of_year < 365 + leap)
			break;
		of_year -= 365 + leap;
		year++;
	}
	for (m = 0;; m++) {
		dm = len[m] + (m == 1 ? leap : 0);
		if (of_year < dm)
			break;
		of_year -= dm;
	}
	put(o, "Date: %.3s, %02u %.3s %04u %02u:%02u:%02u GMT\r\n",
	    days + day % 7 * 3, (unsigned int)of_year + 1, months + m * 3, year,
	    (unsigned int)(now / 3600 % 24), (unsigned int)(now / 60 % 60),
	    (unsigned int)(now % 60));
}

static int
has_length(unsigned int status)
{
	return status >= 200 && status != 204 && status != 304;
}

int
http_reply_has_body(enum http_method method, unsigned int status)
{
	return method != HTTP_M_HEAD && has_length(status);
}

/* RFC 9112, 6 and 9.6; RFC 9110, 7.8. */
static void
put_framing(struct out *o, const struct http_reply *rep)
{
	int	 upgrade, close;

	if (has_length(rep->status)) {
		if (rep->length >= 0)
			put(o, "Content-Length: %lld\r\n",
			    (long long)rep->length);
		else if (rep->length == HTTP_LENGTH_CHUNKED)
			put(o, "Transfer-Encoding: chunked\r\n");
	}
	upgrade = rep->status == 101 || rep->upgrade;
	close = rep->status != 101 &&
	    (rep->close || rep->length == HTTP_LENGTH_CLOSE);
	if (upgrade)
		put(o, "Upgrade: websocket\r\n");
	if (upgrade || close)
		put(o, "Connection: %s%s%s\r\n", upgrade ? "Upgrade" : "",
		    upgrade && close ? ", " : "", close ? "close" : "");
	if (rep->upgrade)
		put(o, "Sec-WebSocket-Version: 13\r\n");
}

int
http_put_reply(char *buf, size_t size, const struct http_reply *rep)
{
	struct out	 o = { buf, size, 0, 0 };

	if (rep->status < 101 || rep->status > 599)
		return -E_INTERNAL;
	put(&o, "HTTP/1.1 %u %s\r\n", rep->status, reason(rep->status));
	put_date(&o, rep->date_s);
	put_field(&o, "X-Request-Id", rep->request_id);
	put(&o, "Cache-Control: no-store\r\n");
	if (has_length(rep->status))
		put_field(&o, "Content-Type", rep->type);
	put_framing(&o, rep);
	put_field(&o, "Location", rep->location);
	put_field(&o, "Allow", rep->allow);
	if (rep->retry_after_s != 0)
		put(&o, "Retry-After: %u\r\n", rep->retry_after_s);
	if (rep->status == 101) {
		put_field(&o, "Sec-WebSocket-Accept", rep->ws_accept);
		put_field(&o, "Sec-WebSocket-Protocol", rep->ws_protocol);
	}
	put(&o, "\r\n");
	return o.failed ? -E_INTERNAL : (int)o.len;
}

size_t
http_put_chunk_head(char *buf, size_t len)
{
	static const char	 digits[] = "0123456789abcdef";
	size_t			 n = 0, shift = sizeof(len) * 8;

	/* snprintf would need room for its NUL. */
	while (shift > 4 && len >> (shift - 4) == 0)
		shift -= 4;
	while (shift > 0) {
		shift -= 4;
		buf[n++] = digits[len >> shift & 15];
	}
	buf[n++] = '\r';
	buf[n++] = '\n';
	return n;
}
