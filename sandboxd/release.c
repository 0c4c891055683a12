/* SPDX-License-Identifier: ISC */
/*
 * Giving back what a sandbox holds: VM, tap, slot, then the record.  Each step
 * is idempotent at its actuator and is retried until it has succeeded, so that
 * a delete never reports success too early; until then the slot stays taken.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <event2/event.h>

#include "ledger.h"
#include "log.h"
#include "record.h"
#include "sandboxd.h"
#include "slot.h"

#define RETRY_MS	500

static void	release_vm(struct sandbox *);
static void	release_tap(struct sandbox *);
static void	release_done(struct sandbox *);

static void
release_on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox	*sb = arg;

	(void)fd;
	(void)what;
	release_vm(sb);
}

static void
release_later(struct sandbox *sb)
{
	static const struct timeval	 tv = { 0, RETRY_MS * 1000 };

	if (sb->retry == NULL)
		sb->retry = evtimer_new(sandboxd->base, release_on_retry, sb);
	if (sb->retry != NULL)
		(void)evtimer_add(sb->retry, &tv);
	else
		log_warnx("release: %s waits for the next start: no memory",
		    sb->id);
}

void
release_start(struct sandbox *sb)
{
	if (sb->releasing)
		return;
	sb->releasing = 1;
	if (sb->tun != -1) {
		(void)close(sb->tun);
		sb->tun = -1;
	}
	if (sb->released)
		release_done(sb);
	else
		release_vm(sb);
}

/* The tail of the console explains a guest that never answered. */
static void
keep_console(struct sandbox *sb, const uint8_t *text, size_t len)
{
	size_t	 have = strlen(sb->detail), room, i;
	char	 c;

	if (sb->boot_ms != 0 || len == 0 || sb->fail_error == E_GONE)
		return;
	have = strlcat(sb->detail, "; console: ", sizeof(sb->detail));
	if (have >= sizeof(sb->detail) - 1)
		return;
	room = sizeof(sb->detail) - 1 - have;
	if (len > room) {
		text += len - room;
		len = room;
	}
	for (i = 0; i < len; i++) {
		c = (char)text[i];
		sb->detail[have + i] = c >= 0x20 && c < 0x7f ? c : ' ';
	}
	sb->detail[have + len] = '\0';
}

static void
release_vm_answer(struct msg *m, void *arg)
{
	struct sandbox	*sb = arg;

	sb->in_flight = 0;
	if (m == NULL || m->type == M_VMM_FAIL) {
		log_warnx("release: vm of %s: %s", sb->id, m == NULL ?
		    "no answer" : m->body.vmm_fail.detail);
		release_later(sb);
		return;
	}
	keep_console(sb, m->body.vmm_destroy_vm_ok.console,
	    m->body.vmm_destroy_vm_ok.console_len);
	release_tap(sb);
}

static void
release_vm(struct sandbox *sb)
{
	struct m_parent_destroy_vm	 m = { .generation = sb->generation,
					    .slot = sb->slot };
	struct ipeer			*vmm = proc_peer(PROC_VMM);

	(void)strlcpy(m.id, sb->id, sizeof(m.id));
	m.uid = slot_uid(sandboxd->conf.uid_first, sb->slot);
	sb->in_flight = 1;
	if (vmm == NULL || request_parent_destroy_vm(vmm, &m, VMM_REQUEST_MS,
	    release_vm_answer, sb) == -1) {
		sb->in_flight = 0;
		release_later(sb);
	}
}

static void
release_tap_answer(struct msg *m, void *arg)
{
	struct sandbox	*sb = arg;

	sb->in_flight = 0;
	if (m == NULL || m->type == M_NETD_FAIL) {
		log_warnx("release: tap of %s: %s", sb->id, m == NULL ?
		    "no answer" : m->body.netd_fail.detail);
		release_later(sb);
		return;
	}
	release_done(sb);
}

static void
release_tap(struct sandbox *sb)
{
	struct m_parent_remove_tap	 m = { .slot = sb->slot,
					    .generation = sb->generation };
	struct ipeer			*netd = proc_peer(PROC_NETD);

	sb->in_flight = 1;
	if (netd == NULL || request_parent_remove_tap(netd, &m,
	    NETD_REQUEST_MS, release_tap_answer, sb) == -1) {
		sb->in_flight = 0;
		release_later(sb);
	}
}

/* The end is on disk: everyone who waits is answered, the record goes. */
static void
release_end_written(int ok, void *arg)
{
	struct sandbox			*sb = arg;
	struct m_parent_delete_ok	 m = { .done = 1 };
	struct ipeer			*front = proc_peer(PROC_FRONT);
	struct waiter			*w;

	if (!ok)
		/* The drop stays in the ledger's buffer: said all the same. */
		log_warnx("ledger: the end of %s is not on disk yet", sb->id);
	if (front != NULL) {
		TAILQ_FOREACH(w, &sb->creators, entry)
			request_fail(w->request, sb->fail_error != E_OK ?
			    sb->fail_error : E_GONE, sb, sb->detail);
		TAILQ_FOREACH(w, &sb->deleters, entry)
			(void)answer_parent_delete_ok(front, w->request, 0, &m);
	}
	log_info("sandbox deleted id=%s reason=\"%s\"", sb->id,
	    log_vis(sb->detail, strlen(sb->detail)));
	table_remove(sb);
}

/*
 * A failed create frees its key (the client may try again); any other end
 * retires it, so that a late retry never makes a second VM.
 */
static void
release_record(struct sandbox *sb)
{
	struct walltime	 until = walltime_now();

	if (sb->key[0] != '\0' && sb->boot_ms != 0) {
		until.ms += 1000ULL * sandboxd->conf.keep_keys_s;
		table_retire_key(sb, until);
	}
	(void)record_drop(sb);
	sb->key[0] = '\0';
	ledger_after(sandboxd->ledger, release_end_written, sb);
}

static void
release_done(struct sandbox *sb)
{
	sb->releasing = 0;
	if (!sb->released) {
		sb->released = 1;
		slot_release(sb->slot);
	}
	sb->pid = 0;
	if (sb->state == STATE_FAILED) {
		sb->to_delete = 0;
		(void)record_mark(sb);
		return;
	}
	sb->releasing = 1;
	release_record(sb);
}
