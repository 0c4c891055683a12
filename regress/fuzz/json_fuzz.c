/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/problem.o libs: -ljson-c options: -max_len=4096 */
/*
 * Fuzzes the JSON parser, getters and writer, base64 and problem replies.  What
 * is parsed is written and parsed again: the same value must come back.  Any
 * bytes put into a string must come out as JSON.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base64.h"
#include "json.h"
#include "problem.h"
#include "utf8.h"

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
must(int cond)
{
	if (!cond)
		abort();
}

/* Parses what we wrote. */
static struct json_object *
again(const char *text, size_t len)
{
	struct json_error	 err;
	struct json_object	*v = NULL;

	must(json_parse(text, len, 100000, &v, &err) == 0);
	return v;
}

static void
round_trip(struct json_object *v)
{
	struct json_out		 out = { .max = 0 };
	struct json_object	*w;

	json_put_value(&out, v);
	must(json_out_end(&out) == 0);
	w = again(out.text, out.len);
	must(json_object_equal(v, w));
	json_object_put(w);
	json_out_free(&out);
}

static void
use_getters(struct json_object *v)
{
	static const char *const words[] = { "delete", "keep" };
	struct json_error	 err;
	struct json_reader	 r, sub;
	struct json_list	 list;
	struct json_map		 map;
	const char		*key, *value, *text = NULL;
	char			 name[8] = "";
	uint64_t		 u64 = 3;
	int64_t			 i64 = 3;
	double			 d = 3;
	uint32_t		 u = 3;
	unsigned int		 w = 0;
	size_t			 i, len = 0;
	int			 b = 0, there;

	json_open(&r, v, &err);
	(void)json_take_u32(&r, "u", JSON_OPTIONAL, 2, 5, &u);
	(void)json_take_u64(&r, "v", JSON_OPTIONAL, 2, UINT64_MAX, &u64);
	(void)json_take_i64(&r, "i", JSON_OPTIONAL, -5, 5, &i64);
	(void)json_take_double(&r, "d", JSON_OPTIONAL, -5, 5, &d);
	(void)json_take_bool(&r, "b", JSON_OPTIONAL, &b);
	(void)json_take_string(&r, "s", JSON_OPTIONAL, 1, name, sizeof(name));
	(void)json_take_text(&r, "t", JSON_OPTIONAL, 0, 9, &text, &len);
	(void)json_take_word(&r, "w", JSON_OPTIONAL, words, 2, &w);
	(void)json_take_list(&r, "a", JSON_OPTIONAL, 1, 3, 5, &list);
	(void)json_take_map(&r, "m", JSON_OPTIONAL, 3, 5, 5, &map);
	if (json_take_object(&r, "o", JSON_OPTIONAL, &sub, &there) == 0 &&
	    there) {
		(void)json_take_u32(&sub, "u", JSON_REQUIRED, 2, 5, &u);
		(void)json_end(&sub);
	}
	must(u >= 2 && u <= 5 && u64 >= 2 && i64 >= -5 && i64 <= 5 && w < 2);
	must(d >= -5 && d <= 5);
	must(strlen(name) < sizeof(name) && len <= 9);
	for (i = 0; i < list.n; i++)
		must(strlen(json_list_get(&list, i, NULL)) <= 5);
	while (json_map_next(&map, &key, &value))
		must(strlen(key) <= 5 && strlen(value) <= 5);
	(void)json_end(&r);
	must((err.code == E_OK) == (err.detail[0] == '\0'));
	must(utf8_valid(err.detail, strlen(err.detail)));
}

static void
use_writers(const uint8_t *data, size_t len)
{
	struct json_out		 out = { .max = 0 };
	struct json_object	*v;
	struct problem		 problem;
	char			 buf[PROBLEM_MAX], *text;
	uint8_t			*bytes;
	size_t			 n;

	json_put_lossy(&out, (const char *)data, len);
	must(json_out_end(&out) == 0);
	/* NUL is written as an escape that our own parser refuses. */
	if (memchr(data, '\0', len) == NULL) {
		v = again(out.text, out.len);
		if (utf8_valid(data, len))
			must((size_t)json_object_get_string_len(v) == len &&
			    memcmp(json_object_get_string(v), data, len) == 0);
		json_object_put(v);
	}
	json_out_reset(&out);
	json_put_base64(&out, data, len);
	must(json_out_end(&out) == 0 && out.len == BASE64_LEN(len) + 2);
	bytes = malloc(BASE64_BYTES(out.len) + 1);
	must(bytes != NULL);
	must(base64_decode(bytes, &n, out.text + 1, out.len - 2) == 0 &&
	    n == len && memcmp(bytes, data, len) == 0);
	json_out_free(&out);
	free(bytes);

	text = strndup((const char *)data, len);
	bytes = malloc(len + 1);
	must(text != NULL && bytes != NULL);
	/* One text for each byte string. */
	if (base64_decode(bytes, &n, text, strlen(text)) == 0) {
		char	*back = malloc(BASE64_LEN(n) + 1);

		must(back != NULL);
		must(base64_encode(back, bytes, n) == strlen(text) &&
		    strcmp(back, text) == 0);
		free(back);
	}
	problem = (struct problem){ E_BAD_JSON, text, text, text, 1 };
	json_object_put(again(buf, problem_write(buf, &problem)));
	free(text);
	free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct json_error	 err;
	struct json_object	*v = NULL;
	char			*copy;
	int			 ret;

	copy = malloc(len > 0 ? len : 1);
	must(copy != NULL);
	if (len > 0)
		memcpy(copy, data, len);
	ret = json_parse(copy, len, 1000, &v, &err);
	free(copy);
	must(ret <= 0 && (ret == 0) == (err.code == E_OK));
	must(utf8_valid(err.detail, strlen(err.detail)));
	if (ret == 0) {
		round_trip(v);
		use_getters(v);
		json_object_put(v);
	}
	use_writers(data, len);
	return 0;
}
