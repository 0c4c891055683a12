/* SPDX-License-Identifier: ISC */
/*
 * What GET /healthz says of the daemon and its host.
 */
#include <stdio.h>
#include <string.h>

#include <bsd/string.h>

#include "sandboxd.h"

/* What an operator should know about this host's limits, for /healthz. */
static void
health_notes(const struct m_vmm_ready *h, char *out, size_t size)
{
	out[0] = '\0';
	if (!h->cgroup_tracking)
		(void)strlcat(out, "no cgroup2 mount: VMs are tracked by pid\n",
		    size);
	if (!h->cgroup_memory || !h->cgroup_cpu || !h->cgroup_pids)
		(void)snprintf(out + strlen(out), size - strlen(out),
		    "no cgroup v2 limit on%s%s%s\n",
		    h->cgroup_memory ? "" : " memory",
		    h->cgroup_cpu ? "" : " cpu", h->cgroup_pids ? "" : " pids");
	if (out[0] != '\0')
		out[strlen(out) - 1] = '\0';
}

void
health_answer(uint64_t request)
{
	struct m_parent_give_health	 h = { .uptime_ms =
	    boottime_now().ms - sandboxd->started.ms };
	const struct m_vmm_ready	*host = &sandboxd->host;
	const struct sandbox		*sb;

	TAILQ_FOREACH(sb, &sandboxd->ages, by_age) {
		if (sb->probe)
			continue;
		h.creating += sb->state == STATE_CREATING;
		h.running += sb->state == STATE_RUNNING;
		h.deleting += sb->state == STATE_DELETING;
		h.failed += sb->state == STATE_FAILED;
	}
	(void)strlcpy(h.driver, "qemu", sizeof(h.driver));
	(void)strlcpy(h.accel, sandboxd->kvm ? "kvm" : "tcg", sizeof(h.accel));
	(void)strlcpy(h.accel_reason, sandboxd->accel_reason,
	    sizeof(h.accel_reason));
	health_notes(host, h.notes, sizeof(h.notes));
	(void)answer_parent_give_health(proc_peer(PROC_FRONT), request, 0, &h);
}
