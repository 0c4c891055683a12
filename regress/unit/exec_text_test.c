/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/exec_text.o */
/*
 * Output as text: characters are never split, bytes that are none come out as
 * bytes, and nothing is lost.  Sequences are from the Unicode standard, table 3-7.
 */
#include "test.h"
#include "exec_text.h"

TEST_PLAN_AUTO;

/* Feeds a text in pieces of n bytes; what comes out goes to `out`. */
static size_t
feed_all(const char *text, size_t len, size_t n, char *out, int *bytes)
{
	struct exec_text	 t = { { 0 }, 0 };
	struct exec_text_piece	 p;
	size_t			 i, k, total = 0;

	*bytes = 0;
	for (i = 0; i < len; i += n) {
		k = len - i < n ? len - i : n;
		exec_text_feed(&t, (const uint8_t *)text + i, k, &p);
		memcpy(out + total, p.head, p.head_len);
		total += p.head_len;
		if (p.len != 0)
			memcpy(out + total, p.data, p.len);
		total += p.len;
		*bytes += p.bytes;
		if (!p.bytes && (exec_text_length(p.head, p.head_len, 0) !=
		    p.head_len || exec_text_length(p.data, p.len, 0) != p.len))
			*bytes = -1000;
	}
	memcpy(out + total, t.kept, t.nkept);
	return total + t.nkept;
}

static void
pieces(const char *name, const char *text, size_t len, int is_text)
{
	char	 out[256];
	size_t	 n;
	int	 bytes, good = 1;

	for (n = 1; n <= len; n++) {
		if (feed_all(text, len, n, out, &bytes) != len ||
		    memcmp(out, text, len) != 0 ||
		    (is_text ? bytes != 0 : bytes <= 0))
			good = 0;
	}
	ok(good, "feed: %s in pieces of any size -> %s, nothing lost", name,
	    is_text ? "text" : "bytes");
}
#define PIECES(name, text, is_text)	pieces(name, text, sizeof(text) - 1, is_text)

static void
length(const char *text, size_t len, int cut, size_t want, const char *name)
{
	is_int(exec_text_length((const uint8_t *)text, len, cut), want,
	    "length: %s", name);
}
#define LENGTH(text, cut, want, name)	length(text, sizeof(text) - 1, cut, want, name)

int
main(void)
{
	PIECES("ASCII", "hello, world\n", 1);
	PIECES("two bytes", "\xc3\xa9\xc3\xa9z\xc3\xa9", 1);
	PIECES("three bytes", "a\xe4\xb8\x96\xe4\xb8\x96", 1);
	PIECES("four bytes", "\xf0\x9f\x98\x80\xf0\x9f\x98\x80!", 1);
	PIECES("mixed", "\xf0\x9f\x98\x80\xc3\xa9\xe4\xb8\x96x\x00y", 1);
	PIECES("a lone continuation", "ab\x80xy", 0);
	PIECES("never a byte of UTF-8", "ab\xff\xfexy", 0);
	PIECES("an overlong slash", "\xc0\xaf", 0);
	PIECES("a surrogate", "\xed\xa0\x80", 0);
	PIECES("above U+10FFFF", "\xf4\x90\x80\x80", 0);
	PIECES("cut by ASCII", "\xe4\xb8xyz", 0);
	PIECES("text, bytes, text", "\xc3\xa9\xff\xc3\xa9", 0);

	LENGTH("abc", 0, 3, "text -> all");
	LENGTH("ab\xc3\xa9", 1, 4, "a whole character at the cut -> all");
	LENGTH("ab\xc3", 1, 2, "one of two bytes at the cut -> without it");
	LENGTH("ab\xe4\xb8", 1, 2, "two of three -> without them");
	LENGTH("ab\xf0\x9f\x98", 1, 2, "three of four -> without them");
	LENGTH("ab\xc3", 0, 0, "half a character at the true end -> no text");
	LENGTH("ab\x80", 1, 0, "a wrong byte at the cut -> no text");
	LENGTH("\xff" "abc", 1, 0, "a wrong byte elsewhere -> no text");
	return done_testing();
}
