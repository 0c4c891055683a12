/* SPDX-License-Identifier: ISC */
/*
 * One connection to sandboxd: HTTP/1.1 over its unix socket, one request,
 * strict about the answer.  Never waits without a deadline.
 */
#ifndef SBX_CLIENT_H
#define SBX_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "ctl.h"

struct client {
	int		 fd;			/* -1: closed */
	uint64_t	 deadline_ms;		/* of what is going on */
	unsigned int	 signals_max;		/* more than these: give up */
	size_t		 at, have;		/* unread part of buf */
	uint8_t		 buf[CTL_INPUT_BYTES];
};

struct reply {
	int		 status;
	int		 chunked;
	int		 has_length;
	uint64_t	 length;
	int		 upgrade;		/* Upgrade: websocket */
	int		 connection_upgrade;
	int		 extensions;
	char		 accept[64];		/* Sec-WebSocket-Accept */
	char		 protocol[64];
	char		*body;			/* NUL behind it; owned */
	size_t		 len;
};

/* Connects.  NULL: fault filled in. */
struct client	*client_new(struct fault *);
void		 client_free(struct client *);	/* NULL: nothing */
void		 client_set_deadline(struct client *, unsigned int ms);
/* Sends all of it, or as much as the other side takes before it hangs up. */
int		 client_send(struct client *, const void *, size_t,
		    struct fault *);
/* Reads a final reply's head (1xx but 101 are passed over). 0 or -1. */
int		 client_read_head(struct client *, struct reply *,
		    struct fault *);
int		 client_read_body(struct client *, struct reply *,
		    struct fault *);
/*
 * Waits for input and reads some behind what is there.  1, 0: the end of the
 * stream, -1: fault (deadline, signals, buffer full).
 */
int		 client_fill(struct client *, struct fault *);

/* reply.c: reads a head's lines.  0, or -1 with a text that says what. */
int		 reply_status_line(struct reply *, const char *, const char **);
int		 reply_field(struct reply *, const char *, const char **);
/* A chunk's size line.  0, or -1: malformed or over max. */
int		 reply_chunk_size(const char *, uint64_t max, uint64_t *);
void		 reply_clear(struct reply *);

#endif
