/* SPDX-License-Identifier: ISC */
/*
 * The connection to the host: finds sync records, cuts frames, answers what
 * belongs to the connection, queues what goes out.  Knows no descriptor, so
 * that the fuzz target can drive it.  Trusts none of the host's bytes.
 */
#include <errno.h>
#include <string.h>

#include "guestd.h"

#define FRAME_MAX	(GP_HEADER_BYTES + GP_PAYLOAD_MAX)
/* Output stops at four frames; the rest is for answers, which are small. */
#define OUT_DATA_MAX	(4 * FRAME_MAX)
#define OUT_MAX		(OUT_DATA_MAX + 65536)

static struct chan {
	enum { CHAN_LOST, CHAN_SYNCED, CHAN_UP } state;
	struct gp_scan	 scan;
	struct gp_reader reader;
	size_t		 out_start;
	size_t		 out_end;
	uint8_t		 out[OUT_MAX];
} chan;

void
chan_init(void)
{
	memset(&chan.scan, 0, sizeof(chan.scan));
	chan.state = CHAN_LOST;
	chan.out_start = chan.out_end = 0;
}

void
chan_end(const char *why)
{
	if (chan.state == CHAN_LOST)
		return;
	guest_log("connection to the host ended: %s", why);
	chan.state = CHAN_LOST;
	chan.out_start = chan.out_end = 0;
}

/* Space at the queue's end, NULL when it is full up to limit. */
static uint8_t *
out_room(size_t len, size_t limit)
{
	if (chan.state == CHAN_LOST)
		return NULL;
	if (chan.out_end + len > limit && chan.out_start > 0) {
		memmove(chan.out, chan.out + chan.out_start,
		    chan.out_end - chan.out_start);
		chan.out_end -= chan.out_start;
		chan.out_start = 0;
	}
	return chan.out_end + len > limit ? NULL : chan.out + chan.out_end;
}

void
chan_put(uint8_t type, uint16_t flags, uint32_t stream, const void *payload,
    size_t len)
{
	uint8_t	*p;

	p = out_room(GP_HEADER_BYTES + len, OUT_MAX);
	if (p == NULL) {
		chan_end("the host does not read our answers");
		return;
	}
	gp_put_header(p, type, flags, stream, (uint32_t)len);
	if (len > 0)
		memcpy(p + GP_HEADER_BYTES, payload, len);
	chan.out_end += GP_HEADER_BYTES + len;
}

uint8_t *
chan_data_room(void)
{
	uint8_t	*p;

	/* Moving the queue costs more than waiting until it is short. */
	if (chan.out_end + FRAME_MAX > OUT_DATA_MAX &&
	    chan.out_end - chan.out_start > FRAME_MAX)
		return NULL;
	p = out_room(FRAME_MAX, OUT_DATA_MAX);
	return p == NULL ? NULL : p + GP_HEADER_BYTES;
}

void
chan_data_put(uint32_t stream, uint16_t channel, size_t len)
{
	gp_put_header(chan.out + chan.out_end, GP_DATA, channel, stream,
	    (uint32_t)len);
	chan.out_end += GP_HEADER_BYTES + len;
}

const uint8_t *
chan_pending(size_t *len)
{
	*len = chan.out_end - chan.out_start;
	return chan.out + chan.out_start;
}

void
chan_sent(size_t len)
{
	chan.out_start += len;
	if (chan.out_start == chan.out_end)
		chan.out_start = chan.out_end = 0;
}

static void
chan_sync(const uint8_t *nonce)
{
	streams_lose();
	chan.state = CHAN_SYNCED;
	gp_reader_init(&chan.reader, GP_TO_GUEST);
	gp_put_sync(chan.out, nonce);
	chan.out_start = 0;
	chan.out_end = GP_SYNC_BYTES;
}

static int
chan_hello(const struct gp_frame *f)
{
	struct gp_hello	 h;
	uint8_t		 buf[GP_HELLO_BYTES];
	int		 error;

	error = gp_get_hello(f, &h);
	if (error != GP_OK)
		return error;
	/*
	 * One version so far: it is the answer also to a host that does not
	 * offer it, which then knows what it has before it.
	 */
	h.version_min = h.version_max = GP_VERSION;
	memcpy(h.boot_id, guest.boot_id, sizeof(h.boot_id));
	h.uptime_ms = now_us() / 1000;
	gp_put_hello(buf, &h);
	chan_put(GP_HELLO, 0, 0, buf, sizeof(buf));
	chan.state = CHAN_UP;
	return GP_OK;
}

static int
chan_config(const struct gp_frame *f)
{
	uint8_t	 answer[4 + 256];
	char	 text[256] = "";
	int	 error;

	error = conf_apply(f->payload, f->len, text, sizeof(text));
	gp_put_u32(answer, (uint32_t)error);
	memcpy(answer + 4, text, strlen(text));
	chan_put(GP_CONFIG_DONE, 0, 0, answer, 4 + strlen(text));
	guest.configured = 1;
	return GP_OK;
}

static int
chan_frame(const struct gp_frame *f, void *arg)
{
	(void)arg;
	if (f->type == GP_HELLO)
		return chan.state == CHAN_SYNCED ? chan_hello(f) : GP_E_TYPE;
	if (chan.state != CHAN_UP)
		return GP_E_TYPE;
	switch (f->type) {
	case GP_CONFIG:
		return chan_config(f);
	case GP_PING:
		chan_put(GP_PONG, 0, 0, f->payload, f->len);
		return GP_OK;
	case GP_PONG:
		return GP_OK;
	}
	return stream_frame(f);
}

static void
chan_read(const uint8_t *p, size_t len)
{
	int	 error;

	if (chan.state == CHAN_LOST)
		return;
	error = gp_reader_feed(&chan.reader, p, len, chan_frame, NULL);
	if (error != GP_OK)
		chan_end(gp_strerror(error));
}

/*
 * The bytes of a sync record are kept from the old connection's reader, so that
 * a frame that was cut by the host's death is not completed by them.
 */
void
chan_feed(const uint8_t *p, size_t len)
{
	size_t	 used, of_sync;
	int	 found;

	while (len > 0) {
		found = gp_scan(&chan.scan, p, len, &used);
		of_sync = found ? GP_SYNC_BYTES : chan.scan.matched;
		if (of_sync < GP_MAGIC_BYTES)
			of_sync = 0;
		if (used > of_sync)
			chan_read(p, used - of_sync);
		if (of_sync != 0)
			chan_end("a host connects anew");
		if (found)
			chan_sync(chan.scan.nonce);
		p += used;
		len -= used;
	}
}
