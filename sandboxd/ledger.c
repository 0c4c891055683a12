/* SPDX-License-Identifier: ISC */
/*
 * Writing the ledger; the parent only.  A change is a line put into a buffer;
 * at the end of the loop's turn all lines go out with one write and one
 * fdatasync, and then those who wait for them go on.  The log is preallocated:
 * a full disk refuses new sandboxes, never the end of an old one.
 */
#include <sys/stat.h>

#include <bsd/sys/queue.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <json-c/json.h>

#include "clock.h"
#include "ledger.h"
#include "log.h"

#define LOG_BYTES	(4LL << 20)	/* preallocated */
#define LOG_RESERVE	(1LL << 20)	/* for marks and drops only */
#define LOG_COMPACT	(2LL << 20)	/* used: time to rewrite state.json */
#define COMPACT_AGAIN_MS 1000		/* after one that failed */

struct after {
	TAILQ_ENTRY(after)	 entry;
	unsigned long		 turn;		/* the flush that it waits for */
	ledger_done_cb		 cb;
	void			*arg;
};

struct ledger {
	int			 dir;
	int			 log;
	struct ledger_position	 pos;
	unsigned int		 number;	/* of the log file */
	char			*buf;
	size_t			 len;
	size_t			 size;
	struct event		*flush;
	ledger_dump_cb		 dump;
	void			*dump_arg;
	int			 failed;	/* the last write did */
	struct boottime		 compact_after;	/* it failed: not before, 0 */
	unsigned long		 turn;		/* flushes so far */
	TAILQ_HEAD(afters, after) afters;
};

static void	ledger_on_flush(evutil_socket_t, short, void *);

static int
open_log(struct ledger *l, const char *name, int create)
{
	int	 fd;

	fd = openat(l->dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW |
	    (create ? O_CREAT | O_TRUNC : 0), 0600);
	if (fd == -1)
		return -1;
	errno = create ? posix_fallocate(fd, 0, LOG_BYTES) : 0;
	if (errno != 0 || (create && fsync(fd) == -1)) {
		(void)close(fd);
		(void)unlinkat(l->dir, name, 0);
		return -1;
	}
	return fd;
}

static int
write_at(int fd, const char *p, size_t len, long long offset)
{
	ssize_t	 n;

	while (len > 0) {
		n = pwrite(fd, p, len, offset);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		len -= (size_t)n;
		offset += n;
	}
	return 0;
}

/*
 * Zeros behind the last whole line: a torn one must not come back to life.
 * Written, not cut off: on a full disk what is given back is lost.
 */
static int
clear_tail(struct ledger *l)
{
	static const char	 zeros[65536];
	long long		 at = l->pos.offset, left;
	struct stat		 st;

	if (fstat(l->log, &st) == -1)
		return -1;
	for (; at < st.st_size; at += left) {
		left = st.st_size - at;
		if (left > (long long)sizeof(zeros))
			left = sizeof(zeros);
		if (write_at(l->log, zeros, (size_t)left, at) == -1)
			return -1;
	}
	errno = st.st_size < LOG_BYTES ?
	    posix_fallocate(l->log, 0, LOG_BYTES) : 0;
	return errno != 0 ? -1 : fsync(l->log);
}

/* Logs and drafts that a crash in a compaction has left. */
static void
remove_strays(struct ledger *l)
{
	struct dirent	*d;
	DIR		*dir;
	int		 fd;

	fd = openat(l->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd != -1 ? fdopendir(fd) : NULL;
	if (dir == NULL) {
		if (fd != -1)
			(void)close(fd);
		return;
	}
	while ((d = readdir(dir)) != NULL)
		if ((strncmp(d->d_name, "log.", 4) == 0 &&
		    strcmp(d->d_name, l->pos.log) != 0) ||
		    strcmp(d->d_name, "state.json.new") == 0)
			(void)unlinkat(l->dir, d->d_name, 0);
	(void)closedir(dir);
}

struct ledger *
ledger_open(const char *dir, const struct ledger_position *pos,
    struct event_base *base, ledger_dump_cb dump, void *arg, char *err,
    size_t errlen)
{
	struct ledger	*l;

	l = calloc(1, sizeof(*l));
	if (l == NULL) {
		(void)snprintf(err, errlen, "out of memory");
		return NULL;
	}
	*l = (struct ledger){ .dir = -1, .log = -1, .pos = *pos,
	    .dump = dump, .dump_arg = arg };
	TAILQ_INIT(&l->afters);
	l->flush = event_new(base, -1, 0, ledger_on_flush, l);
	l->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->flush == NULL || l->dir == -1)
		goto fail;
	if (pos->log[0] == '\0') {
		if (ledger_compact(l) == -1)
			goto fail;
		return l;
	}
	remove_strays(l);
	l->number = (unsigned int)strtoul(pos->log + 4, NULL, 10);
	l->log = open_log(l, pos->log, 0);
	if (l->log == -1 || clear_tail(l) == -1)
		goto fail;
	return l;
fail:
	(void)snprintf(err, errlen, "%s: %s", dir, strerror(errno));
	if (l->flush != NULL)
		event_free(l->flush);
	if (l->dir != -1)
		(void)close(l->dir);
	if (l->log != -1)
		(void)close(l->log);
	free(l);
	return NULL;
}

static int
reserve(struct ledger *l, size_t more)
{
	size_t	 size;
	char	*buf;

	if (l->len + more <= l->size)
		return 0;
	size = (l->len + more) * 2;
	buf = realloc(l->buf, size);
	if (buf == NULL)
		return -1;
	l->buf = buf;
	l->size = size;
	return 0;
}

static int
append(struct ledger *l, const char *verb, const char *name,
    struct json_object *value, long long bound)
{
	struct json_object	*line;
	const char		*text;
	size_t			 len;

	line = json_object_new_object();
	if (line == NULL)
		return -1;
	json_object_object_add(line, "n",
	    json_object_new_uint64(l->pos.seq + 1));
	json_object_object_add(line, verb, json_object_new_string(name));
	if (value != NULL)
		json_object_object_add(line, "value", json_object_get(value));
	text = json_object_to_json_string_length(line,
	    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	if (text == NULL || reserve(l, len + 32) == -1 ||
	    l->pos.offset + (long long)(l->len + len + 32) > bound) {
		json_object_put(line);
		return -1;
	}
	ledger_sum(text, len, l->buf + l->len);
	l->buf[l->len + 16] = ' ';
	memcpy(l->buf + l->len + 17, text, len);
	l->buf[l->len + 17 + len] = '\n';
	l->len += len + 18;
	l->pos.seq++;
	json_object_put(line);
	event_active(l->flush, EV_TIMEOUT, 0);
	return 0;
}

int
ledger_put(struct ledger *l, const char *name, struct json_object *value)
{
	return append(l, "put", name, value, LOG_BYTES - LOG_RESERVE);
}

int
ledger_mark(struct ledger *l, const char *name, struct json_object *members)
{
	return append(l, "mark", name, members, LOG_BYTES);
}

int
ledger_drop(struct ledger *l, const char *name)
{
	return append(l, "drop", name, NULL, LOG_BYTES);
}

void
ledger_after(struct ledger *l, ledger_done_cb cb, void *arg)
{
	struct after	*a;

	a = malloc(sizeof(*a));
	if (a == NULL) {
		cb(0, arg);
		return;
	}
	a->turn = l->turn;
	a->cb = cb;
	a->arg = arg;
	TAILQ_INSERT_TAIL(&l->afters, a, entry);
	event_active(l->flush, EV_TIMEOUT, 0);
}

void
ledger_forget(struct ledger *l, void *arg)
{
	struct after	*a, *next;

	TAILQ_FOREACH_SAFE(a, &l->afters, entry, next)
		if (a->arg == arg) {
			TAILQ_REMOVE(&l->afters, a, entry);
			free(a);
		}
}

/* After a failed write the lines stay in the buffer and are tried again. */
int
ledger_flush(struct ledger *l)
{
	if (l->len == 0)
		return 0;
	if (write_at(l->log, l->buf, l->len, l->pos.offset) == -1 ||
	    fdatasync(l->log) == -1) {
		if (!l->failed)
			log_warn("ledger: %s", l->pos.log);
		l->failed = 1;
		return -1;
	}
	l->failed = 0;
	l->pos.offset += (long long)l->len;
	l->len = 0;
	return 0;
}

static void
ledger_on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct ledger	*l = arg;
	struct after	*a;
	unsigned long	 turn = l->turn++;
	int		 ok;

	(void)fd;
	(void)what;
	ok = ledger_flush(l) == 0;
	/* What a callback adds belongs to the next turn's flush. */
	while ((a = TAILQ_FIRST(&l->afters)) != NULL && a->turn <= turn) {
		TAILQ_REMOVE(&l->afters, a, entry);
		a->cb(ok, a->arg);
		free(a);
	}
	/* On a full disk it would fail after every change. */
	if (ok && l->pos.offset > LOG_COMPACT &&
	    boottime_now().ms >= l->compact_after.ms)
		(void)ledger_compact(l);
}

static char *
body_text(struct ledger *l, const char *log, size_t *len)
{
	struct json_object	*root, *body, *entries;
	const char		*text;
	char			 sum[17], *copy = NULL;

	root = json_object_new_object();
	body = json_object_new_object();
	entries = json_object_new_object();
	json_object_object_add(body, "log", json_object_new_string(log));
	json_object_object_add(body, "seq", json_object_new_uint64(l->pos.seq));
	json_object_object_add(body, "entries", entries);
	l->dump(entries, l->dump_arg);
	text = json_object_to_json_string_length(body,
	    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, len);
	if (text != NULL) {
		ledger_sum(text, *len, sum);
		json_object_object_add(root, "version", json_object_new_int(1));
		json_object_object_add(root, "sum", json_object_new_string(sum));
		json_object_object_add(root, "body", json_object_get(body));
		text = json_object_to_json_string_length(root,
		    JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE,
		    len);
		copy = text != NULL ? strdup(text) : NULL;
	}
	json_object_put(body);
	json_object_put(root);
	return copy;
}

static int
replace_state(struct ledger *l, const char *text, size_t len)
{
	int	 fd, r;

	fd = openat(l->dir, "state.json.new",
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return -1;
	r = write_at(fd, text, len, 0);
	if (r == 0)
		r = write_at(fd, "\n", 1, (long long)len);
	if (r == 0)
		r = fsync(fd);
	if (close(fd) == -1)
		r = -1;
	if (r == 0)
		r = renameat(l->dir, "state.json.new", l->dir, "state.json");
	if (r == 0)
		r = fsync(l->dir);
	return r;
}

int
ledger_compact(struct ledger *l)
{
	char	 name[32], *text = NULL;
	size_t	 len;
	int	 fd, r = -1;

	if (ledger_flush(l) == -1)
		return -1;
	(void)snprintf(name, sizeof(name), "log.%u", l->number + 1);
	fd = open_log(l, name, 1);
	if (fd != -1)
		text = body_text(l, name, &len);
	if (text != NULL)
		r = replace_state(l, text, len);
	free(text);
	if (r == -1) {
		if (l->compact_after.ms == 0)
			log_warn("ledger: compaction to %s", name);
		l->compact_after.ms = boottime_now().ms + COMPACT_AGAIN_MS;
		if (fd != -1) {
			(void)close(fd);
			(void)unlinkat(l->dir, name, 0);
		}
		return -1;
	}
	if (l->log != -1) {
		(void)close(l->log);
		(void)unlinkat(l->dir, l->pos.log, 0);
	}
	l->log = fd;
	l->number++;
	l->pos.offset = 0;
	l->compact_after.ms = 0;
	(void)snprintf(l->pos.log, sizeof(l->pos.log), "%s", name);
	return 0;
}
