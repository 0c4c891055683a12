/* SPDX-License-Identifier: ISC */
/*
 * UTF-8 at the edges of pieces.  Runs in front, on a guest's bytes.
 */
#include <string.h>

#include "exec_text.h"
#include "utf8.h"

/* Bytes at the end that begin a character which is not complete; 0 to 3. */
static size_t
open_tail(const uint8_t *p, size_t len)
{
	struct utf8_state	 s;
	size_t			 n;

	for (n = 1; n <= 3 && n <= len; n++) {
		memset(&s, 0, sizeof(s));
		if (utf8_feed(&s, p + len - n, n) == 0)
			return s.left != 0 ? n : 0;
	}
	return 0;
}

size_t
exec_text_length(const uint8_t *p, size_t len, int cut)
{
	if (cut)
		len -= open_tail(p, len);
	return utf8_valid(p, len) ? len : 0;
}

/* Moves bytes from the input until the kept ones are a character, or none. */
static void
complete_head(struct exec_text *t, const uint8_t **p, size_t *len,
    struct exec_text_piece *piece)
{
	struct utf8_state	 s;

	memcpy(piece->head, t->kept, t->nkept);
	piece->head_len = t->nkept;
	t->nkept = 0;
	memset(&s, 0, sizeof(s));
	(void)utf8_feed(&s, piece->head, piece->head_len);
	while (s.left != 0 && *len > 0) {
		piece->head[piece->head_len++] = **p;
		(*p)++;
		(*len)--;
		if (utf8_feed(&s, piece->head + piece->head_len - 1, 1) == -1) {
			piece->bytes = 1;
			return;
		}
	}
	if (s.left != 0) {
		memcpy(t->kept, piece->head, piece->head_len);
		t->nkept = piece->head_len;
		piece->head_len = 0;
	}
}

void
exec_text_feed(struct exec_text *t, const uint8_t *p, size_t len,
    struct exec_text_piece *piece)
{
	size_t	 tail;

	memset(piece, 0, sizeof(*piece));
	if (t->nkept != 0)
		complete_head(t, &p, &len, piece);
	tail = piece->bytes ? 0 : open_tail(p, len);
	if (!piece->bytes && !utf8_valid(p, len - tail)) {
		piece->bytes = 1;
		tail = 0;
	}
	piece->data = p;
	piece->len = len - tail;
	memcpy(t->kept + t->nkept, p + len - tail, tail);
	t->nkept += tail;
}
