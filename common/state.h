/* SPDX-License-Identifier: ISC */
/*
 * A sandbox's states and what happens when its client vanishes, as numbers in
 * messages and as words in the API and the ledger.
 */
#ifndef SBX_STATE_H
#define SBX_STATE_H

enum sandbox_state {
	STATE_NONE = 0,
	STATE_CREATING,
	STATE_RUNNING,
	STATE_PAUSED,
	STATE_DELETING,
	STATE_FAILED,
	STATE_GONE,		/* "deleted": only a key still knows it */
	STATE_COUNT
};

enum on_disconnect {
	ON_DISCONNECT_UNSET = 0,	/* the default, or the sandbox's own */
	ON_DISCONNECT_DELETE,
	ON_DISCONNECT_KEEP,
	ON_DISCONNECT_COUNT
};

/* "creating", "running", ...; "unknown" out of range. */
const char	*state_name(unsigned int);
/* "", "delete", "keep". */
const char	*on_disconnect_name(unsigned int);
/* STATE_NONE / ON_DISCONNECT_COUNT when no such word. */
enum sandbox_state	state_by_name(const char *);
enum on_disconnect	on_disconnect_by_name(const char *);

#endif
