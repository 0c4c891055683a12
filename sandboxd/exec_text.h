/* SPDX-License-Identifier: ISC */
/*
 * Output of a command as text: is it UTF-8, and where may it be cut?  Pure
 * functions over a guest's bytes.
 */
#ifndef SBX_EXEC_TEXT_H
#define SBX_EXEC_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed at the start of a stream. */
struct exec_text {
	uint8_t	 kept[4];	/* the start of a character, at most 3 bytes */
	size_t	 nkept;
};

/* What one feed gives: head, then data; either may be empty. */
struct exec_text_piece {
	uint8_t		 head[8];	/* a character put together */
	size_t		 head_len;
	const uint8_t	*data;		/* borrowed from the input */
	size_t		 len;
	int		 bytes;		/* both are not UTF-8: base64 */
};

/*
 * Feeds bytes.  A character that is cut at their end is kept for the next feed,
 * so that none is ever split over two pieces; bytes that are not UTF-8 are
 * handed on as bytes, with what was kept before them.
 */
void	exec_text_feed(struct exec_text *, const uint8_t *, size_t,
	    struct exec_text_piece *);
/*
 * How many of these bytes are a whole valid text: all of them, or with `cut`
 * also all but the start of a last character.  0: they are not UTF-8.
 */
size_t	exec_text_length(const uint8_t *, size_t, int cut);

#endif
