/* SPDX-License-Identifier: ISC */
/*
 * After a start of the parent (the ledger has been loaded) or of vmm: what the
 * ledger knows is found again and goes on, what is half made is rolled back,
 * and what nobody knows is removed.  VMs are never restarted by this.
 */
#include <string.h>

#include <bsd/string.h>

#include "log.h"
#include "record.h"
#include "sandboxd.h"
#include "slot.h"

static void	recover_count_down(void);
static void	recover_one(struct sandbox *);

/* The ledger as it was loaded, before any child runs. */
void
recover_loaded(void)
{
	struct sandbox	*sb;
	uint64_t	 now = boottime_now().ms;

	TAILQ_FOREACH(sb, &sandboxd->ages, by_age) {
		sb->purge.ms = now + 1000ULL * sandboxd->conf.keep_failed_s;
		if (!record_same_boot()) {
			/* Boot time has begun again; the VM is gone. */
			sb->deadline.ms = 0;
			sb->pid = 0;
		}
		if (sb->state == STATE_CREATING)
			sb->fail_error = E_RESTARTING;
	}
}

static void
recover_answer(struct msg *m, void *arg)
{
	struct sandbox	*sb = arg;

	sb->in_flight = 0;
	if (m != NULL && m->type == M_VMM_ADOPT_VM_OK) {
		log_info("sandbox adopted id=%s pid=%u", sb->id, sb->pid);
		sb->vmm_has = 1;
		if (sb->to_delete)
			release_start(sb);
		else
			life_connect(sb);
	} else if (m != NULL) {
		if (sb->to_delete)
			release_start(sb);
		else
			life_fail(sb, CAUSE_VMM_GONE, E_GONE,
			    m->body.vmm_fail.detail);
	} else if (proc_peer(PROC_VMM) != NULL) {
		/* Slow, not dead; it was asked before the sweep and is again. */
		recover_one(sb);
	}
	/* A vmm that died again will be asked again. */
	recover_count_down();
}

static void
recover_adopt(struct sandbox *sb)
{
	struct m_parent_adopt_vm	 m = { .generation = sb->generation,
	    .slot = sb->slot, .pid = sb->pid, .start_time = sb->start_time };

	(void)strlcpy(m.id, sb->id, sizeof(m.id));
	m.uid = slot_uid(sandboxd->conf.uid_first, sb->slot);
	sb->in_flight = 1;
	if (request_parent_adopt_vm(proc_peer(PROC_VMM), &m, VMM_REQUEST_MS,
	    recover_answer, sb) == -1) {
		sb->in_flight = 0;
		life_fail(sb, CAUSE_VMM_GONE, E_INTERNAL,
		    "too many requests wait for vmm");
		return;
	}
	sandboxd->adopting++;
}

static void
recover_one(struct sandbox *sb)
{
	if (sb->released || sb->in_flight || sb->releasing)
		return;
	switch (sb->state) {
	case STATE_CREATING:
		/* With its VM known, a live create only waits for the guest. */
		if (sb->step == STEP_GUEST)
			recover_adopt(sb);
		else
			life_delete(sb, "the daemon restarted during create");
		break;
	case STATE_RUNNING:
	case STATE_PAUSED:
		if (!record_same_boot())
			life_fail(sb, CAUSE_HOST_REBOOT, E_GONE,
			    "the host was rebooted");
		else if (sb->pid == 0)
			life_fail(sb, CAUSE_VMM_GONE, E_GONE,
			    "the record names no VMM process");
		else
			recover_adopt(sb);
		break;
	case STATE_DELETING:
	case STATE_FAILED:
		sb->to_delete = 1;
		release_start(sb);
		break;
	case STATE_NONE:
	case STATE_GONE:
	case STATE_COUNT:
		break;
	}
}

static void
recover_swept(struct msg *m, void *arg)
{
	(void)arg;
	if (m == NULL) {
		/* With a vmm that lives nothing can begin before this. */
		recover_count_down();
		return;
	}
	if (m->body.vmm_sweep_ok.removed != 0)
		log_warnx("swept what no record owns: %u",
		    m->body.vmm_sweep_ok.removed);
	sandboxd->vmm_known = 1;
	sandboxd->recovering = 0;
	daemon_open_api();
}

static void
recover_count_down(void)
{
	struct m_parent_sweep_vms	 m = { 0 };

	if (sandboxd->adopting > 0 && --sandboxd->adopting > 0)
		return;
	if (proc_peer(PROC_VMM) != NULL)
		(void)request_parent_sweep_vms(proc_peer(PROC_VMM), &m,
		    2 * VMM_REQUEST_MS, recover_swept, NULL);
}

/* vmm is ready: tell it what there is, then let it sweep the rest. */
void
recover_vmm(void)
{
	struct sandbox	*sb, *next;

	sandboxd->recovering = 1;
	sandboxd->adopting = 1;		/* this loop itself */
	TAILQ_FOREACH_SAFE(sb, &sandboxd->ages, by_age, next)
		recover_one(sb);
	recover_count_down();
}
