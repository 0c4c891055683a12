/* SPDX-License-Identifier: ISC */
/*
 * WebSocket frames (RFC 6455, 5 to 8; section numbers are its own).  Used by
 * front as the server and by sandboxctl as the client.  What is wrong is found
 * as early as its bytes tell: a frame that will be too big fails at its head.
 */
#include <stdlib.h>
#include <string.h>

#include "ws.h"

enum state { S_HEAD = 0, S_PAYLOAD, S_CLOSED, S_FAILED };

void
ws_reader_init(struct ws_reader *r, enum ws_role role, uint64_t text_max,
    uint64_t binary_max)
{
	memset(r, 0, sizeof(*r));
	r->role = role;
	r->text_max = text_max;
	r->binary_max = binary_max;
}

static void
drop_text(struct ws_reader *r)
{
	free(r->text);
	r->text = NULL;
	r->text_len = r->text_size = 0;
}

void
ws_reader_clear(struct ws_reader *r)
{
	drop_text(r);
	ws_reader_init(r, r->role, r->text_max, r->binary_max);
}

/* Always -1. */
static int
fail(struct ws_reader *r, unsigned int code, const char *why)
{
	r->state = S_FAILED;
	r->code = code;
	r->why = why;
	drop_text(r);
	return -1;
}

static int
protocol_error(struct ws_reader *r, const char *why)
{
	return fail(r, WS_CODE_PROTOCOL, why);
}

static int
is_control(unsigned int opcode)
{
	return (opcode & 0x8) != 0;
}

/* What the first two bytes of a frame tell (5.2). */
static int
check_start(struct ws_reader *r)
{
	unsigned int	 len7 = r->head[1] & 0x7f;

	r->fin = (r->head[0] & 0x80) != 0;
	r->opcode = r->head[0] & 0x0f;
	if ((r->head[0] & 0x70) != 0)
		return protocol_error(r, "a reserved bit is set");
	/* 5.1: a client masks, a server does not. */
	if (((r->head[1] & 0x80) != 0) != (r->role == WS_SERVER))
		return protocol_error(r, r->role == WS_SERVER ?
		    "a frame is not masked" : "a frame is masked");
	switch (r->opcode) {
	case WS_OP_CONT:
		if (r->message == 0)
			return protocol_error(r, "nothing to continue");
		return 0;
	case WS_OP_TEXT:
	case WS_OP_BINARY:
		if (r->message != 0)
			return protocol_error(r, "a message inside a message");
		return 0;
	case WS_OP_CLOSE:
	case WS_OP_PING:
	case WS_OP_PONG:
		/* 5.5 */
		if (!r->fin)
			return protocol_error(r, "a control frame in pieces");
		if (len7 > WS_CONTROL_MAX)
			return protocol_error(r, "a control frame is too long");
		return 0;
	}
	return protocol_error(r, "a reserved opcode");
}

static unsigned int
head_length(const struct ws_reader *r)
{
	unsigned int	 len7, n = 2;

	if (r->have < 2)
		return 2;
	len7 = r->head[1] & 0x7f;
	if (len7 == 126)
		n += 2;
	else if (len7 == 127)
		n += 8;
	return r->head[1] & 0x80 ? n + 4 : n;
}

/* A data frame begins: its place in a message, and the message's bound. */
static int
begin_data(struct ws_reader *r)
{
	uint64_t	 max;

	if (r->opcode != WS_OP_CONT) {
		r->message = r->opcode;
		r->total = 0;
		r->begun = 0;
		memset(&r->utf8, 0, sizeof(r->utf8));
	}
	max = r->message == WS_OP_TEXT ? r->text_max : r->binary_max;
	if (max == 0)
		return fail(r, WS_CODE_UNSUPPORTED,
		    "messages of this type are not taken");
	if (r->left > max || r->total > max - r->left)
		return fail(r, WS_CODE_TOO_BIG, "the message is too big");
	r->total += r->left;
	return 0;
}

/* The head is complete (5.2): length, mask. */
static int
head_done(struct ws_reader *r)
{
	unsigned int	 i, n, len7 = r->head[1] & 0x7f;

	n = len7 == 126 ? 2 : len7 == 127 ? 8 : 0;
	r->left = n == 0 ? len7 : 0;
	for (i = 0; i < n; i++)
		r->left = r->left << 8 | r->head[2 + i];
	if ((len7 == 126 && r->left < 126) ||
	    (len7 == 127 && r->left < 65536))
		return protocol_error(r, "a length longer than it has to be");
	if ((r->left >> 63) != 0)
		return protocol_error(r, "a length with its highest bit set");
	if (r->head[1] & 0x80)
		memcpy(r->mask, r->head + 2 + n, sizeof(r->mask));
	else
		memset(r->mask, 0, sizeof(r->mask));
	r->have = 0;
	r->pos = 0;
	r->control_len = 0;
	r->state = S_PAYLOAD;
	return is_control(r->opcode) ? 0 : begin_data(r);
}

static int
head_byte(struct ws_reader *r, uint8_t c)
{
	r->head[r->have++] = c;
	if (r->have == 2 && check_start(r) == -1)
		return -1;
	return r->have == head_length(r) ? head_done(r) : 0;
}

/* 5.5.1 and 7.4. */
static enum ws_event
got_close(struct ws_reader *r, struct ws_piece *piece)
{
	unsigned int	 code = WS_CODE_NONE;

	if (r->control_len == 1)
		(void)protocol_error(r, "half a close code");
	else if (r->control_len >= 2) {
		code = (unsigned int)r->control[0] << 8 | r->control[1];
		piece->data = r->control + 2;
		piece->len = r->control_len - 2;
		if (!ws_code_valid(code))
			(void)protocol_error(r, "no such close code");
		else if (!utf8_valid(piece->data, piece->len))
			(void)fail(r, WS_CODE_BAD_DATA,
			    "the close reason is not UTF-8");
	}
	if (r->state == S_FAILED)
		return WS_FAIL;
	r->state = S_CLOSED;
	drop_text(r);
	piece->code = code;
	return WS_CLOSE;
}

static enum ws_event
control(struct ws_reader *r, const uint8_t *data, size_t n,
    struct ws_piece *piece)
{
	if (n > 0)
		memcpy(r->control + r->control_len, data, n);
	r->control_len += (unsigned int)n;
	if (r->left > 0)
		return WS_NEED_MORE;
	r->state = S_HEAD;
	if (r->opcode == WS_OP_CLOSE)
		return got_close(r, piece);
	piece->data = r->control;
	piece->len = r->control_len;
	return r->opcode == WS_OP_PING ? WS_PING : WS_PONG;
}

static enum ws_event
binary(struct ws_reader *r, const uint8_t *data, size_t n,
    struct ws_piece *piece)
{
	int	 frame_over = r->left == 0;

	if (frame_over)
		r->state = S_HEAD;
	if (n == 0 && !(frame_over && r->fin))
		return WS_NEED_MORE;
	piece->data = data;
	piece->len = n;
	piece->first = !r->begun;
	piece->last = frame_over && r->fin;
	r->begun = 1;
	if (piece->last)
		r->message = 0;
	return WS_BINARY;
}

/* Memory grows with the bytes that have come, not with a length announced. */
static int
collect(struct ws_reader *r, const uint8_t *data, size_t n)
{
	uint8_t	*text;
	size_t	 size;

	size = r->text_size == 0 ? 512 : r->text_size;
	while (size - r->text_len <= n)
		size *= 2;	/* bounded by text_max */
	if (size != r->text_size) {
		text = realloc(r->text, size);
		if (text == NULL)
			return fail(r, WS_CODE_INTERNAL, "no memory");
		r->text = text;
		r->text_size = size;
	}
	if (n > 0)
		memcpy(r->text + r->text_len, data, n);
	r->text_len += n;
	r->text[r->text_len] = '\0';
	return 0;
}

static enum ws_event
text(struct ws_reader *r, const uint8_t *data, size_t n,
    struct ws_piece *piece)
{
	int	 frame_over = r->left == 0;

	if (utf8_feed(&r->utf8, data, n) == -1 ||
	    (frame_over && r->fin && r->utf8.left != 0)) {
		(void)fail(r, WS_CODE_BAD_DATA, "text that is not UTF-8");
		return WS_FAIL;
	}
	if (collect(r, data, n) == -1)
		return WS_FAIL;
	if (!frame_over)
		return WS_NEED_MORE;
	r->state = S_HEAD;
	if (!r->fin)
		return WS_NEED_MORE;
	r->message = 0;
	piece->data = r->text;
	piece->len = r->text_len;
	return WS_TEXT;
}

/* What is there of the frame's payload, which may be nothing. */
static enum ws_event
payload(struct ws_reader *r, uint8_t *data, size_t len, struct ws_piece *piece)
{
	size_t	 n = len;

	if (n > r->left)
		n = (size_t)r->left;
	if (r->role == WS_SERVER)
		ws_mask(data, n, r->mask, r->pos);
	r->pos += n;
	r->left -= n;
	piece->used += n;
	if (is_control(r->opcode))
		return control(r, data, n, piece);
	return r->message == WS_OP_TEXT ? text(r, data, n, piece) :
	    binary(r, data, n, piece);
}

enum ws_event
ws_read(struct ws_reader *r, uint8_t *data, size_t len, struct ws_piece *piece)
{
	enum ws_event	 ev;

	memset(piece, 0, sizeof(*piece));
	/* The message of the call before has been read. */
	if (r->message == 0)
		drop_text(r);
	for (;;) {
		if (r->state == S_FAILED) {
			piece->data = NULL;
			piece->len = 0;
			piece->code = r->code;
			piece->why = r->why;
			return WS_FAIL;
		}
		if (r->state == S_CLOSED) {
			piece->used = len;
			return WS_NEED_MORE;
		}
		/* An empty payload needs no byte. */
		if (piece->used == len &&
		    !(r->state == S_PAYLOAD && r->left == 0))
			return WS_NEED_MORE;
		if (r->state == S_HEAD) {
			(void)head_byte(r, data[piece->used++]);
			continue;
		}
		ev = payload(r, piece->used < len ? data + piece->used : data,
		    len - piece->used, piece);
		if (ev != WS_NEED_MORE && ev != WS_FAIL)
			return ev;
	}
}

size_t
ws_put_head(uint8_t *out, enum ws_opcode opcode, int fin, uint64_t len,
    const uint8_t *mask)
{
	unsigned int	 bytes, i;
	size_t		 n = 2;

	bytes = len < 126 ? 0 : len < 65536 ? 2 : 8;
	out[0] = (uint8_t)((fin ? 0x80u : 0u) | (unsigned int)opcode);
	out[1] = (uint8_t)(bytes == 0 ? len : bytes == 2 ? 126 : 127);
	for (i = bytes; i > 0; i--)
		out[n++] = (uint8_t)(len >> 8 * (i - 1));
	if (mask != NULL) {
		out[1] |= 0x80;
		memcpy(out + n, mask, 4);
		n += 4;
	}
	return n;
}

void
ws_mask(uint8_t *data, size_t len, const uint8_t *mask, uint64_t pos)
{
	uint8_t		 turned[8];
	uint64_t	 m, word;
	size_t		 i;

	for (i = 0; i < sizeof(turned); i++)
		turned[i] = mask[(pos + i) & 3];
	memcpy(&m, turned, sizeof(m));
	for (i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		word ^= m;
		memcpy(data + i, &word, sizeof(word));
	}
	for (; i < len; i++)
		data[i] ^= turned[i & 7];
}

size_t
ws_put_close(uint8_t *out, unsigned int code, const char *reason)
{
	size_t	 n;

	if (code == WS_CODE_NONE)
		return 0;
	out[0] = (uint8_t)(code >> 8);
	out[1] = (uint8_t)code;
	if (reason == NULL)
		return 2;
	n = utf8_cut(reason, strlen(reason), WS_REASON_MAX);
	if (!utf8_valid(reason, n))
		return 2;
	memcpy(out + 2, reason, n);
	return 2 + n;
}

int
ws_code_valid(unsigned int code)
{
	/* 1004 to 1006 are reserved; 1012 to 1014 are IANA's later ones. */
	return (code >= 1000 && code <= 1003) ||
	    (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}
