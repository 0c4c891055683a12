/* SPDX-License-Identifier: ISC */
/*
 * The table of routes and the reading of paths and queries (RFC 3986; RFC 9110,
 * 9.1 and 15.5.6).  Runs in front, on a client's bytes; the reader of requests
 * has already refused percent signs without two digits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "id.h"
#include "route.h"
#include "utf8.h"

const struct route route_table[] = {
	{ HTTP_M_GET, "/healthz", ROUTE_HEALTH, 0, ROUTE_F_ANYONE },
	{ HTTP_M_POST, "/sandboxes", ROUTE_SANDBOX_CREATE,
	    HTTP_CREATE_BODY_MAX, ROUTE_F_BODY },
	{ HTTP_M_GET, "/sandboxes", ROUTE_SANDBOX_LIST, 0, 0 },
	{ HTTP_M_GET, "/sandboxes/{id}", ROUTE_SANDBOX_SHOW, 0, 0 },
	{ HTTP_M_DELETE, "/sandboxes/{id}", ROUTE_SANDBOX_DELETE, 0, 0 },
	{ HTTP_M_GET, "/sandboxes/{id}/command", ROUTE_COMMAND, 0,
	    ROUTE_F_UPGRADE },
	{ HTTP_M_POST, "/sandboxes/{id}/exec", ROUTE_EXEC, HTTP_EXEC_BODY_MAX,
	    ROUTE_F_BODY },
	{ HTTP_M_OTHER, NULL, ROUTE_COUNT, 0, 0 }
};

#define PARTS_MAX	4	/* "v1" and the longest pattern */
#define PART_MAX	63	/* bytes; no part of a known path is longer */

struct path {
	unsigned int	 n;
	char		 part[PARTS_MAX][PART_MAX + 1];
};

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Decodes `len` bytes, once, as text: no control byte, valid UTF-8.  0, -1 bad,
 * or -2 when it does not fit in `size` with its NUL.  A text is checked to its
 * end also when it does not fit: bad wins.
 */
static int
decode(const char *s, size_t len, char *out, size_t size)
{
	struct utf8_state	 st = { 0, 0, 0 };
	size_t			 i, n = 0;
	int			 hi, lo;
	uint8_t			 c;

	for (i = 0; i < len; i++) {
		c = (uint8_t)s[i];
		if (c == '%') {
			if (len - i < 3 || (hi = hex(s[i + 1])) == -1 ||
			    (lo = hex(s[i + 2])) == -1)
				return -1;
			c = (uint8_t)(hi << 4 | lo);
			i += 2;
		}
		if (c < 0x20 || c == 0x7f || utf8_feed(&st, &c, 1) == -1)
			return -1;
		if (n + 1 < size)
			out[n] = (char)c;
		n++;
	}
	if (st.left != 0)
		return -1;
	if (n >= size)
		return -2;
	out[n] = '\0';
	return 0;
}

/*
 * Splits, then decodes.  A part that does not fit stands as "", which no
 * pattern has; too many parts leave n over PARTS_MAX.
 */
static int
path_split(const char *s, struct path *path)
{
	char	 spare[PART_MAX + 1], *out;
	size_t	 len;
	int	 ret;

	path->n = 0;
	while (*s == '/') {
		s++;
		len = strcspn(s, "/");
		out = path->n < PARTS_MAX ? path->part[path->n] : spare;
		ret = decode(s, len, out, PART_MAX + 1);
		if (ret == -1)
			return -1;
		if (ret == -2)
			out[0] = '\0';
		if (path->n <= PARTS_MAX)
			path->n++;
		s += len;
	}
	return 0;
}

/* Does the path, from its part `from`, have this form?  *id: where {id} was. */
static int
pattern_match(const char *pattern, const struct path *path, unsigned int from,
    const char **id)
{
	size_t		 len;
	unsigned int	 i;

	for (i = from; *pattern == '/'; i++) {
		pattern++;
		len = strcspn(pattern, "/");
		if (i >= path->n)
			return 0;
		if (strncmp(pattern, "{id}", len) == 0 && len == 4) {
			if (path->part[i][0] == '\0')
				return 0;
			*id = path->part[i];
		} else if (strlen(path->part[i]) != len ||
		    strncmp(path->part[i], pattern, len) != 0)
			return 0;
		pattern += len;
	}
	return i == path->n;
}

static void
allow_add(char *allow, enum http_method method)
{
	if (*allow != '\0')
		(void)strlcat(allow, ", ", HTTP_ALLOW_MAX);
	(void)strlcat(allow, http_method_name(method), HTTP_ALLOW_MAX);
}

/* What a path with an id also allows: HEAD wherever GET is a plain GET. */
static void
allow_row(char *allow, const struct route *row)
{
	allow_add(allow, row->method);
	if (row->method == HTTP_M_GET && !(row->flags & ROUTE_F_UPGRADE))
		allow_add(allow, HTTP_M_HEAD);
}

static int
method_fits(enum http_method method, const struct route *row)
{
	return method == row->method || (method == HTTP_M_HEAD &&
	    row->method == HTTP_M_GET && !(row->flags & ROUTE_F_UPGRADE));
}

int
route_find(const struct http_request *req, struct route_match *m)
{
	const struct route	*row;
	const char		*id = NULL;
	struct path		 path;
	unsigned int		 from = 0;

	memset(m, 0, sizeof(*m));
	if (req->method == HTTP_M_OTHER)
		return -E_NOT_IMPLEMENTED;
	if (strcmp(req->path, "*") == 0) {
		(void)strlcpy(m->allow, "GET, HEAD, POST, DELETE",
		    sizeof(m->allow));
		return -E_METHOD;
	}
	if (path_split(req->path, &path) == -1)
		return -E_BAD_HTTP;
	if (path.n > PARTS_MAX)
		return -E_NO_ROUTE;
	if (path.n > 0 && strcmp(path.part[0], "v1") == 0)
		from = 1;
	for (row = route_table; row->pattern != NULL; row++) {
		if (!pattern_match(row->pattern, &path, from, &id))
			continue;
		if (method_fits(req->method, row)) {
			m->route = row;
			break;
		}
		allow_row(m->allow, row);
	}
	if (m->route == NULL)
		return m->allow[0] != '\0' ? -E_METHOD : -E_NO_ROUTE;
	m->allow[0] = '\0';
	if (id != NULL && !id_valid(id)) {
		m->route = NULL;
		return -E_BAD_ID;
	}
	if (id != NULL)
		(void)strlcpy(m->sandbox_id, id, sizeof(m->sandbox_id));
	return 0;
}

static int
refuse(char *detail, const char *what, const char *name)
{
	(void)snprintf(detail, SBX_DETAIL_MAX, "query parameter \"%s\": %s",
	    name, what);
	return -E_BAD_PARAMETER;
}

/* "name=value" or "name", of `len` bytes. */
static int
query_pair(const char *s, size_t len, struct query_param *params,
    unsigned int n, char *detail)
{
	struct query_param	*p = NULL;
	char			 name[PART_MAX + 1];
	size_t			 name_len;
	unsigned int		 i;
	int			 ret;

	for (name_len = 0; name_len < len && s[name_len] != '='; name_len++)
		continue;
	ret = decode(s, name_len, name, sizeof(name));
	if (ret != 0) {
		(void)strlcpy(detail, ret == -1 ? "the query is not "
		    "percent-encoded UTF-8 text" : "the query has an unknown "
		    "parameter with a long name", SBX_DETAIL_MAX);
		return -E_BAD_PARAMETER;
	}
	for (i = 0; i < n; i++)
		if (strcmp(params[i].name, name) == 0)
			p = &params[i];
	if (p == NULL)
		return refuse(detail, "no such parameter here", name);
	if (p->given)
		return refuse(detail, "given twice", name);
	p->given = 1;
	if (name_len < len)
		name_len++;
	switch (decode(s + name_len, len - name_len, p->value,
	    sizeof(p->value))) {
	case -1:
		return refuse(detail, "not percent-encoded UTF-8 text", name);
	case -2:
		return refuse(detail, "too long", name);
	}
	return 0;
}

int
query_read(const char *query, struct query_param *params, unsigned int n,
    char *detail)
{
	size_t		 len;
	unsigned int	 i;

	for (i = 0; i < n; i++) {
		params[i].given = 0;
		params[i].value[0] = '\0';
	}
	while (query != NULL && *query != '\0') {
		len = strcspn(query, "&");
		if (query_pair(query, len, params, n, detail) != 0)
			return -E_BAD_PARAMETER;
		query += len;
		if (*query == '&')
			query++;
	}
	return 0;
}

int
query_u32(const struct query_param *p, uint32_t lo, uint32_t hi, uint32_t *out,
    char *detail)
{
	const char	*err;
	char		 what[64];
	long long	 v;

	if (!p->given)
		return 0;
	/* strtonum(3) takes a sign and white space. */
	v = strtonum(p->value, lo, hi, &err);
	if (err != NULL || strspn(p->value, "0123456789") !=
	    strlen(p->value)) {
		(void)snprintf(what, sizeof(what),
		    "not a whole number from %u to %u", lo, hi);
		return refuse(detail, what, p->name);
	}
	*out = (uint32_t)v;
	return 0;
}
