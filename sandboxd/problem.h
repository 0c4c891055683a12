/* SPDX-License-Identifier: ISC */
/*
 * Error replies: application/problem+json (RFC 9457) from the table in
 * common/errors.def. Runs in front.  Texts may hold anything; what is not
 * UTF-8 is replaced.
 */
#ifndef SBX_PROBLEM_H
#define SBX_PROBLEM_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "limits.h"

#define PROBLEM_TYPE	"application/problem+json"

struct problem {
	enum sbx_error	 error;
	const char	*detail;	/* this case; NULL or "": left out */
	const char	*instance;	/* request id; NULL: left out */
	const char	*sandbox_id;	/* NULL or "": left out */
	uint32_t	 retry_after_s;	/* 0: left out */
};

/*
 * Writes the body (no NUL) and returns its length.  PROBLEM_MAX bytes are
 * always enough: texts are cut to their limits.
 */
size_t	problem_write(char *, const struct problem *);

#endif
