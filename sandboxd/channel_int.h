/* SPDX-License-Identifier: ISC */
/*
 * What channel.c (connection, handshake, I/O) and chan_stream.c (streams)
 * share, and nobody else.
 */
#ifndef SBX_CHANNEL_INT_H
#define SBX_CHANNEL_INT_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "channel.h"
#include "msg_types.h"

struct event;

enum channel_state {
	CH_SYNC,	/* looking for the guest's sync record */
	CH_HELLO,	/* its first frame has to be HELLO */
	CH_CONFIG,	/* CONFIG is out */
	CH_READY,
	CH_LOST		/* the parent has been told; it will say why */
};

struct gstream {
	RB_ENTRY(gstream)		 entry;
	TAILQ_ENTRY(gstream)		 ready_entry;
	struct channel			*ch;
	uint32_t			 id;
	const struct gstream_events	*events;	/* or NULL */
	void				*arg;
	struct evbuffer			*args;		/* still to send */
	struct evbuffer			*input;		/* stdin, too */
	uint32_t			 send_credit;
	uint32_t			 recv_credit;	/* the guest's */
	uint32_t			 owed;		/* it has spent */
	uint16_t			 cols, rows;	/* with START */
	uint8_t				 guest_eofs;	/* bit by channel */
	unsigned int			 is_ready : 1;	/* in the ready list */
	unsigned int			 start_sent : 1;
	unsigned int			 started : 1;
	unsigned int			 input_eof : 1;
	unsigned int			 eof_sent : 1;
	unsigned int			 paused : 1;
	unsigned int			 want_drain : 1;
};
RB_HEAD(gstream_tree, gstream);
RB_PROTOTYPE(gstream_tree, gstream, entry, gstream_cmp);
TAILQ_HEAD(gstream_list, gstream);

struct channel {
	RB_ENTRY(channel)		 entry;
	struct m_parent_open_channel	 about;
	int				 fd;
	enum channel_state		 state;
	struct event			*ev_read;
	struct event			*ev_write;
	struct event			*ev_flush;	/* once a turn */
	struct event			*timer;		/* deadline, pings */
	struct evbuffer			*out;
	int				 write_dead;
	uint8_t				 nonce[GP_NONCE_BYTES];
	struct gp_scan			 scan;
	struct gp_reader		 reader;
	struct gstream_tree		 streams;
	struct gstream_list		 ready;		/* can send now */
	unsigned int			 nstreams;
	uint32_t			 last_stream;
	uint64_t			 heard_ms;	/* last whole frame */
	uint64_t			 pinged_ms;	/* 0: no ping is out */
	uint8_t				 ping[8];
	uint64_t			 pings_since_ms;
	unsigned int			 pings;
	/* Why it has to end; E_OK: it has not. */
	enum sbx_error			 error;
	char				 detail[SBX_DETAIL_MAX];
};

RB_HEAD(channel_tree, channel);
RB_PROTOTYPE(channel_tree, channel, entry, channel_cmp);

/* channel.c */
void	channel_put(struct channel *, uint8_t type, uint16_t flags,
	    uint32_t stream, const void *, size_t);
void	channel_put_head(struct channel *, uint8_t type, uint16_t flags,
	    uint32_t stream, size_t);
void	channel_schedule(struct channel *);
void	channel_watch(struct channel *);
/* Notes why the channel has to end; returns 1, for a frame's handler. */
int	channel_fail(struct channel *, enum sbx_error, const char *, ...)
	    __attribute__((format(printf, 3, 4)));

/* chan_stream.c */
int	streams_handle(struct channel *, const struct gp_frame *);
void	streams_pump(struct channel *);
void	streams_drained(struct channel *);
void	streams_end(struct channel *, enum sbx_error, const char *);

#endif
