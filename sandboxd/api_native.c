/* SPDX-License-Identifier: ISC */
/*
 * The native API's handlers (sandboxd-api(7)) but for create and the commands:
 * show, list, delete, health.  Runs in front.  A handler checks a client's
 * words, asks the parent, and writes what it says as JSON; who may see what is
 * the parent's affair.
 */
#include <bsd/string.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/buffer.h>

#include "api.h"
#include "clock.h"
#include "front.h"
#include "id.h"
#include "state.h"

static void	(*const handlers[ROUTE_COUNT])(struct conn *) = {
	[ROUTE_HEALTH] = api_health,
	[ROUTE_SANDBOX_CREATE] = api_create,
	[ROUTE_SANDBOX_LIST] = api_list,
	[ROUTE_SANDBOX_SHOW] = api_show,
	[ROUTE_SANDBOX_DELETE] = api_delete,
	[ROUTE_COMMAND] = api_command,
	[ROUTE_EXEC] = api_exec
};

void
api_dispatch(struct conn *c)
{
	enum route_id	 id = c->match.route->id;
	char		 detail[SBX_DETAIL_MAX];
	int		 e;

	/* Only the list has parameters, and reads them itself. */
	if (id != ROUTE_SANDBOX_LIST) {
		e = query_read(c->reader.request->query, NULL, 0, detail);
		if (e != 0) {
			conn_reply_problem(c, (enum sbx_error)-e, detail, NULL,
			    0);
			return;
		}
	}
	handlers[id](c);
}

/* ---- shared ---- */

struct json_object *
api_body(struct conn *c, size_t values_max)
{
	struct json_object	*obj = NULL;
	struct json_error	 err = { E_OK, "" };
	size_t			 len;
	const char		*text = "";

	len = c->body == NULL ? 0 : evbuffer_get_length(c->body);
	if (len != 0)
		text = (const char *)evbuffer_pullup(c->body, -1);
	if (text == NULL) {
		conn_reply_problem(c, E_HOST_MEMORY, "no memory for the body",
		    NULL, 1);
		return NULL;
	}
	if (json_parse(text, len, values_max, &obj, &err) != 0) {
		api_refuse(c, &err);
		return NULL;
	}
	if (obj == NULL)
		conn_reply_problem(c, E_BAD_MEMBER,
		    "the JSON text is not an object", NULL, 0);
	return obj;
}

void
api_refuse(struct conn *c, const struct json_error *err)
{
	conn_reply_problem(c, err->code, err->detail, c->match.sandbox_id, 0);
}

void
api_fail(struct conn *c, const struct msg *m)
{
	const struct m_parent_fail	*f;
	enum sbx_error			 error;

	if (m == NULL || m->type != M_PARENT_FAIL) {
		conn_reply_problem(c, E_RESTARTING,
		    "the daemon did not answer in time", c->match.sandbox_id,
		    1);
		return;
	}
	f = &m->body.parent_fail;
	error = f->error != E_OK && f->error < E_COUNT ?
	    (enum sbx_error)f->error : E_INTERNAL;
	conn_reply_problem(c, error, f->detail, f->sandbox[0] != '\0' ?
	    f->sandbox : c->match.sandbox_id, f->retry_after_s);
}

/* RFC 3339, UTC, milliseconds. */
static void
put_time(struct json_out *out, const char *key, uint64_t ms)
{
	char		 text[64];
	time_t		 s = (time_t)(ms / 1000);
	struct tm	 tm;
	size_t		 n;

	json_put_key(out, key);
	if (ms == 0 || gmtime_r(&s, &tm) == NULL) {
		json_put_null(out);
		return;
	}
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + n, sizeof(text) - n, ".%03uZ",
	    (unsigned int)(ms % 1000));
	json_put_string(out, text);
}

/* "key\0value\0" one after the other. */
static void
put_metadata(struct json_out *out, const uint8_t *data, size_t len)
{
	const char	*p = (const char *)data;
	size_t		 klen, vlen;

	json_put_key(out, "metadata");
	json_put_object(out);
	while (len > 0) {
		klen = strnlen(p, len);
		if (klen == len)
			break;
		vlen = strnlen(p + klen + 1, len - klen - 1);
		if (klen + 1 + vlen == len)
			break;
		json_put_key(out, p);
		json_put_lossy(out, p + klen + 1, vlen);
		p += klen + vlen + 2;
		len -= klen + vlen + 2;
	}
	json_put_object_end(out);
}

void
api_put_sandbox(struct json_out *out, const struct m_parent_give_sandbox *s)
{
	json_put_object(out);
	json_put_key_string(out, "sandbox_id", s->id);
	json_put_key_string(out, "state", state_name(s->state));
	json_put_key_string(out, "template", s->template);
	json_put_key_string(out, "name", s->name);
	json_put_key_u64(out, "vcpu", s->vcpu);
	json_put_key_u64(out, "memory_mib", s->memory_mib);
	json_put_key_u64(out, "disk_mib", s->disk_mib);
	json_put_key_u64(out, "timeout_s", s->timeout_s);
	json_put_key_string(out, "on_disconnect",
	    on_disconnect_name(s->on_disconnect));
	put_time(out, "created_at", s->created_ms);
	put_time(out, "expires_at", s->expires_ms);
	json_put_key_u64(out, "boot_ms", s->boot_ms);
	json_put_key_string(out, "address", s->address);
	put_metadata(out, s->metadata, s->metadata_len);
	if (s->cause != CAUSE_NONE || s->state == STATE_FAILED) {
		json_put_key_string(out, "cause", cause_name(s->cause));
		json_put_key(out, "detail");
		json_put_lossy(out, s->detail, strlen(s->detail));
	}
	json_put_object_end(out);
}

/* ---- requests that only wait for one answer ---- */

static void
waiter_gone(void *arg)
{
	ipeer_forget(front.parent, arg);
}

static const struct conn_user waiter = { .gone = waiter_gone };

/* The parent cannot be asked now. */
static void
busy(struct conn *c)
{
	conn_reply_problem(c, E_RESTARTING, "too many requests wait", NULL, 1);
}

static void
show_answer(struct msg *m, void *arg)
{
	struct conn	*c = arg;
	struct json_out	 out = { .max = 0 };

	if (m == NULL || m->type != M_PARENT_GIVE_SANDBOX) {
		api_fail(c, m);
		return;
	}
	api_put_sandbox(&out, &m->body.parent_give_sandbox);
	conn_reply_json(c, 200, &out, NULL);
}

void
api_show(struct conn *c)
{
	struct m_front_show_sandbox	 m;

	memset(&m, 0, sizeof(m));
	m.owner = c->owner;
	memcpy(m.id, c->match.sandbox_id, sizeof(m.id));
	conn_set_user(c, &waiter, c);
	if (request_front_show_sandbox(front.parent, &m, FRONT_REQUEST_MS,
	    show_answer, c) == -1)
		busy(c);
}

static void
delete_answer(struct msg *m, void *arg)
{
	struct conn	*c = arg;

	if (m == NULL || m->type != M_PARENT_DELETE_OK)
		api_fail(c, m);
	else
		conn_reply_empty(c, m->body.parent_delete_ok.done ? 204 : 202,
		    NULL);
}

void
api_delete(struct conn *c)
{
	struct m_front_delete_sandbox	 m;

	memset(&m, 0, sizeof(m));
	m.owner = c->owner;
	memcpy(m.id, c->match.sandbox_id, sizeof(m.id));
	conn_set_user(c, &waiter, c);
	if (request_front_delete_sandbox(front.parent, &m, FRONT_REQUEST_MS,
	    delete_answer, c) == -1)
		busy(c);
}

/* Text with a newline between any two notes. */
static void
put_notes(struct json_out *out, const char *notes)
{
	size_t	 n;

	json_put_key(out, "notes");
	json_put_array(out);
	for (; *notes != '\0'; notes += n) {
		notes += strspn(notes, "\n");
		n = strcspn(notes, "\n");
		if (n != 0)
			json_put_lossy(out, notes, n);
	}
	json_put_array_end(out);
}

static void
health_answer(struct msg *m, void *arg)
{
	const struct m_parent_give_health	*h;
	struct conn				*c = arg;
	struct json_out				 out = { .max = 0 };

	if (m == NULL) {
		api_fail(c, m);
		return;
	}
	h = &m->body.parent_give_health;
	json_put_object(&out);
	json_put_key_string(&out, "status", "ok");
	json_put_key_string(&out, "version", front.setup.version);
	json_put_key_u64(&out, "uptime_s", h->uptime_ms / 1000);
	json_put_key(&out, "sandboxes");
	json_put_object(&out);
	json_put_key_u64(&out, "creating", h->creating);
	json_put_key_u64(&out, "running", h->running);
	json_put_key_u64(&out, "deleting", h->deleting);
	json_put_key_u64(&out, "failed", h->failed);
	json_put_object_end(&out);
	json_put_key_string(&out, "driver", h->driver);
	json_put_key(&out, "accelerator");
	json_put_object(&out);
	json_put_key_string(&out, "name", h->accel);
	json_put_key_string(&out, "reason", h->accel_reason);
	json_put_object_end(&out);
	put_notes(&out, h->notes);
	json_put_object_end(&out);
	conn_reply_json(c, 200, &out, NULL);
}

void
api_health(struct conn *c)
{
	struct m_front_get_health	 m = { 0 };

	conn_set_user(c, &waiter, c);
	if (request_front_get_health(front.parent, &m, FRONT_REQUEST_MS,
	    health_answer, c) == -1)
		busy(c);
}

/* ---- list: an answer in parts ---- */

#define LIST_LIMIT		100	/* sandboxes a page, unless asked for */
#define LIST_LIMIT_MAX		1000

struct list {
	struct conn	*c;
	struct json_out	 out;
};

static void
list_free(struct list *l)
{
	json_out_free(&l->out);
	free(l);
}

static void
list_gone(void *arg)
{
	ipeer_forget(front.parent, arg);
	list_free(arg);
}

static const struct conn_user list_user = { .gone = list_gone };

static void
list_answer(struct msg *m, void *arg)
{
	struct list	*l = arg;
	struct conn	*c = l->c;
	const char	*next;

	if (m != NULL && m->type == M_PARENT_GIVE_SANDBOX) {
		api_put_sandbox(&l->out, &m->body.parent_give_sandbox);
		return;
	}
	if (m == NULL || m->type != M_PARENT_END_LIST) {
		list_free(l);
		api_fail(c, m);
		return;
	}
	next = m->body.parent_end_list.next;
	json_put_array_end(&l->out);
	json_put_key(&l->out, "next");
	if (next[0] == '\0')
		json_put_null(&l->out);
	else
		json_put_string(&l->out, next);
	json_put_object_end(&l->out);
	conn_reply_json(c, 200, &l->out, NULL);
	list_free(l);
}

void
api_list(struct conn *c)
{
	struct query_param		 q[2] = { { .name = "limit" },
					    { .name = "after" } };
	struct m_front_list_sandboxes	 m;
	struct list			*l;
	char				 detail[SBX_DETAIL_MAX];
	int				 e;

	memset(&m, 0, sizeof(m));
	m.limit = LIST_LIMIT;
	e = query_read(c->reader.request->query, q, 2, detail);
	if (e == 0)
		e = query_u32(&q[0], 1, LIST_LIMIT_MAX, &m.limit, detail);
	if (e == 0 && q[1].given && !id_valid(q[1].value)) {
		(void)snprintf(detail, sizeof(detail),
		    "parameter \"after\" is not a sandbox id");
		e = -E_BAD_PARAMETER;
	}
	if (e != 0) {
		conn_reply_problem(c, (enum sbx_error)-e, detail, NULL, 0);
		return;
	}
	(void)strlcpy(m.after, q[1].value, sizeof(m.after));
	m.owner = c->owner;
	l = calloc(1, sizeof(*l));
	if (l == NULL) {
		busy(c);
		return;
	}
	l->c = c;
	json_put_object(&l->out);
	json_put_key(&l->out, "sandboxes");
	json_put_array(&l->out);
	conn_set_user(c, &list_user, l);
	if (request_front_list_sandboxes(front.parent, &m, FRONT_REQUEST_MS,
	    list_answer, l) == -1) {
		list_free(l);
		busy(c);
	}
}
