/* SPDX-License-Identifier: ISC */
/*
 * QEMU's command line for a microVM that boots Debian's cloud kernel.  Runs in
 * vmm; every value has been checked before.  What the kernel's arguments cost
 * or give was measured under software emulation; see sandboxd(8).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "gproto.h"
#include "qemu_args.h"

static int	add(struct qemu_args *, const char *, ...)
		    __attribute__((format(printf, 2, 3)));

static int
add(struct qemu_args *a, const char *fmt, ...)
{
	size_t	 left = sizeof(a->text) - a->used;
	va_list	 ap;
	int	 n;

	if (a->argc == QEMU_ARGS_MAX)
		return -1;
	va_start(ap, fmt);
	n = vsnprintf(a->text + a->used, left, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= left)
		return -1;
	a->argv[a->argc++] = a->text + a->used;
	a->argv[a->argc] = NULL;
	a->used += (size_t)n + 1;
	return 0;
}

static int
add_pair(struct qemu_args *a, const char *name, const char *value)
{
	return add(a, "%s", name) | add(a, "%s", value);
}

/*
 * The devices are announced by ACPI (the kernel takes no virtio_mmio
 * arguments), and with ACPI on a microvm the kernel hangs calibrating its time
 * stamp counter, so it is told the frequency.  panic=-1 and reboot=t end in a
 * reset at once, which -no-reboot turns into QEMU's end.  noreplace-smp:
 * writing over each lock prefix makes TCG translate the kernel anew, for 0.35
 * s of a boot. (nolapic_timer would save 0.15 s more; an idle guest then never
 * wakes up.)
 *
 * Of Debian's hardening only what costs is off: init_on_alloc (70 ms of a
 * boot).  It protects the guest's kernel from its own programs, nothing of the
 * host.  Leaving out security modules or mitigations of processor faults saved
 * nothing of a boot, and 0.1 ms of 4.8 for each command: they stay.
 */
static int
add_kernel(struct qemu_args *a, int kvm, uint64_t tsc_khz)
{
	return add_pair(a, "-kernel", QEMU_JAIL_KERNEL) |
	    add_pair(a, "-initrd", QEMU_JAIL_INITRAMFS) |
	    add(a, "-append") |
	    add(a, "quiet console=hvc0 8250.nr_uarts=0 tsc_early_khz=%" PRIu64
	    " tsc=reliable cryptomgr.notests no_timer_check init_on_alloc=0"
	    " audit=0 reboot=t panic=-1%s", tsc_khz,
	    kvm ? "" : " noreplace-smp");
}

static int
add_disks(struct qemu_args *a)
{
	return add(a, "-add-fd") | add(a, "fd=%d,set=1", QEMU_FD_ROOT) |
	    add_pair(a, "-blockdev", "driver=raw,node-name=base,read-only=on,"
	    "file.driver=file,file.filename=/dev/fdset/1,file.locking=off") |
	    add_pair(a, "-device", "virtio-blk-device,drive=base,serial=base") |
	    add(a, "-add-fd") | add(a, "fd=%d,set=2", QEMU_FD_LAYER_RO) |
	    add(a, "-add-fd") | add(a, "fd=%d,set=2", QEMU_FD_LAYER_RW) |
	    add_pair(a, "-blockdev", "driver=raw,node-name=layer,"
	    "discard=unmap,file.driver=file,file.filename=/dev/fdset/2,"
	    "file.locking=off,file.discard=unmap") |
	    /* A full host disk is the guest's I/O error, not a frozen VM. */
	    add_pair(a, "-device", "virtio-blk-device,drive=layer,"
	    "serial=layer,werror=report,rerror=report");
}

static int
add_channels(struct qemu_args *a)
{
	return add_pair(a, "-device", "virtio-serial-device") |
	    add(a, "-chardev") | add(a,
	    "socket,id=agent,fd=%d,server=on,wait=off", QEMU_FD_AGENT) |
	    add_pair(a, "-device", "virtserialport,chardev=agent,name="
	    GP_PORT_NAME) |
	    add(a, "-chardev") | add(a, "socket,id=console,fd=%d",
	    QEMU_FD_CONSOLE) |
	    add_pair(a, "-device", "virtconsole,chardev=console") |
	    add(a, "-chardev") | add(a,
	    "socket,id=monitor,fd=%d,server=on,wait=off", QEMU_FD_MONITOR) |
	    add_pair(a, "-mon", "chardev=monitor,mode=control");
}

int
qemu_build_args(struct qemu_args *a, const char *qemu, const char *id,
    const struct vm_spec *s, uint64_t tsc_khz)
{
	a->argc = 0;
	a->used = 0;
	return add(a, "%s", qemu) | add_pair(a, "-name", id) |
	    add_pair(a, "-M", "microvm,acpi=on,isa-serial=off") |
	    add(a, "-accel") |
	    (s->kvm ? add(a, "kvm") : add(a, "tcg,tb-size=%d", VMM_TB_MIB)) |
	    add_pair(a, "-cpu", s->kvm ? "host" : "max") |
	    add(a, "-smp") | add(a, "%u", s->vcpu) |
	    add(a, "-m") | add(a, "%u", s->memory_mib) |
	    add(a, "-nodefaults") | add(a, "-no-user-config") |
	    add_pair(a, "-display", "none") | add(a, "-no-reboot") |
	    /* A panicked guest waits, so that no fresh vmm misses the cause. */
	    add_pair(a, "-action", "panic=pause") |
	    add_kernel(a, s->kvm, tsc_khz) | add_disks(a) |
	    add(a, "-netdev") | add(a, "tap,id=net,fd=%d", QEMU_FD_TAP) |
	    add(a, "-device") | add(a,
	    "virtio-net-device,netdev=net,mac=%s", s->mac) |
	    add_channels(a) |
	    add_pair(a, "-object", "rng-builtin,id=rng") |
	    add_pair(a, "-device", "virtio-rng-device,rng=rng") |
	    add_pair(a, "-device", "pvpanic") |
	    add_pair(a, "-sandbox", "on,obsolete=deny,elevateprivileges=deny,"
	    "spawn=deny,resourcecontrol=deny");
}
