/* SPDX-License-Identifier: ISC */
/*
 * The guest protocol's codec against bytes written by hand from
 * guest-protocol(7), read whole and in pieces of every size, and the records of
 * an exec stream as guestd cuts them.
 */
/* objs: guestd/gargs.o */
#include <errno.h>

#include "gproto.h"
#include "guestd.h"
#include "test.h"

TEST_PLAN_AUTO;

/* HELLO 1..1, PING, DATA "hi\n" on stream 0x01020304, CREDIT 70000. */
static const uint8_t	 wire[] = {
	0xa5, 0x01, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0,
	1, 0, 1, 0,
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
	0xd2, 0x04, 0, 0, 0, 0, 0, 0,
	0xa5, 0x04, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0,
	1, 2, 3, 4, 5, 6, 7, 8,
	0xa5, 0x15, 1, 0, 4, 3, 2, 1, 3, 0, 0, 0, 'h', 'i', '\n',
	0xa5, 0x17, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, 0x70, 0x11, 0x01, 0x00
};

struct seen {
	int		 count;
	int		 bad;
	int		 stop_at;
};

static int
on_frame(const struct gp_frame *f, void *arg)
{
	struct seen	*s = arg;
	struct gp_hello	 h;

	switch (s->count++) {
	case 0:
		s->bad |= gp_get_hello(f, &h) != GP_OK || h.version_min != 1 ||
		    h.boot_id[15] != 0x1f || h.uptime_ms != 1234;
		break;
	case 1:
		s->bad |= f->type != GP_PING || f->len != 8 ||
		    f->payload[7] != 8 || f->stream != 0;
		break;
	case 2:
		s->bad |= f->type != GP_DATA || f->flags != GP_STDOUT ||
		    f->stream != 0x01020304 || f->len != 3 ||
		    memcmp(f->payload, "hi\n", 3) != 0;
		break;
	case 3:
		s->bad |= f->type != GP_CREDIT || f->stream != 9 ||
		    gp_get_u32(f->payload) != 70000;
		break;
	default:
		s->bad = 1;
	}
	return s->count == s->stop_at ? 77 : 0;
}

static void
test_reader(void)
{
	static struct gp_reader	 r;
	struct seen		 s;
	size_t			 piece, at, n;
	int			 bad = 0, error;

	for (piece = 1; piece <= sizeof(wire); piece++) {
		memset(&s, 0, sizeof(s));
		gp_reader_init(&r, GP_TO_HOST);
		for (at = 0; at < sizeof(wire); at += n) {
			n = sizeof(wire) - at < piece ? sizeof(wire) - at :
			    piece;
			if (gp_reader_feed(&r, wire + at, n, on_frame, &s) != 0)
				bad++;
		}
		bad += s.bad || s.count != 4;
	}
	is_int(bad, 0, "gproto: frames in pieces of 1 to %zu bytes",
	    sizeof(wire));
	memset(&s, 0, sizeof(s));
	s.stop_at = 2;
	gp_reader_init(&r, GP_TO_HOST);
	error = gp_reader_feed(&r, wire, sizeof(wire), on_frame, &s);
	ok(error == 77 && s.count == 2, "gproto: a callback's value stops it");
	gp_reader_init(&r, GP_TO_GUEST);
	error = gp_reader_feed(&r, (const uint8_t *)"GET / HTTP/1.1", 14,
	    on_frame, &s);
	is_int(error, GP_E_MAGIC, "gproto: HTTP is no frame");
}

static int
header(uint8_t type, uint16_t flags, uint32_t stream, uint32_t len,
    enum gp_side side)
{
	struct gp_frame	 f;
	uint8_t		 buf[GP_HEADER_BYTES];

	gp_put_header(buf, type, flags, stream, len);
	return gp_get_header(buf, side, &f);
}

static void
test_headers(void)
{
	static const struct {
		int		 want;
		int		 side;
		unsigned int	 type, flags, stream, len;
		const char	*name;
	} t[] = {
		{ GP_OK, GP_TO_GUEST, 0x15, 0, 1, 32768, "largest DATA" },
		{ GP_E_LENGTH, GP_TO_GUEST, 0x15, 0, 1, 32769, "larger DATA" },
		{ GP_E_LENGTH, GP_TO_HOST, 0x15, 1, 1, 0xffffffff, "4 GiB" },
		{ GP_OK, GP_TO_GUEST, 0x15, 0, 1, 0, "empty DATA" },
		{ GP_E_VALUE, GP_TO_GUEST, 0x15, 1, 1, 1, "stdout to guest" },
		{ GP_E_VALUE, GP_TO_HOST, 0x15, 0, 1, 1, "stdin to host" },
		{ GP_E_VALUE, GP_TO_HOST, 0x15, 3, 1, 1, "channel 3" },
		{ GP_E_VALUE, GP_TO_HOST, 0x15, 0xffff, 1, 1, "channel 65535" },
		{ GP_OK, GP_TO_HOST, 0x16, 2, 1, 0, "EOF of stderr" },
		{ GP_E_STREAM, GP_TO_HOST, 0x15, 1, 0, 1, "DATA on stream 0" },
		{ GP_E_STREAM, GP_TO_HOST, 0x01, 0, 1, 28, "HELLO, stream 1" },
		{ GP_E_LENGTH, GP_TO_HOST, 0x01, 0, 0, 27, "short HELLO" },
		{ GP_E_VALUE, GP_TO_HOST, 0x01, 1, 0, 28, "HELLO with flags" },
		{ GP_E_TYPE, GP_TO_HOST, 0x02, 0, 0, 0, "CONFIG to host" },
		{ GP_E_TYPE, GP_TO_GUEST, 0x03, 0, 0, 4, "DONE to guest" },
		{ GP_E_TYPE, GP_TO_HOST, 0x12, 0, 1, 0, "START to host" },
		{ GP_E_TYPE, GP_TO_GUEST, 0x1b, 0, 1, 31, "EXITED to guest" },
		{ GP_OK, GP_TO_HOST, 0x1b, 0, 1, 31, "EXITED" },
		{ GP_E_LENGTH, GP_TO_HOST, 0x1b, 0, 1, 32, "long EXITED" },
		{ GP_E_TYPE, GP_TO_HOST, 0x00, 0, 0, 0, "type 0" },
		{ GP_E_TYPE, GP_TO_HOST, 0x0a, 0, 0, 0, "type 10" },
		{ GP_E_TYPE, GP_TO_GUEST, 0x1c, 0, 1, 0, "type 28" },
		{ GP_E_TYPE, GP_TO_GUEST, 0xff, 0, 1, 0, "type 255" },
		{ GP_OK, GP_TO_GUEST, 0x18, 0, 1, 2, "SIGNAL" },
		{ GP_OK, GP_TO_GUEST, 0x19, 0, 1, 4, "RESIZE" },
		{ GP_OK, GP_TO_GUEST, 0x1a, 0, 1, 0, "CLOSE" },
		{ GP_E_LENGTH, GP_TO_GUEST, 0x1a, 0, 1, 1, "CLOSE of 1 byte" },
		{ GP_OK, GP_TO_HOST, 0x14, 0, 1, 5, "REFUSED" }
	};
	size_t	 i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		is_int(header((uint8_t)t[i].type, (uint16_t)t[i].flags,
		    t[i].stream, t[i].len, t[i].side), t[i].want,
		    "gproto: header: %s", t[i].name);
}

/* Feeds in pieces; returns how many records there were, the last nonce. */
static int
scan_all(const uint8_t *p, size_t len, size_t piece, uint8_t *nonce,
    size_t *end)
{
	struct gp_scan	 s;
	size_t		 at = 0, n, used;
	int		 count = 0;

	memset(&s, 0, sizeof(s));
	while (at < len) {
		n = len - at < piece ? len - at : piece;
		if (gp_scan(&s, p + at, n, &used)) {
			count++;
			memcpy(nonce, s.nonce, GP_NONCE_BYTES);
			*end = at + used;
		}
		at += used;
	}
	return count;
}

static void
test_sync(void)
{
	static const uint8_t	 magic[16] = { 0x93, 's', 'a', 'n', 'd', 'b',
	    'o', 'x', 'd', '-', 's', 'y', 'n', 'c', '\r', '\n' };
	uint8_t			 buf[256], nonce[16], want[16];
	size_t			 cut, piece, end = 0;
	int			 bad = 0;

	memset(want, 0x93, sizeof(want));
	gp_put_sync(buf, want);
	ok(memcmp(buf, magic, 16) == 0 && memcmp(buf + 16, want, 16) == 0,
	    "gproto: a sync record's 32 bytes");
	/* A host that died after `cut` bytes of its record; then another. */
	for (cut = 0; cut <= 32; cut++) {
		for (piece = 1; piece <= 80; piece++) {
			memset(buf, 0x93, 5);
			memcpy(buf + 5, magic, 16);
			memset(buf + 21, 'n', 16);
			memcpy(buf + 5 + cut, magic, 16);
			memcpy(buf + 21 + cut, "0123456789abcdef", 16);
			memset(buf + 37 + cut, 0xa5, 7);
			if (scan_all(buf, 44 + cut, piece, nonce, &end) < 1 ||
			    memcmp(nonce, "0123456789abcdef", 16) != 0 ||
			    end != 37 + cut)
				bad++;
		}
	}
	is_int(bad, 0, "gproto: a sync record after one cut at any byte");
	is_int(scan_all((const uint8_t *)"\x93sandboxd-sync\r\x93sandboxd-syn",
	    28, 1, nonce, &end), 0, "gproto: no record in almost one");
}

static void
test_room(void)
{
	static uint8_t	 buf[100000];
	size_t		 at, n, i, bad = 0, pieces = 0;

	memset(buf, 'x', sizeof(buf));
	for (i = 0; i + 16 < sizeof(buf); i += 777)
		memcpy(buf + i, GP_MAGIC, 16);
	memcpy(buf + 32760, GP_MAGIC, 16);
	for (at = 0; at < sizeof(buf); at += n, pieces++) {
		n = gp_frame_room(buf + at, sizeof(buf) - at);
		if (n == 0 || n > GP_PAYLOAD_MAX)
			break;
		for (i = at; i + 16 <= at + n; i++)
			bad += memcmp(buf + i, GP_MAGIC, 16) == 0;
	}
	ok(at == sizeof(buf) && bad == 0,
	    "gproto: no piece of %zu holds a whole magic", pieces);
	is_int((intmax_t)gp_frame_room(buf, 0), 0, "gproto: no bytes, no room");
	memset(buf, 0x93, sizeof(buf));
	is_int((intmax_t)gp_frame_room(buf, sizeof(buf)), 32768,
	    "gproto: the magic's first byte alone is harmless");
}

static void
test_payloads(void)
{
	static const uint8_t	 exited[31] = { 1, 1, 0, 9, 0, 0, 0,
	    0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0,
	    0, 7, 0, 0, 0, 0, 0, 0, 0 };
	struct gp_frame		 f = { GP_EXITED, 0, 1, 31, exited };
	struct gp_exited	 e;
	uint8_t			 buf[31];
	int			 i, bad = 0;

	ok(gp_get_exited(&f, &e) == GP_OK && e.signaled && e.timed_out &&
	    !e.oom_killed && e.code == 9 && e.duration_us == 1000000 &&
	    e.stdout_bytes == 0x1ffffffffULL && e.stderr_bytes == 7,
	    "gproto: EXITED read");
	is_int(gp_put_exited(buf, &e), 31, "gproto: EXITED's length");
	is_mem(buf, exited, 31, "gproto: EXITED written");
	f.payload = buf;
	for (i = 0; i < 3; i++) {
		memcpy(buf, exited, 31);
		buf[i] = 2;
		bad += gp_get_exited(&f, &e) != GP_E_VALUE;
	}
	memcpy(buf, exited, 31);
	buf[3] = 65;
	bad += gp_get_exited(&f, &e) != GP_E_VALUE;
	buf[3] = 0;
	bad += gp_get_exited(&f, &e) != GP_E_VALUE;
	buf[0] = 0;
	bad += gp_get_exited(&f, &e) != GP_OK;
	buf[4] = 1;
	bad += gp_get_exited(&f, &e) != GP_E_VALUE;
	is_int(bad, 0, "gproto: EXITED out of range is refused");
}

static void
test_records(void)
{
	static const uint8_t	 p[] = { 'h', 3, 0, 0, 0, 'b', 'o', 'x',
	    'M', 2, 0, 0, 0, 0xdc, 0x05, 'd', 0, 0, 0, 0 };
	struct gp_record	 r;
	const uint8_t		*at = p;
	size_t			 left = sizeof(p), cut;
	int			 bad = 0, n;

	ok(gp_record_next(&at, &left, &r) == 1 && r.tag == 'h' && r.len == 3 &&
	    memcmp(r.data, "box", 3) == 0, "gproto: first record");
	ok(gp_record_next(&at, &left, &r) == 1 && r.tag == 'M' &&
	    gp_get_u16(r.data) == 1500, "gproto: second record");
	ok(gp_record_next(&at, &left, &r) == 1 && r.len == 0 &&
	    gp_record_next(&at, &left, &r) == 0,
	    "gproto: an empty one, the end");
	for (cut = 1; cut < sizeof(p); cut++) {
		at = p;
		left = cut;
		while ((n = gp_record_next(&at, &left, &r)) == 1)
			continue;
		bad += n != (cut == 8 || cut == 15 ? 0 : -1);
	}
	is_int(bad, 0, "gproto: records cut at every byte");
}

/* Appends a record. */
static size_t
put(uint8_t *p, size_t at, char tag, const void *data, size_t len)
{
	gp_put_record_head(p + at, (uint8_t)tag, (uint32_t)len);
	memcpy(p + at + 5, data, len);
	return at + 5 + len;
}

static int
parse_one(char tag, const void *data, size_t len)
{
	static uint8_t		 buf[200000];
	struct exec_args	 a;
	size_t			 n;
	int			 error;

	n = put(buf, 0, 'a', "true", 4);
	n = put(buf, n, tag, data, len);
	error = args_parse(buf, n, &a);
	args_free(&a);
	return error;
}

static void
test_args(void)
{
	static uint8_t		 buf[200000];
	static char		 big[131073];
	struct exec_args	 a;
	size_t			 n = 0;

	n = put(buf, n, 'a', "sh", 2);
	n = put(buf, n, 'e', "A=1", 3);
	n = put(buf, n, 'a', "", 0);
	n = put(buf, n, 'e', "AB=line\nx=y", 11);
	n = put(buf, n, 'e', "A=", 2);
	n = put(buf, n, 'd', "/tmp", 4);
	n = put(buf, n, 'u', "1000:5", 6);
	n = put(buf, n, 't', "\x10\x27\0\0\0\0\0\0", 8);
	n = put(buf, n, 'f', "\1\0\0\0", 4);
	n = put(buf, n, 'a', "last one", 8);
	is_int(args_parse(buf, n, &a), 0, "gargs: a whole command");
	is_str(a.argv[0], "sh", "gargs: argv[0]");
	is_str(a.argv[1], "", "gargs: an empty argument");
	is_str(a.argv[2], "last one", "gargs: an argument after the others");
	ok(a.argv[3] == NULL, "gargs: argv ends");
	is_int((intmax_t)a.env_count, 2, "gargs: two names");
	is_str(a.envp[0], "A=", "gargs: the later value wins");
	is_str(a.envp[1], "AB=line\nx=y", "gargs: newline and = in a value");
	is_str(a.cwd, "/tmp", "gargs: cwd");
	is_str(a.user, "1000:5", "gargs: user");
	is_int((intmax_t)a.timeout_ms, 10000, "gargs: timeout");
	is_int(a.flags, GP_EXEC_STDIN, "gargs: flags");
	args_free(&a);

	is_int(parse_one('e', "=x", 2), EINVAL, "gargs: empty name");
	is_int(parse_one('e', "x", 1), EINVAL, "gargs: variable without =");
	is_int(parse_one('a', "a\0b", 3), EINVAL, "gargs: NUL in an argument");
	is_int(parse_one('t', "\0\0\0\0\0\0\0\0", 8), EINVAL,
	    "gargs: timeout 0");
	is_int(parse_one('t', "\1", 1), EINVAL, "gargs: short timeout");
	is_int(parse_one('f', "\4\0\0\0", 4), EINVAL, "gargs: unknown flag");
	is_int(parse_one('x', "", 0), EINVAL, "gargs: unknown tag");
	memset(big, 'b', sizeof(big));
	is_int(parse_one('a', big, 131071), 0, "gargs: longest string");
	is_int(parse_one('a', big, 131072), E2BIG, "gargs: a longer one");
	n = put(buf, 0, 'e', "A=1", 3);
	is_int(args_parse(buf, n, &a), EINVAL, "gargs: no argv");
}

int
main(void)
{
	test_reader();
	test_headers();
	test_sync();
	test_room();
	test_payloads();
	test_records();
	test_args();
	return done_testing();
}
