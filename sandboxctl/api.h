/* SPDX-License-Identifier: ISC */
/*
 * Calls of the API (sandboxd-api(7)): JSON out, JSON in, problems as faults.
 */
#ifndef SBX_API_H
#define SBX_API_H

#include "ctl.h"

struct json_object;
struct json_reader;

/*
 * One call on a connection of its own.  body: JSON text or NULL.  0 with the
 * status and the answer's object (owned by the caller; NULL when it has no
 * body); -1 with the fault: also for each status that is no 2xx.  signals_max:
 * see client.h.
 */
struct api_call {
	const char		*method;
	const char		*target;
	const char		*body;
	const char		*key;		/* Idempotency-Key, or NULL */
	unsigned int		 deadline_ms;
	unsigned int		 signals_max;
	int			 status;
	struct json_object	*answer;
};
int	api_call(struct api_call *, struct fault *);
/* The fault for a status and a body that may be a problem (RFC 9457). */
int	api_problem(int status, const char *body, size_t len, struct fault *);

/* All sandboxes, as one JSON array: 0 or -1. */
int	api_list(struct json_object **, struct fault *);
/*
 * The id that a user's word stands for: an id, a unique prefix of one (with or
 * without "sb-"), or a unique name.  Fills SBX_ID_LEN + 1 bytes.
 */
int	api_resolve(const char *word, char *id, struct fault *);
int	api_delete(const char *id, unsigned int signals_max, struct fault *);
/* GET of one; the caller owns the answer. */
int	api_show(const char *id, struct json_object **, struct fault *);

/* A member as text for people: "" when it is not there. */
const char	*api_text(struct json_object *, const char *);
int64_t		 api_number(struct json_object *, const char *);

#endif
