/* SPDX-License-Identifier: ISC */
/*
 * WebSocket (RFC 6455): the handshake's fields, a reader of frames, a writer
 * of frame heads; both roles (front serves, sandboxctl is a client).
 * Functions over bytes, no I/O.  The bytes may be hostile.  No extension is
 * ever agreed.
 *
 * Reading, like http.h:
 *	ev = ws_read(reader, data, len, &piece);
 *	drop piece.used bytes from the front of the input; act on ev;
 *	call again with the rest until ev is WS_NEED_MORE or WS_FAIL.
 * A binary message arrives in pieces, as its bytes come, so that its size costs
 * no memory; a text message arrives whole.  Control frames may come between the
 * pieces of a message.
 */
#ifndef SBX_WS_H
#define SBX_WS_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "limits.h"
#include "utf8.h"

#define WS_KEY_LEN	24	/* Sec-WebSocket-Key: 16 bytes in base64 */
#define WS_ACCEPT_LEN	28	/* Sec-WebSocket-Accept: SHA-1 in base64 */
#define WS_CONTROL_MAX	125	/* RFC 6455, 5.5: payload of a control frame */
#define WS_HEAD_MAX	14	/* frame head with mask */
#define WS_REASON_MAX	123	/* bytes of text in a close frame */

enum ws_opcode {
	WS_OP_CONT	= 0x0,
	WS_OP_TEXT	= 0x1,
	WS_OP_BINARY	= 0x2,
	WS_OP_CLOSE	= 0x8,
	WS_OP_PING	= 0x9,
	WS_OP_PONG	= 0xa
};

/* Close codes: RFC 6455, 7.4, and ours from 4000. */
enum ws_code {
	WS_CODE_NORMAL		= 1000,
	WS_CODE_GOING_AWAY	= 1001,
	WS_CODE_PROTOCOL	= 1002,
	WS_CODE_UNSUPPORTED	= 1003,
	WS_CODE_NONE		= 1005,	/* never sent: a close without a code */
	WS_CODE_BAD_DATA	= 1007,	/* text that is not UTF-8 */
	WS_CODE_POLICY		= 1008,
	WS_CODE_TOO_BIG		= 1009,
	WS_CODE_INTERNAL	= 1011,
	WS_CODE_SANDBOX_GONE	= 4000,
	WS_CODE_EXEC_TIMEOUT	= 4001,
	WS_CODE_GUEST_LOST	= 4002
};

/* ---- handshake ---- */

/* The client's fields; NULL: not sent. */
struct ws_offer {
	const char	*version;	/* Sec-WebSocket-Version */
	const char	*key;		/* Sec-WebSocket-Key */
	const char	*protocols;	/* Sec-WebSocket-Protocol */
};
/*
 * Checks an offer.  *protocol (borrowed from `known`, NULL at the end of that
 * list) is the first known one in the client's order, or NULL when the client
 * names none.  `accept` gets WS_ACCEPT_LEN + 1 bytes.  0, or -E_UPGRADE: wrong
 * version (426; http_reply.upgrade names ours), -E_BAD_HEADER: key missing or
 * malformed, or protocols named and none of them known.
 */
int	ws_check_offer(const struct ws_offer *, const char *const *known,
	    const char **protocol, char *accept);
/* Sec-WebSocket-Accept for a key: WS_ACCEPT_LEN + 1 bytes. */
void	ws_accept_for_key(const char *key, char *accept);
/* A fresh key for a client: WS_KEY_LEN + 1 bytes. */
void	ws_new_key(char *);

/* ---- reading frames ---- */

enum ws_role { WS_SERVER, WS_CLIENT };	/* which one reads */

enum ws_event {
	WS_NEED_MORE,
	WS_TEXT,	/* piece.data, .len: a whole message, valid UTF-8; a NUL
			   follows the data; the reader's until the next call */
	WS_BINARY,	/* a piece; .first and .last; .len may be 0 */
	WS_PING,	/* answer with a pong of the same data */
	WS_PONG,
	WS_CLOSE,	/* .code (WS_CODE_NONE: none), .data: the reason */
	WS_FAIL		/* send a close with .code and .why, then hang up */
};

struct ws_piece {
	size_t		 used;		/* bytes of the input done with */
	const uint8_t	*data;
	size_t		 len;
	int		 first;		/* of a binary message */
	int		 last;
	unsigned int	 code;
	const char	*why;		/* fixed text, fits WS_REASON_MAX */
};

/* Members are ws.c's own. */
struct ws_reader {
	enum ws_role	 role;
	uint64_t	 text_max;
	uint64_t	 binary_max;
	int		 state;
	uint8_t		 head[WS_HEAD_MAX];
	unsigned int	 have;		/* bytes of the head */
	uint8_t		 opcode;	/* of this frame */
	int		 fin;
	uint8_t		 mask[4];
	uint64_t	 left;		/* of this frame's payload */
	uint64_t	 pos;		/* in this frame's payload */
	uint8_t		 message;	/* opcode of the open one, 0: none */
	uint64_t	 total;		/* of the message, with this frame */
	int		 begun;		/* a piece of it has been handed out */
	struct utf8_state utf8;		/* of the text */
	uint8_t		*text;		/* text collected so far */
	size_t		 text_len;
	size_t		 text_size;
	uint8_t		 control[WS_CONTROL_MAX + 1];
	unsigned int	 control_len;
	unsigned int	 code;		/* WS_FAIL is final */
	const char	*why;
};

/* Bounds of one message in bytes, by type; 0: that type is refused (1003). */
void	ws_reader_init(struct ws_reader *, enum ws_role, uint64_t text_max,
	    uint64_t binary_max);
/* Frees what the reader holds. */
void	ws_reader_clear(struct ws_reader *);
/*
 * See the head of this file.  Unmasks in place: the input is written to.
 * After WS_CLOSE nothing more is read (WS_NEED_MORE, all bytes used); after
 * WS_FAIL it fails again.  Fails with 1002 (protocol), 1003, 1007 (UTF-8),
 * 1009 (too big: already at the frame's head), 1011 (no memory).
 */
enum ws_event	ws_read(struct ws_reader *, uint8_t *, size_t,
		    struct ws_piece *);

/* ---- writing frames ---- */

/*
 * Writes a frame's head (at most WS_HEAD_MAX bytes) and returns its length.
 * A client gives a fresh random mask and masks the payload; a server NULL.
 */
size_t	ws_put_head(uint8_t *, enum ws_opcode, int fin, uint64_t len,
	    const uint8_t *mask);
/* Masks (or unmasks) bytes that start at `pos` in the payload. */
void	ws_mask(uint8_t *, size_t, const uint8_t *mask, uint64_t pos);
/*
 * Writes a close frame's payload (at most WS_CONTROL_MAX bytes): the code and
 * as much of the reason as fits without cutting a character; returns its
 * length.
 */
size_t	ws_put_close(uint8_t *, unsigned int code, const char *reason);
/* May this code be in a close frame (RFC 6455, 7.4)? */
int	ws_code_valid(unsigned int);

#endif
