/* SPDX-License-Identifier: ISC */
/*
 * The guest protocol's codec: sync records, frame headers, the frame reader,
 * records and fixed payloads.  Linked into front (glibc), guestd (musl) and the
 * fuzz targets.  Trusts no byte; allocates nothing and does no I/O.
 */
#include <string.h>

#include "gproto.h"

#define TO_GUEST	(1u << GP_TO_GUEST)
#define TO_HOST		(1u << GP_TO_HOST)
#define CHANNELS_GUEST	(1u << GP_STDIN)
#define CHANNELS_HOST	(1u << GP_STDOUT | 1u << GP_STDERR)

/* What a frame of each type looks like; to is empty where there is no type. */
static const struct shape {
	uint8_t		 to;
	uint8_t		 of_stream;
	uint8_t		 channel;	/* flags name one, else are 0 */
	uint16_t	 min;
	uint16_t	 max;
} shapes[] = {
	[GP_HELLO] = { TO_GUEST | TO_HOST, 0, 0, GP_HELLO_BYTES,
	    GP_HELLO_BYTES },
	[GP_CONFIG] = { TO_GUEST, 0, 0, 0, GP_PAYLOAD_MAX },
	[GP_CONFIG_DONE] = { TO_HOST, 0, 0, 4, GP_PAYLOAD_MAX },
	[GP_PING] = { TO_GUEST | TO_HOST, 0, 0, 8, 8 },
	[GP_PONG] = { TO_GUEST | TO_HOST, 0, 0, 8, 8 },
	[GP_OPEN] = { TO_GUEST, 1, 0, 1, 1 },
	[GP_ARGS] = { TO_GUEST, 1, 0, 0, GP_PAYLOAD_MAX },
	[GP_START] = { TO_GUEST, 1, 0, 0, 0 },
	[GP_STARTED] = { TO_HOST, 1, 0, 4, 4 },
	[GP_REFUSED] = { TO_HOST, 1, 0, 5, 5 },
	[GP_DATA] = { TO_GUEST | TO_HOST, 1, 1, 0, GP_PAYLOAD_MAX },
	[GP_EOF] = { TO_GUEST | TO_HOST, 1, 1, 0, 0 },
	[GP_CREDIT] = { TO_GUEST | TO_HOST, 1, 0, 4, 4 },
	[GP_SIGNAL] = { TO_GUEST, 1, 0, 2, 2 },
	[GP_RESIZE] = { TO_GUEST, 1, 0, 4, 4 },
	[GP_CLOSE] = { TO_GUEST, 1, 0, 0, 0 },
	[GP_EXITED] = { TO_HOST, 1, 0, GP_EXITED_BYTES, GP_EXITED_BYTES }
};

const char *
gp_strerror(int error)
{
	switch (error) {
	case GP_OK:
		return "no error";
	case GP_E_MAGIC:
		return "frame does not start with its magic byte";
	case GP_E_TYPE:
		return "frame type unknown or not for this side";
	case GP_E_LENGTH:
		return "payload length wrong for the frame's type";
	case GP_E_STREAM:
		return "stream number missing or out of place";
	case GP_E_VALUE:
		return "field out of range";
	}
	return "unknown error";
}

void
gp_put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

void
gp_put_u32(uint8_t *p, uint32_t v)
{
	gp_put_u16(p, (uint16_t)v);
	gp_put_u16(p + 2, (uint16_t)(v >> 16));
}

void
gp_put_u64(uint8_t *p, uint64_t v)
{
	gp_put_u32(p, (uint32_t)v);
	gp_put_u32(p + 4, (uint32_t)(v >> 32));
}

uint16_t
gp_get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t
gp_get_u32(const uint8_t *p)
{
	return gp_get_u16(p) | (uint32_t)gp_get_u16(p + 2) << 16;
}

uint64_t
gp_get_u64(const uint8_t *p)
{
	return gp_get_u32(p) | (uint64_t)gp_get_u32(p + 4) << 32;
}

void
gp_put_header(uint8_t *p, uint8_t type, uint16_t flags, uint32_t stream,
    uint32_t len)
{
	p[0] = GP_FRAME_MAGIC;
	p[1] = type;
	gp_put_u16(p + 2, flags);
	gp_put_u32(p + 4, stream);
	gp_put_u32(p + 8, len);
}

int
gp_get_header(const uint8_t *p, enum gp_side side, struct gp_frame *f)
{
	const struct shape	*s;
	unsigned int		 channels;

	if (p[0] != GP_FRAME_MAGIC)
		return GP_E_MAGIC;
	f->type = p[1];
	f->flags = gp_get_u16(p + 2);
	f->stream = gp_get_u32(p + 4);
	f->len = gp_get_u32(p + 8);
	f->payload = NULL;
	if (f->type >= sizeof(shapes) / sizeof(shapes[0]))
		return GP_E_TYPE;
	s = &shapes[f->type];
	if ((s->to & 1u << side) == 0)
		return GP_E_TYPE;
	if (f->len < s->min || f->len > s->max)
		return GP_E_LENGTH;
	if ((f->stream != 0) != s->of_stream)
		return GP_E_STREAM;
	if (!s->channel)
		return f->flags == 0 ? GP_OK : GP_E_VALUE;
	channels = side == GP_TO_GUEST ? CHANNELS_GUEST : CHANNELS_HOST;
	if (f->flags > GP_STDERR || (channels & 1u << f->flags) == 0)
		return GP_E_VALUE;
	return GP_OK;
}

size_t
gp_frame_room(const uint8_t *p, size_t len)
{
	const uint8_t	*at = p, *hit;

	if (len > GP_PAYLOAD_MAX)
		len = GP_PAYLOAD_MAX;
	while ((size_t)(p + len - at) >= GP_MAGIC_BYTES) {
		hit = memchr(at, (uint8_t)GP_MAGIC[0],
		    (size_t)(p + len - at) - GP_MAGIC_BYTES + 1);
		if (hit == NULL)
			break;
		if (memcmp(hit, GP_MAGIC, GP_MAGIC_BYTES) == 0)
			return (size_t)(hit - p) + GP_MAGIC_BYTES / 2;
		at = hit + 1;
	}
	return len;
}

void
gp_put_sync(uint8_t *p, const uint8_t *nonce)
{
	memcpy(p, GP_MAGIC, GP_MAGIC_BYTES);
	memcpy(p + GP_MAGIC_BYTES, nonce, GP_NONCE_BYTES);
}

/*
 * A host that dies within its sync record leaves a short one, and the nonce
 * that is read after it then ends in (or is) the next one's magic: how much.
 */
static unsigned int
magic_in_nonce(const uint8_t *nonce)
{
	unsigned int	 i;

	for (i = 0; i < GP_NONCE_BYTES; i++)
		if (memcmp(nonce + i, GP_MAGIC, GP_NONCE_BYTES - i) == 0)
			return GP_NONCE_BYTES - i;
	return 0;
}

int
gp_scan(struct gp_scan *s, const uint8_t *p, size_t len, size_t *used)
{
	const uint8_t	*hit;
	size_t		 i;

	for (i = 0; i < len; i++) {
		if (s->matched >= GP_MAGIC_BYTES) {
			s->nonce[s->matched++ - GP_MAGIC_BYTES] = p[i];
			if (s->matched == GP_SYNC_BYTES) {
				s->matched = magic_in_nonce(s->nonce);
				*used = i + 1;
				return 1;
			}
			continue;
		}
		if (s->matched == 0) {
			hit = memchr(p + i, (uint8_t)GP_MAGIC[0], len - i);
			if (hit == NULL)
				break;
			i = (size_t)(hit - p);
			s->matched = 1;
		} else if (p[i] == (uint8_t)GP_MAGIC[s->matched])
			s->matched++;
		else
			s->matched = p[i] == (uint8_t)GP_MAGIC[0];
	}
	*used = len;
	return 0;
}

void
gp_reader_init(struct gp_reader *r, enum gp_side side)
{
	r->side = side;
	r->have = 0;
}

/*
 * The bytes that the frame at the buffer's start still lacks, header first;
 * 0 when it is whole.
 */
static int
reader_lacks(const struct gp_reader *r, struct gp_frame *f, size_t *lacks)
{
	int	 error;

	if (r->have < GP_HEADER_BYTES) {
		*lacks = GP_HEADER_BYTES - r->have;
		return GP_OK;
	}
	error = gp_get_header(r->buf, r->side, f);
	if (error == GP_OK) {
		*lacks = GP_HEADER_BYTES + f->len - r->have;
		f->payload = r->buf + GP_HEADER_BYTES;
	}
	return error;
}

int
gp_reader_feed(struct gp_reader *r, const uint8_t *p, size_t len,
    gp_frame_cb cb, void *arg)
{
	struct gp_frame	 f;
	size_t		 n;
	int		 error;

	for (;;) {
		/* Frames that are whole in the input need no copy. */
		while (r->have == 0 && len >= GP_HEADER_BYTES) {
			error = gp_get_header(p, r->side, &f);
			if (error != GP_OK)
				return error;
			if (len - GP_HEADER_BYTES < f.len)
				break;
			f.payload = p + GP_HEADER_BYTES;
			p += GP_HEADER_BYTES + f.len;
			len -= GP_HEADER_BYTES + f.len;
			error = cb(&f, arg);
			if (error != 0)
				return error;
		}
		if (len == 0)
			return GP_OK;
		error = reader_lacks(r, &f, &n);
		if (error != GP_OK)
			return error;
		if (n > len)
			n = len;
		memcpy(r->buf + r->have, p, n);
		r->have += n;
		p += n;
		len -= n;
		error = reader_lacks(r, &f, &n);
		if (error != GP_OK)
			return error;
		if (n != 0)
			continue;
		r->have = 0;
		error = cb(&f, arg);
		if (error != 0)
			return error;
	}
}

int
gp_record_next(const uint8_t **p, size_t *left, struct gp_record *rec)
{
	if (*left == 0)
		return 0;
	if (*left < GP_RECORD_HEAD)
		return -1;
	rec->tag = (*p)[0];
	rec->len = gp_get_u32(*p + 1);
	if (rec->len > *left - GP_RECORD_HEAD)
		return -1;
	rec->data = *p + GP_RECORD_HEAD;
	*p += GP_RECORD_HEAD + rec->len;
	*left -= GP_RECORD_HEAD + rec->len;
	return 1;
}

void
gp_put_record_head(uint8_t *p, uint8_t tag, uint32_t len)
{
	p[0] = tag;
	gp_put_u32(p + 1, len);
}

size_t
gp_put_hello(uint8_t *p, const struct gp_hello *h)
{
	gp_put_u16(p, h->version_min);
	gp_put_u16(p + 2, h->version_max);
	memcpy(p + 4, h->boot_id, sizeof(h->boot_id));
	gp_put_u64(p + 20, h->uptime_ms);
	return GP_HELLO_BYTES;
}

int
gp_get_hello(const struct gp_frame *f, struct gp_hello *h)
{
	if (f->type != GP_HELLO)
		return GP_E_TYPE;
	if (f->len != GP_HELLO_BYTES)
		return GP_E_LENGTH;
	h->version_min = gp_get_u16(f->payload);
	h->version_max = gp_get_u16(f->payload + 2);
	memcpy(h->boot_id, f->payload + 4, sizeof(h->boot_id));
	h->uptime_ms = gp_get_u64(f->payload + 20);
	if (h->version_min == 0 || h->version_min > h->version_max)
		return GP_E_VALUE;
	return GP_OK;
}

size_t
gp_put_exited(uint8_t *p, const struct gp_exited *e)
{
	p[0] = e->signaled;
	p[1] = e->timed_out;
	p[2] = e->oom_killed;
	gp_put_u32(p + 3, e->code);
	gp_put_u64(p + 7, e->duration_us);
	gp_put_u64(p + 15, e->stdout_bytes);
	gp_put_u64(p + 23, e->stderr_bytes);
	return GP_EXITED_BYTES;
}

int
gp_get_exited(const struct gp_frame *f, struct gp_exited *e)
{
	if (f->type != GP_EXITED)
		return GP_E_TYPE;
	if (f->len != GP_EXITED_BYTES)
		return GP_E_LENGTH;
	e->signaled = f->payload[0];
	e->timed_out = f->payload[1];
	e->oom_killed = f->payload[2];
	e->code = gp_get_u32(f->payload + 3);
	e->duration_us = gp_get_u64(f->payload + 7);
	e->stdout_bytes = gp_get_u64(f->payload + 15);
	e->stderr_bytes = gp_get_u64(f->payload + 23);
	if (e->signaled > 1 || e->timed_out > 1 || e->oom_killed > 1)
		return GP_E_VALUE;
	/* Linux: signals 1 to 64, an exit status of eight bits. */
	if (e->signaled ? e->code < 1 || e->code > 64 : e->code > 255)
		return GP_E_VALUE;
	return GP_OK;
}
