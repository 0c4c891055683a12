#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=240
"""One VM through vmm: boot, a command, what confines QEMU as /proc tells it,
every way to die, and that a destroy leaves nothing."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import tap	# noqa: E402
import vmm	# noqa: E402

V = None


def namespaces(pid):
    return {n: os.readlink("/proc/%d/ns/%s" % (pid, n))
            for n in ("pid", "mnt", "net", "ipc", "uts")}


def test_boot(t):
    vm = V.start()
    s = vmm.status(vm.pid)
    t.equal(vmm.start_time(vm.pid), vm.start_time,
            "start: pid and start time are the process's")
    host = V.host(vm)
    r = host.run(["/bin/sh", "-c", "cat; exit 7"], stdin=b"hello")
    t.equal((r.code, r.stdout), (7, b"hello"), "exec: output and exit code")
    r = host.run(["/bin/sh", "-c", "cat /sys/block/vd?/serial; "
                  "cat /proc/cmdline; cat /sys/class/net/eth0/address"])
    t.ok(b"base" in r.stdout and b"layer" in r.stdout,
         "disks: serials base and layer", r.stdout)
    t.ok(b"tsc_early_khz=" in r.stdout, "kernel: told the host's TSC rate")
    t.ok(b"02:53:0a:00:00:02" in r.stdout, "network: the MAC asked for")
    V.child.send("PARENT_VM_BOOTED", id=vm.id, generation=vm.generation)
    check_confined(t, vm.pid, s)
    r = host.run(["/bin/echo", "still here"])
    t.equal(r.stdout, b"still here\n", "exec: goes on without the console")
    m = V.destroy(vm)
    t.equal(m["console"], b"", "destroy: no console of a VM that answered")
    t.equal(V.residue(), [], "destroy: nothing is left")
    m = V.destroy(vm)
    t.equal(m["id"], vm.id, "destroy: again, of what is gone, succeeds")


def check_confined(t, pid, before):
    s = vmm.status(pid)
    uid = str(V.uid(0))
    t.equal((before["Uid"].split(), s["Uid"].split()), ([uid] * 4,) * 2,
            "QEMU: the slot's uid, all four, from the first answer on")
    t.equal(s["Gid"].split(), [uid] * 4, "QEMU: the slot's gid, all four")
    t.equal(s["Groups"].split(), [], "QEMU: no further group")
    for cap in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        t.equal(s[cap], "0" * 16, "QEMU: %s is empty" % cap)
    t.equal((s["NoNewPrivs"], s["Seccomp"]), ("1", "2"),
            "QEMU: no_new_privs and a filter")
    t.equal(int(s["Seccomp_filters"]) >= 3, True,
            "QEMU: its own filter on top of the jail's and vmm's")
    t.equal(s["NSpid"].split()[-1], "1", "QEMU: PID 1 of its own namespace")
    ours, its = namespaces(os.getpid()), namespaces(pid)
    for n in ours:
        t.ok(ours[n] != its[n], "QEMU: %s namespace of its own" % n)
    root = "/proc/%d/root" % pid
    t.equal(sorted(os.listdir(root)),
            ["dev", "etc", "initramfs", "kernel", "lib64", "usr"],
            "QEMU: root directory holds only what it needs")
    t.equal(sorted(os.listdir(root + "/dev")), ["null", "urandom"],
            "QEMU: two devices, no kvm without being asked")
    t.equal(os.listdir(root + "/etc"), ["ld.so.cache"], "QEMU: no /etc")
    with open("/proc/%d/mountinfo" % pid, encoding="ascii") as f:
        mounts = [line.split() for line in f]
    t.ok(mounts and all("ro" in m[5].split(",") and "nosuid" in
                        m[5].split(",") for m in mounts),
         "QEMU: every mount is read-only and nosuid", mounts)
    with open("/proc/%d/net/dev" % pid, encoding="ascii") as f:
        names = [line.split(":")[0].strip() for line in f if ":" in line]
    t.equal(names, ["lo"], "QEMU: no network interface but a dead loopback")
    check_fds(t, pid)
    with open("/proc/%d/limits" % pid, encoding="ascii") as f:
        lim = {line[:25].strip(): line[26:].split()[:2] for line in f}
    t.equal(lim["Max core file size"], ["0", "0"], "QEMU: no core files")
    t.equal(lim["Max file size"], [str(257 << 20)] * 2,
            "QEMU: files no larger than its layer and a MiB")
    t.equal(lim["Max open files"], ["128", "128"], "QEMU: 128 descriptors")
    with open("/proc/%d/environ" % pid, "rb") as f:
        t.equal(f.read(), b"", "QEMU: no environment")


def check_fds(t, pid):
    """Sockets, the tap, two images, anonymous inodes; nothing of vmm's."""
    d = "/proc/%d/fd" % pid
    files = sorted({os.readlink(d + "/" + n) for n in os.listdir(d)})
    paths = [f for f in files if f.startswith("/")]
    want = {"/dev/null", "/dev/net/tun", "/dev/urandom",
            os.path.join(vmm.BUILD, "templates/seed/rootfs.ext4")}
    rest = [p for p in paths if p not in want and "layer.img" not in p]
    t.equal(rest, [], "QEMU: no descriptor of another file")
    t.ok(len([p for p in paths if "layer.img" in p]) == 1,
         "QEMU: its layer", paths)


def test_destroy_booting(t):
    vm = V.start()
    time.sleep(0.3)
    began = time.monotonic()
    V.destroy(vm)
    t.ok(time.monotonic() - began < 1, "destroy: at once while booting")
    t.equal(V.residue(), [], "destroy while booting: nothing is left")


def test_destroy_starting(t):
    vm = V.begin(disk_mib=77)
    V.generation += 1
    d = V.child.start("PARENT_DESTROY_VM", id=vm.id, slot=0, uid=vm.uid,
                      generation=vm.generation)
    m = V.child.wait_answer(vm.request)
    t.equal((m.name, vmm.ERRORS[m["error"]]), ("VMM_FAIL", "E_GONE"),
            "destroy during start: the start fails with gone")
    m = V.child.wait_answer(d)
    t.equal(m.name, "VMM_DESTROY_VM_OK", "destroy during start: succeeds")
    t.equal(V.residue(), [], "destroy during start: nothing is left")


def dies(t, how, cause, within=1.0, boot=True):
    """Runs how(vm, host) and expects one event."""
    vm = V.start()
    host = V.host(vm) if boot else None
    if boot:
        V.child.send("PARENT_VM_BOOTED", id=vm.id, generation=vm.generation)
    began = time.monotonic()
    how(vm, host)
    m = V.died(30)
    took = time.monotonic() - began
    what = how.__name__
    t.equal((m["id"], m["generation"]), (vm.id, vm.generation),
            "%s: the event names the VM" % what)
    t.equal(vmm.CAUSE[m["cause"]], cause, "%s: cause is %s" % (what, cause))
    t.ok(took < within, "%s: noticed within %.1f s" % (what, within),
         "%.3f s" % took)
    t.ok(m["detail"] != "", "%s: detail says something" % what)
    t.ok(V.processes() == [], "%s: no process is left" % what)
    V.destroy(vm)
    t.equal(V.residue(), [], "%s: nothing is left after destroy" % what)
    return m


def kill_qemu(vm, _):
    os.kill(vm.pid, signal.SIGKILL)


def guest_panic(_, host):
    host.exec(["/bin/sh", "-c", "echo c > /proc/sysrq-trigger"])


def guest_reboot(_, host):
    host.exec(["/bin/busybox", "reboot", "-f"])


def test_deaths(t):
    dies(t, kill_qemu, "killed")
    dies(t, guest_panic, "guest_panic")
    dies(t, guest_reboot, "guest_stopped")
    dies(t, kill_qemu, "killed", boot=False)


def test_slot_again(t):
    """A slot serves one VM after the other."""
    for _ in range(5):
        vm = V.start()
        V.destroy(vm)
    t.equal(V.residue(), [], "a slot used five times in a row leaves nothing")


def test_vmm_confined(t):
    s = vmm.status(V.child.pid)
    # linux/capability.h: CHOWN 0, DAC_OVERRIDE 1, KILL 5, SETGID 6, SETUID 7,
    # SETPCAP 8, SYS_ADMIN 21, MKNOD 27
    want = "%016x" % sum(1 << c for c in (0, 1, 5, 6, 7, 8, 21, 27))
    t.equal((s["CapEff"], s["CapPrm"], s["CapBnd"]), (want,) * 3,
            "vmm: the capabilities that jails need, and no other")
    t.equal((s["NoNewPrivs"], s["Seccomp"]), ("1", "2"),
            "vmm: no_new_privs and a deny list, and VMs boot under it")
    t.equal(s["Threads"], "1", "vmm: one thread")
    fds = len(os.listdir("/proc/%d/fd" % V.child.pid))
    t.ok(fds <= 20, "vmm: no descriptor is left of all those VMs", fds)


def main():
    global V
    why = vmm.missing()
    if why is not None:
        print("1..0 # SKIP " + why)
        return 0
    t = tap.Tap()
    V = vmm.Vmm()
    try:
        t.run(test_boot, test_destroy_booting, test_destroy_starting,
              test_deaths, test_slot_again, test_vmm_confined)
        if t.failed:
            print("# " + V.child.text().replace("\n", "\n# "))
    finally:
        V.close()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
