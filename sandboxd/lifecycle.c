/* SPDX-License-Identifier: ISC */
/*
 * The state machine of one sandbox: the parent decides here what vmm, netd and
 * front are asked, in which order, and what follows from their answers.
 *
 *	creating:	intent in the ledger, tap, VM, channel, guest's answer
 *	running:	until delete, timeout, vanished client or the VM's end
 *	deleting:	release.c gives everything back, then the record goes
 *	failed:		the same, but the record stays for a while with its cause
 *
 * At most one request about a sandbox is in flight; what comes in the meantime
 * (a delete, the VM's death) is noted and done when its answer is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "ledger.h"
#include "log.h"
#include "record.h"
#include "sandboxd.h"
#include "slot.h"

#define TUN_DEVICE	"/dev/net/tun"
#define GUEST_MTU	1500
#define LOST_GRACE_MS	300	/* vmm sees a dead VM sooner */

static void	life_intent_written(int, void *);
static void	life_start_tap(struct sandbox *);
static void	life_tap_answer(struct msg *, void *);
static void	life_start_vm(struct sandbox *);
static void	life_vm_answer(struct msg *, void *);

/* A create: the record is in the table, its slot taken. */
void
life_create(struct sandbox *sb)
{
	sb->state = STATE_CREATING;
	sb->step = STEP_NONE;
	sb->began = boottime_now();
	sb->in_flight = 1;
	if (record_put(sb) == -1) {
		sb->in_flight = 0;
		life_fail(sb, CAUSE_NONE, E_HOST_DISK,
		    "the ledger has no room for another sandbox");
		return;
	}
	ledger_after(sandboxd->ledger, life_intent_written, sb);
}

/* Nothing exists yet; from here on the ledger knows that something may. */
static void
life_intent_written(int ok, void *arg)
{
	struct sandbox	*sb = arg;

	sb->in_flight = 0;
	if (sb->to_delete)
		release_start(sb);
	else if (!ok)
		life_fail(sb, CAUSE_NONE, E_HOST_DISK,
		    "the ledger could not be written");
	else
		life_start_tap(sb);
}

static void
life_start_tap(struct sandbox *sb)
{
	struct m_parent_create_tap	 m = { .slot = sb->slot,
					    .generation = sb->generation };
	struct ipeer			*netd = proc_peer(PROC_NETD);
	char				 why[128];
	int				 copy;

	m.uid = slot_uid(sandboxd->conf.uid_first, sb->slot);
	if (netd == NULL) {
		life_fail(sb, CAUSE_NONE, E_RESTARTING, "netd is restarting");
		return;
	}
	/*
	 * The kernel ties a tap to the opener's network namespace, and the node
	 * is root's: so the parent opens it, netd makes the tap of it.
	 */
	sb->tun = open(TUN_DEVICE, O_RDWR | O_CLOEXEC);
	copy = sb->tun != -1 ? fcntl(sb->tun, F_DUPFD_CLOEXEC, 3) : -1;
	if (copy == -1) {
		(void)snprintf(why, sizeof(why), "%s: %s", TUN_DEVICE,
		    strerror(errno));
		life_fail(sb, CAUSE_NONE, E_NETWORK, why);
		return;
	}
	sb->step = STEP_TAP;
	sb->in_flight = 1;
	if (request_parent_create_tap(netd, &m, copy, NETD_REQUEST_MS,
	    life_tap_answer, sb) == -1) {
		sb->in_flight = 0;
		life_fail(sb, CAUSE_NONE, E_CAPACITY,
		    "too many requests wait for netd");
	}
}

static void
life_tap_answer(struct msg *m, void *arg)
{
	struct sandbox	*sb = arg;

	sb->in_flight = 0;
	if (sb->to_delete)
		release_start(sb);
	else if (m == NULL)
		life_fail(sb, CAUSE_NONE, E_RESTARTING, "netd did not answer");
	else if (m->type == M_NETD_FAIL)
		life_fail(sb, CAUSE_NONE, m->body.netd_fail.error,
		    m->body.netd_fail.detail);
	else
		life_start_vm(sb);
}

static void
life_start_vm(struct sandbox *sb)
{
	const struct config		*c = &sandboxd->conf;
	struct m_parent_start_vm	 m = { .generation = sb->generation,
	    .slot = sb->slot, .vcpu = sb->res.vcpu,
	    .memory_mib = sb->res.memory_mib, .disk_mib = sb->res.disk_mib };
	struct ipeer			*vmm = proc_peer(PROC_VMM);
	int				 tun = sb->tun;

	if (vmm == NULL || !sandboxd->vmm_known) {
		life_fail(sb, CAUSE_NONE, E_RESTARTING, "vmm is restarting");
		return;
	}
	(void)strlcpy(m.id, sb->id, sizeof(m.id));
	(void)strlcpy(m.template, sb->template, sizeof(m.template));
	m.uid = m.gid = slot_uid(c->uid_first, sb->slot);
	m.kvm = sb->kvm ? 1 : 0;
	slot_format_mac(slot_guest_address(c->pool, sb->slot), m.mac);
	sb->tun = -1;
	sb->step = STEP_VM;
	sb->in_flight = 1;
	if (request_parent_start_vm(vmm, &m, tun, VMM_REQUEST_MS,
	    life_vm_answer, sb) == -1) {
		sb->in_flight = 0;
		life_fail(sb, CAUSE_NONE, E_CAPACITY,
		    "too many requests wait for vmm");
	}
}

/* Hands front the guest's channel and what the guest is to be told. */
static void
life_open_channel(struct sandbox *sb, int fd, uint32_t deadline_ms)
{
	const struct config		*c = &sandboxd->conf;
	struct m_parent_open_channel	 m = { .generation = sb->generation,
	    .deadline_ms = deadline_ms, .prefix = SLOT_PREFIX,
	    .mtu = GUEST_MTU };
	struct ipeer			*front = proc_peer(PROC_FRONT);
	char				 one[16];
	uint32_t			 i;

	if (front == NULL) {
		/* It gets its channels when it is back. */
		(void)close(fd);
		return;
	}
	(void)strlcpy(m.id, sb->id, sizeof(m.id));
	(void)strlcpy(m.hostname, sb->name[0] != '\0' ? sb->name : sb->id,
	    sizeof(m.hostname));
	slot_format_address(slot_guest_address(c->pool, sb->slot), m.address);
	slot_format_address(slot_host_address(c->pool, sb->slot), m.gateway);
	slot_format_mac(slot_guest_address(c->pool, sb->slot), m.mac);
	for (i = 0; i < c->dns_count; i++) {
		slot_format_address(c->dns[i], one);
		if (i > 0)
			(void)strlcat(m.dns, " ", sizeof(m.dns));
		(void)strlcat(m.dns, one, sizeof(m.dns));
	}
	sb->has_channel = send_parent_open_channel(front, &m, fd) == 0;
}

static uint32_t
boot_deadline_ms(const struct sandbox *sb)
{
	if (sandboxd->conf.boot_deadline_ms != 0)
		return sandboxd->conf.boot_deadline_ms;
	return sb->kvm ? GUEST_BOOT_KVM_MS : GUEST_BOOT_TCG_MS;
}

static void
life_vm_answer(struct msg *m, void *arg)
{
	struct sandbox	*sb = arg;
	int		 fd;

	sb->in_flight = 0;
	if (m != NULL && m->type == M_VMM_START_VM_OK) {
		sb->pid = m->body.vmm_start_vm_ok.pid;
		sb->start_time = m->body.vmm_start_vm_ok.start_time;
		sb->vmm_has = 1;
		(void)record_mark(sb);
	}
	if (sb->to_delete) {
		release_start(sb);
		return;
	}
	if (m == NULL) {
		life_fail(sb, CAUSE_NONE, E_RESTARTING, "vmm did not answer");
		return;
	}
	if (m->type == M_VMM_FAIL) {
		life_fail(sb, CAUSE_NONE, m->body.vmm_fail.error,
		    m->body.vmm_fail.detail);
		return;
	}
	fd = msg_take_fd(m);
	sb->step = STEP_GUEST;
	sb->give_up.ms = boottime_now().ms + boot_deadline_ms(sb);
	life_open_channel(sb, fd, boot_deadline_ms(sb));
}

static void
life_connect_answer(struct msg *m, void *arg)
{
	struct sandbox	*sb = arg;

	sb->in_flight = 0;
	if (sb->to_delete)
		release_start(sb);
	else if (m == NULL)
		log_warnx("channel: no answer about %s", sb->id);
	else if (m->type == M_VMM_FAIL)
		life_fail(sb, CAUSE_GUEST_LOST, m->body.vmm_fail.error,
		    m->body.vmm_fail.detail);
	else
		life_open_channel(sb, msg_take_fd(m),
		    sb->state == STATE_RUNNING ? GUEST_HANDSHAKE_MS :
		    boot_deadline_ms(sb));
}

/*
 * A new front, or a VM found again by a new parent: the channel once more. 
 * After a death of vmm alone the one that front holds still works.
 */
void
life_connect(struct sandbox *sb)
{
	struct m_parent_connect_vm	 m = { .generation = sb->generation };
	struct ipeer			*vmm = proc_peer(PROC_VMM);

	/* Not before vmm has adopted it: to that one there is no such VM. */
	if (vmm == NULL || !sb->vmm_has || sb->in_flight || sb->to_delete ||
	    sb->releasing || sb->has_channel || !sandboxd->api_open ||
	    proc_peer(PROC_FRONT) == NULL)
		return;
	if (sb->state != STATE_RUNNING &&
	    !(sb->state == STATE_CREATING && sb->step == STEP_GUEST))
		return;
	(void)strlcpy(m.id, sb->id, sizeof(m.id));
	sb->in_flight = 1;
	if (request_parent_connect_vm(vmm, &m, VMM_REQUEST_MS,
	    life_connect_answer, sb) == -1)
		sb->in_flight = 0;
}

/* "running" is on disk: now it may be said. */
static void
life_running_written(int ok, void *arg)
{
	struct sandbox			*sb = arg;
	struct m_parent_give_sandbox	 m;
	struct ipeer			*front = proc_peer(PROC_FRONT);
	struct waiter			*w;

	if (sb->state != STATE_RUNNING)
		return;
	if (!ok) {
		life_fail(sb, CAUSE_NONE, E_HOST_DISK,
		    "the ledger could not be written");
		return;
	}
	log_info("sandbox created id=%s template=%s owner=%s slot=%u ms=%llu",
	    sb->id, sb->template, sb->owner, sb->slot,
	    (unsigned long long)sb->boot_ms);
	if (front != NULL)
		TAILQ_FOREACH(w, &sb->creators, entry) {
			request_fill_sandbox(sb, w->replay, &m);
			(void)answer_parent_give_sandbox(front, w->request, 0,
			    &m);
		}
	waiters_clear(&sb->creators);
}

void
life_guest_ready(struct sandbox *sb)
{
	struct m_parent_vm_booted	 m = { .generation = sb->generation };
	struct ipeer			*vmm = proc_peer(PROC_VMM);

	if (sb->state != STATE_CREATING || sb->step != STEP_GUEST ||
	    sb->releasing)
		return;
	/* Never 0: that stands for a guest that has not answered. */
	sb->boot_ms = boottime_now().ms - sb->began.ms + 1;
	if (sb->probe) {
		life_delete(sb, "probe");
		accel_probe_done(1, 1, "a guest booted under it");
		return;
	}
	if (vmm != NULL) {
		(void)strlcpy(m.id, sb->id, sizeof(m.id));
		(void)send_parent_vm_booted(vmm, &m);
	}
	sb->state = STATE_RUNNING;
	sb->step = STEP_NONE;
	sb->give_up.ms = 0;
	sb->deadline.ms = boottime_now().ms + 1000ULL * sb->res.timeout_s;
	(void)record_mark(sb);
	ledger_after(sandboxd->ledger, life_running_written, sb);
}

/*
 * The agent's channel broke.  When the VM died vmm says so too, with the better
 * cause: give that a moment before the channel's own is believed.
 */
void
life_guest_lost(struct sandbox *sb, enum sbx_error error, const char *detail)
{
	if (error == E_GUEST_TIMEOUT && sb->state == STATE_CREATING) {
		life_fail(sb, CAUSE_BOOT_TIMEOUT, error, detail);
	} else if (sb->lost.ms == 0 && (sb->state == STATE_RUNNING ||
	    (sb->state == STATE_CREATING && sb->step == STEP_GUEST))) {
		sb->lost.ms = boottime_now().ms + LOST_GRACE_MS;
		sb->lost_error = error;
		(void)strlcpy(sb->detail, detail, sizeof(sb->detail));
	}
}

void
life_vm_died(struct sandbox *sb, enum vm_cause cause, const char *detail)
{
	life_fail(sb, cause, sb->state == STATE_CREATING ? E_START_FAILED :
	    E_GONE, detail);
}

/* Ends the streams; front tells its clients why. */
static void
life_close_channel(struct sandbox *sb, enum sbx_error error, const char *detail)
{
	struct m_parent_close_channel	 m = { .generation = sb->generation,
					    .error = (uint16_t)error };
	struct ipeer			*front = proc_peer(PROC_FRONT);

	stream_end_all(sb);
	if (front == NULL)
		return;
	(void)strlcpy(m.id, sb->id, sizeof(m.id));
	(void)strlcpy(m.detail, detail, sizeof(m.detail));
	(void)send_parent_close_channel(front, &m);
}

static void
life_release(struct sandbox *sb)
{
	sb->to_delete = 1;
	if (!sb->in_flight && !sb->releasing)
		release_start(sb);
}

void
life_delete(struct sandbox *sb, const char *why)
{
	if (sb->state == STATE_DELETING)
		return;
	log_info("sandbox deleting id=%s state=%s reason=\"%s\"", sb->id,
	    state_name(sb->state), why);
	if (sb->state == STATE_CREATING && sb->fail_error == E_OK)
		sb->fail_error = E_GONE;
	sb->state = STATE_DELETING;
	(void)strlcpy(sb->detail, why, sizeof(sb->detail));
	(void)record_mark(sb);
	life_close_channel(sb, E_GONE, "the sandbox was deleted");
	life_release(sb);
}

/*
 * A create that fails leaves no record (its key is free again); a sandbox that
 * was running keeps one, with its cause, until the operator's time has passed.
 */
void
life_fail(struct sandbox *sb, enum vm_cause cause, enum sbx_error error,
    const char *detail)
{
	if (sb->state == STATE_DELETING || sb->state == STATE_FAILED)
		return;
	log_warnx("sandbox failed id=%s state=%s cause=%s error=%s: %s", sb->id,
	    state_name(sb->state), cause_name(cause), error_code(error),
	    log_vis(detail, strlen(detail)));
	(void)strlcpy(sb->detail, detail, sizeof(sb->detail));
	sb->cause = cause;
	sb->fail_error = error;
	sb->state = sb->state == STATE_CREATING ? STATE_DELETING : STATE_FAILED;
	sb->purge.ms = boottime_now().ms +
	    1000ULL * sandboxd->conf.keep_failed_s;
	(void)record_mark(sb);
	life_close_channel(sb, error, detail);
	life_release(sb);
	/* Only what the guest did or did not do is a verdict on KVM. */
	if (sb->probe)
		accel_probe_done(0, error == E_GUEST_TIMEOUT ||
		    error == E_START_FAILED || error == E_GUEST_LOST, detail);
}

/* A release that takes long is retried for ever; its client need not wait. */
static void
life_answer_late(struct sandbox *sb, uint64_t now)
{
	struct m_parent_delete_ok	 m = { .done = 0 };
	struct waiter			*w, *next;

	TAILQ_FOREACH_SAFE(w, &sb->deleters, entry, next)
		if (w->since.ms + DELETE_ANSWER_MS <= now) {
			if (proc_peer(PROC_FRONT) != NULL)
				(void)answer_parent_delete_ok(
				    proc_peer(PROC_FRONT), w->request, 0, &m);
			waiters_drop(&sb->deleters, w->request);
		}
}

static void
life_check_times(struct sandbox *sb, uint64_t now)
{
	char	 detail[SBX_DETAIL_MAX];

	if (sb->state == STATE_DELETING)
		life_answer_late(sb, now);
	else if (sb->state == STATE_RUNNING && sb->deadline.ms <= now)
		life_delete(sb, "timeout");
	else if (sb->state == STATE_RUNNING && sb->reconnect.ms != 0 &&
	    sb->reconnect.ms <= now)
		life_delete(sb, "client did not come back");
	else if (sb->lost.ms != 0 && sb->lost.ms <= now &&
	    (sb->state == STATE_RUNNING || sb->state == STATE_CREATING)) {
		(void)strlcpy(detail, sb->detail, sizeof(detail));
		life_fail(sb, CAUSE_GUEST_LOST, sb->lost_error, detail);
	} else if (sb->state == STATE_FAILED && sb->purge.ms <= now)
		life_delete(sb, "failed some time ago");
	else if (sb->state == STATE_CREATING && sb->step == STEP_GUEST &&
	    sb->give_up.ms + 5000 <= now)
		/* Front says so itself; this is for a front that does not. */
		life_fail(sb, CAUSE_BOOT_TIMEOUT, E_GUEST_TIMEOUT,
		    "the guest agent did not answer in time");
	else
		/* For what had no answer; else it has its channel already. */
		life_connect(sb);
}

void
life_tick(void)
{
	struct sandbox	*sb, *next;
	uint64_t	 now = boottime_now().ms;

	TAILQ_FOREACH_SAFE(sb, &sandboxd->ages, by_age, next)
		life_check_times(sb, now);
	table_expire_keys();
}
