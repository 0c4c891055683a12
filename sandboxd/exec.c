/* SPDX-License-Identifier: ISC */
/*
 * A command's life seen from front: attach at the parent, wait for the guest's
 * channel, stream, detach.  Runs in front.  Knows nothing of HTTP; what a
 * client asks for has been checked by exec_parse.c, what the guest says by
 * channel.c.
 */
#include <bsd/sys/queue.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "channel.h"
#include "exec.h"
#include "front.h"
#include "log.h"

enum detach { DETACH_ENDED = 0, DETACH_VANISHED = 1 };

struct exec {
	TAILQ_ENTRY(exec)		 entry;
	int				 listed;	/* in `idle` */
	int				 waiting;	/* for a channel */
	int				 asking;	/* the parent, now */
	int				 orphan;	/* until it answers */
	enum detach			 over;		/* with this */
	char				 id[SBX_ID_LEN + 1];
	uint64_t			 owner;
	uint64_t			 stream;	/* its handle */
	int				 attached;
	enum on_disconnect		 on_disconnect;
	struct evbuffer			*env;		/* the sandbox's */
	struct exec_request		 req;
	struct gstream			*gs;
	struct event			*timer;
	const struct exec_events	*events;
	void				*arg;
};

/* Attached, and without a stream in the guest so far. */
static TAILQ_HEAD(, exec) idle = TAILQ_HEAD_INITIALIZER(idle);

static void	exec_attach_answer(struct msg *, void *);
static void	exec_begin(struct exec *);

static void
detach(uint64_t stream, enum detach reason)
{
	struct m_front_detach_stream	 m = { stream, (uint8_t)reason };

	(void)send_front_detach_stream(front.parent, &m);
}

static void
exec_unlist(struct exec *e)
{
	if (e->listed)
		TAILQ_REMOVE(&idle, e, entry);
	e->listed = 0;
	e->waiting = 0;
}

static void
exec_free(struct exec *e, enum detach reason)
{
	if (e->attached)
		detach(e->stream, reason);
	exec_unlist(e);
	if (e->timer != NULL)
		event_free(e->timer);
	if (e->env != NULL)
		evbuffer_free(e->env);
	exec_request_clear(&e->req);
	free(e);
}

static void
exec_fail(struct exec *e, enum sbx_error error, const char *detail,
    uint32_t retry_after_s)
{
	const struct exec_events	*events = e->events;
	void				*arg = e->arg;

	exec_free(e, DETACH_ENDED);
	events->failed(arg, error, detail, retry_after_s);
}

static void
exec_exit(struct exec *e, const struct exec_result *r)
{
	const struct exec_events	*events = e->events;
	void				*arg = e->arg;

	exec_free(e, DETACH_ENDED);
	events->exited(arg, r);
}

/* ---- the stream in the guest ---- */

static void
on_started(void *arg, uint32_t pid)
{
	struct exec	*e = arg;

	e->events->started(e->arg, pid);
}

/* By chroot(1)'s custom: 127 not found, 126 found but not invoked. */
static void
refused_exec(struct exec *e, uint32_t error)
{
	struct exec_result	 r;
	char			 detail[SBX_DETAIL_MAX];

	(void)snprintf(detail, sizeof(detail), "%s: %s", e->req.command,
	    error < 4096 ? strerror((int)error) : "unknown error");
	if (error == E2BIG) {
		exec_fail(e, E_BAD_COMMAND, detail, 0);
		return;
	}
	memset(&r, 0, sizeof(r));
	r.exit_code = error == ENOENT ? 127 : 126;
	(void)snprintf(r.error, sizeof(r.error), "%s", detail);
	exec_exit(e, &r);
}

static void
on_refused(void *arg, enum gp_stage stage, uint32_t error)
{
	struct exec	*e = arg;
	enum sbx_error	 code = E_INTERNAL;
	const char	*what = "";
	char		 detail[SBX_DETAIL_MAX];

	e->gs = NULL;
	switch (stage) {
	case GP_STAGE_EXEC:
		refused_exec(e, error);
		return;
	case GP_STAGE_RECORDS:
		code = E_BAD_COMMAND;
		what = "command is too large or malformed";
		break;
	case GP_STAGE_USER:
		code = E_BAD_USER;
		what = e->req.user;
		break;
	case GP_STAGE_CWD:
		code = E_BAD_CWD;
		what = e->req.cwd;
		break;
	case GP_STAGE_RESOURCES:
		code = E_CAPACITY;
		what = "no resources in the sandbox";
		break;
	}
	if (stage == GP_STAGE_USER && error == ENOENT)
		(void)snprintf(detail, sizeof(detail), "there is no \"%s\"",
		    what);
	else
		(void)snprintf(detail, sizeof(detail), "%s: %s", what,
		    error < 4096 ? strerror((int)error) : "unknown error");
	exec_fail(e, code, detail, code == E_CAPACITY ? 1 : 0);
}

static void
on_output(void *arg, enum gp_channel channel, const uint8_t *data, size_t len)
{
	struct exec	*e = arg;

	e->events->output(e->arg, channel, data, len);
}

static void
on_exited(void *arg, const struct gp_exited *x)
{
	struct exec		*e = arg;
	struct exec_result	 r;

	e->gs = NULL;
	memset(&r, 0, sizeof(r));
	r.exit_code = (int)x->code;
	if (x->signaled) {
		r.signal = (int)x->code;
		r.exit_code = 128 + r.signal;
	}
	r.timed_out = x->timed_out;
	if (r.timed_out)
		r.exit_code = 128 + SIGKILL;
	r.oom_killed = x->oom_killed;
	r.duration_ms = x->duration_us / 1000;
	r.stdout_bytes = x->stdout_bytes;
	r.stderr_bytes = x->stderr_bytes;
	exec_exit(e, &r);
}

static void
on_drained(void *arg)
{
	struct exec	*e = arg;

	e->events->drained(e->arg);
}

static void
on_lost(void *arg, enum sbx_error error, const char *detail)
{
	struct exec	*e = arg;

	e->gs = NULL;
	exec_fail(e, error, detail, 0);
}

static const struct gstream_events stream_events = {
	.started = on_started,
	.refused = on_refused,
	.output = on_output,
	.exited = on_exited,
	.drained = on_drained,
	.lost = on_lost
};

static void
exec_open_stream(struct exec *e, struct channel *ch)
{
	struct evbuffer	*records;

	exec_unlist(e);
	(void)evtimer_del(e->timer);
	/* The sandbox's variables first: the later of two wins. */
	records = e->env;
	e->env = NULL;
	if (evbuffer_add_buffer(records, e->req.records) == -1) {
		evbuffer_free(records);
		exec_fail(e, E_HOST_MEMORY, "no memory for the command", 1);
		return;
	}
	e->gs = gstream_open(ch, records, &stream_events, e);
	if (e->gs == NULL)
		exec_fail(e, E_CAPACITY,
		    "too many commands run in this sandbox", 1);
	else if (e->req.tty)
		gstream_resize(e->gs, e->req.cols, e->req.rows);
}

/* ---- waiting for the channel ---- */

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct exec	*e = arg;
	struct channel	*ch;

	(void)fd;
	(void)what;
	ch = channel_find(e->id);
	if (ch != NULL)
		exec_open_stream(e, ch);
	else if (e->waiting)
		exec_fail(e, E_GUEST_LOST,
		    "no connection to the guest agent", 1);
	else
		exec_begin(e);
}

static void
exec_begin(struct exec *e)
{
	struct timeval	 tv = front_time(EXEC_CHANNEL_WAIT_MS);

	e->waiting = 1;
	(void)evtimer_add(e->timer, &tv);
}

void
exec_channel_ready(const char *id)
{
	struct exec	*e, *next;
	struct channel	*ch;

	for (e = TAILQ_FIRST(&idle); e != NULL; e = next) {
		next = TAILQ_NEXT(e, entry);
		if (!e->waiting || strcmp(e->id, id) != 0)
			continue;
		ch = channel_find(id);
		if (ch == NULL)
			return;
		exec_open_stream(e, ch);
	}
}

void
exec_channel_closed(const char *id, enum sbx_error error, const char *detail)
{
	struct exec	*e, *next;

	for (e = TAILQ_FIRST(&idle); e != NULL; e = next) {
		next = TAILQ_NEXT(e, entry);
		/* One that asks the parent again gets its answer there. */
		if (!e->asking && strcmp(e->id, id) == 0)
			exec_fail(e, error, detail, 0);
	}
}

/* ---- the parent's permission ---- */

static int
exec_ask(struct exec *e, enum on_disconnect od)
{
	struct m_front_attach_stream	 m;

	memset(&m, 0, sizeof(m));
	m.owner = e->owner;
	memcpy(m.id, e->id, sizeof(m.id));
	m.on_disconnect = (uint8_t)od;
	if (request_front_attach_stream(front.parent, &m, FRONT_REQUEST_MS,
	    exec_attach_answer, e) == -1)
		return -1;
	e->asking = 1;
	e->on_disconnect = od;
	return 0;
}

/* "KEY=value\0" one after the other, as records. */
static int
exec_take_env(struct exec *e, const uint8_t *env, size_t len)
{
	uint8_t	 head[GP_RECORD_HEAD];
	size_t	 n;

	(void)evbuffer_drain(e->env, evbuffer_get_length(e->env));
	for (; len > 0; env += n + 1, len -= n + 1) {
		n = strnlen((const char *)env, len);
		if (n == len)
			return -1;
		gp_put_record_head(head, GP_EXEC_ENV, (uint32_t)n);
		if (evbuffer_add(e->env, head, sizeof(head)) == -1 ||
		    evbuffer_add(e->env, env, n) == -1)
			return -1;
	}
	return 0;
}

/* The parent said no, or nothing. */
static void
exec_refused(struct exec *e, const struct msg *m)
{
	const struct m_parent_fail	*f;

	if (e->orphan) {
		exec_free(e, e->over);
		return;
	}
	if (m == NULL) {
		exec_fail(e, E_RESTARTING, "the daemon did not answer", 1);
		return;
	}
	f = &m->body.parent_fail;
	exec_fail(e, f->error != E_OK && f->error < E_COUNT ?
	    (enum sbx_error)f->error : E_INTERNAL, f->detail,
	    f->retry_after_s);
}

static void
exec_attach_answer(struct msg *m, void *arg)
{
	struct exec			*e = arg;
	const struct m_parent_attach_ok	*ok;
	int				 again = e->attached;

	e->asking = 0;
	if (m == NULL || m->type != M_PARENT_ATTACH_OK) {
		exec_refused(e, m);
		return;
	}
	ok = &m->body.parent_attach_ok;
	if (again)
		detach(e->stream, DETACH_ENDED);
	e->stream = ok->stream;
	e->attached = 1;
	if (!e->listed) {
		TAILQ_INSERT_TAIL(&idle, e, entry);
		e->listed = 1;
	}
	if (e->orphan) {
		exec_free(e, e->over);
		return;
	}
	if (exec_take_env(e, ok->env, ok->env_len) == -1) {
		exec_fail(e, E_HOST_MEMORY, "no memory for the command", 1);
		return;
	}
	if (again)
		event_active(e->timer, EV_TIMEOUT, 0);
	else
		e->events->attached(e->arg);
}

/* ---- what the client's side calls ---- */

struct exec *
exec_new(uint64_t owner, const char *id, enum on_disconnect od,
    const struct exec_events *events, void *arg)
{
	struct exec	*e;

	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	e->owner = owner;
	(void)snprintf(e->id, sizeof(e->id), "%s", id);
	e->events = events;
	e->arg = arg;
	e->env = evbuffer_new();
	e->timer = evtimer_new(front.base, on_timer, e);
	if (e->env == NULL || e->timer == NULL || exec_ask(e, od) == -1) {
		exec_free(e, DETACH_ENDED);
		return NULL;
	}
	return e;
}

void
exec_start(struct exec *e, struct exec_request *req)
{
	e->req = *req;
	memset(req, 0, sizeof(*req));
	if (e->req.on_disconnect != ON_DISCONNECT_UNSET &&
	    e->req.on_disconnect != e->on_disconnect) {
		if (exec_ask(e, e->req.on_disconnect) == 0)
			return;
		log_warnx("stream id=%s: the parent does not answer", e->id);
	}
	/* In the next turn, when the caller is done. */
	event_active(e->timer, EV_TIMEOUT, 0);
}

void
exec_end(struct exec *e, int vanished)
{
	if (e->gs != NULL)
		gstream_close(e->gs);
	e->gs = NULL;
	e->over = vanished ? DETACH_VANISHED : DETACH_ENDED;
	if (e->asking)
		e->orphan = 1;
	else
		exec_free(e, e->over);
}

void
exec_input(struct exec *e, const uint8_t *data, size_t len)
{
	gstream_input(e->gs, data, len);
}

void
exec_input_eof(struct exec *e)
{
	gstream_input_eof(e->gs);
}

int
exec_blocked(struct exec *e)
{
	return gstream_blocked(e->gs);
}

void
exec_signal(struct exec *e, uint8_t number)
{
	gstream_signal(e->gs, number, 0);
}

void
exec_resize(struct exec *e, uint16_t cols, uint16_t rows)
{
	gstream_resize(e->gs, cols, rows);
}

void
exec_pause(struct exec *e, int paused)
{
	gstream_pause(e->gs, paused);
}
