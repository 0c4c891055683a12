/* SPDX-License-Identifier: ISC */
/*
 * The JSON parser (RFC 8259; section numbers are its own).  Builds json-c's
 * objects itself: json-c's tokener takes single quotes, NaN, a key twice (the
 * last wins), lone surrogates, raw control bytes and numbers out of range, and
 * a second pass before it would have to agree with it on every text.  Used by
 * front, parent, vmm and sandboxctl; the text may be hostile.  No recursion.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "json.h"
#include "utf8.h"

#define NAME_SHOWN	64	/* bytes of a key in an error's text */

struct parser {
	const char		*start, *p, *end;
	size_t			 left;		/* values, keys still allowed */
	struct json_object	*root;
	struct json_object	*stack[JSON_DEPTH_MAX];	/* borrowed from root */
	unsigned int		 depth;
	int			 fresh;		/* the last is just open */
	char			*key;		/* of the value to come */
	char			*scratch;	/* as long as the text */
	struct json_error	*err;
};

/* Always -1. */
static int
fail(struct parser *ps, const char *what)
{
	ps->err->code = E_BAD_JSON;
	(void)snprintf(ps->err->detail, sizeof(ps->err->detail),
	    "byte %zu: %s", (size_t)(ps->p - ps->start), what);
	return -1;
}

static int
no_memory(struct parser *ps)
{
	ps->err->code = E_HOST_MEMORY;
	(void)snprintf(ps->err->detail, sizeof(ps->err->detail),
	    "no memory for the JSON text");
	return -1;
}

static void
skip_space(struct parser *ps)
{
	while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\t' ||
	    *ps->p == '\n' || *ps->p == '\r'))
		ps->p++;
}

/* Is this byte next? */
static int
next_is(const struct parser *ps, char c)
{
	return ps->p < ps->end && *ps->p == c;
}

static int
count_value(struct parser *ps)
{
	if (ps->left == 0)
		return fail(ps, "too many values");
	ps->left--;
	return 0;
}

/* Four hex digits at p; -1 if there are none. */
static int
hex4(const struct parser *ps)
{
	int	 i, v = 0;
	char	 c;

	if (ps->end - ps->p < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		c = ps->p[i];
		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			v = v << 4 | ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return v;
}

/* After "\u": one character, or a pair of surrogates (7). */
static int
unicode_escape(struct parser *ps, char *out, size_t *n)
{
	int	 c, low;

	c = hex4(ps);
	if (c == -1)
		return fail(ps, "\\u without four hex digits");
	if (c == 0)
		return fail(ps, "a NUL in a string");
	if (c >= 0xdc00 && c <= 0xdfff)
		return fail(ps, "a lone surrogate");
	ps->p += 4;
	if (c >= 0xd800 && c <= 0xdbff) {
		if (ps->end - ps->p < 6 || ps->p[0] != '\\' || ps->p[1] != 'u')
			return fail(ps, "a lone surrogate");
		ps->p += 2;
		low = hex4(ps);
		if (low < 0xdc00 || low > 0xdfff)
			return fail(ps, "a lone surrogate");
		ps->p += 4;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	if (c < 0x80)
		out[(*n)++] = (char)c;
	else if (c < 0x800)
		out[(*n)++] = (char)(0xc0 | c >> 6);
	else if (c < 0x10000)
		out[(*n)++] = (char)(0xe0 | c >> 12);
	else {
		out[(*n)++] = (char)(0xf0 | c >> 18);
		out[(*n)++] = (char)(0x80 | (c >> 12 & 0x3f));
	}
	if (c >= 0x800)
		out[(*n)++] = (char)(0x80 | (c >> 6 & 0x3f));
	if (c >= 0x80)
		out[(*n)++] = (char)(0x80 | (c & 0x3f));
	return 0;
}

static int
escape(struct parser *ps, char *out, size_t *n)
{
	static const char	 from[] = "\"\\/bfnrt";
	static const char	 to[] = "\"\\/\b\f\n\r\t";
	const char		*f;

	if (ps->p == ps->end)
		return fail(ps, "the text ends inside a string");
	if (*ps->p == 'u') {
		ps->p++;
		return unicode_escape(ps, out, n);
	}
	f = *ps->p == '\0' ? NULL : strchr(from, *ps->p);
	if (f == NULL)
		return fail(ps, "no such escape");
	ps->p++;
	out[(*n)++] = to[f - from];
	return 0;
}

/* A string (7) into scratch, with a NUL; p is at its first quote. */
static int
string(struct parser *ps, size_t *len)
{
	size_t	 n = 0, k;

	for (ps->p++; !next_is(ps, '"');) {
		if (ps->p == ps->end)
			return fail(ps, "the text ends inside a string");
		if (*ps->p == '\\') {
			ps->p++;
			if (escape(ps, ps->scratch, &n) == -1)
				return -1;
			continue;
		}
		if ((unsigned char)*ps->p < 0x20)
			return fail(ps, "a control byte in a string");
		k = utf8_char(ps->p, (size_t)(ps->end - ps->p));
		if (k == 0)
			return fail(ps, "not UTF-8");
		memcpy(ps->scratch + n, ps->p, k);
		n += k;
		ps->p += k;
	}
	ps->p++;
	ps->scratch[n] = '\0';
	*len = n;
	return 0;
}

static size_t
digits(const char *p, const char *end)
{
	size_t	 n = 0;

	while (p + n < end && p[n] >= '0' && p[n] <= '9')
		n++;
	return n;
}

/* The form of a number (6): its length, 0 if none; *whole: no fraction. */
static size_t
number_form(const struct parser *ps, int *whole)
{
	const char	*p = ps->p, *end = ps->end;
	size_t		 n;

	*whole = 1;
	if (p < end && *p == '-')
		p++;
	n = digits(p, end);
	if (n == 0 || (n > 1 && *p == '0'))
		return 0;
	p += n;
	if (p < end && *p == '.') {
		*whole = 0;
		p++;
		if ((n = digits(p, end)) == 0)
			return 0;
		p += n;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		*whole = 0;
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		if ((n = digits(p, end)) == 0)
			return 0;
		p += n;
	}
	return (size_t)(p - ps->p);
}

static struct json_object *
whole_number(struct parser *ps, const char *text)
{
	unsigned long long	 u;
	long long		 i;

	errno = 0;
	if (*text == '-') {
		i = strtoll(text, NULL, 10);
		if (errno == 0)
			return json_object_new_int64(i);
	} else {
		u = strtoull(text, NULL, 10);
		if (errno == 0 && u <= INT64_MAX)
			return json_object_new_int64((int64_t)u);
		if (errno == 0)
			return json_object_new_uint64(u);
	}
	(void)fail(ps, "a number out of range");
	return NULL;
}

static int
number(struct parser *ps, struct json_object **v)
{
	char	 text[JSON_NUMBER_MAX + 1];
	size_t	 len;
	double	 d;
	int	 whole;

	len = number_form(ps, &whole);
	if (len == 0)
		return fail(ps, "no valid value");
	if (len > JSON_NUMBER_MAX)
		return fail(ps, "a number with too many digits");
	memcpy(text, ps->p, len);
	text[len] = '\0';
	if (whole)
		*v = whole_number(ps, text);
	else {
		d = strtod(text, NULL);
		if (!isfinite(d))
			return fail(ps, "a number out of range");
		*v = json_object_new_double(d);
	}
	if (*v == NULL)
		return ps->err->code != E_OK ? -1 : no_memory(ps);
	ps->p += len;
	return 0;
}

/* null, true, false (3): 1 when it is this word. */
static int
word(struct parser *ps, const char *w)
{
	size_t	 n = strlen(w);

	if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, w, n) != 0)
		return 0;
	ps->p += n;
	return 1;
}

/* Gives a value (NULL: null) to the container that is open.  Takes it. */
static int
attach(struct parser *ps, struct json_object *v)
{
	struct json_object	*top;
	int			 ret;

	if (ps->depth == 0) {
		ps->root = v;
		return 0;
	}
	top = ps->stack[ps->depth - 1];
	if (ps->key == NULL)
		ret = json_object_array_add(top, v);
	else
		ret = json_object_object_add_ex(top, ps->key, v,
		    JSON_C_OBJECT_ADD_KEY_IS_NEW);
	free(ps->key);
	ps->key = NULL;
	if (ret == 0)
		return 0;
	json_object_put(v);
	return no_memory(ps);
}

/* A value; of an object or array only its start. */
static int
value(struct parser *ps)
{
	struct json_object	*v = NULL;
	size_t			 len;
	int			 open = 0, null = 0;

	skip_space(ps);
	if (ps->p == ps->end)
		return fail(ps, "the text ends where a value is due");
	if (count_value(ps) == -1)
		return -1;
	if (*ps->p == '{' || *ps->p == '[') {
		if (ps->depth == JSON_DEPTH_MAX)
			return fail(ps, "nested too deeply");
		open = 1;
		v = *ps->p++ == '{' ? json_object_new_object() :
		    json_object_new_array();
	} else if (*ps->p == '"') {
		if (string(ps, &len) == -1)
			return -1;
		v = json_object_new_string_len(ps->scratch, (int)len);
	} else if (word(ps, "true"))
		v = json_object_new_boolean(1);
	else if (word(ps, "false"))
		v = json_object_new_boolean(0);
	else if (word(ps, "null"))
		null = 1;
	else if (number(ps, &v) == -1)
		return -1;
	if (v == NULL && !null)
		return no_memory(ps);
	if (attach(ps, v) == -1)
		return -1;
	ps->fresh = open;
	if (open)
		ps->stack[ps->depth++] = v;
	return 0;
}

static int
in_object(const struct parser *ps)
{
	return json_object_is_type(ps->stack[ps->depth - 1], json_type_object);
}

/* A member's key and its colon (4). */
static int
key(struct parser *ps)
{
	char	 what[NAME_SHOWN + 32];
	size_t	 len;

	skip_space(ps);
	if (!next_is(ps, '"'))
		return fail(ps, "no member name in double quotes");
	if (count_value(ps) == -1 || string(ps, &len) == -1)
		return -1;
	if (json_object_object_get_ex(ps->stack[ps->depth - 1], ps->scratch,
	    NULL)) {
		(void)snprintf(what, sizeof(what), "member \"%.*s\" is there "
		    "twice", (int)utf8_cut(ps->scratch, len, NAME_SHOWN),
		    ps->scratch);
		return fail(ps, what);
	}
	ps->key = strdup(ps->scratch);
	if (ps->key == NULL)
		return no_memory(ps);
	skip_space(ps);
	if (!next_is(ps, ':'))
		return fail(ps, "no colon after a member name");
	ps->p++;
	return 0;
}

/* Inside a container: its end, or its next member or element. */
static int
proceed(struct parser *ps)
{
	int	 object = in_object(ps), first = ps->fresh;

	ps->fresh = 0;
	skip_space(ps);
	if (next_is(ps, object ? '}' : ']')) {
		ps->p++;
		ps->depth--;
		return 0;
	}
	if (!first) {
		if (!next_is(ps, ','))
			return fail(ps, "no comma or end after a value");
		ps->p++;
	}
	if (object && key(ps) == -1)
		return -1;
	return value(ps);
}

static int
document(struct parser *ps)
{
	if (value(ps) == -1)
		return -1;
	while (ps->depth > 0)
		if (proceed(ps) == -1)
			return -1;
	skip_space(ps);
	return ps->p == ps->end ? 0 : fail(ps, "text after the value");
}

int
json_parse(const char *text, size_t len, size_t values_max,
    struct json_object **out, struct json_error *err)
{
	struct parser	 ps;
	int		 ret;

	memset(&ps, 0, sizeof(ps));
	err->code = E_OK;
	err->detail[0] = '\0';
	ps.start = ps.p = text;
	ps.end = text + len;
	ps.left = values_max;
	ps.err = err;
	if (len >= INT_MAX)
		ret = fail(&ps, "too long");
	else if ((ps.scratch = malloc(len + 1)) == NULL)
		ret = no_memory(&ps);
	else
		ret = document(&ps);
	free(ps.scratch);
	free(ps.key);
	if (ret == -1) {
		json_object_put(ps.root);
		return -(int)err->code;
	}
	*out = ps.root;
	return 0;
}
