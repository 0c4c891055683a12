/* SPDX-License-Identifier: ISC */
/*
 * Everything that front asks of the parent.  Front speaks for clients and is
 * not trusted: each request names an owner by a handle that the parent gave
 * out, and an owner sees and touches only its own sandboxes.
 */
#include <stdio.h>
#include <string.h>

#include <bsd/string.h>

#include "id.h"
#include "log.h"
#include "sandboxd.h"
#include "slot.h"

#define LIST_MAX	1000

void
request_fail(uint64_t request, enum sbx_error error, const struct sandbox *sb,
    const char *detail)
{
	struct m_parent_fail	 m = { .error = (uint16_t)error };
	struct ipeer		*front = proc_peer(PROC_FRONT);

	if (front == NULL)
		return;
	if (error_status(error) == 503 || error_status(error) == 429 ||
	    error == E_KEY_IN_PROGRESS)
		m.retry_after_s = 1;
	if (sb != NULL)
		(void)strlcpy(m.sandbox, sb->id, sizeof(m.sandbox));
	(void)strlcpy(m.detail, detail, sizeof(m.detail));
	(void)answer_parent_fail(front, request, 0, &m);
}

/* RFC 3339 wants wall time; the deadline is boot time. */
static uint64_t
expires_ms(const struct sandbox *sb)
{
	static uint64_t	 offset;
	uint64_t	 now;

	if (sb->deadline.ms == 0)
		return 0;
	/* The same answer each time, unless somebody has set the clock. */
	now = walltime_now().ms - boottime_now().ms;
	if (now > offset + 1000 || offset > now + 1000)
		offset = now;
	return offset + sb->deadline.ms;
}

void
request_fill_sandbox(const struct sandbox *sb, int replay,
    struct m_parent_give_sandbox *m)
{
	memset(m, 0, sizeof(*m));
	(void)strlcpy(m->id, sb->id, sizeof(m->id));
	m->state = (uint8_t)sb->state;
	m->replayed = replay ? 1 : 0;
	m->cause = (uint8_t)sb->cause;
	(void)strlcpy(m->detail, sb->detail, sizeof(m->detail));
	(void)strlcpy(m->template, sb->template, sizeof(m->template));
	(void)strlcpy(m->name, sb->name, sizeof(m->name));
	m->vcpu = sb->res.vcpu;
	m->memory_mib = sb->res.memory_mib;
	m->disk_mib = sb->res.disk_mib;
	m->timeout_s = sb->res.timeout_s;
	m->on_disconnect = (uint8_t)sb->on_disconnect;
	m->created_ms = sb->created.ms;
	m->expires_ms = expires_ms(sb);
	m->boot_ms = sb->boot_ms;
	if (!sb->released)
		slot_format_address(slot_guest_address(sandboxd->conf.pool,
		    sb->slot), m->address);
	memcpy(m->metadata, sb->metadata, sb->metadata_len);
	m->metadata_len = sb->metadata_len;
}

static void
give(uint64_t request, const struct sandbox *sb, int replay, uint16_t flags)
{
	struct m_parent_give_sandbox	 m;

	request_fill_sandbox(sb, replay, &m);
	(void)answer_parent_give_sandbox(proc_peer(PROC_FRONT), request,
	    flags, &m);
}

static void
request_identify(struct msg *m)
{
	struct m_parent_identify_ok	 ok;
	struct owner			*o;
	enum sbx_error			 error;

	o = owner_identify(m->fd, &error);
	if (o == NULL) {
		request_fail(m->request, error, NULL,
		    "the kernel does not say who this client is");
		return;
	}
	ok.owner = o->handle;
	ok.uid = o->uid;
	(void)answer_parent_identify_ok(proc_peer(PROC_FRONT), m->request, 0,
	    &ok);
}

/* The owner behind a handle, or the request is refused. */
static struct owner *
known_owner(uint64_t request, uint64_t handle)
{
	struct owner	*o;

	o = owner_by_handle(handle);
	if (o == NULL)
		request_fail(request, E_UNAUTHORIZED, NULL, "unknown owner");
	return o;
}

/* One's own sandbox; another's is as good as none. */
static struct sandbox *
own_sandbox(const struct owner *o, const char *id)
{
	struct sandbox	*sb;

	sb = table_find(id);
	if (sb == NULL || sb->probe || strcmp(sb->owner, o->name) != 0)
		return NULL;
	return sb;
}

/*
 * The same key again: the sandbox that it made, never a second one.  Returns 1
 * when the request has its answer or waits for it.
 */
static int
replay_key(uint64_t request, const struct owner *o,
    const struct m_front_create_sandbox *c)
{
	struct m_parent_give_sandbox	 m;
	struct old_key			*k;
	struct sandbox			*sb;
	const uint8_t			*fp;

	sb = table_find_key(o->name, c->key);
	k = sb == NULL ? table_find_old_key(o->name, c->key) : NULL;
	if (sb == NULL && k == NULL)
		return 0;
	fp = sb != NULL ? sb->fingerprint : k->fingerprint;
	if (memcmp(fp, c->fingerprint, sizeof(c->fingerprint)) != 0) {
		request_fail(request, E_KEY_REUSED, sb,
		    "Idempotency-Key: an earlier request with this key had "
		    "another body");
	} else if (sb == NULL) {
		memset(&m, 0, sizeof(m));
		(void)strlcpy(m.id, k->id, sizeof(m.id));
		m.state = STATE_GONE;
		m.replayed = 1;
		(void)answer_parent_give_sandbox(proc_peer(PROC_FRONT),
		    request, 0, &m);
	} else if (sb->state == STATE_CREATING || (sb->state ==
	    STATE_RUNNING && !TAILQ_EMPTY(&sb->creators))) {
		waiters_add(&sb->creators, request, 1);
	} else {
		give(request, sb, 1, 0);
	}
	return 1;
}

static void
fill_record(struct sandbox *sb, const struct m_front_create_sandbox *c,
    const struct owner *o)
{
	do {
		id_new(sb->id);
	} while (table_find(sb->id) != NULL);
	sb->generation = ++sandboxd->generation;
	(void)strlcpy(sb->owner, o->name, sizeof(sb->owner));
	(void)strlcpy(sb->template, c->template, sizeof(sb->template));
	(void)strlcpy(sb->name, c->name, sizeof(sb->name));
	(void)strlcpy(sb->key, c->key, sizeof(sb->key));
	memcpy(sb->fingerprint, c->fingerprint, sizeof(sb->fingerprint));
	memcpy(sb->metadata, c->metadata, c->metadata_len);
	sb->metadata_len = c->metadata_len;
	memcpy(sb->env, c->env, c->env_len);
	sb->env_len = c->env_len;
	sb->res = (struct resources){ c->vcpu, c->memory_mib, c->disk_mib,
	    c->timeout_s };
	sb->on_disconnect = (enum on_disconnect)c->on_disconnect;
	sb->created = walltime_now();
	sb->kvm = sandboxd->kvm;
}

static void
request_create(struct msg *m)
{
	struct m_front_create_sandbox	*c = &m->body.front_create_sandbox;
	struct owner			*o;
	struct sandbox			*sb;
	enum sbx_error			 e;
	char				 detail[SBX_DETAIL_MAX] = "";

	o = known_owner(m->request, c->owner);
	if (o == NULL)
		return;
	if (c->key[0] != '\0' && replay_key(m->request, o, c))
		return;
	if (sandboxd->vmm_known) {
		e = admit_create(c, o, detail, sizeof(detail));
	} else {
		e = E_RESTARTING;
		(void)strlcpy(detail, "vmm is restarting", sizeof(detail));
	}
	if (e != E_OK) {
		request_fail(m->request, e, NULL, detail);
		return;
	}
	sb = table_new();
	if (sb == NULL || slot_take(&sb->slot) == -1) {
		request_fail(m->request, sb == NULL ? E_HOST_MEMORY :
		    E_CAPACITY, NULL, "no slot is free");
		table_free_unused(sb);
		return;
	}
	fill_record(sb, c, o);
	table_add(sb);
	waiters_add(&sb->creators, m->request, 0);
	life_create(sb);
}

/* Only a create without a key: with one, the client can come back for it. */
static void
request_cancel(struct msg *m)
{
	struct sandbox	*sb;
	struct waiter	*w;

	TAILQ_FOREACH(sb, &sandboxd->ages, by_age) {
		TAILQ_FOREACH(w, &sb->creators, entry)
			if (w->request == m->body.front_cancel_create.request)
				break;
		if (w == NULL)
			continue;
		waiters_drop(&sb->creators, w->request);
		if (sb->key[0] == '\0' &&
		    sb->on_disconnect == ON_DISCONNECT_DELETE)
			life_delete(sb, "client vanished");
		return;
	}
}

static void
request_show(struct msg *m)
{
	struct owner	*o;
	struct sandbox	*sb;

	o = known_owner(m->request, m->body.front_show_sandbox.owner);
	if (o == NULL)
		return;
	sb = own_sandbox(o, m->body.front_show_sandbox.id);
	if (sb == NULL)
		request_fail(m->request, E_NO_SANDBOX, NULL,
		    "there is no sandbox of yours with this id");
	else
		give(m->request, sb, 0, 0);
}

static void
request_list(struct msg *m)
{
	const struct m_front_list_sandboxes	*l =
	    &m->body.front_list_sandboxes;
	struct m_parent_end_list		 end = { .next = "" };
	struct owner				*o;
	struct sandbox				*sb;
	const struct sandbox			*last = NULL;
	uint64_t				 age = 0;
	uint32_t				 n = 0;

	o = known_owner(m->request, l->owner);
	if (o == NULL)
		return;
	if (l->after[0] != '\0')
		age = table_age_of(l->after);
	TAILQ_FOREACH(sb, &sandboxd->ages, by_age) {
		if (sb->generation <= age || own_sandbox(o, sb->id) == NULL)
			continue;
		if (n == l->limit || n == LIST_MAX) {
			(void)strlcpy(end.next, last != NULL ? last->id : "",
			    sizeof(end.next));
			break;
		}
		give(m->request, sb, 0, MSGF_MORE);
		last = sb;
		n++;
	}
	(void)answer_parent_end_list(proc_peer(PROC_FRONT), m->request, 0,
	    &end);
}

static void
request_delete(struct msg *m)
{
	struct m_parent_delete_ok	 ok = { .done = 1 };
	struct owner			*o;
	struct sandbox			*sb;

	o = known_owner(m->request, m->body.front_delete_sandbox.owner);
	if (o == NULL)
		return;
	sb = own_sandbox(o, m->body.front_delete_sandbox.id);
	if (sb == NULL) {
		(void)answer_parent_delete_ok(proc_peer(PROC_FRONT),
		    m->request, 0, &ok);
		return;
	}
	waiters_add(&sb->deleters, m->request, 0);
	life_delete(sb, "client asked");
}

static void
request_attach(struct msg *m)
{
	const struct m_front_attach_stream	*a = &m->body.front_attach_stream;
	struct m_parent_attach_ok		 ok;
	struct owner				*o;
	struct sandbox				*sb;
	struct stream				*s;

	o = known_owner(m->request, a->owner);
	if (o == NULL)
		return;
	sb = own_sandbox(o, a->id);
	if (sb == NULL) {
		request_fail(m->request, E_NO_SANDBOX, NULL,
		    "there is no sandbox of yours with this id");
		return;
	}
	if (sb->state != STATE_RUNNING) {
		request_fail(m->request, sb->state == STATE_DELETING ? E_GONE :
		    E_CONFLICT, sb, sb->state == STATE_FAILED ? sb->detail :
		    state_name(sb->state));
		return;
	}
	s = a->on_disconnect < ON_DISCONNECT_COUNT ? stream_attach(sb,
	    (enum on_disconnect)a->on_disconnect) : NULL;
	if (s == NULL) {
		request_fail(m->request, E_HOST_MEMORY, sb, "out of memory");
		return;
	}
	ok.stream = s->handle;
	memcpy(ok.env, sb->env, sb->env_len);
	ok.env_len = sb->env_len;
	(void)answer_parent_attach_ok(proc_peer(PROC_FRONT), m->request, 0,
	    &ok);
}

static void
request_guest_event(struct msg *m)
{
	const struct m_front_guest_lost_event	*l =
	    &m->body.front_guest_lost_event;
	struct sandbox				*sb;
	const char				*id;
	uint64_t				 generation;

	/* Both events begin with the id and the generation. */
	id = m->type == M_FRONT_GUEST_LOST_EVENT ? l->id :
	    m->body.front_guest_ready_event.id;
	generation = m->type == M_FRONT_GUEST_LOST_EVENT ? l->generation :
	    m->body.front_guest_ready_event.generation;
	sb = table_find(id);
	if (sb == NULL || sb->generation != generation)
		return;
	if (m->type == M_FRONT_GUEST_READY_EVENT)
		life_guest_ready(sb);
	else
		life_guest_lost(sb, (enum sbx_error)l->error, l->detail);
}

void
request_dispatch(struct ipeer *p, struct msg *m, void *arg)
{
	(void)p;
	(void)arg;
	switch (m->type) {
	case M_FRONT_READY:
		setup_child_ready(&sandboxd->children[PROC_FRONT], m);
		break;
	case M_FRONT_IDENTIFY_CLIENT:
		request_identify(m);
		break;
	case M_FRONT_CREATE_SANDBOX:
		request_create(m);
		break;
	case M_FRONT_CANCEL_CREATE:
		request_cancel(m);
		break;
	case M_FRONT_SHOW_SANDBOX:
		request_show(m);
		break;
	case M_FRONT_LIST_SANDBOXES:
		request_list(m);
		break;
	case M_FRONT_DELETE_SANDBOX:
		request_delete(m);
		break;
	case M_FRONT_ATTACH_STREAM:
		request_attach(m);
		break;
	case M_FRONT_DETACH_STREAM:
		stream_detach(m->body.front_detach_stream.stream,
		    m->body.front_detach_stream.reason != 0);
		break;
	case M_FRONT_GET_HEALTH:
		health_answer(m->request);
		break;
	case M_FRONT_GUEST_READY_EVENT:
	case M_FRONT_GUEST_LOST_EVENT:
		request_guest_event(m);
		break;
	default:
		fatalx("%s from front is not handled", msg_name(m->type));
	}
}
