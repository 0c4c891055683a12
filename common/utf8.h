/* SPDX-License-Identifier: ISC */
/*
 * UTF-8 (RFC 3629): no surrogates, nothing above U+10FFFF, shortest form only.
 * Pure functions; the bytes may be anything.  NUL is valid here.
 */
#ifndef SBX_UTF8_H
#define SBX_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed at the start of a text. */
struct utf8_state {
	uint8_t	 left;		/* bytes that the character still needs */
	uint8_t	 lo, hi;	/* what the next of them may be */
};

/*
 * Feeds a piece of a text.  0 so far valid, -1 not.  The text is complete when
 * `left` is 0 at its end.
 */
int	utf8_feed(struct utf8_state *, const void *, size_t);
/* Is this a whole valid text? */
int	utf8_valid(const void *, size_t);
/*
 * Length of the valid character at the start of these bytes (1 to 4), 0 when
 * there is none (invalid, or cut short).
 */
size_t	utf8_char(const void *, size_t);
/*
 * How many of the first `max` bytes of this valid text to keep so that no
 * character is cut.
 */
size_t	utf8_cut(const void *, size_t len, size_t max);

#endif
