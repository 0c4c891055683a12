/* SPDX-License-Identifier: ISC */
/*
 * The ledger: what exists, written before it exists.  A map from names to JSON
 * objects, kept in two files of the state directory:
 *
 *	state.json	{"version":1,"sum":"...","body":{"log":"log.N",
 *			"seq":S,"entries":{NAME:OBJECT,...}}}: one valid,
 *			readable file, replaced by rename
 *	log.N		what has changed since, a line for each change:
 *			SUM SP {"n":S+1,"put":NAME,"value":OBJECT} LF
 *			SUM SP {"n":S+2,"mark":NAME,"value":MEMBERS} LF
 *			SUM SP {"n":S+3,"drop":NAME} LF
 *			then zeros (preallocated, so that a delete can still be
 *			recorded on a full disk)
 *
 * SUM is the first 16 hex digits of the SHA-256 of the JSON text.  A torn last
 * line was never acknowledged and is dropped; anything else that does not check
 * refuses the ledger.  Names: "host", "sandbox/<id>", "key/<owner>/<key>".
 */
#ifndef SBX_LEDGER_H
#define SBX_LEDGER_H

#include <stddef.h>

struct event_base;
struct json_object;
struct ledger;

/* ---- reading (ledger_read.c): parent at start, sandboxctl doctor ---- */

struct ledger_position {
	char			 log[32];	/* name of the log file */
	unsigned long long	 seq;		/* of the last change */
	long long		 offset;	/* where the log's text ends */
};
/*
 * The entries as a JSON object NAME -> OBJECT, which the caller owns.  An
 * absent ledger is empty.  NULL: it is damaged or unreadable, err says how.
 * pos may be NULL.
 */
struct json_object	*ledger_read(const char *dir, struct ledger_position *,
			    char *err, size_t);
/* SUM of a text: 16 hex digits and NUL. */
void			 ledger_sum(const char *, size_t, char *);

/* ---- writing (ledger.c): parent only ---- */

/* Fills the entries anew for a compaction; the map takes what is added. */
typedef void	(*ledger_dump_cb)(struct json_object *entries, void *);
/* Called when the changes made before have reached the disk (ok), or not. */
typedef void	(*ledger_done_cb)(int ok, void *);

/* After ledger_read() said where it ends.  NULL: err says why. */
struct ledger	*ledger_open(const char *dir, const struct ledger_position *,
		    struct event_base *, ledger_dump_cb, void *, char *err,
		    size_t);
/*
 * Changes; they borrow the value.  0, or -1 when there is no room: a put keeps
 * a reserve that only marks and drops may use.
 */
int		 ledger_put(struct ledger *, const char *name,
		    struct json_object *);
int		 ledger_mark(struct ledger *, const char *name,
		    struct json_object *members);
int		 ledger_drop(struct ledger *, const char *name);
/* Called back after one flush for all changes of this turn of the loop. */
void		 ledger_after(struct ledger *, ledger_done_cb, void *);
/* Forget the callbacks that would get this argument. */
void		 ledger_forget(struct ledger *, void *);
/* Flush now, at start-up and stop.  0 or -1. */
int		 ledger_flush(struct ledger *);
/* Rewrites state.json and starts an empty log.  0 or -1. */
int		 ledger_compact(struct ledger *);

#endif
