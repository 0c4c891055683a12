/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/ledger.o sandboxd/ledger_read.o libs: -levent_core -ljson-c -lmd -lbsd */
/*
 * The ledger after everything that a crash can do to it: every prefix of the log
 * loads to the state of an acknowledged change, damage in its middle refuses,
 * compaction loses nothing.
 */
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <event2/event.h>
#include <json-c/json.h>

#include "../../sandboxd/ledger.h"
#include "log.h"
#include "test.h"

TEST_PLAN_AUTO;

#define CHANGES	12

static char	dir[] = "/tmp/ledger-test.XXXXXX";
static long	ends[CHANGES + 1];	/* where the log ended after change i */
static char	*states[CHANGES + 1];	/* what it then said */

static struct json_object *
dump_of(const char *where, char *err, size_t errlen)
{
	return ledger_read(where, NULL, err, errlen);
}

/* Compaction asks the owner; here the owner is the file itself. */
static void
dump_cb(struct json_object *entries, void *arg)
{
	struct json_object	*now = *(struct json_object **)arg;

	if (now == NULL)
		return;
	json_object_object_foreach(now, name, value)
		json_object_object_add(entries, name, json_object_get(value));
}

static char *
text_of(const char *where)
{
	struct json_object	*o;
	char			 err[256] = "", *text;

	o = dump_of(where, err, sizeof(err));
	if (o == NULL)
		return NULL;
	text = strdup(json_object_to_json_string(o));
	json_object_put(o);
	return text;
}

static struct json_object *
sandbox(int n, const char *state)
{
	struct json_object	*o;

	o = json_object_new_object();
	json_object_object_add(o, "state", json_object_new_string(state));
	json_object_object_add(o, "slot", json_object_new_int(n));
	/* What clients may put there: NUL, quotes, bytes that are not UTF-8. */
	json_object_object_add(o, "env",
	    json_object_new_string_len("A=\"\0B=\xff\n\\\0", 10));
	return o;
}

static void
change(struct ledger *l, int i)
{
	struct json_object	*o;
	char			 name[64];

	(void)snprintf(name, sizeof(name), "sandbox/sb-%d", i / 3);
	if (i % 3 == 2) {
		(void)ledger_drop(l, name);
		return;
	}
	o = sandbox(i, i % 3 == 0 ? "creating" : "running");
	if (i % 3 == 0) {
		(void)ledger_put(l, name, o);
	} else {
		json_object_object_del(o, "env");
		(void)ledger_mark(l, name, o);
	}
	json_object_put(o);
}

static void
path_in(char *out, size_t size, const char *where, const char *name)
{
	(void)snprintf(out, size, "%s/%s", where, name);
}

static char *
slurp(const char *where, const char *name, size_t *len)
{
	char	 path[256], *text;
	FILE	*f;

	path_in(path, sizeof(path), where, name);
	f = fopen(path, "r");
	if (f == NULL)
		return NULL;
	text = calloc(1, 1 << 23);
	*len = fread(text, 1, (1 << 23) - 1, f);
	(void)fclose(f);
	return text;
}

static void
spill(const char *where, const char *name, const char *text, size_t len)
{
	char	 path[256];
	FILE	*f;

	path_in(path, sizeof(path), where, name);
	f = fopen(path, "w");
	(void)fwrite(text, 1, len, f);
	(void)fclose(f);
}

static char	*log_text, *state_text;
static size_t	 log_len, state_len;
static char	 log_name[32];

static void
record_history(struct event_base *base)
{
	struct json_object	*none = NULL;
	struct ledger_position	 pos;
	static struct ledger	*l;	/* never closed: stays reachable */
	char			 err[256] = "";
	int			 i;

	memset(&pos, 0, sizeof(pos));
	l = ledger_open(dir, &pos, base, dump_cb, &none, err, sizeof(err));
	ok(l != NULL, "open: an empty directory -> a new ledger (%s)", err);
	for (i = 0; i <= CHANGES; i++) {
		json_object_put(ledger_read(dir, &pos, err, sizeof(err)));
		ends[i] = (long)pos.offset;
		states[i] = text_of(dir);
		if (i < CHANGES)
			change(l, i);
		(void)ledger_flush(l);
	}
	(void)strcpy(log_name, pos.log);
	log_text = slurp(dir, log_name, &log_len);
	state_text = slurp(dir, "state.json", &state_len);
	ok(ends[0] == 0 && ends[CHANGES] > 500, "log: grows with each change");
	ok(log_len > (size_t)ends[CHANGES], "log: preallocated");
	/* Enough zeros for the damage below, and quicker to copy. */
	log_len = (size_t)ends[CHANGES] + 512;
}

/* Power lost at every byte: a prefix, then nothing or zeros. */
static void
cut_everywhere(const char *scratch, int zeros)
{
	char	*copy, *text;
	long	 cut;
	int	 i = 0, bad = 0;

	copy = malloc(log_len);
	for (cut = 0; cut <= ends[CHANGES]; cut++) {
		while (i < CHANGES && ends[i + 1] <= cut)
			i++;
		memcpy(copy, log_text, log_len);
		memset(copy + cut, 0, log_len - (size_t)cut);
		spill(scratch, log_name, copy, zeros ? log_len : (size_t)cut);
		text = text_of(scratch);
		if (text == NULL || strcmp(text, states[i]) != 0)
			bad++;
		free(text);
	}
	is_int(bad, 0, "log cut at every byte (%s): the last whole change",
	    zeros ? "zeros behind" : "file ends");
	free(copy);
}

/* A bit flipped: the changes before it, or a refusal; never anything else. */
static void
flip_everywhere(const char *scratch)
{
	char	*copy, *text;
	long	 at;
	int	 i, bad = 0, refused = 0;

	copy = malloc(log_len);
	for (at = 0; at < ends[CHANGES]; at++) {
		memcpy(copy, log_text, log_len);
		copy[at] ^= 1 << (at % 8);
		for (i = 0; ends[i + 1] <= at; i++)
			;
		spill(scratch, log_name, copy, log_len);
		text = text_of(scratch);
		if (text == NULL)
			refused++;
		else if (i != CHANGES - 1 || strcmp(text, states[i]) != 0)
			bad++;
		free(text);
	}
	is_int(bad, 0, "log with a flipped bit: refused, or its tail dropped");
	ok(refused > 0 && refused >= ends[CHANGES - 1],
	    "log with a flipped bit before its last change: refused");
	free(copy);
}

static void
state_damage(const char *scratch)
{
	char	*copy, *text;
	size_t	 cut, at;
	int	 bad = 0;

	spill(scratch, log_name, log_text, log_len);
	for (cut = 0; cut + 1 < state_len; cut++) {
		spill(scratch, "state.json", state_text, cut);
		text = text_of(scratch);
		bad += text != NULL;
		free(text);
	}
	is_int(bad, 0, "state.json cut at every byte: refused");
	bad = 0;
	copy = malloc(state_len);
	for (at = 0; at + 1 < state_len; at++) {
		memcpy(copy, state_text, state_len);
		copy[at] ^= 1;
		spill(scratch, "state.json", copy, state_len);
		text = text_of(scratch);
		/* White space may turn into other white space, no more. */
		if (text != NULL && strcmp(text, states[CHANGES]) != 0)
			bad++;
		free(text);
	}
	is_int(bad, 0, "state.json with a flipped bit: refused or the same");
	free(copy);
	spill(scratch, "state.json", state_text, state_len);
}

static void
reorder(const char *scratch)
{
	char	*copy;
	size_t	 a = (size_t)ends[3], b = (size_t)ends[4], c = (size_t)ends[5];
	char	*text;

	copy = malloc(log_len);
	memcpy(copy, log_text, log_len);
	memcpy(copy + a, log_text + b, c - b);
	memcpy(copy + a + (c - b), log_text + a, b - a);
	spill(scratch, log_name, copy, log_len);
	text = text_of(scratch);
	ok(text == NULL, "log with two changes in the wrong order: refused");
	free(text);
	/* A whole change missing in the middle. */
	memcpy(copy, log_text, log_len);
	memmove(copy + a, copy + b, log_len - b);
	spill(scratch, log_name, copy, log_len - (b - a));
	text = text_of(scratch);
	ok(text == NULL, "log with a change missing: refused");
	free(text);
	free(copy);
}

static int	flushed, flush_ok;

static void
count_flush(int good, void *arg)
{
	(void)arg;
	flushed++;
	flush_ok += good;
}

static void
reopen_and_compact(struct event_base *base, const char *scratch)
{
	struct ledger_position	 pos;
	struct json_object	*now, *extra;
	static struct ledger	*l;	/* never closed: stays reachable */
	char			 err[256] = "", *before, *after;
	size_t			 cut = (size_t)ends[CHANGES] - 3;

	/* A torn line, then more changes: it must not come back to life. */
	spill(scratch, "state.json", state_text, state_len);
	spill(scratch, log_name, log_text, cut);
	now = ledger_read(scratch, &pos, err, sizeof(err));
	l = ledger_open(scratch, &pos, base, dump_cb, &now, err, sizeof(err));
	ok(l != NULL, "open: after a torn line (%s)", err);
	extra = sandbox(99, "creating");
	is_int(ledger_put(l, "sandbox/sb-new", extra), 0, "put: after it");
	ledger_after(l, count_flush, NULL);
	ledger_after(l, count_flush, NULL);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	ok(flushed == 2 && flush_ok == 2,
	    "after: called once each, when it is on disk");
	json_object_object_add(now, "sandbox/sb-new", extra);
	before = text_of(scratch);
	is_str(before, json_object_to_json_string(now),
	    "torn line: replaced by what came next");
	is_int(ledger_compact(l), 0, "compact: works");
	after = text_of(scratch);
	is_str(after, before, "compact: says the same as before");
	free(before);
	free(after);
	json_object_put(now);
}

static void
reserve_is_kept(struct event_base *base, const char *scratch)
{
	struct ledger_position	 pos;
	struct json_object	*now, *big;
	static struct ledger	*l;	/* never closed: stays reachable */
	char			 err[256] = "", *blob;
	int			 n;

	now = ledger_read(scratch, &pos, err, sizeof(err));
	l = ledger_open(scratch, &pos, base, dump_cb, &now, err, sizeof(err));
	blob = malloc(60001);
	memset(blob, 'x', 60000);
	blob[60000] = '\0';
	big = json_object_new_object();
	json_object_object_add(big, "env", json_object_new_string(blob));
	for (n = 0; n < 1000; n++)
		if (ledger_put(l, "sandbox/sb-big", big) == -1)
			break;
	ok(n > 10 && n < 1000, "put: refused when the reserve is reached");
	is_int(ledger_drop(l, "sandbox/sb-big"), 0,
	    "drop: still has room when a put has none");
	is_int(ledger_flush(l), 0, "flush: what was taken fits in the log");
	json_object_put(big);
	json_object_put(now);
	free(blob);
}

int
main(void)
{
	char			 scratch[64], command[128];
	struct event_base	*base;

	log_init("ledger_test", 0);
	base = event_base_new();
	if (mkdtemp(dir) == NULL || base == NULL)
		return 1;
	(void)snprintf(scratch, sizeof(scratch), "%s/scratch", dir);
	(void)mkdir(scratch, 0700);
	record_history(base);
	spill(scratch, "state.json", state_text, state_len);
	cut_everywhere(scratch, 0);
	cut_everywhere(scratch, 1);
	flip_everywhere(scratch);
	reorder(scratch);
	state_damage(scratch);
	reopen_and_compact(base, scratch);
	reserve_is_kept(base, scratch);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		return 1;
	return done_testing();
}
