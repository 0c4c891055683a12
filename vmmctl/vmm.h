/* SPDX-License-Identifier: ISC */
/*
 * The vmm process: starts VMMs, watches them, releases what they leave.  Root
 * with few capabilities; an actuator: it checks every field of a message again
 * and knows no policy.  It reads what VMMs write (monitor, console, stderr) as
 * hostile bytes, and never a byte of a guest's agent.
 */
#ifndef SBX_VMM_H
#define SBX_VMM_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "imsg.h"
#include "limits.h"

struct event_base;
struct vmm_driver;

/* All of this process's global state. */
struct vmm {
	struct event_base		*base;
	struct ipeer			*parent;
	const struct vmm_driver		*driver;
	struct m_parent_setup_vmm	 cfg;
	uint64_t			 tsc_khz;	/* time stamp counter */
	int				 kvm_node;	/* /dev/kvm opens */
	int				 vm_dir;	/* <state_dir>/vm */
	int				 layer_dir;	/* <state_dir>/layers */
	int				 template_dir;	/* -1: not there yet */
};
extern struct vmm	vmm;

/*
 * Why something failed: a row of the error table, and what, where, what to do.
 */
struct fault {
	enum sbx_error	 error;
	char		 text[SBX_DETAIL_MAX];
};
/* Fills it and returns -1; the second form adds strerror(errno). */
int	fault_set(struct fault *, enum sbx_error, const char *, ...)
	    __attribute__((format(printf, 3, 4)));
int	fault_errno(struct fault *, enum sbx_error, const char *, ...)
	    __attribute__((format(printf, 3, 4)));

#endif
