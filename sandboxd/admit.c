/* SPDX-License-Identifier: ISC */
/*
 * Admission: may this create happen?  Everything is checked before anything is
 * made.  Front has checked the shapes; here they are checked again, and against
 * the configuration's bounds.
 */
#include <sys/stat.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "id.h"
#include "sandboxd.h"

struct answer {
	char	*detail;
	size_t	 size;
};

static enum sbx_error
refuse(struct answer *a, enum sbx_error error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static enum sbx_error
refuse(struct answer *a, enum sbx_error error, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	(void)vsnprintf(a->detail, a->size, fmt, ap);
	va_end(ap);
	return error;
}

static enum sbx_error
admit_number(struct answer *a, const char *name, uint32_t *v, uint32_t dflt,
    uint32_t min, uint32_t max)
{
	if (*v == 0)
		*v = dflt;
	if (*v < min || *v > max)
		return refuse(a, E_OUT_OF_RANGE,
		    "%s: %u is not between %u and %u", name, *v, min, max);
	return E_OK;
}

static enum sbx_error
admit_resources(struct answer *a, struct m_front_create_sandbox *m)
{
	const struct resources	*d = &sandboxd->conf.defaults;
	const struct resources	*x = &sandboxd->conf.maximum;
	enum sbx_error		 e;

	e = admit_number(a, "vcpu", &m->vcpu, d->vcpu, 1, x->vcpu);
	if (e == E_OK)
		e = admit_number(a, "memory_mib", &m->memory_mib,
		    d->memory_mib, SBX_MEMORY_MIN_MIB, x->memory_mib);
	if (e == E_OK)
		e = admit_number(a, "disk_mib", &m->disk_mib, d->disk_mib,
		    SBX_DISK_MIN_MIB, x->disk_mib);
	if (e == E_OK)
		e = admit_number(a, "timeout_s", &m->timeout_s, d->timeout_s,
		    1, x->timeout_s);
	return e;
}

/* Packed strings: each ends with NUL, and front counted them. */
static int
packed_ok(const uint8_t *p, size_t len)
{
	return len == 0 || p[len - 1] == '\0';
}

static int
printable(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s < 0x20 || *s > 0x7e)
			return 0;
	return 1;
}

static enum sbx_error
admit_fields(struct answer *a, struct m_front_create_sandbox *m)
{
	char		 path[SBX_PATH_MAX + SBX_NAME_MAX + 32];
	struct stat	 st;

	if (!name_valid(m->template))
		return refuse(a, E_BAD_MEMBER, "template: not a template's name");
	if (m->name[0] != '\0' && !name_valid(m->name))
		return refuse(a, E_BAD_MEMBER, "name: not a sandbox name");
	if (!printable(m->key))
		return refuse(a, E_BAD_HEADER, "Idempotency-Key: not printable");
	if (m->on_disconnect >= ON_DISCONNECT_COUNT)
		return refuse(a, E_BAD_MEMBER, "on_disconnect: no such word");
	if (!packed_ok(m->metadata, m->metadata_len) ||
	    !packed_ok(m->env, m->env_len) || m->fingerprint_len !=
	    sizeof(((struct sandbox *)NULL)->fingerprint))
		return refuse(a, E_INTERNAL, "front packed a create badly");
	(void)snprintf(path, sizeof(path), "%s/%s/template.json",
	    sandboxd->conf.template_dir, m->template);
	if (stat(path, &st) == -1)
		return refuse(a, E_NO_TEMPLATE, "template: there is no \"%s\"",
		    m->template);
	return E_OK;
}

/* A failed sandbox has given everything back: only its record is left. */
static int
counts(const struct sandbox *sb)
{
	return !sb->probe && !(sb->state == STATE_FAILED && sb->released);
}

static enum sbx_error
admit_bounds(struct answer *a, const struct m_front_create_sandbox *m,
    const struct owner *o)
{
	const struct config	*c = &sandboxd->conf;
	const struct sandbox	*sb;
	uint64_t		 memory = 0;
	uint32_t		 all = 0, own = 0;

	TAILQ_FOREACH(sb, &sandboxd->ages, by_age) {
		if (!counts(sb))
			continue;
		all++;
		memory += sb->res.memory_mib;
		if (strcmp(sb->owner, o->name) == 0)
			own++;
	}
	if (own >= c->max_per_owner)
		return refuse(a, E_OWNER_LIMIT,
		    "%u sandboxes are the limit of one owner",
		    c->max_per_owner);
	if (all >= c->max_sandboxes)
		return refuse(a, E_CAPACITY,
		    "%u sandboxes are this host's limit", c->max_sandboxes);
	if (c->max_memory_mib != 0 &&
	    memory + m->memory_mib > c->max_memory_mib)
		return refuse(a, E_CAPACITY, "%llu MiB for all sandboxes are "
		    "this host's limit, %llu are in use",
		    (unsigned long long)c->max_memory_mib,
		    (unsigned long long)memory);
	return E_OK;
}

enum sbx_error
admit_create(struct m_front_create_sandbox *m, const struct owner *o,
    char *detail, size_t size)
{
	struct answer	 a = { detail, size };
	enum sbx_error	 e;

	if (m->on_disconnect == ON_DISCONNECT_UNSET)
		m->on_disconnect = ON_DISCONNECT_DELETE;
	e = admit_fields(&a, m);
	if (e == E_OK)
		e = admit_resources(&a, m);
	if (e == E_OK)
		e = admit_bounds(&a, m, o);
	return e;
}
