/* SPDX-License-Identifier: ISC */
/*
 * The front process's own state and the set-up of it.  front is the only place
 * where bytes of clients and bytes of guests meet; both may be hostile.  It
 * holds no privilege, and what it asks of the parent is checked there again.
 */
#ifndef SBX_FRONT_H
#define SBX_FRONT_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "msg_send.h"

struct confine;
struct event_base;
struct ipeer;

#define FRONT_IO_BYTES	65536	/* one read of one guest a turn */

struct front {
	struct event_base		*base;
	struct ipeer			*parent;
	int				 listener;	/* -1: not yet */
	struct m_parent_setup_front	 setup;
	/* Bytes of one read; nothing is kept here between two turns. */
	uint8_t				 io[FRONT_IO_BYTES];
};
extern struct front front;

/* Milliseconds as libevent takes them. */
struct timeval	front_time(unsigned int);

/* front_confine.c: what is left to this process after its set-up. */
void		front_confine(struct confine *, uint32_t uid, uint32_t gid,
		    const char *root);

/* The end: every stream is told, then exit(0). */
void		front_stop(const char *) __attribute__((noreturn));

#endif
