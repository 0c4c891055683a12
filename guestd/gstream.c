/* SPDX-License-Identifier: ISC */
/*
 * Streams: the table, their credit in both directions and the records they
 * start with.  Knows nothing of processes (gcmd.c); driven by a fuzz target.
 * Every number in a host's frame is checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guestd.h"

struct stream	*streams;

static struct {
	unsigned int	 count;		/* open or lost, not freed */
	uint32_t	 last_id;
	uint64_t	 args_budget;
	uint64_t	 args_reserved;	/* a window each that collects */
	/*
	 * The one stream that may go beyond its first window.  One at a time:
	 * of several that share a budget, none might get to its end.
	 */
	struct stream	*big;
} table;

void
streams_init(uint64_t memory_bytes)
{
	table.args_budget = memory_bytes / GUEST_ARGS_SHARE;
	if (table.args_budget < GUEST_ARGS_MIN)
		table.args_budget = GUEST_ARGS_MIN;
}

static struct stream *
stream_find(uint32_t id)
{
	struct stream	*s;

	for (s = streams; s != NULL; s = s->next)
		if (s->id == id && !s->lost && s->state != STREAM_ENDED)
			return s;
	return NULL;
}

static void
refuse(uint32_t id, int stage, int error)
{
	uint8_t	 buf[5];

	buf[0] = (uint8_t)stage;
	gp_put_u32(buf + 1, (uint32_t)error);
	chan_put(GP_REFUSED, 0, id, buf, sizeof(buf));
}

/* Gives used credit back, in pieces that are worth a frame. */
static void
give_credit(struct stream *s)
{
	uint8_t	 buf[4];

	if (s->in_owed < GP_WINDOW / 4 || s->lost)
		return;
	if (s->state == STREAM_ARGS) {
		if (table.big != NULL && table.big != s)
			return;
		table.big = s;
	}
	gp_put_u32(buf, (uint32_t)s->in_owed);
	s->in_credit += s->in_owed;
	s->in_owed = 0;
	chan_put(GP_CREDIT, 0, s->id, buf, sizeof(buf));
}

void
stream_owe(struct stream *s, size_t bytes)
{
	s->in_owed += bytes;
	give_credit(s);
}

/* The records are no longer needed. */
static void
args_release(struct stream *s)
{
	struct stream	*other;

	free(s->args);
	s->args = NULL;
	s->args_len = s->args_size = 0;
	table.args_reserved -= GP_WINDOW;
	if (table.big != s)
		return;
	table.big = NULL;
	for (other = streams; other != NULL; other = other->next)
		if (other != s && other->state == STREAM_ARGS)
			give_credit(other);
}

static void
stream_end(struct stream *s)
{
	if (s->state == STREAM_ARGS) {
		s->state = STREAM_ENDED;
		args_release(s);
	}
	s->state = STREAM_ENDED;
}

void
stream_refused(struct stream *s, int stage, int error)
{
	if (!s->lost)
		refuse(s->id, stage, error);
	stream_end(s);
}

void
stream_started(struct stream *s)
{
	uint8_t	 buf[4];

	s->state = STREAM_RUNNING;
	gp_put_u32(buf, (uint32_t)s->pid);
	if (!s->lost)
		chan_put(GP_STARTED, 0, s->id, buf, sizeof(buf));
}

void
stream_exited(struct stream *s, const struct gp_exited *e)
{
	uint8_t	 buf[GP_EXITED_BYTES];

	gp_put_exited(buf, e);
	if (!s->lost)
		chan_put(GP_EXITED, 0, s->id, buf, sizeof(buf));
	stream_end(s);
}

static struct stream *
stream_new(uint32_t id)
{
	struct stream	*s;

	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->id = id;
	s->in_credit = s->out_credit = GP_WINDOW;
	s->cgroup_fd = s->exec_fd = s->in_fd = -1;
	s->out_fd[0] = s->out_fd[1] = -1;
	s->next = streams;
	streams = s;
	table.count++;
	return s;
}

static int
stream_open(const struct gp_frame *f)
{
	struct stream	*s;

	if (f->stream <= table.last_id)
		return GP_E_STREAM;
	table.last_id = f->stream;
	if (f->payload[0] != GP_KIND_EXEC) {
		refuse(f->stream, GP_STAGE_RECORDS, EOPNOTSUPP);
		return GP_OK;
	}
	if (table.count >= GP_STREAMS_MAX ||
	    table.args_reserved + GP_WINDOW > table.args_budget) {
		refuse(f->stream, GP_STAGE_RESOURCES, EAGAIN);
		return GP_OK;
	}
	s = stream_new(f->stream);
	if (s == NULL) {
		refuse(f->stream, GP_STAGE_RESOURCES, ENOMEM);
		return GP_OK;
	}
	s->state = STREAM_ARGS;
	table.args_reserved += GP_WINDOW;
	return GP_OK;
}

/* Returns 0 or an errno. */
static int
args_append(struct stream *s, const uint8_t *p, size_t len)
{
	size_t	 size;
	uint8_t	*args;

	if (len > GP_ARGS_MAX - s->args_len)
		return E2BIG;
	if (len == 0)
		return 0;
	if (s->args_len + len > s->args_size) {
		size = s->args_size * 2;
		if (size < s->args_len + len)
			size = s->args_len + len;
		args = realloc(s->args, size);
		if (args == NULL)
			return ENOMEM;
		s->args = args;
		s->args_size = size;
	}
	memcpy(s->args + s->args_len, p, len);
	s->args_len += len;
	return 0;
}

static int
stream_args(struct stream *s, const struct gp_frame *f)
{
	int	 error;

	error = args_append(s, f->payload, f->len);
	if (error == 0)
		stream_owe(s, f->len + GP_FRAME_COST);
	else
		stream_refused(s, error == ENOMEM ? GP_STAGE_RESOURCES :
		    GP_STAGE_RECORDS, error);
	return GP_OK;
}

static void
stream_start(struct stream *s)
{
	struct exec_args	 args;
	int			 error, stage = GP_STAGE_RECORDS;

	/* No ARGS at all: there is no argv, and no memory to cut. */
	error = s->args_len == 0 ? EINVAL :
	    args_parse(s->args, s->args_len, &args);
	if (error == 0) {
		error = cmd_start(s, &args, &stage);
		args_free(&args);
	}
	if (error != 0) {
		stream_refused(s, stage, error);
		return;
	}
	s->state = STREAM_STARTING;
	args_release(s);
	give_credit(s);
}

static int
stream_counted(struct stream *s, const struct gp_frame *f)
{
	uint64_t	 cost = (uint64_t)f->len + GP_FRAME_COST;

	if (cost > s->in_credit)
		return GP_E_VALUE;
	s->in_credit -= cost;
	if (f->type == GP_ARGS)
		return s->state == STREAM_ARGS ? stream_args(s, f) : GP_E_TYPE;
	if (s->state == STREAM_ARGS)
		return GP_E_TYPE;
	/* The frame itself takes no memory, its bytes do until they are out. */
	stream_owe(s, GP_FRAME_COST);
	cmd_stdin(s, f->payload, f->len);
	return GP_OK;
}

static int
stream_credit(struct stream *s, const struct gp_frame *f)
{
	uint64_t	 more = gp_get_u32(f->payload);

	/* No honest host gives more than it can take at once. */
	if (more == 0 || s->out_credit + more > UINT32_MAX)
		return GP_E_VALUE;
	s->out_credit += more;
	return GP_OK;
}

int
stream_frame(const struct gp_frame *f)
{
	struct stream	*s;

	if (f->type == GP_OPEN)
		return stream_open(f);
	if (f->stream > table.last_id)
		return GP_E_STREAM;
	s = stream_find(f->stream);
	if (s == NULL)
		return GP_OK;	/* crossed with its REFUSED or EXITED */
	switch (f->type) {
	case GP_ARGS:
	case GP_DATA:
		return stream_counted(s, f);
	case GP_CREDIT:
		return stream_credit(s, f);
	case GP_START:
		if (s->state != STREAM_ARGS)
			return GP_E_TYPE;
		stream_start(s);
		return GP_OK;
	case GP_RESIZE:
		s->columns = gp_get_u16(f->payload);
		s->rows = gp_get_u16(f->payload + 2);
		if (s->state != STREAM_ARGS)
			cmd_resize(s);
		return GP_OK;
	case GP_CLOSE:
		if (s->state == STREAM_ARGS)
			stream_refused(s, GP_STAGE_RECORDS, ECANCELED);
		else
			cmd_kill(s);
		return GP_OK;
	}
	if (s->state == STREAM_ARGS)
		return GP_E_TYPE;
	if (f->type == GP_EOF)
		cmd_stdin_eof(s);
	else if (f->type == GP_SIGNAL)
		cmd_signal(s, f->payload[0], f->payload[1] != 0);
	return GP_OK;
}

/*
 * The first of a turn has the queue's room before the others: each turn it is
 * another one.
 */
void
streams_rotate(void)
{
	struct stream	**end = &streams, *first = streams;

	if (first == NULL || first->next == NULL)
		return;
	while (*end != NULL)
		end = &(*end)->next;
	streams = first->next;
	first->next = NULL;
	*end = first;
}

/*
 * A command of our own that does nothing.  Under software emulation the first
 * fork, exec and cgroup of a guest take 50 ms longer than the second; this one
 * is made while the host still tells its client that the sandbox is there.
 */
void
stream_warm_up(void)
{
	static char		 self[] = "/proc/self/exe", nothing[] = "-w";
	char			*argv[] = { self, nothing, NULL };
	char			*envp[GARGS_DEFAULTS + 1] = { NULL };
	struct exec_args	 args;
	struct stream		*s;
	int			 stage;

	memset(&args, 0, sizeof(args));
	args.argv = argv;
	args.envp = envp;
	s = stream_new(0);
	if (s == NULL)
		return;
	s->lost = 1;
	s->state = STREAM_STARTING;
	if (cmd_start(s, &args, &stage) != 0)
		s->state = STREAM_ENDED;
}

/* A new connection: its ids start again, what runs is killed. */
void
streams_lose(void)
{
	struct stream	*s;

	table.last_id = 0;
	for (s = streams; s != NULL; s = s->next) {
		if (s->lost || s->state == STREAM_ENDED)
			continue;
		s->lost = 1;
		if (s->state == STREAM_ARGS)
			stream_end(s);
		else
			cmd_kill(s);
	}
}

/* The end of a turn: nobody holds a pointer to a stream now. */
void
streams_sweep(void)
{
	struct stream	**sp = &streams, *s;

	while ((s = *sp) != NULL) {
		if (s->state != STREAM_ENDED) {
			sp = &s->next;
			continue;
		}
		*sp = s->next;
		cmd_free(s);
		free(s);
		table.count--;
	}
}
