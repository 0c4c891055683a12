#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=200
"""A VMM that misbehaves (fake_qemu.c in QEMU's place, in a real jail): that VM
fails with its cause, vmm stays small, others are served, nothing is left."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import tap	# noqa: E402
import vmm	# noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
V = None


def rss_kib():
    return int(vmm.status(V.child.pid)["VmRSS"].split()[0])


def cpu_ticks():
    f = vmm.stat_fields(V.child.pid)
    return int(f[11]) + int(f[12])


def start_fails(t, mode, what, text, within, **fields):
    began = time.monotonic()
    e = V.refusal(vcpu=mode, **fields)
    took = time.monotonic() - began
    t.ok(e is not None and e.error == "E_START_FAILED" and
         re.search(text, e.detail), what + ": the start fails, with why", e)
    t.ok(took < within, what + ": within %.1f s" % within, took)
    t.equal(V.residue(), [], what + ": nothing is left")
    return e


def test_start(t):
    start_fails(t, 2, "garbage at the monitor", "nonsense", 1)
    start_fails(t, 3, "a line without an end", "nonsense", 1)
    start_fails(t, 8, "ends at once with 0", "stopped", 1)
    start_fails(t, 13, "crashes at once", "signal 11", 1)
    e = start_fails(t, 7, "stderr flood", "status 5", 1)
    t.ok(e.detail.isprintable(), "stderr flood: detail is plain text",
         e.detail)
    e = start_fails(t, 11, "tries to escape", "status 4", 1)
    t.ok("setuid -1 chroot -1 mount -1 mknod -1 unshare -1 write -1 pid 1 "
         in e.detail, "tries to escape: all is refused", e.detail)
    # qemu_args.h: console, tap and disks up to 9
    t.ok(e.detail.endswith("fds 0,1,2,3,4,5,6,7,8,9,"),
         "tries to escape: no other descriptor", e.detail)
    # limits.h: VM_START_MS
    start_fails(t, 4, "silent for ever", "did not answer", 14)


def test_kvm_node(t):
    start_fails(t, 1, "kvm not asked for", "no kvm node", 1)
    if not V.ready["kvm_node"]:
        t.skip("kvm asked for", "no /dev/kvm")
        return
    start_fails(t, 1, "kvm asked for: the slot's own node",
                "kvm node 20600 own 1 opens 1", 1, kvm=1)


def dies(t, mode, what, cause, text, within):
    vm = V.start(vcpu=mode)
    began = time.monotonic()
    m = V.died()
    t.ok(time.monotonic() - began < within, what + ": within %.1f s" % within)
    t.equal((m["id"], vmm.CAUSE[m["cause"]]), (vm.id, cause),
            what + ": cause " + cause)
    t.ok(re.search(text, m["detail"]) and m["detail"].isprintable(),
         what + ": detail", m["detail"])
    V.destroy(vm)
    t.equal(V.residue(), [], what + ": nothing is left")


def test_running(t):
    dies(t, 5, "closes its monitor", "vmm_error", "closed its monitor", 2)
    dies(t, 6, "nonsense later", "vmm_error", "nonsense", 1)
    dies(t, 12, "odd reason", "guest_stopped", r"the guest stopped \(", 1)


def test_children(t):
    vm = V.start(vcpu=9)
    t.equal(len(V.processes()), 21, "children: 21 processes")
    V.destroy(vm)
    t.equal(V.residue(), [], "children: all are gone after destroy")
    vm = V.start(vcpu=9)
    V.kill9()
    V.run()
    V.destroy(vm)
    t.equal(V.residue(), [], "children: also for a fresh vmm")
    vm = V.start(vcpu=9)
    V.kill9()
    V.run()
    t.ok(V.sweep() >= 1, "children: swept")
    t.equal(V.residue(), [], "children: and gone")


def test_flood(t):
    before = rss_kib()
    vm = V.start(0, vcpu=10)
    used = cpu_ticks()
    time.sleep(2)
    t.ok(cpu_ticks() - used < 40, "event flood: under 20 % of a core",
         cpu_ticks() - used)
    slowest = 0
    for _ in range(20):
        began = time.monotonic()
        other = V.start(1, vcpu=9)
        V.destroy(other)
        slowest = max(slowest, time.monotonic() - began)
    t.ok(slowest < 1, "event flood: others start and go meanwhile", slowest)
    if vmm.SAN:
        t.skip("event flood: vmm does not grow", "sanitizer keeps memory")
    else:
        t.ok(rss_kib() - before < 256, "event flood: vmm does not grow",
             rss_kib() - before)
    V.destroy(vm)
    t.equal(V.residue(), [], "event flood: nothing is left")


def main():
    global V
    why = vmm.missing()
    if why is None and shutil.which("gcc") is None:
        why = "no gcc"
    if why is not None:
        print("1..0 # SKIP " + why)
        return 0
    t = tap.Tap()
    d = tempfile.mkdtemp(prefix="vmm-")
    os.chmod(d, 0o755)
    fake = d + "/fake_qemu"
    subprocess.run(["gcc", "-O1", "-static", "-D_GNU_SOURCE", "-o", fake,
                    HERE + "/fake_qemu.c"], check=True)
    V = vmm.Vmm(qemu=fake)
    try:
        t.run(test_start, test_kvm_node, test_running, test_children,
              test_flood)
        fds = len(os.listdir("/proc/%d/fd" % V.child.pid))
        t.ok(fds <= 20, "vmm: no descriptor is left", fds)
        if t.failed:
            print("# " + V.child.text()[-6000:].replace("\n", "\n# "))
    finally:
        V.close()
        shutil.rmtree(d)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
