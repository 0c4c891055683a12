/* SPDX-License-Identifier: ISC */
/*
 * Records as JSON objects and back.  Strings that came from a client are
 * carried as they are; every field is checked again when it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "id.h"
#include "ledger.h"
#include "log.h"
#include "record.h"
#include "sandboxd.h"

static int	same_boot = 1;

const char *
record_boot_id(void)
{
	static char	 id[64];
	ssize_t		 n;
	int		 fd;

	if (id[0] != '\0')
		return id;
	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return id;
	n = read(fd, id, sizeof(id) - 1);
	(void)close(fd);
	id[n > 0 ? n : 0] = '\0';
	id[strcspn(id, "\n")] = '\0';
	return id;
}

int
record_same_boot(void)
{
	return same_boot;
}

static void
add_str(struct json_object *o, const char *name, const char *value)
{
	json_object_object_add(o, name, json_object_new_string(value));
}

static void
add_bytes(struct json_object *o, const char *name, const void *p, size_t len)
{
	json_object_object_add(o, name,
	    json_object_new_string_len(p, (int)len));
}

static void
add_u64(struct json_object *o, const char *name, uint64_t v)
{
	json_object_object_add(o, name, json_object_new_uint64(v));
}

static void
add_hex(struct json_object *o, const char *name, const uint8_t *p, size_t len)
{
	char	 text[2 * 32 + 1];
	size_t	 i;

	for (i = 0; i < len && i < 32; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", p[i]);
	add_str(o, name, text);
}

/* What changes while a sandbox lives. */
static void
add_changing(struct json_object *o, const struct sandbox *sb)
{
	add_str(o, "state", state_name(sb->state));
	add_u64(o, "cause", sb->cause);
	add_bytes(o, "detail", sb->detail, strlen(sb->detail));
	add_u64(o, "deadline_ms", sb->deadline.ms);
	add_u64(o, "boot_ms", sb->boot_ms);
	add_u64(o, "pid", sb->pid);
	add_u64(o, "start_time", sb->start_time);
	add_u64(o, "released", sb->released != 0);
}

static struct json_object *
to_json(const struct sandbox *sb)
{
	struct json_object	*o;

	o = json_object_new_object();
	if (o == NULL)
		return NULL;
	add_changing(o, sb);
	add_u64(o, "generation", sb->generation);
	add_u64(o, "slot", sb->slot);
	add_str(o, "owner", sb->owner);
	add_str(o, "template", sb->template);
	add_str(o, "name", sb->name);
	add_u64(o, "vcpu", sb->res.vcpu);
	add_u64(o, "memory_mib", sb->res.memory_mib);
	add_u64(o, "disk_mib", sb->res.disk_mib);
	add_u64(o, "timeout_s", sb->res.timeout_s);
	add_str(o, "on_disconnect", on_disconnect_name(sb->on_disconnect));
	add_str(o, "key", sb->key);
	add_hex(o, "fingerprint", sb->fingerprint, sizeof(sb->fingerprint));
	add_bytes(o, "metadata", sb->metadata, sb->metadata_len);
	add_bytes(o, "env", sb->env, sb->env_len);
	add_u64(o, "created_ms", sb->created.ms);
	return o;
}

static void
entry_name(const struct sandbox *sb, char *out, size_t len)
{
	(void)snprintf(out, len, "sandbox/%s", sb->id);
}

int
record_put(struct sandbox *sb)
{
	struct json_object	*o;
	char			 name[64];
	int			 r;

	if (sb->probe)
		return 0;
	o = to_json(sb);
	if (o == NULL)
		return -1;
	entry_name(sb, name, sizeof(name));
	r = ledger_put(sandboxd->ledger, name, o);
	json_object_put(o);
	sb->recorded = r == 0;
	return r;
}

int
record_mark(const struct sandbox *sb)
{
	struct json_object	*o;
	char			 name[64];
	int			 r;

	/* A change of what the ledger does not hold could not be read back. */
	if (!sb->recorded)
		return 0;
	o = json_object_new_object();
	if (o == NULL)
		return -1;
	add_changing(o, sb);
	entry_name(sb, name, sizeof(name));
	r = ledger_mark(sandboxd->ledger, name, o);
	json_object_put(o);
	return r;
}

static void
key_name(const char *owner, const char *key, char *out, size_t len)
{
	(void)snprintf(out, len, "key/%s/%s", owner, key);
}

static struct json_object *
key_json(const struct old_key *k)
{
	struct json_object	*o;

	o = json_object_new_object();
	if (o == NULL)
		return NULL;
	add_str(o, "owner", k->owner);
	add_str(o, "key", k->key);
	add_str(o, "id", k->id);
	add_u64(o, "generation", k->generation);
	add_hex(o, "fingerprint", k->fingerprint, sizeof(k->fingerprint));
	add_u64(o, "until_ms", k->until.ms);
	return o;
}

int
record_drop(const struct sandbox *sb)
{
	struct json_object	*o;
	struct old_key		*k;
	char			 name[256];

	if (!sb->recorded)
		return 0;
	k = sb->key[0] != '\0' ? table_find_old_key(sb->owner, sb->key) : NULL;
	if (k != NULL && (o = key_json(k)) != NULL) {
		key_name(k->owner, k->key, name, sizeof(name));
		/* Without room the key is lost, not the delete. */
		if (ledger_put(sandboxd->ledger, name, o) == -1)
			log_warnx("ledger: no room for key of %s", sb->id);
		json_object_put(o);
	}
	entry_name(sb, name, sizeof(name));
	return ledger_drop(sandboxd->ledger, name);
}

static struct json_object *
host_json(void)
{
	struct json_object	*host;

	host = json_object_new_object();
	if (host == NULL)
		return NULL;
	add_str(host, "boot_id", record_boot_id());
	add_u64(host, "generation", sandboxd->generation);
	return host;
}

int
record_mark_host(void)
{
	struct json_object	*host;
	int			 r;

	host = host_json();
	if (host == NULL)
		return -1;
	r = ledger_mark(sandboxd->ledger, "host", host);
	json_object_put(host);
	return r;
}

void
record_dump(struct json_object *entries, void *arg)
{
	struct sandbox		*sb;
	struct old_key		*k;
	char			 name[256];

	(void)arg;
	json_object_object_add(entries, "host", host_json());
	TAILQ_FOREACH(sb, &sandboxd->ages, by_age) {
		if (!sb->recorded)
			continue;
		entry_name(sb, name, sizeof(name));
		json_object_object_add(entries, name, to_json(sb));
	}
	TAILQ_FOREACH(k, &sandboxd->old_keys, entry) {
		key_name(k->owner, k->key, name, sizeof(name));
		json_object_object_add(entries, name, key_json(k));
	}
}

/* ---- reading back: a sticky error, looked at once at the end ---- */

struct reader {
	struct json_object	*o;
	int			 bad;
};

static uint64_t
get_u64(struct reader *r, const char *name, uint64_t max)
{
	struct json_object	*v;
	uint64_t		 n;

	if (!json_object_object_get_ex(r->o, name, &v) ||
	    !json_object_is_type(v, json_type_int)) {
		r->bad = 1;
		return 0;
	}
	n = json_object_get_uint64(v);
	if (json_object_get_int64(v) < 0 || n > max)
		r->bad = 1;
	return n;
}

static size_t
get_bytes(struct reader *r, const char *name, void *out, size_t max)
{
	struct json_object	*v;
	size_t			 len;

	if (!json_object_object_get_ex(r->o, name, &v) ||
	    !json_object_is_type(v, json_type_string)) {
		r->bad = 1;
		return 0;
	}
	len = (size_t)json_object_get_string_len(v);
	if (len > max) {
		r->bad = 1;
		return 0;
	}
	memcpy(out, json_object_get_string(v), len);
	return len;
}

static void
get_str(struct reader *r, const char *name, char *out, size_t size)
{
	size_t	 len;

	len = get_bytes(r, name, out, size - 1);
	out[len] = '\0';
	if (strlen(out) != len)
		r->bad = 1;
}

static void
get_hex(struct reader *r, const char *name, uint8_t *out, size_t len)
{
	char		 text[2 * 32 + 1];
	unsigned int	 byte;
	size_t		 i;

	get_str(r, name, text, sizeof(text));
	if (strlen(text) != 2 * len) {
		r->bad = 1;
		return;
	}
	for (i = 0; i < len; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			r->bad = 1;
		out[i] = (uint8_t)byte;
	}
}

static void
get_record(struct reader *r, struct sandbox *sb)
{
	char	 word[32];

	get_str(r, "state", word, sizeof(word));
	sb->state = state_by_name(word);
	sb->cause = (enum vm_cause)get_u64(r, "cause", CAUSE_COUNT - 1);
	get_str(r, "detail", sb->detail, sizeof(sb->detail));
	sb->deadline.ms = get_u64(r, "deadline_ms", INT64_MAX);
	sb->boot_ms = get_u64(r, "boot_ms", INT64_MAX);
	sb->pid = (uint32_t)get_u64(r, "pid", INT32_MAX);
	sb->start_time = get_u64(r, "start_time", INT64_MAX);
	sb->released = (int)get_u64(r, "released", 1);
	sb->generation = get_u64(r, "generation", INT64_MAX);
	sb->slot = (uint32_t)get_u64(r, "slot", UINT32_MAX);
	get_str(r, "owner", sb->owner, sizeof(sb->owner));
	get_str(r, "template", sb->template, sizeof(sb->template));
	get_str(r, "name", sb->name, sizeof(sb->name));
	sb->res.vcpu = (uint32_t)get_u64(r, "vcpu", SBX_VCPU_MAX);
	sb->res.memory_mib = (uint32_t)get_u64(r, "memory_mib",
	    SBX_MEMORY_MAX_MIB);
	sb->res.disk_mib = (uint32_t)get_u64(r, "disk_mib", SBX_DISK_MAX_MIB);
	sb->res.timeout_s = (uint32_t)get_u64(r, "timeout_s",
	    SBX_TIMEOUT_MAX_S);
	get_str(r, "on_disconnect", word, sizeof(word));
	sb->on_disconnect = on_disconnect_by_name(word);
	get_str(r, "key", sb->key, sizeof(sb->key));
	get_hex(r, "fingerprint", sb->fingerprint, sizeof(sb->fingerprint));
	sb->metadata_len = (uint16_t)get_bytes(r, "metadata", sb->metadata,
	    sizeof(sb->metadata));
	sb->env_len = (uint16_t)get_bytes(r, "env", sb->env, sizeof(sb->env));
	sb->created.ms = get_u64(r, "created_ms", INT64_MAX);
	if (sb->state == STATE_NONE || sb->state == STATE_GONE ||
	    sb->on_disconnect == ON_DISCONNECT_COUNT ||
	    !name_valid(sb->template))
		r->bad = 1;
}

/* 0, -1: makes no sense, -2: its slot is beyond what the configuration has. */
static int
load_sandbox(const char *id, struct json_object *o)
{
	struct reader	 r = { o, 0 };
	struct sandbox	*sb, *older;

	if (!id_valid(id))
		return -1;
	sb = table_new();
	if (sb == NULL)
		return -1;
	(void)strcpy(sb->id, id);
	sb->recorded = 1;
	get_record(&r, sb);
	if (!r.bad && !sb->released && sb->slot >= sandboxd->nslots) {
		free(sb);
		return -2;
	}
	if (r.bad || (!sb->released && slot_take_this(sb->slot) == -1)) {
		free(sb);
		return -1;
	}
	if (sb->generation > sandboxd->generation)
		sandboxd->generation = sb->generation;
	/* The list is by age; the ledger's order is only nearly so. */
	table_add(sb);
	while ((older = TAILQ_PREV(sb, sandbox_list, by_age)) != NULL &&
	    older->generation > sb->generation) {
		TAILQ_REMOVE(&sandboxd->ages, sb, by_age);
		TAILQ_INSERT_BEFORE(older, sb, by_age);
	}
	return 0;
}

static int
load_key(struct json_object *o)
{
	struct reader	 r = { o, 0 };
	struct old_key	 k;

	memset(&k, 0, sizeof(k));
	get_str(&r, "owner", k.owner, sizeof(k.owner));
	get_str(&r, "key", k.key, sizeof(k.key));
	get_str(&r, "id", k.id, sizeof(k.id));
	k.generation = get_u64(&r, "generation", INT64_MAX);
	get_hex(&r, "fingerprint", k.fingerprint, sizeof(k.fingerprint));
	k.until.ms = get_u64(&r, "until_ms", INT64_MAX);
	if (r.bad)
		return -1;
	table_add_old_key(&k);
	return 0;
}

static int
load_host(struct json_object *o)
{
	struct reader	 r = { o, 0 };
	char		 boot[64];
	uint64_t	 generation;

	get_str(&r, "boot_id", boot, sizeof(boot));
	generation = get_u64(&r, "generation", INT64_MAX);
	if (r.bad)
		return -1;
	if (generation > sandboxd->generation)
		sandboxd->generation = generation;
	same_boot = strcmp(boot, record_boot_id()) == 0;
	return 0;
}

int
record_load(struct json_object *entries, char *err, unsigned long errlen)
{
	int	 r;

	json_object_object_foreach(entries, name, value) {
		if (strcmp(name, "host") == 0)
			r = load_host(value);
		else if (strncmp(name, "sandbox/", 8) == 0)
			r = load_sandbox(name + 8, value);
		else if (strncmp(name, "key/", 4) == 0)
			r = load_key(value);
		else
			r = -1;
		if (r == -1) {
			(void)snprintf(err, errlen, "entry %s makes no sense",
			    log_vis(name, strlen(name)));
			return -1;
		}
		if (r == -2) {
			(void)snprintf(err, errlen, "%s holds a slot beyond "
			    "the %u of the configured pool and uids", name,
			    sandboxd->nslots);
			return -2;
		}
	}
	return 0;
}
