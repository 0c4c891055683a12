/* SPDX-License-Identifier: ISC */
/* objs: libs: -lbsd */
/*
 * Ids, names and tags.
 */
#include "id.h"
#include "test.h"

TEST_PLAN_AUTO;

static void
test_ids(void)
{
	static const char	*const bad[] = {
		"", "sb-", "sb", "sb-aaaaaaaaaaaaaaa", "sb-aaaaaaaaaaaaaaaaa",
		"SB-aaaaaaaaaaaaaaaa", "sb_aaaaaaaaaaaaaaaa",
		"sb-aaaaaaaaaaaaaaaA", "sb-aaaaaaaaaaaaaaa1",
		"sb-aaaaaaaaaaaaaaa8", "sb-aaaaaaaaaaaaaaa0",
		"sb-aaaaaaaaaaaaaaa/", "sb-../../../../../",
		"sb-aaaaaaaaaaaaaaa ",
		" sb-aaaaaaaaaaaaaaaa", "sb-aaaaaaaaaaaaaaa\n",
		"sb-aaaaaaaaaaaaaa\xc3\xa9", "aaaaaaaaaaaaaaaaaaa"
	};
	enum { MANY = 20000 };
	static char		 ids[MANY][SBX_ID_LEN + 1];
	int			 seen[256] = { 0 }, i, j;
	int			 wrong = 0, letters = 0;

	ok(id_valid("sb-abcdefghijklmnop"), "id: letters");
	ok(id_valid("sb-qrstuvwxyz234567"), "id: the rest of the alphabet");
	for (i = 0; i < (int)(sizeof(bad) / sizeof(bad[0])); i++)
		ok(!id_valid(bad[i]), "id: \"%d\" is refused", i);
	for (i = 0; i < MANY; i++) {
		id_new(ids[i]);
		wrong += !id_valid(ids[i]) || strlen(ids[i]) != SBX_ID_LEN;
		for (j = 3; j < SBX_ID_LEN; j++)
			seen[(unsigned char)ids[i][j]]++;
	}
	is_int(wrong, 0, "id: %d fresh ones are valid", MANY);
	qsort(ids, MANY, sizeof(ids[0]),
	    (int (*)(const void *, const void *))(void (*)(void))strcmp);
	for (i = 1, wrong = 0; i < MANY; i++)
		wrong += strcmp(ids[i - 1], ids[i]) == 0;
	is_int(wrong, 0, "id: no two are the same");
	/* Each letter 10,000 times, standard deviation 98. */
	for (i = 0, wrong = 0; i < 256; i++) {
		letters += seen[i] != 0;
		wrong += seen[i] != 0 && (seen[i] < 9400 || seen[i] > 10600);
	}
	is_int(letters, 32, "id: all of the alphabet is used");
	is_int(wrong, 0, "id: evenly");
}

static void
test_names(void)
{
	static const char	*const good[] = {
		"a", "0", "A", "seed", "debian-12.5_x", "a..b", "9-"
	};
	static const char	*const bad[] = {
		"", ".", "..", "-a", "_a", ".a", "a/b", "a b", "a\n", "a:b",
		"a\\", "\xc3\xa9", "a\x7f", "a%", "a*"
	};
	char			 text[SBX_NAME_MAX + 2];
	size_t			 i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(name_valid(good[i]), "name: %s", good[i]);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!name_valid(bad[i]), "name: bad one %zu is refused", i);
	memset(text, 'x', sizeof(text));
	text[SBX_NAME_MAX] = '\0';
	ok(name_valid(text), "name: %d bytes", SBX_NAME_MAX);
	text[SBX_NAME_MAX] = 'x';
	text[SBX_NAME_MAX + 1] = '\0';
	ok(!name_valid(text), "name: %d bytes are refused", SBX_NAME_MAX + 1);
}

static void
test_tags(void)
{
	char	 a[SBX_TAG_LEN + 1], b[SBX_TAG_LEN + 1];

	ok(tag_valid("abcd") && tag_valid("2a7z"), "tag: good ones");
	ok(!tag_valid("") && !tag_valid("abc") && !tag_valid("abcde") &&
	    !tag_valid("abc1") && !tag_valid("ABCD") && !tag_valid("ab/d"),
	    "tag: bad ones");
	/* FNV-1a of "": the offset basis, cbf29ce484222325. */
	tag_from_path("", a);
	/* cbf29ce4 ^ 84222325 = 4fd0bfc1: from below 1, 30, 15, 1. */
	is_str(a, "b6pb", "tag: of nothing, by hand");
	/* Its published value for "a" is af63dc4c8601ec8c. */
	tag_from_path("a", a);
	is_str(a, "agme", "tag: of a letter, by hand");
	tag_from_path("/var/lib/sandboxd", a);
	tag_from_path("/var/lib/sandboxd", b);
	is_str(a, b, "tag: of a path stays the same");
	ok(tag_valid(a), "tag: of a path is valid");
	tag_from_path("/var/lib/sandboxe", b);
	ok(strcmp(a, b) != 0, "tag: of another path differs");
}

int
main(void)
{
	test_ids();
	test_names();
	test_tags();
	return done_testing();
}
