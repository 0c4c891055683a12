/* SPDX-License-Identifier: ISC */
/*
 * Which clients' streams are attached to which sandbox.  The parent knows them
 * so that it can tell a client that vanished (on_disconnect applies) from a
 * front that died (clients get time to come back).
 */
#include <stdlib.h>

#include "log.h"
#include "sandboxd.h"

static int
stream_cmp(struct stream *a, struct stream *b)
{
	return a->handle < b->handle ? -1 : a->handle > b->handle;
}

RB_GENERATE(stream_tree, stream, entry, stream_cmp)

struct stream *
stream_attach(struct sandbox *sb, enum on_disconnect od)
{
	struct stream	*s;

	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->sb = sb;
	s->on_disconnect = od == ON_DISCONNECT_UNSET ? sb->on_disconnect : od;
	do {
		arc4random_buf(&s->handle, sizeof(s->handle));
	} while (RB_INSERT(stream_tree, &sandboxd->streams, s) != NULL);
	sb->streams++;
	/* A client has come back. */
	sb->reconnect.ms = 0;
	return s;
}

static void
stream_free(struct stream *s)
{
	(void)RB_REMOVE(stream_tree, &sandboxd->streams, s);
	s->sb->streams--;
	free(s);
}

void
stream_detach(uint64_t handle, int vanished)
{
	struct stream	 want = { .handle = handle };
	struct stream	*s;
	struct sandbox	*sb;
	int		 delete;

	s = RB_FIND(stream_tree, &sandboxd->streams, &want);
	if (s == NULL)
		return;
	sb = s->sb;
	delete = vanished && s->on_disconnect == ON_DISCONNECT_DELETE;
	stream_free(s);
	if (delete && sb->state == STATE_RUNNING)
		life_delete(sb, "client vanished");
}

void
stream_end_all(struct sandbox *sb)
{
	struct stream	*s, *next;

	RB_FOREACH_SAFE(s, stream_tree, &sandboxd->streams, next)
		if (s->sb == sb)
			stream_free(s);
}

void
stream_front_died(void)
{
	struct stream	*s, *next;
	struct boottime	 now = boottime_now();

	RB_FOREACH_SAFE(s, stream_tree, &sandboxd->streams, next) {
		if (s->on_disconnect == ON_DISCONNECT_DELETE)
			s->sb->reconnect.ms = now.ms +
			    1000ULL * sandboxd->conf.reconnect_s;
		stream_free(s);
	}
}
