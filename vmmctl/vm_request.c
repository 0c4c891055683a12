/* SPDX-License-Identifier: ISC */
/*
 * The parent's requests about VMs.  Runs in vmm; every field is checked again
 * (vm_check.c) before anything is done with it.  What a request cannot answer
 * at once is answered from vm.c.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <event2/event.h>

#include "cgroup.h"
#include "image.h"
#include "log.h"
#include "msg_send.h"
#include "proc_id.h"
#include "template.h"
#include "vm.h"
#include "vm_check.h"
#include "vm_int.h"

/* ---- start ---- */

static void
on_start_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct fault	 f;

	(void)fd;
	(void)what;
	(void)fault_set(&f, E_START_FAILED,
	    "the VMM's monitor did not answer within %d ms", VM_START_MS);
	vm_start_failed(arg, &f);
}

static void
got_blank(int fd, const struct fault *why, void *arg)
{
	const struct timeval	 tv = { VM_START_MS / 1000,
				    VM_START_MS % 1000 * 1000 };
	struct vm		*vm = arg;
	struct cgroup_limits	 limits;
	struct fault		 f;

	if (fd == -1) {
		vm_start_failed(vm, why);
		return;
	}
	vm->spec.blank_fd = fd;
	limits.memory_bytes = ((uint64_t)vm->spec.memory_mib +
	    VMM_OVERHEAD_MIB + (vm->spec.kvm ? 0 : VMM_TB_MIB)) << 20;
	limits.vcpu = vm->spec.vcpu;
	limits.pids = VMM_THREADS_MAX + vm->spec.vcpu;
	vm->cgroup = cgroup_create(vm->id, &limits, &f);
	if (vm->cgroup == -1) {
		vm_start_failed(vm, &f);
		return;
	}
	if (vm->cgroup == -2)
		vm->cgroup = -1;
	vm->state = VM_STARTING;
	vm->start_ev = evtimer_new(vmm.base, on_start_deadline, vm);
	if (vm->start_ev == NULL || evtimer_add(vm->start_ev, &tv) == -1) {
		(void)fault_set(&f, E_HOST_MEMORY, "out of memory");
		vm_start_failed(vm, &f);
		return;
	}
	if (vmm.driver->start(vm, &vm->spec, &f) == -1)
		vm_start_failed(vm, &f);
	else
		vm_close_spec(vm);
}

static int
make_directory(struct vm *vm, struct fault *f)
{
	if (mkdirat(vmm.vm_dir, vm->id, 0700) == -1) {
		if (errno == EEXIST)
			return fault_set(f, E_CONFLICT,
			    "%s exists: destroy that VM first", vm->path);
		return fault_errno(f, E_START_FAILED, "%s", vm->path);
	}
	vm->dir = openat(vmm.vm_dir, vm->id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (vm->dir == -1)
		return fault_errno(f, E_START_FAILED, "%s", vm->path);
	return 0;
}

void
vm_handle_start(struct msg *m)
{
	const struct m_parent_start_vm	*b = &m->body.parent_start_vm;
	struct fault			 f;
	struct vm			*vm;
	int				 root, tap;

	if (vm_check_start(b, m->fd, &f) == -1)
		goto fail;
	if (vm_known_id(b->id) || vm_known_uid(b->uid)) {
		(void)fault_set(&f, E_CONFLICT,
		    "slot %u or id %s is still in use", b->slot, b->id);
		goto fail;
	}
	root = template_open_root(b->template, &f);
	if (root == -1)
		goto fail;
	vm = vm_new(b->id, b->generation, b->uid);
	if (vm == NULL) {
		(void)close(root);
		(void)fault_set(&f, E_HOST_MEMORY, "out of memory");
		goto fail;
	}
	vm->gid = b->gid;
	vm->spec = (struct vm_spec){ .vcpu = b->vcpu,
	    .memory_mib = b->memory_mib, .disk_mib = b->disk_mib,
	    .kvm = b->kvm, .root_fd = root, .blank_fd = -1,
	    .tap_fd = msg_take_fd(m) };
	(void)strlcpy(vm->spec.mac, b->mac, sizeof(vm->spec.mac));
	if (make_directory(vm, &f) == -1) {
		/* Not ours to remove: answered as it is. */
		vm_free(vm);
		goto fail;
	}
	vm->start_request = m->request;
	vm->since = boottime_now();
	vm->state = VM_PREPARING;
	image_get_blank(b->disk_mib, got_blank, vm);
	return;
fail:
	/* The tap goes with its last descriptor: before anybody hears. */
	tap = msg_take_fd(m);
	if (tap != -1)
		(void)close(tap);
	vm_answer_fail(m->request, b->id, b->generation, &f);
}

/* ---- adopt, connect, booted, destroy ---- */

static int
adopt_process(struct vm *vm, pid_t pid, uint64_t start_time, struct fault *f)
{
	int	 pidfd;

	/* The pidfd first: what is compared after it is about that process. */
	pidfd = pidfd_open_cloexec(pid);
	if (pidfd == -1)
		return fault_errno(f, E_GONE, "process %d", pid);
	if (proc_start_time(pid) != start_time || proc_uid(pid) != vm->uid) {
		(void)close(pidfd);
		return fault_set(f, E_GONE, "process %d is another one", pid);
	}
	vm->cgroup = cgroup_open(vm->id);
	if (vm->cgroup != -1 && cgroup_contains(vm->cgroup, pid) == 0) {
		(void)close(pidfd);
		return fault_set(f, E_GONE,
		    "process %d is not in the VM's cgroup", pid);
	}
	return vm_set_process(vm, pid, pidfd, f);
}

static int
adopt(const struct m_parent_adopt_vm *b, struct fault *f)
{
	struct vm	*vm;

	if (vm_check_slot(b->slot, b->uid, f) == -1)
		return -1;
	vm = vm_find(b->id);
	if (vm != NULL && vm->state == VM_RUNNING &&
	    vm->generation == b->generation && vm->pid == (pid_t)b->pid)
		return 0;
	if (vm != NULL || vm_known_uid(b->uid))
		return fault_set(f, E_CONFLICT,
		    "slot %u or id %s is still in use", b->slot, b->id);
	vm = vm_new(b->id, b->generation, b->uid);
	if (vm == NULL)
		return fault_set(f, E_HOST_MEMORY, "out of memory");
	vm->gid = b->uid;
	vm->adopted = 1;
	vm->state = VM_RUNNING;
	vm->dir = openat(vmm.vm_dir, vm->id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (vm->dir == -1)
		(void)fault_errno(f, E_GONE, "%s", vm->path);
	else if (adopt_process(vm, (pid_t)b->pid, b->start_time, f) == 0 &&
	    vmm.driver->adopt(vm, f) == 0) {
		log_info("vm adopted id=%s pid=%d uid=%u", vm->id, vm->pid,
		    vm->uid);
		return 0;
	}
	/* Left as it is: the parent destroys it, or the sweep does. */
	vm_free(vm);
	return -1;
}

void
vm_handle_adopt(struct msg *m)
{
	const struct m_parent_adopt_vm	*b = &m->body.parent_adopt_vm;
	struct m_vmm_adopt_vm_ok	 ok;
	struct fault			 f;

	if (adopt(b, &f) == -1) {
		vm_answer_fail(m->request, b->id, b->generation, &f);
		return;
	}
	memset(&ok, 0, sizeof(ok));
	(void)strlcpy(ok.id, b->id, sizeof(ok.id));
	ok.generation = b->generation;
	(void)answer_vmm_adopt_vm_ok(vmm.parent, m->request, 0, &ok);
}

void
vm_handle_connect(struct msg *m)
{
	const struct m_parent_connect_vm	*b = &m->body.parent_connect_vm;
	struct fault				 f;
	struct vm				*vm;

	vm = vm_find(b->id);
	if (vm == NULL || vm->generation != b->generation ||
	    vm->state != VM_RUNNING) {
		(void)fault_set(&f, E_GONE, "%s does not run", b->id);
		vm_answer_fail(m->request, b->id, b->generation, &f);
		return;
	}
	vmm.driver->connect(vm, m->request);
}

void
vm_handle_booted(struct msg *m)
{
	const struct m_parent_vm_booted	*b = &m->body.parent_vm_booted;
	struct vm			*vm;

	vm = vm_find(b->id);
	/* It may have died while this was on its way. */
	if (vm == NULL || vm->generation != b->generation ||
	    vm->state != VM_RUNNING)
		return;
	vm->booted = 1;
	vmm.driver->booted(vm);
}

void
vm_handle_destroy(struct msg *m)
{
	const struct m_parent_destroy_vm	*b = &m->body.parent_destroy_vm;
	struct destroy				*d = NULL;
	struct fault				 f;
	struct vm				*vm;

	if (vm_check_slot(b->slot, b->uid, &f) == -1)
		goto fail;
	vm = vm_find(b->id);
	if (vm != NULL && (vm->generation != b->generation ||
	    vm->uid != b->uid)) {
		(void)fault_set(&f, E_CONFLICT,
		    "%s has generation %" PRIu64 " and uid %u", b->id,
		    vm->generation, vm->uid);
		goto fail;
	}
	if (vm == NULL && vm_known_uid(b->uid)) {
		(void)fault_set(&f, E_CONFLICT,
		    "slot %u belongs to another VM now", b->slot);
		goto fail;
	}
	d = calloc(1, sizeof(*d));
	if (vm == NULL && d != NULL) {
		/* Never seen: whatever carries that id or uid goes. */
		vm = vm_new(b->id, b->generation, b->uid);
		if (vm != NULL)
			vm->state = VM_DEAD;
	}
	if (vm == NULL || d == NULL) {
		free(d);
		(void)fault_set(&f, E_HOST_MEMORY, "out of memory");
		goto fail;
	}
	d->request = m->request;
	TAILQ_INSERT_TAIL(&vm->destroys, d, entry);
	if (vm->state == VM_RELEASING)
		return;
	if (!vm->failed)
		(void)fault_set(&vm->fault, E_GONE, "destroyed while starting");
	vm->failed = 1;
	vm_release(vm);
	return;
fail:
	vm_answer_fail(m->request, b->id, b->generation, &f);
}
