/* SPDX-License-Identifier: ISC */
/*
 * Hand-made requests and what RFC 9112 (RFC 9110 where named) makes of them.
 * The verdict is a line: "METHOD path?query" for each whole request, then
 * "close" when no other may follow, "expect" when the client waits for 100,
 * "[body]" when there is one, " ; " between requests, "!code" for a refusal,
 * "..." when more bytes are due.  Used by http_test.c.
 */
#ifndef SBX_HTTP_CORPUS_H
#define SBX_HTTP_CORPUS_H

#define H	"Host: a\r\n"
#define P	"POST /p HTTP/1.1\r\n" H
#define CK	P "Transfer-Encoding: chunked\r\n\r\n"
#define BAD	"!bad_http"

struct corpus_row {
	const char	*rule;
	const char	*name;
	const char	*bytes;
	size_t		 len;
	const char	*verdict;
};
#define ROW(rule, name, bytes, verdict) \
	{ rule, name, bytes, sizeof(bytes) - 1, verdict }

static const struct corpus_row corpus[] = {
	/* ---- requests that are fine ---- */
	ROW("2.1", "smallest", "GET / HTTP/1.1\r\n" H "\r\n", "GET /"),
	ROW("3.2.1", "query", "GET /a?b=c HTTP/1.1\r\n" H "\r\n", "GET /a?b=c"),
	ROW("3.2.1", "empty query", "GET /a? HTTP/1.1\r\n" H "\r\n", "GET /a?"),
	ROW("3.2.1", "'?' in the query", "GET /a?b?c HTTP/1.1\r\n" H "\r\n",
	    "GET /a?b?c"),
	ROW("3.2.1", "percent code kept", "GET /%41%2f HTTP/1.1\r\n" H "\r\n",
	    "GET /%41%2f"),
	ROW("3.2.1", "two slashes kept", "GET //x HTTP/1.1\r\n" H "\r\n",
	    "GET //x"),
	ROW("3.2.1", "dot segments kept", "GET /../x HTTP/1.1\r\n" H "\r\n",
	    "GET /../x"),
	ROW("3.2.2", "absolute-form", "GET http://a/x?y HTTP/1.1\r\n" H "\r\n",
	    "GET /x?y"),
	ROW("3.2.2", "absolute-form, https, port",
	    "GET HTTPS://a.b:80/x HTTP/1.1\r\n" H "\r\n", "GET /x"),
	ROW("3.2.2", "absolute-form, no path",
	    "GET http://a HTTP/1.1\r\n" H "\r\n", "GET /"),
	ROW("3.2.2", "absolute-form, only a query",
	    "GET http://a?q HTTP/1.1\r\n" H "\r\n", "GET /?q"),
	ROW("3.2.2", "absolute-form, IPv6",
	    "GET http://[::1]:80/x HTTP/1.1\r\n" H "\r\n", "GET /x"),
	ROW("3.2.4", "OPTIONS *", "OPTIONS * HTTP/1.1\r\n" H "\r\n",
	    "OPTIONS *"),
	ROW("3.2.4", "OPTIONS absolute-form without path",
	    "OPTIONS http://a HTTP/1.1\r\n" H "\r\n", "OPTIONS *"),
	ROW("5", "no space after the colon",
	    "GET / HTTP/1.1\r\nHost:a\r\n\r\n", "GET /"),
	ROW("5", "white space around a value",
	    "GET / HTTP/1.1\r\nHost: \t a \t\r\n\r\n", "GET /"),
	ROW("5", "empty value", "GET / HTTP/1.1\r\n" H "X:\r\n\r\n", "GET /"),
	ROW("3.2", "empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET /"),
	ROW("3.2", "Host with port", "GET / HTTP/1.1\r\nHost: a:80\r\n\r\n",
	    "GET /"),
	ROW("3.2", "Host IPv6", "GET / HTTP/1.1\r\nHost: [::1]:8\r\n\r\n",
	    "GET /"),
	ROW("5", "name in capitals", "GET / HTTP/1.1\r\nHOST: a\r\n\r\n",
	    "GET /"),
	ROW("RFC 9110 5.5", "obs-text in a value",
	    "GET / HTTP/1.1\r\n" H "X: \xff\x80\r\n\r\n", "GET /"),
	ROW("6.3", "POST without a length", P "\r\n", "POST /p"),
	ROW("6.2", "Content-Length 0", P "Content-Length: 0\r\n\r\n",
	    "POST /p"),
	ROW("6.2", "a body", P "Content-Length: 3\r\n\r\nabc",
	    "POST /p [abc]"),
	ROW("6.2", "leading zeros", P "Content-Length: 003\r\n\r\nabc",
	    "POST /p [abc]"),
	ROW("6.2", "body that looks like a request",
	    P "Content-Length: 18\r\n\r\nGET /x HTTP/1.1\r\n\r"
	    "GET / HTTP/1.1\r\n" H "\r\n",
	    "POST /p [GET /x HTTP/1.1\r\n\r] ; GET /"),
	ROW("6.3", "GET with a body", "GET / HTTP/1.1\r\n" H
	    "Content-Length: 2\r\n\r\nab", "GET / [ab]"),
	ROW("6.3", "HEAD with a body is framed", "HEAD / HTTP/1.1\r\n" H
	    "Content-Length: 27\r\n\r\nPOST /evil HTTP/1.1\r\nX: y\r\n"
	    "GET /b HTTP/1.1\r\n" H "\r\n",
	    "HEAD / [POST /evil HTTP/1.1\r\nX: y\r\n] ; GET /b"),
	ROW("6.3", "TRACE with a body is framed", "TRACE / HTTP/1.1\r\n" H
	    "Content-Length: 4\r\n\r\nGET GET /b HTTP/1.1\r\n" H "\r\n",
	    "TRACE / [GET ] ; GET /b"),
	ROW("6.3", "HEAD with chunks is framed", "HEAD / HTTP/1.1\r\n" H
	    "Transfer-Encoding: chunked\r\n\r\n4\r\nGET \r\n0\r\n\r\n"
	    "GET /b HTTP/1.1\r\n" H "\r\n", "HEAD / [GET ] ; GET /b"),
	ROW("6.3", "DELETE with a body", "DELETE /x HTTP/1.1\r\n" H
	    "Content-Length: 1\r\n\r\nx", "DELETE /x [x]"),
	ROW("7.1", "chunks", CK "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	    "POST /p [abcde]"),
	ROW("7.1", "chunk size in capitals", CK "A\r\n0123456789\r\n0\r\n\r\n",
	    "POST /p [0123456789]"),
	ROW("7.1", "leading zeros", CK "003\r\nabc\r\n000\r\n\r\n",
	    "POST /p [abc]"),
	ROW("7.1", "only the last chunk", CK "0\r\n\r\n", "POST /p"),
	ROW("7.1", "coding in capitals", P "Transfer-Encoding: CHUNKED\r\n\r\n"
	    "1\r\na\r\n0\r\n\r\n", "POST /p [a]"),
	ROW("7.1.1", "chunk extensions",
	    CK "3;a=b;c=\"d;e\"\r\nabc\r\n0;x\r\n\r\n", "POST /p [abc]"),
	ROW("7.1", "CRLF inside data", CK "4\r\n\r\n\r\n\r\n0\r\n\r\n",
	    "POST /p [\r\n\r\n]"),
	ROW("9.3.2", "three at once", "GET /1 HTTP/1.1\r\n" H "\r\n" P
	    "Content-Length: 1\r\n\r\nxGET /3 HTTP/1.1\r\n" H "\r\n",
	    "GET /1 ; POST /p [x] ; GET /3"),
	ROW("9.6", "close", "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
	    "GET / close"),
	ROW("9.6", "close in a list", "GET / HTTP/1.1\r\n" H
	    "Connection: keep-alive , Close\r\n\r\n", "GET / close"),
	ROW("9.6", "close in the second line", "GET / HTTP/1.1\r\n" H
	    "Connection: x\r\nConnection: close\r\n\r\n", "GET / close"),
	ROW("9.6", "empty list elements", "GET / HTTP/1.1\r\n" H
	    "Connection: ,, x ,\r\n\r\n", "GET /"),
	ROW("9.3", "HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "GET / close"),
	ROW("9.3", "HTTP/1.0 keep-alive is not kept",
	    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / close"),
	ROW("9.3", "HTTP/1.0 with a body",
	    "POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx",
	    "POST / close [x]"),
	ROW("RFC 9110 10.1.1", "100-continue",
	    P "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\nx",
	    "POST /p expect [x]"),
	ROW("RFC 9110 10.1.1", "100-continue without a body",
	    P "Expect: 100-continue\r\n\r\n", "POST /p"),
	ROW("RFC 9110 10.1.1", "100-continue from HTTP/1.0",
	    "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n"
	    "\r\nx", "POST / close [x]"),
	ROW("RFC 9110 9.1", "unknown method", "BREW / HTTP/1.1\r\n" H "\r\n",
	    "? /"),
	ROW("RFC 9110 9.1", "methods have a case", "get / HTTP/1.1\r\n" H
	    "\r\n", "? /"),
	ROW("RFC 9110 7.8", "upgrade: bytes after it stay",
	    "GET / HTTP/1.1\r\n" H "Upgrade: websocket\r\n"
	    "Connection: Upgrade\r\n\r\n", "GET /"),

	/* ---- the request line ---- */
	ROW("3", "nothing but a method", "GET\r\n" H "\r\n", BAD),
	ROW("3", "HTTP/0.9", "GET /\r\n\r\n", BAD),
	ROW("3", "no method", " / HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3", "two spaces first", "GET  / HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3", "two spaces second", "GET /  HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3", "space at the end", "GET / HTTP/1.1 \r\n" H "\r\n", BAD),
	ROW("3", "tab for a space", "GET\t/ HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3", "space in the target", "GET /a b HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3", "no target", "GET HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.1", "method is no token", "G@T / HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.1", "method too long", "GETGETGETGETGETGET / HTTP/1.1\r\n" H
	    "\r\n", "!not_implemented"),
	ROW("2.2", "an empty line before",
	    "\r\nGET / HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("2.2", "an empty line after a body", P "Content-Length: 1\r\n\r\nx"
	    "\r\nGET / HTTP/1.1\r\n" H "\r\n", "POST /p [x] ; " BAD),
	ROW("2.2", "a space before", " GET / HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("2.2", "bare LF in the request line",
	    "GET / HTTP/1.1\n" H "\r\n", BAD),
	ROW("2.2", "bare LF after a field",
	    "GET / HTTP/1.1\r\nHost: a\n\r\n", BAD),
	ROW("2.2", "bare LF ends the head",
	    "GET / HTTP/1.1\r\n" H "\n", BAD),
	ROW("2.2", "empty line of a bare LF before",
	    "\nGET / HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("2.2", "lone CR in the request line",
	    "GET /\r HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("2.2", "lone CR in a value",
	    "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", BAD),
	ROW("2.2", "two CRs", "GET / HTTP/1.1\r\r\n" H "\r\n", BAD),
	ROW("2.3", "HTTP/1.9", "GET / HTTP/1.9\r\n" H "\r\n",
	    "!http_version"),
	ROW("2.3", "HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n",
	    "!http_version"),
	ROW("2.3", "HTTP/2.0", "GET / HTTP/2.0\r\n" H "\r\n",
	    "!http_version"),
	ROW("2.3", "HTTP/0.9 by name", "GET / HTTP/0.9\r\n" H "\r\n",
	    "!http_version"),
	ROW("2.3", "HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	    "!http_version"),
	ROW("2.3", "http in lower case", "GET / http/1.1\r\n" H "\r\n", BAD),
	ROW("2.3", "two digits", "GET / HTTP/1.10\r\n" H "\r\n", BAD),
	ROW("2.3", "leading zero", "GET / HTTP/01.1\r\n" H "\r\n", BAD),
	ROW("2.3", "one number", "GET / HTTP/1\r\n" H "\r\n", BAD),
	ROW("2.3", "letters", "GET / HTTP/1.x\r\n" H "\r\n", BAD),
	ROW("2.3", "another name", "GET / HTTQ/1.1\r\n" H "\r\n", BAD),
	ROW("2.3", "comma", "GET / HTTP/1,1\r\n" H "\r\n", BAD),
	ROW("3.2", "no slash", "GET a HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.2.3", "authority-form with GET",
	    "GET a:80 HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.2.3", "CONNECT", "CONNECT a:80 HTTP/1.1\r\n" H "\r\n",
	    "!not_implemented"),
	ROW("3.2.4", "GET *", "GET * HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.2.4", "OPTIONS **", "OPTIONS ** HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.2.2", "another scheme", "GET ftp://a/ HTTP/1.1\r\n" H "\r\n",
	    BAD),
	ROW("RFC 9110 4.2.1", "empty host", "GET http:///x HTTP/1.1\r\n" H
	    "\r\n", BAD),
	ROW("RFC 9110 4.2.1", "only a port", "GET http://:80/x HTTP/1.1\r\n" H
	    "\r\n", BAD),
	ROW("RFC 9110 4.2.4", "user in the target",
	    "GET http://u@a/ HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.2.2", "port too long", "GET http://a:123456/ HTTP/1.1\r\n" H
	    "\r\n", BAD),
	ROW("3.2.2", "port is no number", "GET http://a:8x/ HTTP/1.1\r\n" H
	    "\r\n", BAD),
	ROW("3.2.2", "bracket not closed", "GET http://[::1/ HTTP/1.1\r\n" H
	    "\r\n", BAD),
	ROW("3.2.2", "empty brackets", "GET http://[]/ HTTP/1.1\r\n" H "\r\n",
	    BAD),
	ROW("3.2.2", "no IPv6 in brackets", "GET http://[::g]/ HTTP/1.1\r\n" H
	    "\r\n", BAD),
	ROW("3.2.2", "text after the brackets",
	    "GET http://[::1]x/ HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.2.2", "absolute-form, bad query",
	    "GET http://a?<> HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3.2", "fragment", "GET /a#b HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("RFC 3986 2.1", "percent alone", "GET /% HTTP/1.1\r\n" H "\r\n",
	    BAD),
	ROW("RFC 3986 2.1", "percent and one digit",
	    "GET /%4 HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("RFC 3986 2.1", "percent and letters",
	    "GET /%zz HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("RFC 3986 2.1", "percent in the query",
	    "GET /?%g0 HTTP/1.1\r\n" H "\r\n", BAD),
	ROW("3", "TLS instead of HTTP", "\x16\x03\x01\x02\x00\x01", BAD),

	/* ---- fields ---- */
	ROW("3.2", "no Host", "GET / HTTP/1.1\r\n\r\n", BAD),
	ROW("3.2", "two Hosts", "GET / HTTP/1.1\r\n" H "Host: b\r\n\r\n", BAD),
	ROW("3.2", "two equal Hosts", "GET / HTTP/1.1\r\n" H H "\r\n", BAD),
	ROW("3.2", "two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\n" H H "\r\n",
	    BAD),
	ROW("3.2", "Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
	    BAD),
	ROW("3.2", "Host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
	    BAD),
	ROW("3.2", "Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	    BAD),
	ROW("3.2", "Host with a bad port",
	    "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n", BAD),
	ROW("3.2", "Host with obs-text",
	    "GET / HTTP/1.1\r\nHost: \xe4\r\n\r\n", BAD),
	ROW("3.2", "HTTP/1.0 with a bad Host",
	    "GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", BAD),
	ROW("5.1", "space before the colon",
	    "GET / HTTP/1.1\r\nHost : a\r\n\r\n", BAD),
	ROW("5.1", "tab before the colon",
	    "GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", BAD),
	ROW("5.1", "Content-Length with a space before the colon",
	    P "Content-Length : 3\r\n\r\nabc", BAD),
	ROW("5.1", "no name", "GET / HTTP/1.1\r\n" H ": x\r\n\r\n", BAD),
	ROW("5.1", "no colon", "GET / HTTP/1.1\r\n" H "nonsense\r\n\r\n", BAD),
	ROW("5.1", "space in a name", "GET / HTTP/1.1\r\n" H "X Y: z\r\n\r\n",
	    BAD),
	ROW("5.2", "obs-fold with a space",
	    "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", BAD),
	ROW("5.2", "obs-fold with a tab",
	    "GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n", BAD),
	ROW("5.2", "folded Transfer-Encoding",
	    P "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", BAD),
	ROW("2.2", "white space before the first field",
	    "GET / HTTP/1.1\r\n Host: a\r\n\r\n", BAD),
	ROW("2.2", "a line of white space",
	    "GET / HTTP/1.1\r\n" H " \r\n\r\n", BAD),
	ROW("RFC 9110 5.5", "NUL in a value",
	    "GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n", BAD),
	ROW("9.6", "Connection is no token list",
	    "GET / HTTP/1.1\r\n" H "Connection: clo se\r\n\r\n", BAD),
	ROW("RFC 9110 10.1.1", "another expectation",
	    P "Content-Length: 1\r\nExpect: tea\r\n\r\nx",
	    "!expectation_failed"),
	ROW("RFC 9110 10.1.1", "a list of expectations",
	    P "Content-Length: 1\r\nExpect: 100-continue, tea\r\n\r\nx",
	    "!expectation_failed"),
	ROW("RFC 9110 10.1.1", "two Expects", P "Content-Length: 1\r\n"
	    "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\nx", BAD),

	/* ---- length and coding ---- */
	ROW("6.3", "two lengths", P "Content-Length: 3\r\n"
	    "Content-Length: 4\r\n\r\nabcd", BAD),
	ROW("6.3", "two equal lengths", P "Content-Length: 3\r\n"
	    "Content-Length: 3\r\n\r\nabc", BAD),
	ROW("6.3", "length and coding", P "Content-Length: 3\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
	ROW("6.3", "coding and length", P "Transfer-Encoding: chunked\r\n"
	    "Content-Length: 3\r\n\r\n0\r\n\r\n", BAD),
	ROW("6.1", "coding from HTTP/1.0", "POST / HTTP/1.0\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
	ROW("6.1", "two codings", P "Transfer-Encoding: chunked\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
	ROW("6.1", "identity, then chunked", P "Transfer-Encoding: identity\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
	ROW("6.1", "gzip, chunked",
	    P "Transfer-Encoding: gzip, chunked\r\n\r\n",
	    "!not_implemented"),
	ROW("6.2", "length too large", P "Content-Length: "
	    "9223372036854775808\r\n\r\n", "!body_too_large"),
	ROW("6.2", "length of 30 digits", P "Content-Length: "
	    "999999999999999999999999999999\r\n\r\n", "!body_too_large"),
	ROW("6.2", "over the route's bound", P "Content-Length: 70000\r\n\r\n",
	    "!body_too_large"),
	ROW("7.1", "chunk over the route's bound", CK "11170\r\n",
	    "!body_too_large"),
	ROW("7.1", "chunks over the route's bound",
	    CK "1\r\na\r\n10000\r\n", "!body_too_large"),

	/* ---- chunks ---- */
	ROW("7.1", "chunk data too long", CK "3\r\nabcd\r\n0\r\n\r\n", BAD),
	ROW("7.1", "chunk data too short", CK "3\r\nab\r\n0\r\n\r\n", BAD),
	ROW("7.1", "LF after the data", CK "3\r\nabc\n0\r\n\r\n", BAD),
	ROW("7.1", "CR without LF after the data",
	    CK "3\r\nabc\rX0\r\n\r\n", BAD),
	ROW("7.1", "LF after the size", CK "3\nabc\r\n0\r\n\r\n", BAD),
	ROW("7.1", "CR without LF after the size",
	    CK "3\rXabc\r\n0\r\n\r\n", BAD),
	ROW("7.1.1", "LF inside an extension",
	    CK "3;a\nabc\r\n0\r\n\r\n", BAD),
	ROW("7.1.1", "CR inside an extension",
	    CK "3;a\rb\r\nabc\r\n0\r\n\r\n", BAD),
	ROW("7.1.1", "NUL in an extension",
	    CK "3;a\0\r\nabc\r\n0\r\n\r\n", BAD),
	ROW("7.1.2", "trailer field", CK "0\r\nX: y\r\n\r\n", BAD),
	ROW("7.1.2", "trailer that would frame",
	    CK "0\r\nContent-Length: 5\r\n\r\nabcde", BAD),
	ROW("7.1", "LF ends the last chunk", CK "0\r\n\n", BAD),
	ROW("7.1", "CR without LF ends the last chunk", CK "0\r\n\rX", BAD),
	ROW("7.1", "incomplete: size", CK "3", "..."),
	ROW("7.1", "incomplete: data", CK "3\r\nab", "..."),
	ROW("7.1", "incomplete: end", CK "3\r\nabc\r\n0\r\n", "..."),
	ROW("6.3", "incomplete: body", P "Content-Length: 3\r\n\r\nab",
	    "..."),
	ROW("2.2", "nothing", "", "")
};

#endif
