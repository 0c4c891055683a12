/* SPDX-License-Identifier: ISC */
/*
 * A sandbox's record between memory and the ledger.
 */
#ifndef SBX_RECORD_H
#define SBX_RECORD_H

struct json_object;
struct sandbox;
struct old_key;

/* Writes the whole record, or only what a state change touches. 0 or -1. */
int	record_put(struct sandbox *);
int	record_mark(const struct sandbox *);
/* The end of a record; its key, if any, is retired in the same flush. */
int	record_drop(const struct sandbox *);
/* This boot of the host is the ledger's from now on. */
int	record_mark_host(void);
/* All records, for the ledger's compaction. */
void	record_dump(struct json_object *, void *);
/*
 * Fills the tables from the ledger's entries.  0, or -1 with the entry's name
 * in err: a record that makes no sense refuses the ledger.  -2: it makes sense,
 * but not under this configuration.
 */
int	record_load(struct json_object *, char *err, unsigned long);
/* This boot of the host, "" if it cannot be told. */
const char	*record_boot_id(void);
/* Was the ledger written under this boot? (after record_load) */
int	record_same_boot(void);

#endif
