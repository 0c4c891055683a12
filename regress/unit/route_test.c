/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/route.o sandboxd/http.o sandboxd/http_lex.o
   sandboxd/http_field.o libs: -lbsd */
/*
 * Routes and query strings.  The table of what answers what is that of
 * sandboxd-api(7); RFC sections are named where one decides.
 */
#include "http.h"
#include "route.h"
#include "test.h"

TEST_PLAN_AUTO;

#define ID	"sb-abcdefghij234567"

static const struct {
	enum http_method	 method;
	const char		*path;
	int			 want;		/* route_id, or the error */
	const char		*more;		/* id, or Allow */
} rows[] = {
	{ HTTP_M_GET, "/healthz", ROUTE_HEALTH, "" },
	{ HTTP_M_HEAD, "/healthz", ROUTE_HEALTH, "" },
	{ HTTP_M_GET, "/v1/healthz", ROUTE_HEALTH, "" },
	{ HTTP_M_POST, "/sandboxes", ROUTE_SANDBOX_CREATE, "" },
	{ HTTP_M_POST, "/v1/sandboxes", ROUTE_SANDBOX_CREATE, "" },
	{ HTTP_M_GET, "/sandboxes", ROUTE_SANDBOX_LIST, "" },
	{ HTTP_M_HEAD, "/v1/sandboxes", ROUTE_SANDBOX_LIST, "" },
	{ HTTP_M_GET, "/sandboxes/" ID, ROUTE_SANDBOX_SHOW, ID },
	{ HTTP_M_HEAD, "/sandboxes/" ID, ROUTE_SANDBOX_SHOW, ID },
	{ HTTP_M_GET, "/v1/sandboxes/" ID, ROUTE_SANDBOX_SHOW, ID },
	{ HTTP_M_DELETE, "/sandboxes/" ID, ROUTE_SANDBOX_DELETE, ID },
	{ HTTP_M_GET, "/sandboxes/" ID "/command", ROUTE_COMMAND, ID },
	{ HTTP_M_GET, "/v1/sandboxes/" ID "/command", ROUTE_COMMAND, ID },
	{ HTTP_M_POST, "/sandboxes/" ID "/exec", ROUTE_EXEC, ID },
	/* RFC 3986, 2.4: decoded, once, after splitting. */
	{ HTTP_M_GET, "/%73andboxes", ROUTE_SANDBOX_LIST, "" },
	{ HTTP_M_GET, "/%76%31/sandboxes/%73%62-abcdefghij234567",
	    ROUTE_SANDBOX_SHOW, ID },
	{ HTTP_M_GET, "/%2573andboxes", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes%2f" ID, -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes%2F" ID, -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes/" ID "%2fcommand", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/%2e%2e", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/..", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/../healthz", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/./healthz", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes/%00", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/" ID "%00", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%0a", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%7f", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%ff", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%c3", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%c3/%a4", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%ed%a0%80", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/nothing/%ff", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/1/2/3/4/5/6/7/8/%00", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%4", -E_BAD_HTTP, "" },
	{ HTTP_M_GET, "/sandboxes/%c3%a4", -E_BAD_ID, "" },
	/* No such thing. */
	{ HTTP_M_GET, "/", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/v1", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/v1/", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/v2/sandboxes", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/v1/v1/sandboxes", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/Sandboxes", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes/", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "//sandboxes", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes//", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes/" ID "/", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes/" ID "/files", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes/" ID "/command/x", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxes/" ID "/command/x/y/z", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxe", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/sandboxess", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/healthz;x=y", -E_NO_ROUTE, "" },
	{ HTTP_M_GET, "/{id}", -E_NO_ROUTE, "" },
	/* RFC 9110, 15.5.6 and 10.2.1: 405 with Allow. */
	{ HTTP_M_POST, "/healthz", -E_METHOD, "GET, HEAD" },
	{ HTTP_M_PUT, "/sandboxes", -E_METHOD, "POST, GET, HEAD" },
	{ HTTP_M_PATCH, "/sandboxes/" ID, -E_METHOD, "GET, HEAD, DELETE" },
	{ HTTP_M_POST, "/sandboxes/" ID, -E_METHOD, "GET, HEAD, DELETE" },
	{ HTTP_M_POST, "/sandboxes/" ID "/command", -E_METHOD, "GET" },
	{ HTTP_M_HEAD, "/sandboxes/" ID "/command", -E_METHOD, "GET" },
	{ HTTP_M_GET, "/sandboxes/" ID "/exec", -E_METHOD, "POST" },
	{ HTTP_M_TRACE, "/healthz", -E_METHOD, "GET, HEAD" },
	{ HTTP_M_OPTIONS, "/healthz", -E_METHOD, "GET, HEAD" },
	{ HTTP_M_OPTIONS, "*", -E_METHOD, "GET, HEAD, POST, DELETE" },
	/* RFC 9110, 9.1 */
	{ HTTP_M_OTHER, "/healthz", -E_NOT_IMPLEMENTED, "" },
	{ HTTP_M_OTHER, "/nothing", -E_NOT_IMPLEMENTED, "" },
	/* common/id.h: "sb-" and 16 of [a-z2-7] */
	{ HTTP_M_GET, "/sandboxes/x", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/sb-", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/" ID "a", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/sb-abcdefghij23456", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/sb-abcdefghij234568", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/SB-abcdefghij234567", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/sb-ABCDEFGHIJ234567", -E_BAD_ID, "" },
	{ HTTP_M_DELETE, "/sandboxes/x", -E_BAD_ID, "" },
	{ HTTP_M_POST, "/sandboxes/x/exec", -E_BAD_ID, "" },
	{ HTTP_M_GET, "/sandboxes/x/command", -E_BAD_ID, "" }
};

static struct http_request	 req;

static void
check_paths(void)
{
	struct route_match	 m;
	char			 name[160], path[4000];
	size_t			 i, n;
	int			 ret;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		req.method = rows[i].method;
		req.path = rows[i].path;
		ret = route_find(&req, &m);
		(void)snprintf(name, sizeof(name), "route: %s %s",
		    http_method_name(rows[i].method), rows[i].path);
		is_int(ret == 0 ? (int)m.route->id : ret, rows[i].want, "%s",
		    name);
		is_str(ret == 0 ? m.sandbox_id : m.allow, rows[i].more,
		    "%s: id or Allow", name);
		ok((m.route != NULL) == (ret == 0), "%s: row", name);
	}
	req.method = HTTP_M_GET;
	req.path = path;
	n = (size_t)snprintf(path, sizeof(path), "/sandboxes/");
	memset(path + n, 'a', 300);
	path[n + 300] = '\0';
	is_int(route_find(&req, &m), -E_NO_ROUTE, "route: a very long id");
	for (i = 0; i < 1000; i++)
		memcpy(path + 2 * i, "/a", 2);
	path[2000] = '\0';
	is_int(route_find(&req, &m), -E_NO_ROUTE, "route: a thousand parts");
}

/* What the table promises to conn.c. */
static void
check_table(void)
{
	const struct route	*row;
	unsigned int		 seen = 0;

	for (row = route_table; row->pattern != NULL; row++) {
		seen |= 1u << row->id;
		ok(((row->flags & ROUTE_F_BODY) != 0) == (row->body_max > 0),
		    "route: %s takes a body or not", row->pattern);
		ok(!(row->flags & ROUTE_F_BODY) || row->method == HTTP_M_POST,
		    "route: %s: only POST has a body", row->pattern);
	}
	is_int(seen, (1 << ROUTE_COUNT) - 1, "route: every id has a row");
}

static void
check_query(void)
{
	static const struct {
		const char	*query;
		int		 want;
		const char	*limit, *after;
		const char	*detail;
	} q[] = {
		{ NULL, 0, "", "", "" }, { "", 0, "", "", "" },
		{ "limit=5", 0, "5", "", "" },
		{ "limit=5&after=x", 0, "5", "x", "" },
		{ "after=a%26b%3Dc", 0, "", "a&b=c", "" },
		{ "after=a=b", 0, "", "a=b", "" },
		{ "after=a+b", 0, "", "a+b", "" },
		{ "%6cimit=%35", 0, "5", "", "" },
		{ "limit", 0, "", "", "" }, { "limit=", 0, "", "", "" },
		{ "limit=5&", 0, "5", "", "" },
		{ "after=%c3%a4", 0, "", "\xc3\xa4", "" },
		{ "x=1", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"x\": no such parameter here" },
		{ "Limit=1", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"Limit\": no such parameter here" },
		{ "=1", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"\": no such parameter here" },
		{ "&limit=1", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"\": no such parameter here" },
		{ "limit=1&limit=1", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"limit\": given twice" },
		{ "limit=1&%6cimit=2", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"limit\": given twice" },
		{ "after=%00", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"after\": "
		    "not percent-encoded UTF-8 text" },
		{ "after=%ff", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"after\": "
		    "not percent-encoded UTF-8 text" },
		{ "after=%4", -E_BAD_PARAMETER, NULL, NULL,
		    "query parameter \"after\": "
		    "not percent-encoded UTF-8 text" },
		{ "%ff=1", -E_BAD_PARAMETER, NULL, NULL,
		    "the query is not percent-encoded UTF-8 text" }
	};
	struct query_param	 p[2];
	char			 detail[SBX_DETAIL_MAX], big[400];
	size_t			 i;
	int			 ret;

	memset(p, 0xa5, sizeof(p));
	p[0].name = "limit";
	p[1].name = "after";
	for (i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
		detail[0] = '\0';
		ret = query_read(q[i].query, p, 2, detail);
		is_int(ret, q[i].want, "route: query %s",
		    q[i].query == NULL ? "none" : q[i].query);
		is_str(detail, q[i].detail, "route: its detail");
		if (ret != 0)
			continue;
		is_str(p[0].value, q[i].limit, "route: its limit");
		is_str(p[1].value, q[i].after, "route: its after");
	}
	memset(big, 'a', sizeof(big));
	memcpy(big, "after=", 6);
	big[6 + QUERY_VALUE_MAX] = '\0';
	is_int(query_read(big, p, 2, detail), 0, "route: longest value");
	big[6 + QUERY_VALUE_MAX] = 'a';
	big[7 + QUERY_VALUE_MAX] = '\0';
	is_int(query_read(big, p, 2, detail), -E_BAD_PARAMETER,
	    "route: value too long");
	is_str(detail, "query parameter \"after\": too long",
	    "route: its detail");
	memset(big, 'a', 300);
	big[300] = '\0';
	is_int(query_read(big, p, 2, detail), -E_BAD_PARAMETER,
	    "route: name too long");
}

static void
check_u32(void)
{
	static const struct {
		const char	*query;
		int		 want;
		uint32_t	 value;
	} q[] = {
		{ "limit=1", 0, 1 }, { "limit=1000", 0, 1000 },
		{ "limit=007", 0, 7 }, { "", 0, 100 },
		{ "limit", -E_BAD_PARAMETER, 100 },
		{ "limit=", -E_BAD_PARAMETER, 100 },
		{ "limit=0", -E_BAD_PARAMETER, 100 },
		{ "limit=1001", -E_BAD_PARAMETER, 100 },
		{ "limit=-1", -E_BAD_PARAMETER, 100 },
		{ "limit=+1", -E_BAD_PARAMETER, 100 },
		{ "limit=%201", -E_BAD_PARAMETER, 100 },
		{ "limit=1%20", -E_BAD_PARAMETER, 100 },
		{ "limit=1x", -E_BAD_PARAMETER, 100 },
		{ "limit=0x1", -E_BAD_PARAMETER, 100 },
		{ "limit=1.0", -E_BAD_PARAMETER, 100 },
		{ "limit=4294967297", -E_BAD_PARAMETER, 100 },
		{ "limit=99999999999999999999", -E_BAD_PARAMETER, 100 }
	};
	struct query_param	 p = { .name = "limit" };
	char			 detail[SBX_DETAIL_MAX];
	uint32_t		 v;
	size_t			 i;

	for (i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
		v = 100;
		(void)query_read(q[i].query, &p, 1, detail);
		is_int(query_u32(&p, 1, 1000, &v, detail), q[i].want,
		    "route: number %s", q[i].query);
		is_int(v, q[i].value, "route: its value");
	}
	is_str(detail, "query parameter \"limit\": not a whole number from 1 "
	    "to 1000", "route: its detail");
}

int
main(void)
{
	check_paths();
	check_table();
	check_query();
	check_u32();
	return done_testing();
}
