/* SPDX-License-Identifier: ISC */
/*
 * Writing JSON (RFC 8259) into memory that grows to a bound.  Used by front,
 * parent, vmm and sandboxctl; the texts may be a stranger's, so nothing in them
 * can end the string they are put in.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base64.h"
#include "json.h"
#include "utf8.h"

#define FIRST_BYTES	1024	/* of memory asked for at once */

void
json_out_free(struct json_out *o)
{
	free(o->text);
	o->text = NULL;
	o->size = 0;
	json_out_reset(o);
}

void
json_out_reset(struct json_out *o)
{
	o->len = 0;
	o->failed = E_OK;
	o->depth = 0;
	o->comma = 0;
}

int
json_out_end(struct json_out *o)
{
	if (o->failed == E_OK && (o->depth != 0 || o->len == 0))
		o->failed = E_INTERNAL;
	return -o->failed;
}

/* Room for n more bytes and a NUL. */
static int
room(struct json_out *o, size_t n)
{
	char	*text;
	size_t	 size;

	if (o->failed != E_OK)
		return -1;
	if (o->max != 0 && (n > o->max || o->len > o->max - n)) {
		o->failed = E_TOO_LARGE;
		return -1;
	}
	if (n < o->size && o->len < o->size - n)
		return 0;
	size = o->size == 0 ? FIRST_BYTES : o->size;
	while (size <= o->len || size - o->len <= n) {
		if (size > SIZE_MAX / 2) {
			o->failed = E_HOST_MEMORY;
			return -1;
		}
		size *= 2;
	}
	text = realloc(o->text, size);
	if (text == NULL) {
		o->failed = E_HOST_MEMORY;
		return -1;
	}
	o->text = text;
	o->size = size;
	return 0;
}

static void
put(struct json_out *o, const char *s, size_t n)
{
	if (room(o, n) == -1)
		return;
	memcpy(o->text + o->len, s, n);
	o->len += n;
	o->text[o->len] = '\0';
}

static void
comma(struct json_out *o)
{
	if (o->comma)
		put(o, ",", 1);
	o->comma = 0;
}

/* A value that stands as it is. */
static void
put_raw(struct json_out *o, const char *s, size_t n)
{
	comma(o);
	put(o, s, n);
	o->comma = 1;
}

static void
open_level(struct json_out *o, const char *c)
{
	comma(o);
	put(o, c, 1);
	o->depth++;
}

static void
close_level(struct json_out *o, const char *c)
{
	if (o->depth == 0)
		o->failed = E_INTERNAL;
	else
		o->depth--;
	put(o, c, 1);
	o->comma = 1;
}

void
json_put_object(struct json_out *o)
{
	open_level(o, "{");
}

void
json_put_object_end(struct json_out *o)
{
	close_level(o, "}");
}

void
json_put_array(struct json_out *o)
{
	open_level(o, "[");
}

void
json_put_array_end(struct json_out *o)
{
	close_level(o, "]");
}

/* RFC 8259, 7: quotes, backslash and control characters. */
static void
put_escaped(struct json_out *o, unsigned char c)
{
	static const char	 from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char		*f;
	char			 esc[8];

	f = c == '\0' ? NULL : strchr(from, c);
	if (f != NULL) {
		esc[0] = '\\';
		esc[1] = to[f - from];
		put(o, esc, 2);
		return;
	}
	(void)snprintf(esc, sizeof(esc), "\\u%04x", c);
	put(o, esc, 6);
}

/* How many bytes from here need no escape and are valid UTF-8. */
static size_t
plain(const char *s, size_t len)
{
	size_t	 n = 0, k;

	while (n < len && (unsigned char)s[n] >= 0x20 && s[n] != '"' &&
	    s[n] != '\\') {
		k = (unsigned char)s[n] < 0x80 ? 1 : utf8_char(s + n, len - n);
		if (k == 0)
			break;
		n += k;
	}
	return n;
}

static void
put_quoted(struct json_out *o, const char *s, size_t len, int lossy)
{
	size_t	 n;

	comma(o);
	put(o, "\"", 1);
	while (len > 0 && o->failed == E_OK) {
		n = plain(s, len);
		if (n > 0)
			put(o, s, n);
		else if ((unsigned char)*s < 0x80) {
			put_escaped(o, (unsigned char)*s);
			n = 1;
		} else if (lossy) {
			put(o, "\xef\xbf\xbd", 3);
			n = 1;
		} else {
			o->failed = E_INTERNAL;
			break;
		}
		s += n;
		len -= n;
	}
	put(o, "\"", 1);
	o->comma = 1;
}

void
json_put_text(struct json_out *o, const char *s, size_t len)
{
	put_quoted(o, s, len, 0);
}

void
json_put_lossy(struct json_out *o, const char *s, size_t len)
{
	put_quoted(o, s, len, 1);
}

void
json_put_string(struct json_out *o, const char *s)
{
	json_put_text(o, s, strlen(s));
}

void
json_put_key(struct json_out *o, const char *key)
{
	json_put_string(o, key);
	put(o, ":", 1);
	o->comma = 0;
}

void
json_put_base64(struct json_out *o, const void *data, size_t len)
{
	comma(o);
	put(o, "\"", 1);
	/* base64_encode() writes a NUL, for which there is room. */
	if (len > SIZE_MAX / 2)
		o->failed = E_TOO_LARGE;
	if (room(o, BASE64_LEN(len)) == 0)
		o->len += base64_encode(o->text + o->len, data, len);
	put(o, "\"", 1);
	o->comma = 1;
}

void
json_put_u64(struct json_out *o, uint64_t v)
{
	char	 text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	put_raw(o, text, strlen(text));
}

void
json_put_i64(struct json_out *o, int64_t v)
{
	char	 text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, v);
	put_raw(o, text, strlen(text));
}

void
json_put_bool(struct json_out *o, int v)
{
	put_raw(o, v ? "true" : "false", v ? 4 : 5);
}

void
json_put_null(struct json_out *o)
{
	put_raw(o, "null", 4);
}

void
json_put_value(struct json_out *o, struct json_object *v)
{
	const char	*text;
	size_t		 len;

	text = json_object_to_json_string_length(v, JSON_C_TO_STRING_PLAIN |
	    JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	if (text == NULL)
		o->failed = E_HOST_MEMORY;
	else
		put_raw(o, text, len);
}

void
json_put_key_string(struct json_out *o, const char *key, const char *s)
{
	json_put_key(o, key);
	json_put_string(o, s);
}

void
json_put_key_u64(struct json_out *o, const char *key, uint64_t v)
{
	json_put_key(o, key);
	json_put_u64(o, v);
}

void
json_put_key_bool(struct json_out *o, const char *key, int v)
{
	json_put_key(o, key);
	json_put_bool(o, v);
}
