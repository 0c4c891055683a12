/* SPDX-License-Identifier: ISC */
/*
 * Typed reading of JSON objects: every member has a type, a range and a name
 * that somebody asked for.  Used by front, parent, vmm and sandboxctl.  The
 * object was built by json.c; what is in it is still a stranger's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "json.h"
#include "utf8.h"

#define NAME_SHOWN	64	/* bytes of a member's name in a detail */
#define PATH_SHOWN	256	/* bytes of the path to it */

void
json_open(struct json_reader *r, struct json_object *obj,
    struct json_error *err)
{
	memset(r, 0, sizeof(*r));
	r->err = err;
	err->code = E_OK;
	err->detail[0] = '\0';
	if (json_object_is_type(obj, json_type_object)) {
		r->obj = obj;
		return;
	}
	err->code = E_BAD_MEMBER;
	(void)snprintf(err->detail, sizeof(err->detail),
	    "the JSON text is not an object");
}

/* Appends at most NAME_SHOWN bytes of a name; what does not fit is left out. */
static void
path_add(char *path, const char *fmt, const char *name, size_t index)
{
	size_t	 len, n;

	len = strlen(path);
	n = utf8_cut(name, strlen(name), NAME_SHOWN);
	if (len + n + 32 > PATH_SHOWN)
		return;
	if (index > 0)
		(void)snprintf(path + len, PATH_SHOWN - len, "%s%.*s[%zu]", fmt,
		    (int)n, name, index - 1);
	else
		(void)snprintf(path + len, PATH_SHOWN - len, "%s%.*s", fmt,
		    (int)n, name);
}

/* "env.PATH", "sandboxes[3].name". */
static void
path_of(const struct json_reader *r, const char *name, size_t index, char *path)
{
	const struct json_reader	*up[JSON_DEPTH_MAX];
	unsigned int			 n = 0;

	path[0] = '\0';
	for (; r->up != NULL && n < JSON_DEPTH_MAX; r = r->up)
		up[n++] = r;
	while (n-- > 0) {
		path_add(path, path[0] == '\0' ? "" : ".", up[n]->name,
		    up[n]->index);
	}
	path_add(path, path[0] == '\0' ? "" : ".", name, index);
}

static int __attribute__((format(printf, 5, 0)))
vrefuse(struct json_reader *r, const char *name, size_t index,
    enum sbx_error code, const char *fmt, va_list ap)
{
	char	 path[PATH_SHOWN], what[SBX_DETAIL_MAX - PATH_SHOWN - 16];
	int	 n;

	if (r->err->code != E_OK)
		return -(int)r->err->code;
	path_of(r, name, index, path);
	n = vsnprintf(what, sizeof(what), fmt, ap);
	if (n < 0 || (size_t)n >= sizeof(what))
		what[utf8_cut(what, sizeof(what) - 1, sizeof(what) - 2)] = '\0';
	r->err->code = code;
	(void)snprintf(r->err->detail, sizeof(r->err->detail),
	    "member \"%s\": %s", path, what);
	return -(int)code;
}

int
json_refuse(struct json_reader *r, const char *name, enum sbx_error code,
    const char *fmt, ...)
{
	va_list	 ap;
	int	 ret;

	va_start(ap, fmt);
	ret = vrefuse(r, name, 0, code, fmt, ap);
	va_end(ap);
	return ret;
}

static int __attribute__((format(printf, 4, 5)))
refuse_element(struct json_reader *r, const char *name, size_t index,
    const char *fmt, ...)
{
	va_list	 ap;
	int	 ret;

	va_start(ap, fmt);
	ret = vrefuse(r, name, index + 1, E_BAD_MEMBER, fmt, ap);
	va_end(ap);
	return ret;
}

int
json_has(const struct json_reader *r, const char *name)
{
	return r->obj != NULL && json_object_object_get_ex(r->obj, name, NULL);
}

int
json_end(struct json_reader *r)
{
	unsigned int	 i;

	if (r->err->code != E_OK)
		return -(int)r->err->code;
	if (r->obj == NULL)
		return 0;
	json_object_object_foreach(r->obj, name, member) {
		(void)member;
		for (i = 0; i < r->ntaken; i++)
			if (strcmp(name, r->taken[i]) == 0)
				break;
		if (i == r->ntaken)
			return json_refuse(r, name, E_UNKNOWN_MEMBER,
			    "no such member here");
	}
	return 0;
}

/* 1 and the member if it is there, 0 if not (and need not be), or the error. */
static int
take(struct json_reader *r, const char *name, enum json_need need,
    struct json_object **v)
{
	if (r->err->code != E_OK)
		return -(int)r->err->code;
	if (r->ntaken == JSON_TAKEN_MAX)
		return json_refuse(r, name, E_INTERNAL, "one member too many");
	r->taken[r->ntaken++] = name;
	if (r->obj != NULL && json_object_object_get_ex(r->obj, name, v))
		return 1;
	if (need == JSON_OPTIONAL)
		return 0;
	return json_refuse(r, name, E_BAD_MEMBER, "missing");
}

static int
type_error(struct json_reader *r, const char *name, const char *want)
{
	return json_refuse(r, name, E_BAD_MEMBER, "must be %s", want);
}

/* 1: there, 0: absent, or the error. */
static int
take_unsigned(struct json_reader *r, const char *name, enum json_need need,
    uint64_t lo, uint64_t hi, uint64_t *out)
{
	struct json_object	*v;
	uint64_t		 u;
	int			 ret;

	ret = take(r, name, need, &v);
	if (ret <= 0)
		return ret;
	if (!json_object_is_type(v, json_type_int))
		return type_error(r, name, "a whole number");
	u = json_object_get_uint64(v);
	if (json_object_get_int64(v) < 0 || u < lo || u > hi)
		return json_refuse(r, name, E_OUT_OF_RANGE,
		    "must be from %llu to %llu", (unsigned long long)lo,
		    (unsigned long long)hi);
	*out = u;
	return 1;
}

int
json_take_u64(struct json_reader *r, const char *name, enum json_need need,
    uint64_t lo, uint64_t hi, uint64_t *out)
{
	int	 ret;

	ret = take_unsigned(r, name, need, lo, hi, out);
	return ret < 0 ? ret : 0;
}

int
json_take_u32(struct json_reader *r, const char *name, enum json_need need,
    uint32_t lo, uint32_t hi, uint32_t *out)
{
	uint64_t	 v;
	int		 ret;

	ret = take_unsigned(r, name, need, lo, hi, &v);
	if (ret == 1)
		*out = (uint32_t)v;
	return ret < 0 ? ret : 0;
}

int
json_take_i64(struct json_reader *r, const char *name, enum json_need need,
    int64_t lo, int64_t hi, int64_t *out)
{
	struct json_object	*v;
	int64_t			 i;
	int			 ret;

	ret = take(r, name, need, &v);
	if (ret <= 0)
		return ret;
	if (!json_object_is_type(v, json_type_int))
		return type_error(r, name, "a whole number");
	i = json_object_get_int64(v);
	/* Above INT64_MAX json-c gives INT64_MAX here. */
	if ((i == INT64_MAX && json_object_get_uint64(v) > INT64_MAX) ||
	    i < lo || i > hi)
		return json_refuse(r, name, E_OUT_OF_RANGE,
		    "must be from %lld to %lld", (long long)lo, (long long)hi);
	*out = i;
	return 0;
}

int
json_take_double(struct json_reader *r, const char *name, enum json_need need,
    double lo, double hi, double *out)
{
	struct json_object	*v;
	double			 d;
	int			 ret;

	ret = take(r, name, need, &v);
	if (ret <= 0)
		return ret;
	if (!json_object_is_type(v, json_type_int) &&
	    !json_object_is_type(v, json_type_double))
		return type_error(r, name, "a number");
	d = json_object_get_double(v);
	if (!(d >= lo && d <= hi))
		return json_refuse(r, name, E_OUT_OF_RANGE,
		    "must be from %.10g to %.10g", lo, hi);
	*out = d;
	return 0;
}

int
json_take_bool(struct json_reader *r, const char *name, enum json_need need,
    int *out)
{
	struct json_object	*v;
	int			 ret;

	ret = take(r, name, need, &v);
	if (ret <= 0)
		return ret;
	if (!json_object_is_type(v, json_type_boolean))
		return type_error(r, name, "true or false");
	*out = json_object_get_boolean(v);
	return 0;
}

int
json_take_text(struct json_reader *r, const char *name, enum json_need need,
    size_t min, size_t max, const char **out, size_t *outlen)
{
	struct json_object	*v;
	size_t			 len;
	int			 ret;

	ret = take(r, name, need, &v);
	if (ret <= 0)
		return ret;
	if (!json_object_is_type(v, json_type_string))
		return type_error(r, name, "a string");
	len = (size_t)json_object_get_string_len(v);
	if (len < min || len > max)
		return json_refuse(r, name, E_BAD_MEMBER,
		    "must have %zu to %zu bytes", min, max);
	*out = json_object_get_string(v);
	if (outlen != NULL)
		*outlen = len;
	return 0;
}

int
json_take_string(struct json_reader *r, const char *name, enum json_need need,
    size_t min, char *out, size_t size)
{
	const char	*s = NULL;
	size_t		 len = 0;
	int		 ret;

	ret = json_take_text(r, name, need, min, size - 1, &s, &len);
	if (ret == 0 && s != NULL)
		memcpy(out, s, len + 1);
	return ret;
}

int
json_take_word(struct json_reader *r, const char *name, enum json_need need,
    const char *const *words, unsigned int n, unsigned int *out)
{
	struct json_object	*v;
	char			 list[128] = "";
	const char		*s;
	unsigned int		 i;
	size_t			 len;
	int			 ret;

	ret = take(r, name, need, &v);
	if (ret <= 0)
		return ret;
	s = json_object_is_type(v, json_type_string) ?
	    json_object_get_string(v) : NULL;
	for (i = 0; i < n; i++) {
		if (s != NULL && strcmp(s, words[i]) == 0) {
			*out = i;
			return 0;
		}
		len = strlen(list);
		(void)snprintf(list + len, sizeof(list) - len, "%s\"%s\"",
		    i == 0 ? "" : i + 1 < n ? ", " : " or ", words[i]);
	}
	return type_error(r, name, list);
}

int
json_take_object(struct json_reader *r, const char *name, enum json_need need,
    struct json_reader *sub, int *there)
{
	struct json_object	*v;
	int			 ret;

	memset(sub, 0, sizeof(*sub));
	sub->err = r->err;
	sub->up = r;
	sub->name = name;
	if (there != NULL)
		*there = 0;
	ret = take(r, name, need, &v);
	if (ret <= 0)
		return ret;
	if (!json_object_is_type(v, json_type_object))
		return type_error(r, name, "an object");
	sub->obj = v;
	if (there != NULL)
		*there = 1;
	return 0;
}

int
json_take_array(struct json_reader *r, const char *name, enum json_need need,
    size_t max, struct json_object **out, size_t *n)
{
	struct json_object	*v;
	int			 ret;

	ret = take(r, name, need, &v);
	if (ret <= 0)
		return ret;
	if (!json_object_is_type(v, json_type_array))
		return type_error(r, name, "an array");
	if (json_object_array_length(v) > max)
		return json_refuse(r, name, E_BAD_MEMBER,
		    "must have at most %zu elements", max);
	*out = v;
	*n = json_object_array_length(v);
	return 0;
}

int
json_array_open(struct json_reader *up, const char *name,
    struct json_object *array, size_t index, struct json_reader *sub)
{
	struct json_object	*v;

	memset(sub, 0, sizeof(*sub));
	sub->err = up->err;
	sub->up = up;
	sub->name = name;
	sub->index = index + 1;
	if (up->err->code != E_OK)
		return -(int)up->err->code;
	v = json_object_array_get_idx(array, index);
	if (!json_object_is_type(v, json_type_object))
		return refuse_element(up, name, index, "must be an object");
	sub->obj = v;
	return 0;
}

int
json_take_list(struct json_reader *r, const char *name, enum json_need need,
    size_t min, size_t max, size_t string_max, struct json_list *list)
{
	struct json_object	*array = NULL, *v;
	size_t			 i, n = 0;
	int			 ret;

	memset(list, 0, sizeof(*list));
	ret = json_take_array(r, name, need, max, &array, &n);
	if (ret != 0 || array == NULL)
		return ret;
	if (n < min)
		return json_refuse(r, name, E_BAD_MEMBER,
		    "must have at least %zu elements", min);
	for (i = 0; i < n; i++) {
		v = json_object_array_get_idx(array, i);
		if (!json_object_is_type(v, json_type_string))
			return refuse_element(r, name, i, "must be a string");
		if ((size_t)json_object_get_string_len(v) > string_max)
			return refuse_element(r, name, i,
			    "must have at most %zu bytes", string_max);
	}
	list->array = array;
	list->n = n;
	return 0;
}

const char *
json_list_get(const struct json_list *list, size_t i, size_t *len)
{
	struct json_object	*v;

	v = json_object_array_get_idx(list->array, i);
	if (len != NULL)
		*len = (size_t)json_object_get_string_len(v);
	return json_object_get_string(v);
}

int
json_take_map(struct json_reader *r, const char *name, enum json_need need,
    size_t max, size_t key_max, size_t value_max, struct json_map *map)
{
	struct json_reader	 sub;
	int			 ret, there;

	memset(map, 0, sizeof(*map));
	ret = json_take_object(r, name, need, &sub, &there);
	if (ret != 0 || !there)
		return ret;
	if ((size_t)json_object_object_length(sub.obj) > max)
		return json_refuse(r, name, E_BAD_MEMBER,
		    "must have at most %zu members", max);
	json_object_object_foreach(sub.obj, key, v) {
		if (strlen(key) > key_max)
			return json_refuse(&sub, key, E_BAD_MEMBER,
			    "the name must have at most %zu bytes", key_max);
		if (!json_object_is_type(v, json_type_string))
			return type_error(&sub, key, "a string");
		if ((size_t)json_object_get_string_len(v) > value_max)
			return json_refuse(&sub, key, E_BAD_MEMBER,
			    "must have at most %zu bytes", value_max);
	}
	map->obj = sub.obj;
	map->n = (size_t)json_object_object_length(sub.obj);
	map->next = json_object_get_object(sub.obj)->head;
	return 0;
}

int
json_map_next(struct json_map *map, const char **key, const char **value)
{
	const struct lh_entry	*e = map->next;
	const void		*v;

	if (e == NULL)
		return 0;
	*key = e->k;
	v = e->v;
	*value = json_object_get_string((struct json_object *)
	    (uintptr_t)v);
	map->next = e->next;
	return 1;
}
