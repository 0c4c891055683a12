/* SPDX-License-Identifier: ISC */
/* libs: -ljson-c -lbsd */
/*
 * The JSON parser against texts (json_corpus.h), the typed getters, the writer,
 * and base64.  Section numbers are RFC 8259's unless another RFC is named.
 */
#include <json-c/json.h>

#include "base64.h"
#include "json.h"
#include "json_corpus.h"
#include "test.h"

TEST_PLAN_AUTO;

static struct json_error	 err;

/* Parses an exact copy, so that reading past its end would be seen. */
static int
parse(const char *text, size_t len, size_t max, struct json_object **v)
{
	char	*copy;
	int	 ret;

	copy = malloc(len > 0 ? len : 1);
	memcpy(copy, text, len);
	ret = json_parse(copy, len, max, v, &err);
	free(copy);
	return ret;
}

static void
check_corpus(void)
{
	const struct json_row	*row;
	struct json_object	*v;
	struct json_out		 out = { .max = 0 };
	size_t			 i;
	int			 ret;

	for (i = 0; i < sizeof(json_rows) / sizeof(json_rows[0]); i++) {
		row = &json_rows[i];
		v = NULL;
		ret = parse(row->text, row->len, 1000, &v);
		if (row->want == NULL) {
			ok(ret == -E_BAD_JSON && err.detail[0] != '\0',
			    "json: %s text %zu is refused (%s)", row->rule, i,
			    ret == 0 ? "it was not" : err.detail);
		} else if (is_int(ret, 0, "json: %s text %zu %s", row->rule, i,
		    err.detail)) {
			json_out_reset(&out);
			json_put_value(&out, v);
			is_int(json_out_end(&out), 0, "json: is written");
			is_str(out.text, row->want, "json: %s value %zu",
			    row->rule, i);
		}
		if (ret == 0)
			json_object_put(v);
	}
	json_out_free(&out);
}

static void
check_details(void)
{
	static const struct {
		const char	*text, *detail;
	} rows[] = {
		{ "{\"a\":1,\"a\":2}",
		    "byte 10: member \"a\" is there twice" },
		{ "{\"a\" 1}", "byte 5: no colon after a member name" },
		{ "[1,2", "byte 4: no comma or end after a value" },
		{ "[1,", "byte 3: the text ends where a value is due" }
	};
	static char		 many[40000];
	struct json_object	*v;
	size_t			 i, n;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)parse(rows[i].text, strlen(rows[i].text), 100, &v);
		is_str(err.detail, rows[i].detail, "json: detail of %s",
		    rows[i].text);
	}
	is_int(parse("[1,2,3]", 7, 4, &v), 0, "json: 9 four values of four");
	json_object_put(v);
	is_int(parse("[1,2,3]", 7, 3, &v), -E_BAD_JSON,
	    "json: 9 four values of three");
	is_int(parse("{\"a\":1}", 7, 2, &v), -E_BAD_JSON,
	    "json: 9 a key counts, too");
	many[0] = '{';
	for (i = 0, n = 1; i < 2000; i++)
		n += (size_t)snprintf(many + n, sizeof(many) - n,
		    "%s\"k%zu\":%zu", i == 0 ? "" : ",", i, i);
	many[n++] = '}';
	is_int(parse(many, n, JSON_VALUES_MAX, &v), 0, "json: 2000 members");
	is_int(json_object_object_length(v), 2000, "json: are all there");
	json_object_put(v);
	n--;
	n += (size_t)snprintf(many + n, sizeof(many) - n, ",\"k1234\":0}");
	is_int(parse(many, n, JSON_VALUES_MAX, &v), -E_BAD_JSON,
	    "json: and one of them twice");
	ok(strstr(err.detail, "\"k1234\" is there twice") != NULL,
	    "json: is named");
}

/* Opens an object from a text of the test's own. */
static struct json_object *
open_text(struct json_reader *r, const char *text)
{
	struct json_object	*v = NULL;

	if (json_parse(text, strlen(text), 1000, &v, &err) != 0) {
		ok(0, "json: the test's own text: %s", text);
		exit(1);
	}
	json_open(r, v, &err);
	return v;
}

static void
check_numbers(void)
{
	static const struct {
		const char	*text;
		int		 want;
		uint32_t	 value;
		const char	*detail;
	} rows[] = {
		{ "{\"n\":64}", 0, 64, "" }, { "{\"n\":128}", 0, 128, "" },
		{ "{}", 0, 7, "" },
		{ "{\"n\":63}", -E_OUT_OF_RANGE, 7,
		    "member \"n\": must be from 64 to 128" },
		{ "{\"n\":129}", -E_OUT_OF_RANGE, 7,
		    "member \"n\": must be from 64 to 128" },
		{ "{\"n\":-64}", -E_OUT_OF_RANGE, 7,
		    "member \"n\": must be from 64 to 128" },
		{ "{\"n\":4294967360}", -E_OUT_OF_RANGE, 7,
		    "member \"n\": must be from 64 to 128" },
		{ "{\"n\":18446744073709551615}", -E_OUT_OF_RANGE, 7,
		    "member \"n\": must be from 64 to 128" },
		{ "{\"n\":64.0}", -E_BAD_MEMBER, 7,
		    "member \"n\": must be a whole number" },
		{ "{\"n\":1e2}", -E_BAD_MEMBER, 7,
		    "member \"n\": must be a whole number" },
		{ "{\"n\":\"64\"}", -E_BAD_MEMBER, 7,
		    "member \"n\": must be a whole number" },
		{ "{\"n\":null}", -E_BAD_MEMBER, 7,
		    "member \"n\": must be a whole number" },
		{ "{\"n\":true}", -E_BAD_MEMBER, 7,
		    "member \"n\": must be a whole number" },
		{ "{\"n\":[64]}", -E_BAD_MEMBER, 7,
		    "member \"n\": must be a whole number" },
		{ "{\"N\":64}", -E_UNKNOWN_MEMBER, 7,
		    "member \"N\": no such member here" }
	};
	struct json_reader	 r;
	struct json_object	*v;
	uint64_t		 u = 0;
	int64_t			 i64 = 0;
	uint32_t		 n;
	size_t			 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = open_text(&r, rows[i].text);
		n = 7;
		(void)json_take_u32(&r, "n", JSON_OPTIONAL, 64, 128, &n);
		is_int(json_end(&r), rows[i].want, "json: u32 of %s",
		    rows[i].text);
		is_int(n, rows[i].value, "json: its value");
		is_str(err.detail, rows[i].detail, "json: its detail");
		json_object_put(v);
	}
	v = open_text(&r, "{\"u\":18446744073709551615,"
	    "\"i\":-9223372036854775808}");
	(void)json_take_u64(&r, "u", JSON_REQUIRED, 0, UINT64_MAX, &u);
	(void)json_take_i64(&r, "i", JSON_REQUIRED, INT64_MIN, 0, &i64);
	ok(json_end(&r) == 0 && u == UINT64_MAX && i64 == INT64_MIN,
	    "json: 6 the ends of the range");
	json_object_put(v);
	v = open_text(&r, "{\"i\":9223372036854775808}");
	is_int(json_take_i64(&r, "i", JSON_REQUIRED, INT64_MIN, INT64_MAX,
	    &i64), -E_OUT_OF_RANGE, "json: 2^63 is no i64");
	json_object_put(v);
	v = open_text(&r, "{}");
	is_int(json_take_u32(&r, "n", JSON_REQUIRED, 0, 1, &n), -E_BAD_MEMBER,
	    "json: a member that is missing");
	is_str(err.detail, "member \"n\": missing", "json: is named");
	is_int(json_end(&r), -E_BAD_MEMBER, "json: the first fault stays");
	json_object_put(v);
}

static void
check_strings(void)
{
	static const char *const words[] = { "delete", "keep" };
	struct json_reader	 r;
	struct json_object	*v;
	const char		*text = NULL;
	char			 buf[4] = "-";
	unsigned int		 word = 9;
	size_t			 len = 0;
	int			 flag = 9;

	v = open_text(&r, "{\"s\":\"abc\",\"t\":\"\",\"w\":\"keep\","
	    "\"b\":true}");
	is_int(json_take_string(&r, "s", JSON_REQUIRED, 1, buf, sizeof(buf)), 0,
	    "json: a string that just fits");
	is_str(buf, "abc", "json: its value");
	is_int(json_take_text(&r, "t", JSON_REQUIRED, 0, 9, &text, &len), 0,
	    "json: an empty text");
	ok(text != NULL && *text == '\0' && len == 0, "json: its value");
	is_int(json_take_word(&r, "w", JSON_REQUIRED, words, 2, &word), 0,
	    "json: a word");
	is_int(word, 1, "json: its index");
	is_int(json_take_bool(&r, "b", JSON_REQUIRED, &flag), 0,
	    "json: a bool");
	is_int(flag, 1, "json: its value");
	ok(json_has(&r, "s") && !json_has(&r, "x"), "json: has");
	is_int(json_end(&r), 0, "json: all taken");
	json_object_put(v);

	v = open_text(&r, "{\"s\":\"abcd\"}");
	is_int(json_take_string(&r, "s", JSON_REQUIRED, 1, buf, sizeof(buf)),
	    -E_BAD_MEMBER, "json: a string too long");
	is_str(err.detail, "member \"s\": must have 1 to 3 bytes",
	    "json: its detail");
	is_str(buf, "abc", "json: nothing was written");
	json_object_put(v);
	v = open_text(&r, "{\"s\":\"\"}");
	is_int(json_take_string(&r, "s", JSON_REQUIRED, 1, buf, sizeof(buf)),
	    -E_BAD_MEMBER, "json: a string too short");
	json_object_put(v);
	v = open_text(&r, "{\"s\":1}");
	is_int(json_take_string(&r, "s", JSON_REQUIRED, 0, buf, sizeof(buf)),
	    -E_BAD_MEMBER, "json: a number for a string");
	json_object_put(v);
	v = open_text(&r, "{\"w\":\"kee\"}");
	is_int(json_take_word(&r, "w", JSON_OPTIONAL, words, 2, &word),
	    -E_BAD_MEMBER, "json: no such word");
	is_str(err.detail, "member \"w\": must be \"delete\" or \"keep\"",
	    "json: its detail");
	json_object_put(v);
	v = open_text(&r, "{\"b\":1}");
	is_int(json_take_bool(&r, "b", JSON_OPTIONAL, &flag), -E_BAD_MEMBER,
	    "json: 1 is not true");
	json_object_put(v);
	(void)json_parse("[]", 2, 9, &v, &err);
	json_open(&r, v, &err);
	is_int(json_end(&r), -E_BAD_MEMBER, "json: an array is no object");
	json_object_put(v);
	json_open(&r, NULL, &err);
	is_int(json_take_u32(&r, "n", JSON_OPTIONAL, 0, 1, &word),
	    -E_BAD_MEMBER, "json: null is no object");
}

static void
check_nested(void)
{
	struct json_reader	 r, sub, element;
	struct json_object	*v, *array = NULL;
	struct json_list	 list;
	struct json_map		 map;
	const char		*key, *value;
	uint32_t		 n = 0;
	size_t			 count = 0;
	int			 there;

	v = open_text(&r, "{\"argv\":[\"a\",\"\"],\"env\":{\"X\":\"1\","
	    "\"A\":\"2\"},\"o\":{\"n\":5},\"l\":[{\"n\":1},{\"n\":2}]}");
	is_int(json_take_list(&r, "argv", JSON_REQUIRED, 1, 2, 1, &list), 0,
	    "json: a list");
	ok(list.n == 2 && strcmp(json_list_get(&list, 0, NULL), "a") == 0,
	    "json: its elements");
	is_int(json_take_map(&r, "env", JSON_OPTIONAL, 2, 1, 1, &map), 0,
	    "json: a map");
	ok(json_map_next(&map, &key, &value) == 1 && strcmp(key, "X") == 0 &&
	    strcmp(value, "1") == 0, "json: its first pair");
	ok(json_map_next(&map, &key, &value) == 1 && strcmp(key, "A") == 0 &&
	    strcmp(value, "2") == 0, "json: its second pair");
	ok(json_map_next(&map, &key, &value) == 0, "json: its end");
	is_int(json_take_object(&r, "o", JSON_OPTIONAL, &sub, &there), 0,
	    "json: an object");
	(void)json_take_u32(&sub, "n", JSON_REQUIRED, 0, 9, &n);
	is_int(json_end(&sub), 0, "json: all of it taken");
	is_int(n, 5, "json: its member");
	is_int(json_take_array(&r, "l", JSON_OPTIONAL, 2, &array, &count), 0,
	    "json: an array");
	is_int(json_array_open(&r, "l", array, 1, &element), 0,
	    "json: its second element");
	is_int(json_take_u32(&element, "n", JSON_REQUIRED, 0, 1, &n),
	    -E_OUT_OF_RANGE, "json: with a fault");
	is_str(err.detail, "member \"l[1].n\": must be from 0 to 1",
	    "json: is named by its path");
	is_int(json_end(&r), -E_OUT_OF_RANGE, "json: and reaches the outside");
	json_object_put(v);
}

static void
check_nested_faults(void)
{
	static const struct {
		const char	*text, *detail;
	} rows[] = {
		{ "{\"argv\":[]}",
		    "member \"argv\": must have at least 1 elements" },
		{ "{\"argv\":[\"a\",\"b\",\"c\"]}",
		    "member \"argv\": must have at most 2 elements" },
		{ "{\"argv\":[\"a\",1]}",
		    "member \"argv[1]\": must be a string" },
		{ "{\"argv\":[null]}", "member \"argv[0]\": must be a string" },
		{ "{\"argv\":[\"abcd\"]}",
		    "member \"argv[0]\": must have at most 3 bytes" },
		{ "{\"argv\":\"a\"}", "member \"argv\": must be an array" },
		{ "{\"argv\":{}}", "member \"argv\": must be an array" },
		{ "{\"argv\":[\"a\"],\"env\":[]}",
		    "member \"env\": must be an object" },
		{ "{\"argv\":[\"a\"],\"env\":{\"A\":1}}",
		    "member \"env.A\": must be a string" },
		{ "{\"argv\":[\"a\"],\"env\":{\"A\":\"xxxx\"}}",
		    "member \"env.A\": must have at most 3 bytes" },
		{ "{\"argv\":[\"a\"],\"env\":{\"AAAA\":\"\"}}",
		    "member \"env.AAAA\": the name must have at most 3 bytes" },
		{ "{\"argv\":[\"a\"],"
		    "\"env\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}}",
		    "member \"env\": must have at most 2 members" },
		{ "{\"argv\":[\"a\"],\"typo\":1}",
		    "member \"typo\": no such member here" }
	};
	struct json_reader	 r;
	struct json_object	*v;
	struct json_list	 list;
	struct json_map		 map;
	char			 text[400];
	size_t			 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = open_text(&r, rows[i].text);
		(void)json_take_list(&r, "argv", JSON_REQUIRED, 1, 2, 3, &list);
		(void)json_take_map(&r, "env", JSON_OPTIONAL, 2, 3, 3, &map);
		ok(json_end(&r) < 0, "json: %s is refused", rows[i].text);
		is_str(err.detail, rows[i].detail, "json: its detail");
		json_object_put(v);
	}
	(void)snprintf(text, sizeof(text), "{\"%0300d\":1}", 0);
	v = open_text(&r, text);
	ok(json_end(&r) == -E_UNKNOWN_MEMBER && strlen(err.detail) < 120,
	    "json: a long name is cut");
	json_object_put(v);
	v = open_text(&r, "{}");
	ok(json_refuse(&r, "x", E_NO_TEMPLATE, "%s", "why") == -E_NO_TEMPLATE &&
	    strcmp(err.detail, "member \"x\": why") == 0,
	    "json: a fault that the caller found");
	json_object_put(v);
}

static void
check_doubles(void)
{
	static const struct {
		const char	*text;
		int		 want;
		double		 value;
	} rows[] = {
		{ "{\"d\":0.5}", 0, 0.5 }, { "{\"d\":10}", 0, 10 },
		{ "{\"d\":1e1}", 0, 10 }, { "{}", 0, 7 },
		{ "{\"d\":0.4999}", -E_OUT_OF_RANGE, 7 },
		{ "{\"d\":10.001}", -E_OUT_OF_RANGE, 7 },
		{ "{\"d\":-1}", -E_OUT_OF_RANGE, 7 },
		{ "{\"d\":18446744073709551615}", -E_OUT_OF_RANGE, 7 },
		{ "{\"d\":\"1\"}", -E_BAD_MEMBER, 7 },
		{ "{\"d\":null}", -E_BAD_MEMBER, 7 },
		{ "{\"d\":true}", -E_BAD_MEMBER, 7 }
	};
	struct json_reader	 r;
	struct json_object	*v;
	double			 d;
	size_t			 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = open_text(&r, rows[i].text);
		d = 7;
		(void)json_take_double(&r, "d", JSON_OPTIONAL, 0.5, 10, &d);
		is_int(json_end(&r), rows[i].want, "json: double of %s",
		    rows[i].text);
		ok(d >= rows[i].value && d <= rows[i].value,
		    "json: its value");
		json_object_put(v);
	}
}

/* The ways out of each getter that the cases above do not take. */
static void
check_wrong_types(void)
{
	struct json_reader	 r, sub;
	struct json_object	*v, *array = NULL;
	const char		*text = NULL;
	char			 name[8];
	uint32_t		 u = 0;
	int64_t			 i = 0;
	size_t			 n = 0, k;
	int			 there = 1;

	v = open_text(&r, "{\"x\":\"\",\"a\":[1]}");
	is_int(json_take_i64(&r, "x", JSON_REQUIRED, 0, 1, &i), -E_BAD_MEMBER,
	    "json: a string is no i64");
	is_int(json_take_i64(&r, "x", JSON_REQUIRED, 0, 1, &i), -E_BAD_MEMBER,
	    "json: after a fault nothing is taken: i64");
	is_int(json_take_text(&r, "x", JSON_REQUIRED, 0, 1, &text, NULL),
	    -E_BAD_MEMBER, "json: nor a text");
	is_int(json_take_object(&r, "x", JSON_REQUIRED, &sub, &there),
	    -E_BAD_MEMBER, "json: nor an object");
	ok(text == NULL && there == 0, "json: outputs are as they were");
	is_int(json_array_open(&r, "a", array, 0, &sub), -E_BAD_MEMBER,
	    "json: nor an element");
	is_int(json_refuse(&r, "x", E_INTERNAL, "later"), -E_BAD_MEMBER,
	    "json: the first fault stays, too");
	json_object_put(v);

	v = open_text(&r, "{\"x\":\"\",\"a\":[1]}");
	(void)json_take_array(&r, "a", JSON_REQUIRED, 1, &array, &n);
	is_int(json_array_open(&r, "a", array, 0, &sub), -E_BAD_MEMBER,
	    "json: an element that is no object");
	is_str(err.detail, "member \"a[0]\": must be an object",
	    "json: is named");
	json_object_put(v);
	v = open_text(&r, "{\"x\":\"\"}");
	is_int(json_take_object(&r, "x", JSON_REQUIRED, &sub, &there),
	    -E_BAD_MEMBER, "json: a string is no object");
	json_object_put(v);
	v = open_text(&r, "{\"i\":5}");
	is_int(json_take_i64(&r, "i", JSON_REQUIRED, -4, 4, &i),
	    -E_OUT_OF_RANGE, "json: i64 out of its range");
	is_int(json_take_i64(&r, "y", JSON_OPTIONAL, -4, 4, &i),
	    -E_OUT_OF_RANGE, "json: stays");
	json_object_put(v);
	v = open_text(&r, "{}");
	ok(json_take_object(&r, "o", JSON_OPTIONAL, &sub, &there) == 0 &&
	    !there && json_take_u32(&sub, "n", JSON_OPTIONAL, 1, 2, &u) == 0 &&
	    !json_has(&sub, "n") && json_end(&sub) == 0 && json_end(&r) == 0,
	    "json: an object that is not there has nothing");
	for (k = 0; k <= JSON_TAKEN_MAX; k++)
		(void)json_take_u32(&r, "n", JSON_OPTIONAL, 0, 1, &u);
	is_int(json_end(&r), -E_INTERNAL, "json: more members than allowed");
	json_object_put(v);
	v = open_text(&r, "{\"x\":1}");
	is_int(json_refuse(&r, "x", E_BAD_MEMBER, "%0600d", 0), -E_BAD_MEMBER,
	    "json: a very long reason");
	ok(strlen(err.detail) < SBX_DETAIL_MAX && strlen(err.detail) > 200,
	    "json: is cut");
	is_int(json_take_string(&r, "x", JSON_REQUIRED, 0, name, 8),
	    -E_BAD_MEMBER, "json: and stays");
	json_object_put(v);
}

static void
check_writer(void)
{
	struct json_out	 o = { .max = 0 };
	char		 big[3000];
	int		 i;

	json_put_object(&o);
	json_put_key_string(&o, "s", "a\"\\\n\x01/\xc3\xa4");
	json_put_key_u64(&o, "u", UINT64_MAX);
	json_put_key(&o, "i");
	json_put_i64(&o, INT64_MIN);
	json_put_key_bool(&o, "b", 1);
	json_put_key(&o, "a");
	json_put_array(&o);
	json_put_null(&o);
	json_put_bool(&o, 0);
	json_put_array(&o);
	json_put_array_end(&o);
	json_put_object(&o);
	json_put_object_end(&o);
	json_put_array_end(&o);
	json_put_key(&o, "x");
	json_put_lossy(&o, "a\xff\0b\xe2\x82", 6);
	json_put_key(&o, "y");
	json_put_base64(&o, "\xff\xfe\xfd\xfc", 4);
	json_put_object_end(&o);
	is_int(json_out_end(&o), 0, "json: a text is written");
	is_str(o.text, "{\"s\":\"a\\\"\\\\\\n\\u0001/\xc3\xa4\","
	    "\"u\":18446744073709551615,\"i\":-9223372036854775808,\"b\":true,"
	    "\"a\":[null,false,[],{}],"
	    "\"x\":\"a\xef\xbf\xbd\\u0000b\xef\xbf\xbd\xef\xbf\xbd\","
	    "\"y\":\"//79/A==\"}", "json: 7 its bytes");
	json_out_reset(&o);
	json_put_text(&o, "a\xff", 2);
	is_int(json_out_end(&o), -E_INTERNAL, "json: 8.1 no bad UTF-8 leaves");
	json_out_reset(&o);
	json_put_object(&o);
	is_int(json_out_end(&o), -E_INTERNAL, "json: an object left open");
	json_out_reset(&o);
	json_put_array_end(&o);
	is_int(json_out_end(&o), -E_INTERNAL, "json: so is an end too many");
	json_out_reset(&o);
	is_int(json_out_end(&o), -E_INTERNAL, "json: so is no value");
	json_out_reset(&o);
	memset(big, 'b', sizeof(big));
	json_put_array(&o);
	for (i = 0; i < 100; i++)
		json_put_text(&o, big, sizeof(big));
	json_put_array_end(&o);
	ok(json_out_end(&o) == 0 && o.len == 100 * 3002 + 99 + 2 &&
	    o.text[o.len] == '\0', "json: a text of 300 kB");
	json_out_free(&o);
	o.max = 10;
	json_put_text(&o, "12345678", 8);
	is_int(json_out_end(&o), 0, "json: exactly at the bound");
	json_out_reset(&o);
	json_put_text(&o, "123456789", 9);
	is_int(json_out_end(&o), -E_TOO_LARGE, "json: one byte over it");
	json_out_free(&o);
}

/* RFC 4648, section 10, and what section 3 refuses. */
static void
check_base64(void)
{
	static const char *const plain[] =
	    { "", "f", "fo", "foo", "foob", "fooba", "foobar" };
	static const char *const coded[] = { "", "Zg==", "Zm8=", "Zm9v",
	    "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
	static const char *const bad[] = { "Z", "Zg", "Zg=", "Zg===", "=",
	    "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm 8=", "Zm8=\n", "Z===",
	    "Zm-_", "Zm9v=", "\xc3\xa4==", "Zm=v", "=Zm9" };
	char	 text[16], bytes[16];
	size_t	 i, n;

	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		n = base64_encode(text, plain[i], strlen(plain[i]));
		ok(n == BASE64_LEN(strlen(plain[i])) &&
		    strcmp(text, coded[i]) == 0,
		    "base64: RFC 4648 10 \"%s\"", plain[i]);
		ok(base64_decode(bytes, &n, coded[i], strlen(coded[i])) == 0 &&
		    n == strlen(plain[i]) && memcmp(bytes, plain[i], n) == 0,
		    "base64: RFC 4648 10 back from \"%s\"", coded[i]);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_int(base64_decode(bytes, &n, bad[i], strlen(bad[i])), -1,
		    "base64: RFC 4648 3 bad text %zu", i);
	(void)strcpy(text, "AP+/");
	ok(base64_decode(text, &n, text, 4) == 0 && n == 3 &&
	    memcmp(text, "\0\xff\xbf", 3) == 0, "base64: decoded in place");
}

int
main(void)
{
	check_corpus();
	check_details();
	check_numbers();
	check_doubles();
	check_strings();
	check_nested();
	check_nested_faults();
	check_wrong_types();
	check_writer();
	check_base64();
	return done_testing();
}
