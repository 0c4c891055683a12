/* SPDX-License-Identifier: ISC */
/*
 * Reading the ledger.  Used by the parent at its start and by sandboxctl
 * doctor.  The files are root's own, but may have been cut or damaged by a
 * crash or a full disk: nothing in them is believed that does not check.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "ledger.h"

#define LEDGER_FILE_MAX	(256LL << 20)
#define SUM_LEN		16

void
ledger_sum(const char *text, size_t len, char *out)
{
	static const char	 hex[] = "0123456789abcdef";
	uint8_t			 digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX		 ctx;
	int			 i;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)text, len);
	SHA256Final(digest, &ctx);
	for (i = 0; i < SUM_LEN; i++)
		out[i] = hex[digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
	out[SUM_LEN] = '\0';
}

/* The whole file, NUL behind it; NULL with errno. */
static char *
read_file(const char *dir, const char *name, size_t *len)
{
	char		 path[4096];
	struct stat	 st;
	char		*text = NULL;
	ssize_t		 n;
	size_t		 have = 0;
	int		 fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return NULL;
	if (fstat(fd, &st) == -1)
		goto fail;
	if (!S_ISREG(st.st_mode) || st.st_size > LEDGER_FILE_MAX) {
		errno = EFBIG;
		goto fail;
	}
	text = malloc((size_t)st.st_size + 1);
	if (text == NULL)
		goto fail;
	while (have < (size_t)st.st_size) {
		n = read(fd, text + have, (size_t)st.st_size - have);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			goto fail;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	(void)close(fd);
	text[have] = '\0';
	*len = have;
	return text;
fail:
	(void)close(fd);
	free(text);
	return NULL;
}

static struct json_object *
parse(const char *text, size_t len)
{
	struct json_tokener	*tok;
	struct json_object	*o;

	tok = json_tokener_new_ex(16);
	if (tok == NULL)
		return NULL;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	o = json_tokener_parse_ex(tok, text, (int)len);
	if (json_tokener_get_error(tok) != json_tokener_success ||
	    json_tokener_get_parse_end(tok) != len ||
	    !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		o = NULL;
	}
	json_tokener_free(tok);
	return o;
}

static const char *
get_string(struct json_object *o, const char *name)
{
	struct json_object	*v;

	if (!json_object_object_get_ex(o, name, &v) ||
	    !json_object_is_type(v, json_type_string))
		return NULL;
	return json_object_get_string(v);
}

static int
get_seq(struct json_object *o, const char *name, unsigned long long *out)
{
	struct json_object	*v;

	if (!json_object_object_get_ex(o, name, &v) ||
	    !json_object_is_type(v, json_type_int))
		return -1;
	*out = json_object_get_uint64(v);
	return 0;
}

/* Checks state.json's frame; gives the entries and the position. */
static struct json_object *
open_body(struct json_object *root, struct ledger_position *pos)
{
	struct json_object	*body, *entries;
	unsigned long long	 version;
	const char		*sum, *log, *text;
	char			 want[SUM_LEN + 1];

	sum = get_string(root, "sum");
	if (get_seq(root, "version", &version) == -1 || version != 1 ||
	    sum == NULL || !json_object_object_get_ex(root, "body", &body))
		return NULL;
	text = json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN |
	    JSON_C_TO_STRING_NOSLASHESCAPE);
	ledger_sum(text, strlen(text), want);
	log = get_string(body, "log");
	if (strcmp(sum, want) != 0 || log == NULL ||
	    strncmp(log, "log.", 4) != 0 || strchr(log, '/') != NULL ||
	    strlen(log) >= sizeof(pos->log) ||
	    get_seq(body, "seq", &pos->seq) == -1 ||
	    !json_object_object_get_ex(body, "entries", &entries) ||
	    !json_object_is_type(entries, json_type_object))
		return NULL;
	(void)strcpy(pos->log, log);
	return json_object_get(entries);
}

static void
merge(struct json_object *into, struct json_object *members)
{
	json_object_object_foreach(members, name, value)
		json_object_object_add(into, name, json_object_get(value));
}

/* One checked line of the log.  0, or -1: it makes no sense. */
static int
apply(struct json_object *entries, struct json_object *change,
    struct ledger_position *pos)
{
	struct json_object	*value, *old;
	unsigned long long	 n;
	const char		*name;
	int			 has_value;

	if (get_seq(change, "n", &n) == -1 || n != pos->seq + 1)
		return -1;
	has_value = json_object_object_get_ex(change, "value", &value) &&
	    json_object_is_type(value, json_type_object);
	if ((name = get_string(change, "put")) != NULL && has_value) {
		json_object_object_add(entries, name, json_object_get(value));
	} else if ((name = get_string(change, "mark")) != NULL && has_value) {
		if (!json_object_object_get_ex(entries, name, &old))
			return -1;
		merge(old, value);
	} else if ((name = get_string(change, "drop")) != NULL) {
		json_object_object_del(entries, name);
	} else {
		return -1;
	}
	pos->seq = n;
	return 0;
}

/* Length of a whole line that checks, with its LF; 0 if this is none. */
static size_t
check_line(const char *p, size_t left)
{
	const char	*end;
	char		 want[SUM_LEN + 1];
	size_t		 len;

	end = memchr(p, '\n', left);
	if (end == NULL)
		return 0;
	len = (size_t)(end - p);
	if (len < SUM_LEN + 2 || p[SUM_LEN] != ' ')
		return 0;
	ledger_sum(p + SUM_LEN + 1, len - SUM_LEN - 1, want);
	return memcmp(p, want, SUM_LEN) == 0 ? len + 1 : 0;
}

/*
 * Is there a line that checks anywhere behind the first that does not?  Looked
 * for at every byte: the damage may be to the LF between two lines.
 */
static int
more_lines(const char *p, size_t left)
{
	while (left > SUM_LEN + 2) {
		p++;
		left--;
		if (p[SUM_LEN] == ' ' && p[SUM_LEN + 1] == '{' &&
		    check_line(p, left) != 0)
			return 1;
	}
	return 0;
}

static int
replay(const char *text, size_t len, struct json_object *entries,
    struct ledger_position *pos, char *err, size_t errlen)
{
	struct json_object	*change;
	size_t			 at = 0, n;
	int			 r;

	while (at < len && (n = check_line(text + at, len - at)) != 0) {
		change = parse(text + at + SUM_LEN + 1, n - SUM_LEN - 2);
		r = change == NULL ? -1 : apply(entries, change, pos);
		json_object_put(change);
		if (r == -1) {
			(void)snprintf(err, errlen, "%s: the change at byte "
			    "%zu does not follow from what is before it",
			    pos->log, at);
			return -1;
		}
		at += n;
	}
	if (at < len && text[at] != '\0' && more_lines(text + at, len - at)) {
		(void)snprintf(err, errlen, "%s: damaged at byte %zu, with "
		    "good changes behind it", pos->log, at);
		return -1;
	}
	pos->offset = (long long)at;
	return 0;
}

static struct json_object *
read_state(const char *dir, struct ledger_position *pos, char *err, size_t errlen)
{
	struct json_object	*root, *entries;
	char			*text;
	size_t			 len;

	text = read_file(dir, "state.json", &len);
	if (text == NULL && errno == ENOENT)
		return json_object_new_object();
	if (text == NULL) {
		(void)snprintf(err, errlen, "state.json: %s", strerror(errno));
		return NULL;
	}
	while (len > 0 && text[len - 1] == '\n')
		len--;
	root = parse(text, len);
	entries = root != NULL ? open_body(root, pos) : NULL;
	if (entries == NULL)
		(void)snprintf(err, errlen, "state.json: damaged (cut short, "
		    "changed by hand, or of another version)");
	json_object_put(root);
	free(text);
	return entries;
}

struct json_object *
ledger_read(const char *dir, struct ledger_position *where, char *err,
    size_t errlen)
{
	struct ledger_position	 pos;
	struct json_object	*entries;
	char			*text;
	size_t			 len;
	int			 tries, r;

	/* A compaction between the two reads takes the log away: again. */
	for (tries = 0; tries < 5; tries++) {
		memset(&pos, 0, sizeof(pos));
		entries = read_state(dir, &pos, err, errlen);
		if (entries == NULL || pos.log[0] == '\0')
			break;
		text = read_file(dir, pos.log, &len);
		if (text == NULL) {
			(void)snprintf(err, errlen, "%s: %s", pos.log,
			    strerror(errno));
			json_object_put(entries);
			entries = NULL;
			continue;
		}
		r = replay(text, len, entries, &pos, err, errlen);
		free(text);
		if (r == -1) {
			json_object_put(entries);
			entries = NULL;
		}
		break;
	}
	if (entries != NULL && where != NULL)
		*where = pos;
	return entries;
}
