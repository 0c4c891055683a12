/* SPDX-License-Identifier: ISC */
/*
 * Every field of a request, checked again: vmm does not trust that the parent
 * did.
 */
#ifndef SBX_VM_CHECK_H
#define SBX_VM_CHECK_H

#include <stdint.h>

#include "vmm.h"

/* Is this the uid of that slot, and one of our range? 0, or -1. */
int	vm_check_slot(uint32_t slot, uint32_t uid, struct fault *);
/* All of a start, with its tap. */
int	vm_check_start(const struct m_parent_start_vm *, int tap,
	    struct fault *);
/* "02:53:..." : six pairs of lower-case hex digits, not a group address. */
int	vm_check_mac(const char *);

#endif
