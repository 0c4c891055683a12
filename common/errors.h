/* SPDX-License-Identifier: ISC */
/*
 * The error table (errors.def) as an enum and three look-ups.
 */
#ifndef SBX_ERRORS_H
#define SBX_ERRORS_H

enum sbx_error {
	E_OK = 0,
#define SBX_ERROR(sym, code, status, title)	sym,
#include "errors.def"
#undef SBX_ERROR
	E_COUNT
};

/* Stable name, e.g. "no_sandbox"; "internal" for a number out of range. */
const char	*error_code(unsigned int);
/* Title: one fixed sentence for each code. */
const char	*error_title(unsigned int);
/* HTTP status, 200 for E_OK, 500 for a number out of range. */
int		 error_status(unsigned int);
/* The row for a code's text; E_INTERNAL if no row has it. */
enum sbx_error	 error_by_code(const char *);

/* Why a VM ended; part of a failed sandbox's record. */
enum vm_cause {
	CAUSE_NONE = 0,
	CAUSE_GUEST_PANIC,	/* the guest kernel said so (pvpanic) */
	CAUSE_GUEST_STOPPED,	/* reboot, power off, or panic that cannot be told */
	CAUSE_HOST_OOM,		/* the VM's cgroup ran out of memory */
	CAUSE_KILLED,		/* the VMM got a signal that was not ours */
	CAUSE_VMM_ERROR,	/* the VMM exited with an error */
	CAUSE_GUEST_LOST,	/* the agent's channel broke or spoke nonsense */
	CAUSE_BOOT_TIMEOUT,	/* the agent never answered */
	CAUSE_HOST_REBOOT,
	CAUSE_VMM_GONE,		/* not found again after a restart of ours */
	CAUSE_COUNT
};
const char	*cause_name(unsigned int);

#endif
