/* SPDX-License-Identifier: ISC */
/*
 * POST /sandboxes: strict reading of what is wanted, the request's fingerprint
 * for its Idempotency-Key, the parent's answer as 201 or 200.  Runs in front,
 * on a client's bytes; the parent checks every value again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <sha2.h>

#include "api.h"
#include "front.h"
#include "id.h"
#include "state.h"

struct create {
	struct conn	*c;
	uint64_t	 request;
	int		 keyed;
};

struct pair {
	const char	*key;
	const char	*value;
};

/* ---- reading ---- */

static void
read_name(struct json_reader *r, const char *name, enum json_need need,
    char *out)
{
	if (json_take_string(r, name, need, 1, out, SBX_NAME_MAX + 1) == 0 &&
	    out[0] != '\0' && !name_valid(out))
		(void)json_refuse(r, name, E_BAD_MEMBER, "has to be letters, "
		    "digits, '.', '_' or '-', the first a letter or a digit");
}

/* Packs pairs as "key<sep>value\0"; the JSON text's order is kept. */
static void
read_map(struct json_reader *r, const char *name, size_t max, char sep,
    uint8_t *out, uint16_t *outlen, size_t size)
{
	struct json_map	 map = { NULL, 0, NULL };
	const char	*key, *value;
	size_t		 klen, vlen, len = 0;

	if (json_take_map(r, name, JSON_OPTIONAL, max, size, size, &map) != 0)
		return;
	while (json_map_next(&map, &key, &value)) {
		klen = strlen(key);
		vlen = strlen(value);
		if (klen == 0 || (sep != '\0' && strchr(key, sep) != NULL)) {
			(void)json_refuse(r, name, E_BAD_MEMBER, "a name %s",
			    klen == 0 ? "is empty" : "holds '='");
			return;
		}
		if (klen + vlen + 2 > size - len) {
			(void)json_refuse(r, name, E_BAD_MEMBER,
			    "all together longer than %zu bytes", size);
			return;
		}
		memcpy(out + len, key, klen);
		out[len + klen] = (uint8_t)sep;
		memcpy(out + len + klen + 1, value, vlen + 1);
		len += klen + vlen + 2;
	}
	*outlen = (uint16_t)len;
}

static int
read_create(struct json_object *obj, struct m_front_create_sandbox *m,
    struct json_error *err)
{
	static const char *const	 words[] = { "delete", "keep" };
	struct json_reader		 r;
	unsigned int			 od = 0;

	json_open(&r, obj, err);
	read_name(&r, "template", JSON_REQUIRED, m->template);
	read_name(&r, "name", JSON_OPTIONAL, m->name);
	(void)json_take_u32(&r, "vcpu", JSON_OPTIONAL, 1, SBX_VCPU_MAX,
	    &m->vcpu);
	(void)json_take_u32(&r, "memory_mib", JSON_OPTIONAL, SBX_MEMORY_MIN_MIB,
	    SBX_MEMORY_MAX_MIB, &m->memory_mib);
	(void)json_take_u32(&r, "disk_mib", JSON_OPTIONAL, SBX_DISK_MIN_MIB,
	    SBX_DISK_MAX_MIB, &m->disk_mib);
	(void)json_take_u32(&r, "timeout_s", JSON_OPTIONAL, 1,
	    SBX_TIMEOUT_MAX_S, &m->timeout_s);
	if (json_take_word(&r, "on_disconnect", JSON_OPTIONAL, words, 2,
	    &od) == 0 && json_has(&r, "on_disconnect"))
		m->on_disconnect = od == 0 ? ON_DISCONNECT_DELETE :
		    ON_DISCONNECT_KEEP;
	read_map(&r, "metadata", SBX_METADATA_MAX, '\0', m->metadata,
	    &m->metadata_len, sizeof(m->metadata));
	read_map(&r, "env", SBX_ENV_BYTES, '=', m->env, &m->env_len,
	    sizeof(m->env));
	return json_end(&r);
}

/* ---- the fingerprint ---- */

static int
pair_cmp(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key,
	    ((const struct pair *)b)->key);
}

/* An object's members, sorted by name. */
static int
put_sorted(struct json_out *out, struct json_object *obj)
{
	struct pair	*pairs;
	size_t		 i = 0, n;

	n = (size_t)json_object_object_length(obj);
	pairs = calloc(n + 1, sizeof(*pairs));
	if (pairs == NULL)
		return -1;
	json_object_object_foreach(obj, key, value) {
		pairs[i].key = key;
		pairs[i++].value = json_object_get_string(value);
	}
	qsort(pairs, n, sizeof(*pairs), pair_cmp);
	json_put_object(out);
	for (i = 0; i < n; i++)
		json_put_key_string(out, pairs[i].key, pairs[i].value);
	json_put_object_end(out);
	free(pairs);
	return 0;
}

/*
 * SHA-256 of the body written again in one way: the same members and values
 * give the same print, whatever the order and the white space of the text.
 */
static int
fingerprint(struct json_object *obj, uint8_t *digest)
{
	static const char *const names[] = { "disk_mib", "env", "memory_mib",
	    "metadata", "name", "on_disconnect", "template", "timeout_s",
	    "vcpu" };
	struct json_object	*v;
	struct json_out		 out = { .max = 0 };
	SHA2_CTX		 ctx;
	size_t			 i;
	int			 e = 0;

	json_put_object(&out);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!json_object_object_get_ex(obj, names[i], &v))
			continue;
		json_put_key(&out, names[i]);
		if (!json_object_is_type(v, json_type_object))
			json_put_value(&out, v);
		else if (put_sorted(&out, v) == -1)
			e = -1;
	}
	json_put_object_end(&out);
	if (json_out_end(&out) != 0 || e != 0) {
		json_out_free(&out);
		return -1;
	}
	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)out.text, out.len);
	SHA256Final(digest, &ctx);
	json_out_free(&out);
	return 0;
}

/* ---- asking the parent ---- */

/* Without a key nobody can come back for it: it is not wanted any more. */
static void
create_gone(void *arg)
{
	struct create			*cr = arg;
	struct m_front_cancel_create	 m = { cr->request };

	ipeer_forget(front.parent, cr);
	if (!cr->keyed)
		(void)send_front_cancel_create(front.parent, &m);
	free(cr);
}

static const struct conn_user create_user = { .gone = create_gone };

static void
create_answer(struct msg *m, void *arg)
{
	struct create				*cr = arg;
	struct conn				*c = cr->c;
	const struct m_parent_give_sandbox	*s;
	struct json_out				 out = { .max = 0 };
	char					 location[64];

	free(cr);
	if (m == NULL || m->type != M_PARENT_GIVE_SANDBOX) {
		api_fail(c, m);
		return;
	}
	s = &m->body.parent_give_sandbox;
	(void)snprintf(location, sizeof(location), "/v1/sandboxes/%s", s->id);
	api_put_sandbox(&out, s);
	conn_reply_json(c, s->replayed ? 200 : 201, &out, location);
}

static void
create_ask(struct conn *c, struct m_front_create_sandbox *m)
{
	struct create	*cr;

	cr = calloc(1, sizeof(*cr));
	if (cr == NULL || request_front_create_sandbox(front.parent, m,
	    FRONT_CREATE_MS, create_answer, cr) == -1) {
		free(cr);
		conn_reply_problem(c, E_RESTARTING, "too many requests wait",
		    NULL, 1);
		return;
	}
	cr->c = c;
	cr->keyed = m->key[0] != '\0';
	cr->request = ipeer_last_request(front.parent);
	conn_set_user(c, &create_user, cr);
}

void
api_create(struct conn *c)
{
	struct m_front_create_sandbox	 m;
	struct json_object		*obj;
	struct json_error		 err = { E_OK, "" };
	int				 e;

	memset(&m, 0, sizeof(m));
	m.owner = c->owner;
	e = http_get_key(c->reader.request, m.key);
	if (e != 0) {
		conn_reply_problem(c, (enum sbx_error)-e, "Idempotency-Key has "
		    "to be one field of 1 to 128 printable characters", NULL,
		    0);
		return;
	}
	obj = api_body(c, JSON_VALUES_MAX);
	if (obj == NULL)
		return;
	if (read_create(obj, &m, &err) != 0)
		api_refuse(c, &err);
	else if (fingerprint(obj, m.fingerprint) == -1)
		conn_reply_problem(c, E_HOST_MEMORY, NULL, NULL, 1);
	else {
		m.fingerprint_len = sizeof(m.fingerprint);
		create_ask(c, &m);
	}
	json_object_put(obj);
}
