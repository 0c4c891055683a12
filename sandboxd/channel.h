/* SPDX-License-Identifier: ISC */
/*
 * The channels to guests (guest-protocol(7)), the host's side: one for each
 * sandbox, handed down by the parent as a connected descriptor.  Everything
 * that comes out of one is hostile; whatever breaks the protocol ends that
 * channel and its streams, and nothing else.
 *
 * A channel is always read.  What slows a guest down is credit, by stream.
 */
#ifndef SBX_CHANNEL_H
#define SBX_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "gproto.h"

struct channel;
struct evbuffer;
struct gstream;
struct m_parent_close_channel;
struct m_parent_open_channel;

/* Takes the descriptor; replaces an older channel to the same sandbox. */
void		 channel_open(const struct m_parent_open_channel *, int);
/* The sandbox is going: its streams end with this error. */
void		 channel_close(const struct m_parent_close_channel *);
/* A channel on which commands can be started, or NULL. */
struct channel	*channel_find(const char *id);

/*
 * What happens on a stream.  After refused, exited and lost the stream is gone.
 * Any of them may call gstream_close().
 */
struct gstream_events {
	void	(*started)(void *, uint32_t pid);
	void	(*refused)(void *, enum gp_stage, uint32_t error);
	/* Borrowed until it returns; never empty. */
	void	(*output)(void *, enum gp_channel, const uint8_t *, size_t);
	void	(*exited)(void *, const struct gp_exited *);
	/* There is room for input again, after gstream_blocked() said no. */
	void	(*drained)(void *);
	void	(*lost)(void *, enum sbx_error, const char *detail);
};

/*
 * Opens an exec stream; takes the records (at least one), also on failure.
 * NULL: too many streams in this guest, or no memory.
 */
struct gstream	*gstream_open(struct channel *, struct evbuffer *,
		    const struct gstream_events *, void *);
/* Nobody listens any more: kills the command. */
void		 gstream_close(struct gstream *);
/* Bytes for the command's stdin; they wait here for the guest's credit. */
void		 gstream_input(struct gstream *, const uint8_t *, size_t);
void		 gstream_input_eof(struct gstream *);
/* Should the caller stop giving input, signals and sizes for now? */
int		 gstream_blocked(struct gstream *);
void		 gstream_signal(struct gstream *, uint8_t number, int tree);
void		 gstream_resize(struct gstream *, uint16_t cols, uint16_t rows);
/* While paused no credit is given; the guest's window bounds what comes. */
void		 gstream_pause(struct gstream *, int paused);

#endif
