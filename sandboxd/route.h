/* SPDX-License-Identifier: ISC */
/*
 * Which handler a request is for: the table of method, path and limits, and the
 * reading of paths and query strings.  Runs in front, on a client's bytes.
 *
 * A path is split at '/' first and each part decoded once after that, so that
 * %2f never makes a new part and %252f stays "%2f".  Nothing is normalised:
 * empty parts, "." and ".." match no route.  "/v1" before a path changes
 * nothing.
 */
#ifndef SBX_ROUTE_H
#define SBX_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#include "http.h"
#include "limits.h"

enum route_id {
	ROUTE_HEALTH,		/* GET /healthz */
	ROUTE_SANDBOX_CREATE,	/* POST /sandboxes */
	ROUTE_SANDBOX_LIST,	/* GET /sandboxes */
	ROUTE_SANDBOX_SHOW,	/* GET /sandboxes/{id} */
	ROUTE_SANDBOX_DELETE,	/* DELETE /sandboxes/{id} */
	ROUTE_COMMAND,		/* GET /sandboxes/{id}/command, WebSocket */
	ROUTE_EXEC,		/* POST /sandboxes/{id}/exec */
	ROUTE_COUNT
};

#define ROUTE_F_BODY	0x1	/* JSON in: check its type, 411 if no length */
#define ROUTE_F_UPGRADE	0x2	/* WebSocket only */
#define ROUTE_F_ANYONE	0x4	/* needs no owner */

struct route {
	enum http_method	 method;
	const char		*pattern;	/* "{id}": a sandbox id */
	enum route_id		 id;
	uint64_t		 body_max;	/* bytes; 0: no body */
	unsigned int		 flags;
};
/* All rows, for tests and documents; the last has a NULL pattern. */
extern const struct route route_table[];

struct route_match {
	const struct route	*route;
	char			 sandbox_id[SBX_ID_LEN + 1];	/* or "" */
	char			 allow[HTTP_ALLOW_MAX];	/* with -E_METHOD */
};

/*
 * Finds the row; HEAD finds GET's.  0, or -E_NO_ROUTE, -E_METHOD (405, `allow`
 * is the Allow field's value), -E_NOT_IMPLEMENTED (a method unknown to us,
 * 501), -E_BAD_ID (the id's form), -E_BAD_HTTP (path: bad percent code, NUL,
 * control byte, bad UTF-8).
 */
int	route_find(const struct http_request *, struct route_match *);

/* A query parameter that a route knows. */
struct query_param {
	const char	*name;
	int		 given;
	char		 value[QUERY_VALUE_MAX + 1];	/* decoded, or "" */
};
/*
 * Reads a query (http_request.query, NULL: none) into the parameters known.
 * 0, or -E_BAD_PARAMETER with SBX_DETAIL_MAX bytes of detail that name it:
 * unknown, twice, too long, bad percent code, NUL or control byte, bad UTF-8.
 * '+' is a plus sign.
 */
int	query_read(const char *, struct query_param *, unsigned int n,
	    char *detail);
/* A parameter's whole number in [lo, hi]; left alone when not given. */
int	query_u32(const struct query_param *, uint32_t lo, uint32_t hi,
	    uint32_t *, char *detail);

#endif
