/* SPDX-License-Identifier: ISC */
/*
 * The requests of the parent about VMs (vm.c), and the sweep (sweep.c).
 */
#ifndef SBX_VM_H
#define SBX_VM_H

#include <sys/types.h>

#include "vmm.h"

void	vm_handle_start(struct msg *);
void	vm_handle_adopt(struct msg *);
void	vm_handle_connect(struct msg *);
void	vm_handle_booted(struct msg *);
void	vm_handle_destroy(struct msg *);
void	sweep_handle(struct msg *);

/* For the sweep: is a VM of this id, or of this slot's uid, known here? */
int	vm_known_id(const char *);
int	vm_known_uid(uid_t);

#endif
