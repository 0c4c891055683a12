/* SPDX-License-Identifier: ISC */
/*
 * UTF-8 (RFC 3629, section 4): the table of well-formed byte sequences as a
 * state of three numbers, so that a text may come in pieces.  Used by every
 * process that meets text from outside; trusts nothing.
 */
#include <string.h>

#include "utf8.h"

/* The first byte of a character; -1: no character starts with it. */
static int
start(struct utf8_state *st, uint8_t c)
{
	st->lo = 0x80;
	st->hi = 0xbf;
	if (c < 0x80)
		return 0;
	if (c < 0xc2 || c > 0xf4)
		return -1;
	if (c < 0xe0)
		st->left = 1;
	else if (c < 0xf0)
		st->left = 2;
	else
		st->left = 3;
	if (c == 0xe0)
		st->lo = 0xa0;	/* else it had a shorter form */
	else if (c == 0xed)
		st->hi = 0x9f;	/* else it is a surrogate */
	else if (c == 0xf0)
		st->lo = 0x90;
	else if (c == 0xf4)
		st->hi = 0x8f;	/* U+10FFFF is the last */
	return 0;
}

int
utf8_feed(struct utf8_state *st, const void *data, size_t len)
{
	const uint8_t	*p = data;
	size_t		 i;

	for (i = 0; i < len; i++) {
		if (st->left == 0) {
			if (start(st, p[i]) == -1)
				return -1;
			continue;
		}
		if (p[i] < st->lo || p[i] > st->hi)
			return -1;
		st->lo = 0x80;
		st->hi = 0xbf;
		st->left--;
	}
	return 0;
}

int
utf8_valid(const void *data, size_t len)
{
	struct utf8_state	 st = { 0, 0, 0 };

	return utf8_feed(&st, data, len) == 0 && st.left == 0;
}

size_t
utf8_char(const void *data, size_t len)
{
	const uint8_t		*p = data;
	struct utf8_state	 st = { 0, 0, 0 };
	size_t			 n;

	for (n = 0; n < len; n++) {
		if (utf8_feed(&st, p + n, 1) == -1)
			return 0;
		if (st.left == 0)
			return n + 1;
	}
	return 0;
}

size_t
utf8_cut(const void *data, size_t len, size_t max)
{
	const uint8_t	*p = data;

	if (len <= max)
		return len;
	while (max > 0 && (p[max] & 0xc0) == 0x80)
		max--;
	return max;
}
