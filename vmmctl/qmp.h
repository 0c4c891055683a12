/* SPDX-License-Identifier: ISC */
/*
 * QEMU's monitor protocol: the bytes of a VMM that a guest may have taken
 * over. The reader is a pure function over bytes (fuzzed); lines are bounded,
 * JSON is read strictly and to a bounded depth, and any fault ends this VM
 * only.
 */
#ifndef SBX_QMP_H
#define SBX_QMP_H

#include <stddef.h>

#include "limits.h"

enum qmp_kind {
	QMP_GREETING,
	QMP_RETURN,		/* status: of query-status, else "" */
	QMP_ERROR,		/* text: its description */
	QMP_PANICKED,		/* event GUEST_PANICKED */
	QMP_SHUTDOWN,		/* event SHUTDOWN; text: its reason */
	QMP_OTHER		/* an event that we have no use for */
};

struct qmp_msg {
	enum qmp_kind	 kind;
	char		 text[128];	/* event, reason or description */
	char		 status[32];
};

struct qmp_reader {
	size_t		 have;
	char		 line[QMP_LINE_MAX];
};

/* Parses one line (no line end in it).  0, or -1: not a message of QMP's. */
int	qmp_parse(const char *, size_t, struct qmp_msg *);
/*
 * Feeds bytes; calls back for each message.  Returns 0, -1 on a fault (the
 * connection is of no use any more), or what the callback returned if not 0.
 */
typedef int	(*qmp_cb)(const struct qmp_msg *, void *);
int	qmp_feed(struct qmp_reader *, const char *, size_t, qmp_cb, void *);

#endif
