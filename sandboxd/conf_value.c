/* SPDX-License-Identifier: ISC */
/*
 * The values of sandboxd.conf(5): text of the file to members of the
 * configuration, each within its bounds.  Runs in the parent, called by the
 * grammar's actions; what is wrong is reported and leaves the member alone.
 */
#include <arpa/inet.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include <ctype.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf_value.h"
#include "config.h"
#include "id.h"
#include "slot.h"

static int
get_number(long long *out, const char *text, const char *what,
    const char *which, long long min, long long max)
{
	const char	*gap = which == NULL ? "" : " ", *err = NULL;
	long long	 n = 0;

	if (which == NULL)
		which = "";
	/* strtonum(3) would take blanks and a sign. */
	if (!isdigit((unsigned char)text[0]))
		err = "invalid";
	else
		n = strtonum(text, 0, INT64_MAX, &err);
	if (err != NULL && strcmp(err, "too large") != 0) {
		conf_fault("%s%s%s: \"%s\" is not a number", what, gap,
		    which, text);
		return -1;
	}
	if (err != NULL || n < min || n > max) {
		conf_fault("%s%s%s: %s is out of range, %lld to %lld", what,
		    gap, which, text, min, max);
		return -1;
	}
	*out = n;
	return 0;
}

void
value_number(uint32_t *out, const char *text, const char *what,
    const char *which, long long min, long long max)
{
	long long	 n;

	if (get_number(&n, text, what, which, min, max) == 0)
		*out = (uint32_t)n;
}

void
value_memory_limit(struct config *conf, const char *text)
{
	long long	 n;

	if (get_number(&n, text, "limit", "memory", 0,
	    CONF_MEMORY_MAX_MIB) == 0)
		conf->max_memory_mib = (uint64_t)n;
}

void
value_resource(struct resources *r, const char *what, enum resource which,
    const char *text)
{
	switch (which) {
	case RESOURCE_VCPU:
		value_number(&r->vcpu, text, what, "vcpu", 1, SBX_VCPU_MAX);
		break;
	case RESOURCE_MEMORY:
		value_number(&r->memory_mib, text, what, "memory",
		    SBX_MEMORY_MIN_MIB, SBX_MEMORY_MAX_MIB);
		break;
	case RESOURCE_DISK:
		value_number(&r->disk_mib, text, what, "disk",
		    SBX_DISK_MIN_MIB, SBX_DISK_MAX_MIB);
		break;
	case RESOURCE_TIMEOUT:
		value_number(&r->timeout_s, text, what, "timeout", 1,
		    SBX_TIMEOUT_MAX_S);
		break;
	}
}

void
value_path(char *out, size_t size, const char *text, const char *what)
{
	if (text[0] != '/')
		conf_fault("%s: \"%s\" does not start with a slash", what,
		    text);
	else if (strlcpy(out, text, size) >= size)
		conf_fault("%s: path is longer than %zu bytes", what, size - 1);
}

void
value_tag(struct config *conf, const char *text)
{
	if (!tag_valid(text))
		conf_fault("tag: \"%s\" is not %d characters of a-z and 2-7",
		    text, SBX_TAG_LEN);
	else
		(void)strlcpy(conf->tag, text, sizeof(conf->tag));
}

void
value_group(struct config *conf, const char *text)
{
	const struct group	*gr;

	if (isdigit((unsigned char)text[0])) {
		value_number(&conf->socket_gid, text, "socket", "group", 0,
		    CONF_UID_MAX);
		return;
	}
	gr = getgrnam(text);
	if (gr == NULL)
		conf_fault("socket group: there is no group \"%s\"", text);
	else
		conf->socket_gid = gr->gr_gid;
}

void
value_mode(struct config *conf, const char *text)
{
	unsigned long	 mode;
	char		*end;

	mode = strtoul(text, &end, 8);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' ||
	    (mode & ~0666UL) != 0 || (mode & 0600) != 0600)
		conf_fault("socket mode: \"%s\" is not an octal mode of 0600 "
		    "to 0666 without execute bits", text);
	else
		conf->socket_mode = (uint32_t)mode;
}

/* A user's name, or "UID:GID" for those who keep no passwd entry. */
void
value_user(uint32_t *uid, uint32_t *gid, const char *text, const char *what)
{
	const struct passwd	*pw;
	char			 copy[32], *colon;

	if (isdigit((unsigned char)text[0])) {
		if (strlcpy(copy, text, sizeof(copy)) >= sizeof(copy) ||
		    (colon = strchr(copy, ':')) == NULL) {
			conf_fault("%s: \"%s\" is neither a name nor UID:GID",
			    what, text);
			return;
		}
		*colon = '\0';
		value_number(uid, copy, what, "uid", 1, CONF_UID_MAX);
		value_number(gid, colon + 1, what, "gid", 1, CONF_UID_MAX);
		return;
	}
	pw = getpwnam(text);
	if (pw == NULL) {
		conf_fault("%s: there is no user \"%s\"", what, text);
	} else if (pw->pw_uid == 0 || pw->pw_gid == 0) {
		conf_fault("%s: \"%s\" has uid or gid 0", what, text);
	} else {
		*uid = pw->pw_uid;
		*gid = pw->pw_gid;
	}
}

static int
get_address(uint32_t *out, const char *text)
{
	struct in_addr	 in;

	if (inet_pton(AF_INET, text, &in) != 1)
		return -1;
	*out = ntohl(in.s_addr);
	return 0;
}

void
value_pool(struct config *conf, const char *text)
{
	char		 copy[32], *slash;
	uint32_t	 a, prefix = 0, mask;

	if (strlcpy(copy, text, sizeof(copy)) >= sizeof(copy) ||
	    (slash = strchr(copy, '/')) == NULL) {
		conf_fault("pool: \"%s\" is not A.B.C.D/N", text);
		return;
	}
	*slash = '\0';
	if (get_address(&a, copy) == -1) {
		conf_fault("pool: \"%s\" is not A.B.C.D/N", text);
		return;
	}
	value_number(&prefix, slash + 1, "pool", "prefix", CONF_POOL_PREFIX_MIN,
	    SLOT_PREFIX);
	if (prefix == 0)
		return;
	mask = UINT32_MAX << (32 - prefix);
	if ((a & ~mask) != 0)
		conf_fault("pool: %s has bits set beyond its prefix", text);
	else if (a >> 24 == 0 || a >> 24 == 127 || a >> 24 >= 224)
		conf_fault("pool: %s holds no addresses of hosts", text);
	else {
		conf->pool = a;
		conf->pool_prefix = prefix;
	}
}

void
value_dns(struct config *conf, const char *text)
{
	uint32_t	 a;

	if (get_address(&a, text) == -1)
		conf_fault("dns: \"%s\" is not an IPv4 address", text);
	else if (conf->dns_count == SBX_DNS_MAX)
		conf_fault("dns: more than %d addresses", SBX_DNS_MAX);
	else
		conf->dns[conf->dns_count++] = a;
}
