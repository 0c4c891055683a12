/* SPDX-License-Identifier: ISC */
/*
 * One VM's life as a state machine (vm_int.h): the driver and the process on
 * one side, the news for the parent on the other.  Runs in vmm; no call here
 * blocks.
 */
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
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
#include "reap.h"
#include "vm.h"
#include "vm_int.h"

static int
vm_compare(struct vm *a, struct vm *b)
{
	return strcmp(a->id, b->id);
}

static RB_HEAD(vm_tree, vm) vms = RB_INITIALIZER(&vms);
RB_PROTOTYPE(vm_tree, vm, entry, vm_compare)
RB_GENERATE(vm_tree, vm, entry, vm_compare)

/* ---- what drivers see ---- */

const char *
vm_id(const struct vm *vm)
{
	return vm->id;
}

uid_t
vm_uid(const struct vm *vm)
{
	return vm->uid;
}

gid_t
vm_gid(const struct vm *vm)
{
	return vm->gid;
}

int
vm_dir(const struct vm *vm)
{
	return vm->dir;
}

const char *
vm_path(const struct vm *vm)
{
	return vm->path;
}

int
vm_cgroup(const struct vm *vm)
{
	return vm->cgroup;
}

unsigned long long
vm_age_ms(const struct vm *vm)
{
	return boottime_now().ms - vm->since.ms;
}

void *
vm_driver_data(const struct vm *vm)
{
	return vm->data;
}

void
vm_set_driver_data(struct vm *vm, void *data)
{
	vm->data = data;
}

/* ---- look-up, making, freeing ---- */

struct vm *
vm_find(const char *id)
{
	struct vm	 key;

	(void)strlcpy(key.id, id, sizeof(key.id));
	return RB_FIND(vm_tree, &vms, &key);
}

int
vm_known_id(const char *id)
{
	return vm_find(id) != NULL;
}

int
vm_known_uid(uid_t uid)
{
	struct vm	*vm;

	RB_FOREACH(vm, vm_tree, &vms)
		if (vm->uid == uid)
			return 1;
	return 0;
}

struct vm *
vm_new(const char *id, uint64_t generation, uid_t uid)
{
	struct vm	*vm;

	vm = calloc(1, sizeof(*vm));
	if (vm == NULL)
		return NULL;
	(void)strlcpy(vm->id, id, sizeof(vm->id));
	vm->generation = generation;
	vm->uid = uid;
	vm->pidfd = vm->dir = vm->cgroup = -1;
	vm->spec.root_fd = vm->spec.blank_fd = vm->spec.tap_fd = -1;
	TAILQ_INIT(&vm->destroys);
	(void)snprintf(vm->path, sizeof(vm->path), "%s/vm/%s",
	    vmm.cfg.state_dir, id);
	RB_INSERT(vm_tree, &vms, vm);
	return vm;
}

static void
close_fd(int *fd)
{
	if (*fd != -1)
		(void)close(*fd);
	*fd = -1;
}

void
vm_close_spec(struct vm *vm)
{
	close_fd(&vm->spec.root_fd);
	close_fd(&vm->spec.blank_fd);
	close_fd(&vm->spec.tap_fd);
}

static void
stop_timer(struct vm *vm)
{
	if (vm->start_ev != NULL)
		event_free(vm->start_ev);
	vm->start_ev = NULL;
}

static void
forget_process(struct vm *vm)
{
	if (vm->exit_ev != NULL)
		event_free(vm->exit_ev);
	vm->exit_ev = NULL;
	close_fd(&vm->pidfd);
	vm->pid = 0;
}

void
vm_free(struct vm *vm)
{
	image_forget(vm);
	vmm.driver->release(vm);
	vm_close_spec(vm);
	stop_timer(vm);
	forget_process(vm);
	close_fd(&vm->dir);
	close_fd(&vm->cgroup);
	RB_REMOVE(vm_tree, &vms, vm);
	free(vm);
}

/* ---- answers ---- */

void
vm_answer_fail(uint64_t request, const char *id, uint64_t generation,
    const struct fault *f)
{
	struct m_vmm_fail	 b;

	memset(&b, 0, sizeof(b));
	(void)strlcpy(b.id, id, sizeof(b.id));
	b.generation = generation;
	b.error = (uint16_t)f->error;
	(void)strlcpy(b.detail, f->text, sizeof(b.detail));
	log_warnx("vm refused id=%s error=%s detail=\"%s\"", id,
	    error_code(f->error), log_vis(f->text, strlen(f->text)));
	(void)answer_vmm_fail(vmm.parent, request, 0, &b);
}

static void
send_died(struct vm *vm)
{
	struct m_vmm_vm_died_event	 b;

	memset(&b, 0, sizeof(b));
	(void)strlcpy(b.id, vm->id, sizeof(b.id));
	b.generation = vm->generation;
	b.cause = (uint8_t)vm->cause;
	(void)strlcpy(b.detail, vm->cause_text, sizeof(b.detail));
	if (!vm->booted)
		b.console_len = (uint16_t)vmm.driver->console(vm, b.console,
		    sizeof(b.console));
	log_warnx("vm died id=%s cause=%s detail=\"%s\"", vm->id,
	    cause_name(vm->cause),
	    log_vis(vm->cause_text, strlen(vm->cause_text)));
	(void)send_vmm_vm_died_event(vmm.parent, &b);
}

static void
answer_destroys(struct vm *vm, const struct fault *f)
{
	struct m_vmm_destroy_vm_ok	 b;
	struct destroy			*d;

	memset(&b, 0, sizeof(b));
	(void)strlcpy(b.id, vm->id, sizeof(b.id));
	b.generation = vm->generation;
	if (!vm->booted)
		b.console_len = (uint16_t)vmm.driver->console(vm, b.console,
		    sizeof(b.console));
	while ((d = TAILQ_FIRST(&vm->destroys)) != NULL) {
		TAILQ_REMOVE(&vm->destroys, d, entry);
		if (f != NULL)
			vm_answer_fail(d->request, vm->id, vm->generation, f);
		else
			(void)answer_vmm_destroy_vm_ok(vmm.parent, d->request,
			    0, &b);
		free(d);
	}
}

/* ---- the end ---- */

void
vm_ended_because(struct vm *vm, enum vm_cause cause, const char *text)
{
	if (vm->cause != CAUSE_NONE)
		return;
	vm->cause = cause;
	(void)strlcpy(vm->cause_text, text, sizeof(vm->cause_text));
}

void
vm_kill(struct vm *vm)
{
	if (vm->pidfd != -1 && pidfd_kill(vm->pidfd) == -1)
		log_warn("vm kill id=%s", vm->id);
	if (vm->cgroup != -1)
		cgroup_kill(vm->id);
}

static void
cause_from_status(struct vm *vm, const siginfo_t *si)
{
	char	 words[256], text[SBX_DETAIL_MAX];

	if (cgroup_oom_killed(vm->cgroup)) {
		/* Whatever else was said: this is why. */
		vm->cause = CAUSE_NONE;
		vm_ended_because(vm, CAUSE_HOST_OOM,
		    "the VM's memory limit on the host was reached");
		return;
	}
	vmm.driver->last_words(vm, words, sizeof(words));
	if (si == NULL) {
		vm_ended_because(vm, CAUSE_VMM_ERROR, "the VMM ended; it was"
		    " started by an earlier vmm, so its status is not known");
	} else if (si->si_code != CLD_EXITED) {
		(void)snprintf(text, sizeof(text),
		    "the VMM was killed by signal %d%s%s", si->si_status,
		    words[0] == '\0' ? "" : ": ", words);
		vm_ended_because(vm, CAUSE_KILLED, text);
	} else if (si->si_status == 0) {
		vm_ended_because(vm, CAUSE_GUEST_STOPPED, "the guest stopped");
	} else {
		(void)snprintf(text, sizeof(text),
		    "the VMM ended with status %d%s%s", si->si_status,
		    words[0] == '\0' ? "" : ": ", words);
		vm_ended_because(vm, CAUSE_VMM_ERROR, text);
	}
}

static void
on_exit_of_vmm(evutil_socket_t fd, short what, void *arg)
{
	struct vm	*vm = arg;
	siginfo_t	 si = { .si_pid = 0 };
	int		 known = 0;

	(void)what;
	/* Not our child (adopted): the readable pidfd alone says it. */
	if (!vm->adopted) {
		if (waitid(P_PIDFD, (id_t)fd, &si, WEXITED | WNOHANG) == -1) {
			log_warn("vm wait id=%s", vm->id);
		} else if (si.si_pid == 0) {
			return;
		} else {
			known = 1;
		}
	}
	forget_process(vm);
	vm->ended = 1;
	vmm.driver->drain(vm);
	cause_from_status(vm, known ? &si : NULL);
	switch (vm->state) {
	case VM_PREPARING:
	case VM_DEAD:
		break;
	case VM_STARTING:
		if (!vm->failed)
			(void)fault_set(&vm->fault, E_START_FAILED, "%s",
			    vm->cause_text);
		vm->failed = 1;
		vm_release(vm);
		break;
	case VM_RUNNING:
		vm->state = VM_DEAD;
		send_died(vm);
		break;
	case VM_RELEASING:
		vm_release(vm);
		break;
	}
}

static void
released(const struct fault *f, void *arg)
{
	struct vm	*vm = arg;

	if (vm->start_request != 0) {
		vm_answer_fail(vm->start_request, vm->id, vm->generation,
		    &vm->fault);
		vm->start_request = 0;
	}
	answer_destroys(vm, f);
	if (f != NULL) {
		/* Kept, and so its slot: the next destroy tries again. */
		log_warnx("vm stuck id=%s detail=\"%s\"", vm->id, f->text);
		vm->state = VM_DEAD;
		return;
	}
	log_info("vm released id=%s", vm->id);
	vm_free(vm);
}

/* Kills what lives, then (from on_exit_of_vmm) removes what is left. */
void
vm_release(struct vm *vm)
{
	struct fault	 f;

	vm->state = VM_RELEASING;
	image_forget(vm);
	vm_close_spec(vm);
	stop_timer(vm);
	if (vm->pid != 0) {
		/* Unlinked while open: the blocks are freed by QEMU's exit. */
		if (vm->dir != -1)
			reap_unlink_files(vm->dir);
		vm_kill(vm);
		return;
	}
	close_fd(&vm->dir);
	close_fd(&vm->cgroup);
	/*
	 * A VMM that was seen to end was PID 1 of its namespace: the kernel has
	 * ended whatever was in it.  Else all of /proc is searched.
	 */
	if (reap_start(vm->id, vm->ended ? 0 : vm->uid, released, vm) == -1) {
		(void)fault_set(&f, E_HOST_MEMORY, "out of memory");
		released(&f, vm);
	}
}

/* ---- start ---- */

void
vm_start_failed(struct vm *vm, const struct fault *f)
{
	if (vm->state != VM_STARTING && vm->state != VM_PREPARING)
		return;
	if (!vm->failed)
		vm->fault = *f;
	vm->failed = 1;
	vm_release(vm);
}

int
vm_set_process(struct vm *vm, pid_t pid, int pidfd, struct fault *f)
{
	vm->pid = pid;
	vm->pidfd = pidfd;
	vm->start_time = proc_start_time(pid);
	vm->exit_ev = event_new(vmm.base, pidfd, EV_READ | EV_PERSIST,
	    on_exit_of_vmm, vm);
	if (vm->exit_ev == NULL || event_add(vm->exit_ev, NULL) == -1)
		return fault_set(f, E_HOST_MEMORY, "out of memory");
	return 0;
}

void
vm_up(struct vm *vm)
{
	if (vm->state != VM_STARTING)
		return;
	stop_timer(vm);
	vmm.driver->connect(vm, vm->start_request);
}

void
vm_channel(struct vm *vm, uint64_t request, int fd, const struct fault *f)
{
	struct m_vmm_start_vm_ok	 started;
	struct m_vmm_connect_vm_ok	 connected;

	if (fd == -1 && vm->state == VM_STARTING) {
		vm_start_failed(vm, f);
	} else if (fd == -1) {
		vm_answer_fail(request, vm->id, vm->generation, f);
	} else if (vm->state == VM_STARTING) {
		memset(&started, 0, sizeof(started));
		(void)strlcpy(started.id, vm->id, sizeof(started.id));
		started.generation = vm->generation;
		started.pid = (uint32_t)vm->pid;
		started.start_time = vm->start_time;
		vm->state = VM_RUNNING;
		vm->start_request = 0;
		log_info("vm started id=%s pid=%d uid=%u ms=%llu", vm->id,
		    vm->pid, vm->uid, vm_age_ms(vm));
		(void)answer_vmm_start_vm_ok(vmm.parent, request, 0, &started,
		    fd);
	} else {
		memset(&connected, 0, sizeof(connected));
		(void)strlcpy(connected.id, vm->id, sizeof(connected.id));
		connected.generation = vm->generation;
		(void)answer_vmm_connect_vm_ok(vmm.parent, request, 0,
		    &connected, fd);
	}
}
