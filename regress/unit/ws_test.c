/* SPDX-License-Identifier: ISC */
/* libs: -lmd -lbsd */
/*
 * WebSocket frames and the handshake (RFC 6455; section numbers are its own).
 * Each stream of frames is read whole and byte by byte; the verdict is a line
 * of what came out.
 */
#include "base64.h"
#include "test.h"
#include "utf8.h"
#include "ws.h"

TEST_PLAN_AUTO;

#define TEXT_MAX	1000
#define BINARY_MAX	70000

static uint8_t	 input[300000];
static size_t	 input_len;

static const uint8_t	 mask[4] = { 0x37, 0xfa, 0x21, 0x3d };	/* 5.7 */

/* Appends raw bytes. */
static void
raw(const void *data, size_t len)
{
	memcpy(input + input_len, data, len);
	input_len += len;
}

/* Appends a frame: its first byte, masked or not, of any length form. */
static void
frame(unsigned int first, int masked, int form, const void *data, size_t len)
{
	uint8_t	 head[14];
	size_t	 n = 2, i;

	head[0] = (uint8_t)first;
	head[1] = (uint8_t)((masked ? 0x80 : 0) |
	    (form == 0 ? (int)len : form == 2 ? 126 : 127));
	for (i = (size_t)form; i > 0; i--)
		head[n++] = (uint8_t)((uint64_t)len >> 8 * (i - 1));
	if (masked) {
		memcpy(head + n, mask, 4);
		n += 4;
	}
	raw(head, n);
	raw(data, len);
	for (i = 0; masked && i < len; i++)
		input[input_len - len + i] ^= mask[i % 4];
}

struct line {
	char	 text[1024];
};

static void __attribute__((format(printf, 2, 3)))
add(struct line *l, const char *fmt, ...)
{
	va_list	 ap;
	size_t	 n = strlen(l->text);

	va_start(ap, fmt);
	(void)vsnprintf(l->text + n, sizeof(l->text) - n, fmt, ap);
	va_end(ap);
}

static void
add_data(struct line *l, const struct ws_piece *p)
{
	if (p->len <= 32)
		add(l, "%.*s", (int)p->len, (const char *)p->data);
	else
		add(l, "%zu bytes", p->len);
}

struct sum {
	size_t	 bytes;		/* of the binary message so far */
	char	 small[33];
};

static void
add_binary(struct line *l, const struct ws_piece *p, struct sum *sum)
{
	if (p->first) {
		add(l, "(bin ");
		sum->bytes = 0;
	}
	if (sum->bytes + p->len <= 32 && p->len > 0)
		memcpy(sum->small + sum->bytes, p->data, p->len);
	sum->bytes += p->len;
	if (!p->last)
		return;
	if (sum->bytes <= 32)
		add(l, "%.*s)", (int)sum->bytes, sum->small);
	else
		add(l, "%zu bytes)", sum->bytes);
}

/* Reads the input in pieces of `step`. */
static void
verdict(enum ws_role role, size_t step, struct line *l)
{
	struct ws_reader	 r;
	struct ws_piece		 p;
	struct sum		 sum = { 0, "" };
	uint8_t			*copy;
	size_t			 pos = 0, n;
	enum ws_event		 ev;

	l->text[0] = '\0';
	ws_reader_init(&r, role, TEXT_MAX, BINARY_MAX);
	do {
		n = input_len - pos < step ? input_len - pos : step;
		copy = malloc(n > 0 ? n : 1);
		memcpy(copy, input + pos, n);
		ev = ws_read(&r, copy, n, &p);
		pos += p.used;
		switch (ev) {
		case WS_NEED_MORE:
			break;
		case WS_BINARY:
			add_binary(l, &p, &sum);
			break;
		case WS_TEXT:
		case WS_PING:
		case WS_PONG:
			add(l, "(%s ", ev == WS_TEXT ? "text" :
			    ev == WS_PING ? "ping" : "pong");
			add_data(l, &p);
			add(l, ")");
			break;
		case WS_CLOSE:
			add(l, "(close %u ", p.code);
			add_data(l, &p);
			add(l, ")");
			break;
		case WS_FAIL:
			add(l, "!%u", p.code);
			ok(p.why != NULL && strlen(p.why) <= WS_REASON_MAX &&
			    ws_read(&r, copy, 0, &p) == WS_FAIL,
			    "ws: a failure has a reason and stays");
			break;
		}
		free(copy);
	} while (ev != WS_FAIL && (ev != WS_NEED_MORE || pos < input_len));
	ws_reader_clear(&r);
}

static void
check(enum ws_role role, const char *name, const char *want)
{
	static const size_t	 steps[] = { 300000, 1, 3, 13 };
	struct line		 l;
	size_t			 i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		verdict(role, steps[i], &l);
		if (strcmp(l.text, want) != 0)
			break;
	}
	is_str(l.text, want, "ws: %s", name);
	input_len = 0;
}

#define S(first, data)	frame(first, 1, 0, data, sizeof(data) - 1)
#define C(first, data)	frame(first, 0, 0, data, sizeof(data) - 1)

/* The examples of section 5.7, byte for byte. */
static void
check_examples(void)
{
	static const uint8_t	 hello[] = { 0x81, 0x05, 'H', 'e', 'l', 'l',
	    'o' };
	static const uint8_t	 masked[] = { 0x81, 0x85, 0x37, 0xfa, 0x21,
	    0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58 };
	static const uint8_t	 fragments[] = { 0x01, 0x03, 'H', 'e', 'l',
	    0x80, 0x02, 'l', 'o' };
	static const uint8_t	 ping[] = { 0x89, 0x05, 'H', 'e', 'l', 'l', 'o',
	    0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58 };
	static uint8_t		 big[65536];

	raw(hello, sizeof(hello));
	check(WS_CLIENT, "5.7 unmasked text", "(text Hello)");
	raw(masked, sizeof(masked));
	check(WS_SERVER, "5.7 masked text", "(text Hello)");
	raw(fragments, sizeof(fragments));
	check(WS_CLIENT, "5.7 fragmented text", "(text Hello)");
	raw(ping, 7);
	check(WS_CLIENT, "5.7 ping", "(ping Hello)");
	raw(ping + 7, 11);
	check(WS_SERVER, "5.7 masked pong", "(pong Hello)");
	raw("\x82\x7e\x01\x00", 4);
	raw(big, 256);
	check(WS_CLIENT, "5.7 256 bytes", "(bin 256 bytes)");
	raw("\x82\x7f\0\0\0\0\0\x01\0\0", 10);
	raw(big, 65536);
	check(WS_CLIENT, "5.7 64 KiB", "(bin 65536 bytes)");
}

static void
check_frames(void)
{
	static uint8_t	 big[BINARY_MAX + 1];
	unsigned int	 op;
	char		 name[64];

	memset(big, 'x', sizeof(big));
	S(0x81, "");
	check(WS_SERVER, "5.6 empty text", "(text )");
	S(0x82, "");
	check(WS_SERVER, "5.6 empty binary", "(bin )");
	S(0x01, ""); S(0x00, ""); S(0x80, "");
	check(WS_SERVER, "5.4 text of empty fragments", "(text )");
	S(0x02, ""); S(0x00, "a"); S(0x00, ""); S(0x80, "");
	check(WS_SERVER, "5.4 binary with empty fragments", "(bin a)");
	S(0x02, "a"); S(0x89, "p"); S(0x00, "b"); S(0x8a, ""); S(0x80, "c");
	check(WS_SERVER, "5.4 control frames inside a message",
	    "(bin (ping p)(pong )abc)");
	S(0x01, "a"); S(0x89, "p"); S(0x80, "b"); S(0x81, "c");
	check(WS_SERVER, "5.4 a ping inside a text",
	    "(ping p)(text ab)(text c)");
	frame(0x89, 1, 0, big, 125);
	check(WS_SERVER, "5.5 longest control frame", "(ping 125 bytes)");
	frame(0x81, 1, 2, big, 126);
	check(WS_SERVER, "5.2 shortest 16 bit length", "(text 126 bytes)");
	frame(0x82, 1, 2, big, 65535);
	check(WS_SERVER, "5.2 longest 16 bit length", "(bin 65535 bytes)");
	frame(0x81, 1, 0, "a", 1);
	frame(0x82, 1, 0, "b", 1);
	check(WS_SERVER, "5.4 two messages", "(text a)(bin b)");

	C(0x81, "a");
	check(WS_SERVER, "5.1 a client that does not mask", "!1002");
	C(0x89, "");
	check(WS_SERVER, "5.1 a control frame without mask", "!1002");
	S(0x81, "a");
	check(WS_CLIENT, "5.1 a server that masks", "!1002");
	for (op = 0; op < 16; op++) {
		(void)snprintf(name, sizeof(name), "5.2 reserved opcode %x",
		    op);
		frame(0x80 | op, 1, 0, "", 0);
		if ((op >= 3 && op <= 7) || op >= 11)
			check(WS_SERVER, name, "!1002");
		input_len = 0;
	}
	S(0xc1, "a");
	check(WS_SERVER, "5.2 RSV1", "!1002");
	S(0xa1, "a");
	check(WS_SERVER, "5.2 RSV2", "!1002");
	S(0x91, "a");
	check(WS_SERVER, "5.2 RSV3", "!1002");
	S(0xc9, "a");
	check(WS_SERVER, "5.2 RSV1 of a ping", "!1002");
	S(0x80, "a");
	check(WS_SERVER, "5.4 nothing to continue", "!1002");
	S(0x01, "a"); S(0x81, "b");
	check(WS_SERVER, "5.4 text inside a text", "!1002");
	S(0x02, "a"); S(0x02, "b");
	check(WS_SERVER, "5.4 binary inside a binary", "(bin !1002");
	S(0x81, "a"); S(0x80, "b");
	check(WS_SERVER, "5.4 continued after its end", "(text a)!1002");
	S(0x09, "a");
	check(WS_SERVER, "5.5 fragmented ping", "!1002");
	S(0x08, "");
	check(WS_SERVER, "5.5 fragmented close", "!1002");
	frame(0x89, 1, 2, big, 126);
	check(WS_SERVER, "5.5 control frame of 126 bytes", "!1002");
	frame(0x89, 1, 2, big, 3);
	check(WS_SERVER, "5.5 control frame with a 16 bit length", "!1002");
	frame(0x89, 1, 8, big, 3);
	check(WS_SERVER, "5.5 control frame with a 64 bit length", "!1002");
	frame(0x82, 1, 2, big, 125);
	check(WS_SERVER, "5.2 16 bits for 125", "!1002");
	frame(0x82, 1, 2, big, 0);
	check(WS_SERVER, "5.2 16 bits for 0", "!1002");
	frame(0x82, 1, 8, big, 65535);
	check(WS_SERVER, "5.2 64 bits for 65535", "!1002");
	frame(0x82, 1, 8, big, 1);
	check(WS_SERVER, "5.2 64 bits for 1", "!1002");
	raw("\x82\xff\x80\0\0\0\0\0\0\x01mask", 14);
	check(WS_SERVER, "5.2 highest bit of a length", "!1002");
}

static void
check_bounds(void)
{
	static uint8_t	 big[BINARY_MAX + 1];

	memset(big, 'x', sizeof(big));
	frame(0x81, 1, 2, big, TEXT_MAX);
	check(WS_SERVER, "7.4.1 longest text", "(text 1000 bytes)");
	frame(0x81, 1, 2, big, TEXT_MAX + 1);
	check(WS_SERVER, "7.4.1 text too big", "!1009");
	frame(0x82, 1, 8, big, BINARY_MAX);
	check(WS_SERVER, "7.4.1 longest binary", "(bin 70000 bytes)");
	frame(0x82, 1, 8, big, BINARY_MAX + 1);
	check(WS_SERVER, "7.4.1 binary too big", "!1009");
	raw("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" "mask", 14);
	check(WS_SERVER, "7.4.1 longest length there is", "!1009");
	frame(0x01, 1, 2, big, 600);
	frame(0x80, 1, 2, big, 401);
	check(WS_SERVER, "7.4.1 text too big in two fragments", "!1009");
	frame(0x02, 1, 0, big, 1);
	raw("\x80\xff\x7f\xff\xff\xff\xff\xff\xff\xff" "mask", 14);
	check(WS_SERVER, "7.4.1 a sum that would overflow", "(bin !1009");
}

static void
check_utf8(void)
{
	static const struct {
		const char	*text;
		int		 valid;
	} rows[] = {
		{ "\xce\xba\xe1\xbd\xb9\xcf\x83", 1 },
		{ "\xf0\x9f\x98\x80", 1 },
		{ "\xed\x9f\xbf", 1 }, { "\xee\x80\x80", 1 },
		{ "\xf4\x8f\xbf\xbf", 1 }, { "\xef\xbf\xbf", 1 },
		{ "\xc2\x80", 1 }, { "\xdf\xbf", 1 }, { "\xe0\xa0\x80", 1 },
		{ "\xf0\x90\x80\x80", 1 },
		{ "\x80", 0 }, { "\xbf", 0 }, { "\xc0\x80", 0 },
		{ "\xc1\xbf", 0 }, { "\xc2", 0 }, { "\xc2" "a", 0 },
		{ "\xe0\x9f\xbf", 0 }, { "\xe0\x80\x80", 0 },
		{ "\xed\xa0\x80", 0 }, { "\xed\xbf\xbf", 0 },
		{ "\xe1\x80", 0 }, { "\xf0\x8f\xbf\xbf", 0 },
		{ "\xf0\x80\x80\x80", 0 }, { "\xf4\x90\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 }, { "\xf0\x9f\x98", 0 },
		{ "\xf8\x88\x80\x80\x80", 0 }, { "\xfe", 0 }, { "\xff", 0 },
		{ "a\xc3" "b", 0 }
	};
	struct line	 l;
	char		 want[64];
	size_t		 i, n;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		n = strlen(rows[i].text);
		is_int(utf8_valid(rows[i].text, n), rows[i].valid,
		    "utf8: RFC 3629 4 text %zu", i);
		frame(0x81, 1, 0, rows[i].text, n);
		(void)snprintf(want, sizeof(want), "(text %s)", rows[i].text);
		check(WS_SERVER, "8.1 text message",
		    rows[i].valid ? want : "!1007");
	}
	/* A character over two frames is fine: the message counts. */
	S(0x01, "\xf0\x9f"); S(0x89, ""); S(0x80, "\x98\x80");
	check(WS_SERVER, "8.1 a character in two fragments",
	    "(ping )(text \xf0\x9f\x98\x80)");
	/* Found at the first byte that cannot be right, not at the end. */
	frame(0x01, 1, 0, "\xed\xa0", 2);
	verdict(WS_SERVER, 1, &l);
	is_str(l.text, "!1007", "ws: 8.1 bad text fails before its end");
	input_len = 0;
	S(0x82, "\xff\xfe");
	check(WS_SERVER, "5.6 binary may be any bytes", "(bin \xff\xfe)");
	is_int(utf8_cut("a\xc3\xa4", 3, 2), 1, "utf8: a cut in a character");
	is_int(utf8_cut("a\xc3\xa4", 3, 3), 3, "utf8: a cut after it");
	is_int(utf8_char("\xe2\x82\xac", 3), 3, "utf8: a character's length");
	is_int(utf8_char("\xe2\x82", 2), 0, "utf8: half a character");
}

static void
check_close(void)
{
	static const struct {
		unsigned int	 code;
		int		 valid;
	} rows[] = {
		{ 0, 0 }, { 999, 0 }, { 1000, 1 }, { 1001, 1 }, { 1002, 1 },
		{ 1003, 1 }, { 1004, 0 }, { 1005, 0 }, { 1006, 0 }, { 1007, 1 },
		{ 1008, 1 }, { 1009, 1 }, { 1010, 1 }, { 1011, 1 }, { 1015, 0 },
		{ 1016, 0 }, { 1100, 0 }, { 2000, 0 }, { 2999, 0 }, { 3000, 1 },
		{ 3999, 1 }, { 4000, 1 }, { 4999, 1 }, { 5000, 0 }, { 65535, 0 }
	};
	char	 payload[3], want[64], name[64];
	size_t	 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		payload[0] = (char)(rows[i].code >> 8);
		payload[1] = (char)rows[i].code;
		payload[2] = 'x';
		frame(0x88, 1, 0, payload, 3);
		(void)snprintf(want, sizeof(want), "(close %u x)",
		    rows[i].code);
		(void)snprintf(name, sizeof(name), "7.4.2 close code %u",
		    rows[i].code);
		check(WS_SERVER, name, rows[i].valid ? want : "!1002");
	}
	S(0x88, "");
	check(WS_SERVER, "7.1.5 close without a code", "(close 1005 )");
	S(0x88, "\x03\xe8");
	check(WS_SERVER, "5.5.1 close without a reason", "(close 1000 )");
	S(0x88, "\x03");
	check(WS_SERVER, "5.5.1 half a code", "!1002");
	S(0x88, "\x03\xe8\xff");
	check(WS_SERVER, "5.5.1 reason that is not UTF-8", "!1007");
	S(0x88, "\x03\xe8"); S(0x81, "a"); S(0xff, "a");
	check(WS_SERVER, "5.5.1 nothing counts after close", "(close 1000 )");
	S(0x02, "a"); S(0x88, ""); S(0x80, "b");
	check(WS_SERVER, "5.5.1 close inside a message", "(bin (close 1005 )");
}

/* What we write, we read; and the bytes of 5.7. */
static void
check_writer(void)
{
	static const size_t	 lens[] = { 0, 1, 125, 126, 65535, 65536 };
	static uint8_t		 data[65536];
	struct ws_reader	 r;
	struct ws_piece		 p;
	uint8_t			 head[WS_HEAD_MAX], payload[WS_CONTROL_MAX];
	char			 reason[200], want[64];
	size_t			 i, n;

	n = ws_put_head(head, WS_OP_TEXT, 1, 5, mask);
	ok(n == 6 && memcmp(head, "\x81\x85\x37\xfa\x21\x3d", 6) == 0,
	    "ws: 5.7 head of a masked text");
	memcpy(data, "Hello", 5);
	ws_mask(data, 5, mask, 0);
	ok(memcmp(data, "\x7f\x9f\x4d\x51\x58", 5) == 0, "ws: 5.7 mask");
	n = ws_put_head(head, WS_OP_BINARY, 1, 256, NULL);
	ok(n == 4 && memcmp(head, "\x82\x7e\x01\x00", 4) == 0,
	    "ws: 5.7 head of 256 bytes");
	n = ws_put_head(head, WS_OP_BINARY, 1, 65536, NULL);
	ok(n == 10 && memcmp(head, "\x82\x7f\0\0\0\0\0\x01\0\0", 10) == 0,
	    "ws: 5.7 head of 64 KiB");
	n = ws_put_head(head, WS_OP_CONT, 0, 3, NULL);
	ok(n == 2 && memcmp(head, "\x00\x03", 2) == 0,
	    "ws: 5.4 head of a fragment");
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		n = ws_put_head(head, WS_OP_BINARY, 1, lens[i], mask);
		memset(data, 'y', lens[i]);
		ws_mask(data, lens[i], mask, 0);
		raw(head, n);
		raw(data, lens[i]);
		(void)snprintf(want, sizeof(want), lens[i] > 32 ?
		    "(bin %zu bytes)" : lens[i] == 1 ? "(bin y)" : "(bin )",
		    lens[i]);
		check(WS_SERVER, "5.2 a frame of ours", want);
	}
	/* 5.3: the mask goes by the place in the payload. */
	memset(data, 0, 64);
	for (i = 0; i < 64; i += 7)
		ws_mask(data + i, i + 7 > 64 ? 64 - i : 7, mask, i);
	for (i = 0; i < 64 && data[i] == mask[i % 4]; i++)
		continue;
	is_int(i, 64, "ws: 5.3 masking in pieces of 7");
	n = ws_put_close(payload, 1000, "ok");
	ok(n == 4 && memcmp(payload, "\x03\xe8ok", 4) == 0,
	    "ws: 5.5.1 close payload");
	memset(reason, 'a', sizeof(reason));
	reason[122] = '\xc3';
	reason[123] = '\xa4';
	reason[199] = '\0';
	is_int(ws_put_close(payload, 1000, reason), 2 + 122,
	    "ws: 5.5 a long reason is cut before a character");
	is_int(ws_put_close(payload, 1000, "\xff"), 2,
	    "ws: 5.5.1 a reason that is not UTF-8 is left out");
	is_int(ws_put_close(payload, WS_CODE_NONE, "x"), 0,
	    "ws: 7.1.5 no code, no payload");
	ws_reader_init(&r, WS_CLIENT, 0, 10);
	is_int(ws_read(&r, memcpy(data, "\x81\x01" "a", 3), 3, &p), WS_FAIL,
	    "ws: a type that is not wanted");
	is_int(p.code, 1003, "ws: 7.4.1 is 1003");
	ws_reader_clear(&r);
}

static void
check_handshake(void)
{
	static const char *const known[] = { "sandbox.v1", "other", NULL };
	static const char	 key[] = "dGhlIHNhbXBsZSBub25jZQ==";
	static const struct {
		const char	*version, *key, *protocols;
		int		 want;
		const char	*chosen;
	} rows[] = {
		{ "13", key, NULL, 0, NULL },
		{ "13", key, "sandbox.v1", 0, "sandbox.v1" },
		{ "13", key, "x, other ,sandbox.v1", 0, "other" },
		{ "13", key, "x,y", -E_BAD_HEADER, NULL },
		{ "13", key, "", -E_BAD_HEADER, NULL },
		{ "13", key, "SANDBOX.V1", -E_BAD_HEADER, NULL },
		{ "13", key, "sandbox.v1x", -E_BAD_HEADER, NULL },
		{ NULL, key, NULL, -E_UPGRADE, NULL },
		{ "8", key, NULL, -E_UPGRADE, NULL },
		{ "013", key, NULL, -E_UPGRADE, NULL },
		{ "13, 8", key, NULL, -E_UPGRADE, NULL },
		{ "13", NULL, NULL, -E_BAD_HEADER, NULL },
		{ "13", "", NULL, -E_BAD_HEADER, NULL },
		{ "13", "dGhlIHNhbXBsZSBub25jZQ=", NULL, -E_BAD_HEADER, NULL },
		{ "13", "dGhlIHNhbXBsZSBub25jZWFi", NULL, -E_BAD_HEADER, NULL },
		{ "13", "dGhlIHNhbXBsZSBub25jZWE=", NULL, -E_BAD_HEADER, NULL },
		{ "13", "dGhlIHNhbXBsZSBub25jZR==", NULL, -E_BAD_HEADER, NULL },
		{ "13", "dGhlIHNhbXBsZSBub25jZ!==", NULL, -E_BAD_HEADER, NULL }
	};
	struct ws_offer	 offer;
	const char	*chosen;
	char		 accept[WS_ACCEPT_LEN + 1], k1[WS_KEY_LEN + 1],
			 k2[WS_KEY_LEN + 1];
	uint8_t		 bytes[18];
	size_t		 i, n;
	int		 ret;

	ws_accept_for_key(key, accept);
	is_str(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
	    "ws: 1.3 accept for the RFC's key");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		offer = (struct ws_offer){ rows[i].version, rows[i].key,
		    rows[i].protocols };
		chosen = NULL;
		ret = ws_check_offer(&offer, known, &chosen, accept);
		is_int(ret, rows[i].want, "ws: 4.2.1 offer %zu", i);
		is_str(chosen, rows[i].chosen, "ws: 4.2.2 its protocol");
	}
	ws_new_key(k1);
	ws_new_key(k2);
	ok(strlen(k1) == WS_KEY_LEN && base64_decode(bytes, &n, k1, WS_KEY_LEN)
	    == 0 && n == 16, "ws: 4.1 a key of ours has 16 bytes");
	ok(strcmp(k1, k2) != 0, "ws: 4.1 keys differ");
}

int
main(void)
{
	check_examples();
	check_frames();
	check_bounds();
	check_utf8();
	check_close();
	check_writer();
	check_handshake();
	return done_testing();
}
