/* SPDX-License-Identifier: ISC */
/*
 * What front reads from a guest.  The first byte says in which pieces the rest
 * comes; whole and in pieces the frames must be the same, every one within its
 * bounds, and the fixed payloads read back as they were written.
 */
/* objs: */
#include <stdlib.h>
#include <string.h>

#include "gproto.h"

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

struct sum {
	uint64_t	 hash;
	unsigned int	 frames;
};

static void
check(int good)
{
	if (!good)
		abort();
}

static void
mix(struct sum *s, const void *data, size_t len)
{
	const uint8_t	*p = data;

	while (len-- > 0)
		s->hash = (s->hash ^ *p++) * 0x100000001b3ULL;
}

static int
on_frame(const struct gp_frame *f, void *arg)
{
	struct sum		*s = arg;
	struct gp_hello		 h;
	struct gp_exited	 e;
	uint8_t			 buf[GP_EXITED_BYTES];

	check(f->len <= GP_PAYLOAD_MAX);
	check(f->type < GP_OPEN ? f->stream == 0 : f->stream != 0);
	if (f->type == GP_DATA || f->type == GP_EOF)
		check(f->flags == GP_STDOUT || f->flags == GP_STDERR);
	if (gp_get_hello(f, &h) == GP_OK) {
		check(h.version_min <= h.version_max);
		gp_put_hello(buf, &h);
		check(memcmp(buf, f->payload, GP_HELLO_BYTES) == 0);
	}
	if (gp_get_exited(f, &e) == GP_OK) {
		check(e.code <= 255);
		gp_put_exited(buf, &e);
		check(memcmp(buf, f->payload, GP_EXITED_BYTES) == 0);
	}
	s->frames++;
	mix(s, &f->type, 1);
	mix(s, &f->stream, sizeof(f->stream));
	mix(s, f->payload, f->len);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	static struct gp_reader	 r;
	struct sum		 whole = { 1, 0 }, pieces = { 1, 0 };
	size_t			 at, n, step;
	int			 error, error2 = GP_OK;

	if (len < 1)
		return 0;
	step = (size_t)p[0] + 1;
	p++;
	len--;
	gp_reader_init(&r, GP_TO_HOST);
	error = gp_reader_feed(&r, p, len, on_frame, &whole);
	check(error <= 0 && gp_strerror(error) != NULL);
	gp_reader_init(&r, GP_TO_HOST);
	for (at = 0; at < len && error2 == GP_OK; at += n) {
		n = len - at < step ? len - at : step;
		error2 = gp_reader_feed(&r, p + at, n, on_frame, &pieces);
	}
	check(error == error2 && whole.frames == pieces.frames &&
	    whole.hash == pieces.hash);
	return 0;
}
