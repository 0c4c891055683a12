/* SPDX-License-Identifier: ISC */
/*
 * What guestd reads from a host, with its own connection and streams: gchan.c,
 * gstream.c and gargs.c are the real ones, commands are played here.  The input
 * is cut into steps: feed bytes, a command writes, a command ends, the host
 * reads.  Whatever comes, the guest's own bytes are well formed, stay within
 * the credit that was given, and every stream is answered at most once.
 */
/* objs: guestd/gchan.o guestd/gstream.o guestd/gargs.o */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "guestd.h"

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

struct guest	guest;

static uint64_t	clock_us;

/* The host's view of what the guest says. */
static struct {
	struct gp_scan	 scan;
	struct gp_reader reader;
	int		 synced;
} host;

static void
check(int good)
{
	if (!good)
		abort();
}

uint64_t
now_us(void)
{
	return clock_us += 10;
}

void
guest_log(const char *fmt, ...)
{
	(void)fmt;
}

int
conf_apply(const uint8_t *p, size_t len, char *text, size_t size)
{
	struct gp_record	 r;
	int			 more;

	while ((more = gp_record_next(&p, &len, &r)) == 1)
		continue;
	memset(text, 'x', size - 1);
	text[size - 1] = '\0';
	return more == 0 ? 0 : EINVAL;
}

int
cmd_start(struct stream *s, struct exec_args *a, int *stage)
{
	size_t	 i;

	/* All that exec would read. */
	for (i = 0; a->argv[i] != NULL; i++)
		check(strlen(a->argv[i]) <= GP_STRING_MAX);
	check(i > 0);
	for (i = 0; i < a->env_count; i++)
		check(strchr(a->envp[i], '=') > a->envp[i]);
	check(a->envp[i] == NULL);
	s->pid = 1;
	*stage = GP_STAGE_RESOURCES;
	return strcmp(a->argv[0], "!") == 0 ? EAGAIN : 0;
}

void
cmd_stdin(struct stream *s, const uint8_t *p, size_t len)
{
	static uint8_t	 stdin_bytes[GP_PAYLOAD_MAX];

	memcpy(stdin_bytes, p, len);
	/* Kept until the "command" reads; credit must hold it in the window. */
	s->in_len += len;
	check(s->in_len <= GP_WINDOW);
}

void
cmd_stdin_eof(struct stream *s)
{
	s->in_eof = 1;
}

void
cmd_signal(struct stream *s, int number, int tree)
{
	check(s->state != STREAM_ARGS && number >= 0 && tree >= 0);
}

void
cmd_resize(struct stream *s)
{
	check(s->state != STREAM_ARGS);
}

void
cmd_kill(struct stream *s)
{
	s->killed = 1;
}

void
cmd_free(struct stream *s)
{
	s->pid = 0;
}

static int
on_frame(const struct gp_frame *f, void *arg)
{
	struct gp_exited	 e;

	(void)arg;
	if (f->type == GP_EXITED)
		check(gp_get_exited(f, &e) == GP_OK);
	if (f->type == GP_REFUSED)
		check(f->payload[0] >= GP_STAGE_RECORDS &&
		    f->payload[0] <= GP_STAGE_RESOURCES);
	return 0;
}

/* The host reads up to max bytes of what the guest has queued. */
static void
host_read(size_t max)
{
	const uint8_t	*p;
	size_t		 len, used, at = 0;

	p = chan_pending(&len);
	if (len > max)
		len = max;
	while (at < len) {
		if (!host.synced) {
			host.synced = gp_scan(&host.scan, p + at, len - at,
			    &used);
			gp_reader_init(&host.reader, GP_TO_HOST);
			at += used;
			continue;
		}
		check(gp_reader_feed(&host.reader, p + at, len - at, on_frame,
		    NULL) == GP_OK);
		at = len;
	}
	chan_sent(len);
}

static void
feed(const uint8_t *p, size_t n)
{
	const uint8_t	*out;
	uint8_t		*copy;
	size_t		 len;

	/* At a frame's end now: what is lost by a new sync is whole frames. */
	host_read(SIZE_MAX);
	/* Its own block, so that a read beyond is seen. */
	copy = malloc(n);
	if (n > 0)
		memcpy(copy, p, n);
	chan_feed(copy, n);
	free(copy);
	out = chan_pending(&len);
	if (len >= GP_SYNC_BYTES && memcmp(out, GP_MAGIC, GP_MAGIC_BYTES) == 0)
		memset(&host, 0, sizeof(host));
}

static struct stream *
nth_stream(unsigned int n)
{
	struct stream	*s;

	for (s = streams; s != NULL && n > 0; s = s->next)
		n--;
	return s;
}

/* One step of a "command": started, writes, reads its stdin, ends. */
static void
command_step(struct stream *s, uint8_t what)
{
	struct gp_exited	 e;
	uint8_t			*room;
	size_t			 n;

	if (s->state == STREAM_ARGS || s->state == STREAM_ENDED)
		return;
	if (s->state == STREAM_STARTING) {
		if (what & 1)
			stream_started(s);
		else
			stream_refused(s, GP_STAGE_EXEC, ENOENT);
		return;
	}
	switch (what & 3) {
	case 0:
		room = chan_data_room();
		if (room == NULL || s->out_credit <= GP_FRAME_COST || s->lost)
			return;
		n = (size_t)what * 128;
		if (n > s->out_credit - GP_FRAME_COST)
			n = s->out_credit - GP_FRAME_COST;
		memset(room, what, n);
		chan_data_put(s->id, GP_STDOUT, n);
		s->out_credit -= n + GP_FRAME_COST;
		return;
	case 1:
		n = s->in_len < 5000 ? s->in_len : 5000;
		s->in_len -= n;
		stream_owe(s, n);
		return;
	case 2:
		chan_put(GP_EOF, GP_STDERR, s->id, NULL, 0);
		return;
	}
	memset(&e, 0, sizeof(e));
	stream_exited(s, &e);
}

static void
finish(void)
{
	struct stream	*s;
	unsigned int	 count = 0;

	streams_lose();
	for (s = streams; s != NULL; s = s->next) {
		s->state = STREAM_ENDED;
		count++;
	}
	check(count <= GP_STREAMS_MAX);
	streams_sweep();
	check(streams == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct stream	*s;
	size_t		 n;

	memset(&host, 0, sizeof(host));
	streams_init(64 << 20);
	chan_init();
	while (len >= 2) {
		switch (p[0] & 3) {
		case 0:
		case 1:
			n = (size_t)(p[0] & 0xfc) * 64 + p[1];
			p += 2;
			len -= 2;
			n = n < len ? n : len;
			feed(p, n);
			p += n;
			len -= n;
			break;
		case 2:
			s = nth_stream(p[0] >> 2);
			if (s != NULL)
				command_step(s, p[1]);
			p += 2;
			len -= 2;
			streams_sweep();
			break;
		default:
			host_read((size_t)p[1] * 97);
			p += 2;
			len -= 2;
		}
	}
	finish();
	return 0;
}
