/* SPDX-License-Identifier: ISC */
/*
 * What the vmm process knows of a virtual machine monitor.  A driver turns a
 * vm_spec into a running VMM and keeps its control channel; vm.c owns the VM's
 * life (requests, pidfd, cgroup, directory, release) and calls the driver,
 * which answers through the vm_* calls below, at once or later.  Nothing here
 * blocks.
 *
 * Made for a second driver: `connect` may take its time (Firecracker's vsock
 * handshake), and for clones: `start` sees where the memory comes from in the
 * spec alone, vm.c does not care.
 */
#ifndef SBX_DRIVER_H
#define SBX_DRIVER_H

#include <sys/types.h>

#include <stdint.h>

#include "vmm.h"

struct vm;

/* Everything a start needs.  Descriptors are borrowed until start() returns. */
struct vm_spec {
	uint32_t	 vcpu;
	uint32_t	 memory_mib;
	uint32_t	 disk_mib;
	int		 kvm;
	char		 mac[18];
	int		 root_fd;	/* template's root image, read-only */
	int		 blank_fd;	/* an empty layer of disk_mib to copy */
	int		 tap_fd;
};

struct vmm_driver {
	const char	*name;
	/*
	 * Looks at the host once, before confinement (may block).  Writes the
	 * VMM's version; "" when there is no VMM (starts then fail and say
	 * so).
	 */
	void		 (*probe)(char *version, size_t);
	/*
	 * Starts the VMM in its jail: calls vm_set_process(); later vm_up(),
	 * vm_start_failed() or its end is seen.  0, or -1 with the fault
	 * filled and nothing left.
	 */
	int		 (*start)(struct vm *, const struct vm_spec *,
			    struct fault *);
	/* Takes over a running VMM: its control channel again. */
	int		 (*adopt)(struct vm *, struct fault *);
	/* Opens a channel to the guest agent: vm_channel() for this request. */
	void		 (*connect)(struct vm *, uint64_t request);
	/* The guest agent has answered: no console needed any more. */
	void		 (*booted)(struct vm *);
	/*
	 * The VMM has ended: read what is left of it, now (see
	 * vm_ended_because).
	 */
	void		 (*drain)(struct vm *);
	/* Copies the console's tail; returns its length. */
	size_t		 (*console)(struct vm *, uint8_t *, size_t);
	/* What the VMM said on stderr, one line, vetted; "" if nothing. */
	void		 (*last_words)(struct vm *, char *, size_t);
	/* Frees the driver's part.  The VMM may still run (shutdown of vmm). */
	void		 (*release)(struct vm *);
};

extern const struct vmm_driver	driver_qemu;

/* ---- what a driver may read and call (vm.c) ---- */

const char	*vm_id(const struct vm *);
uid_t		 vm_uid(const struct vm *);
gid_t		 vm_gid(const struct vm *);
/* Directory of this VM, and its path for socket addresses. */
int		 vm_dir(const struct vm *);
const char	*vm_path(const struct vm *);
/* Its cgroup's directory, -1 if the host has none. */
int		 vm_cgroup(const struct vm *);
/* Since its start was asked for. */
unsigned long long vm_age_ms(const struct vm *);
void		*vm_driver_data(const struct vm *);
void		 vm_set_driver_data(struct vm *, void *);

/* Takes the pidfd. */
int		 vm_set_process(struct vm *, pid_t, int pidfd, struct fault *);
/* The VMM runs and its control channel works. */
void		 vm_up(struct vm *);
/* It cannot be brought up: the start is answered and everything undone. */
void		 vm_start_failed(struct vm *, const struct fault *);
/*
 * The driver knows why this VM is ending or must end.  The first cause told
 * stays.  vm_kill() ends it; the parent hears when the process is gone.
 */
void		 vm_ended_because(struct vm *, enum vm_cause, const char *);
void		 vm_kill(struct vm *);
/* Takes the descriptor; -1: the fault says why. */
void		 vm_channel(struct vm *, uint64_t request, int fd,
		    const struct fault *);

#endif
