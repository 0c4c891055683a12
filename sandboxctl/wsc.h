/* SPDX-License-Identifier: ISC */
/*
 * A WebSocket to sandboxd: the handshake, and frames out.  What comes in is
 * read with ws_read() from the client's buffer by session.c.
 */
#ifndef SBX_WSC_H
#define SBX_WSC_H

#include "client.h"
#include "ws.h"

/* Room for a piece of stdin and for what must not wait behind it. */
#define WSC_OUT_BYTES	(CTL_STDIN_PIECE + 8192)

struct wsc {
	struct client		*client;
	struct ws_reader	 reader;
	size_t			 out_at, out_len;
	uint8_t			 out[WSC_OUT_BYTES];
};

/* Connects and upgrades.  0 or -1. */
int	wsc_open(struct wsc *, const char *target, unsigned int signals_max,
	    struct fault *);
void	wsc_close(struct wsc *);
/* A whole message at once, of any size; waits for it to go out. */
int	wsc_send_text(struct wsc *, const char *, size_t, struct fault *);
/* Queues a frame.  0, or -1: no room now. */
int	wsc_put(struct wsc *, enum ws_opcode, const void *, size_t);
/* Queues a binary frame whose first byte is the channel. */
int	wsc_put_channel(struct wsc *, uint8_t channel, const void *, size_t);
/* Sends what is queued, as far as it goes.  0, or -1: the server is gone. */
int	wsc_flush(struct wsc *);
int	wsc_pending(const struct wsc *);

#endif
