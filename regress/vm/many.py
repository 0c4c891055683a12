#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: alone timeout=300
"""Ten VMs started at once: all come up and answer, and starts overlap; floods
on the console and at the monitor hurt nobody else; ten destroys at once."""
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import tap	# noqa: E402
import vmm	# noqa: E402

N = 10
V = None


def rss_kib(pid):
    return int(vmm.status(pid)["VmRSS"].split()[0])


def test_together(t):
    began = time.monotonic()
    vms = [V.begin(i, disk_mib=256 + 16 * (i % 2)) for i in range(N)]
    for vm in vms:
        V.started(vm, 60)
    up = time.monotonic() - began
    t.equal(len({vm.pid for vm in vms}), N, "ten starts at once: ten VMs")
    good = 0
    for vm in vms:
        host = V.host(vm, 120)
        r = host.run(["/bin/sh", "-c", "echo %s; cat /proc/uptime" % vm.id])
        good += r.stdout.startswith(vm.id.encode())
        V.child.send("PARENT_VM_BOOTED", id=vm.id, generation=vm.generation)
    t.equal(good, N, "ten starts at once: each runs its own command")
    print("# monitors of all after %.2f s, all commands after %.2f s" %
          (up, time.monotonic() - began))
    t.equal(sorted(V.leaves()), sorted(vm.id for vm in vms)
            if vmm.cgroup_mount() else [], "each in its own cgroup")
    return vms


def test_destroy_together(t, vms):
    began = time.monotonic()
    asked = []
    for vm in vms:
        os.close(vm.fd)
        vm.fd = None
        asked.append(V.child.start("PARENT_DESTROY_VM", id=vm.id, uid=vm.uid,
                                   slot=vm.slot, generation=vm.generation))
    names = [V.child.wait_answer(r, 20).name for r in asked]
    t.equal(names, ["VMM_DESTROY_VM_OK"] * N, "ten destroys at once")
    print("# %.3f s" % (time.monotonic() - began))
    t.equal(V.residue(), [], "nothing is left")


def test_second_monitor(t):
    """QEMU's monitor serves one: a visitor waits and takes nothing away."""
    vm = V.start()
    V.host(vm)
    visitor = socket.socket(socket.AF_UNIX)
    visitor.connect("%s/vm/%s/monitor.sock" % (V.state, vm.id))
    visitor.send(b"\0\xff garbage \n" * 100)
    visitor.close()
    time.sleep(0.5)
    t.ok(vmm.alive(vm.pid), "a visitor at the monitor's socket: no harm")
    for name in ("monitor.sock", "agent.sock", "layer.img"):
        st = os.stat("%s/vm/%s/%s" % (V.state, vm.id, name))
        t.equal((st.st_uid, st.st_mode & 0o077), (0, 0),
                "%s: root's alone" % name)
    t.equal(os.stat("%s/vm/%s" % (V.state, vm.id)).st_mode & 0o7777, 0o700,
            "the VM's directory: root's alone")
    V.destroy(vm)


def test_console_flood(t):
    """Before the guest is said to have booted its console is read, bounded."""
    vm = V.start()
    host = V.host(vm)
    other = V.start(1)
    before = rss_kib(V.child.pid)
    host.run(["/bin/sh", "-c",
              "dd if=/dev/zero bs=1M count=16 | tr '\\000' x > /dev/hvc0"],
             timeout=200)
    grown = rss_kib(V.child.pid) - before
    if vmm.SAN:
        grown = 0               # the sanitizer keeps freed memory
    t.ok(grown < 256, "16 MiB on the console: vmm does not grow", grown)
    m = V.destroy(vm)
    t.equal(m["console"][-100:], b"x" * 100,
            "the console's tail goes with the destroy")
    t.equal(len(m["console"]), 4096, "and is bounded")
    t.equal(V.host(other).run(["/bin/echo", "a"]).stdout, b"a\n",
            "another VM is served")
    V.destroy(other)
    t.equal(V.residue(), [], "nothing is left")


def main():
    global V
    why = vmm.missing()
    if why is not None:
        print("1..0 # SKIP " + why)
        return 0
    t = tap.Tap()
    V = vmm.Vmm()
    try:
        vms = []
        t.run(lambda t: vms.extend(test_together(t)),
              lambda t: test_destroy_together(t, vms),
              test_second_monitor, test_console_flood)
        fds = len(os.listdir("/proc/%d/fd" % V.child.pid))
        t.ok(fds <= 20, "vmm: no descriptor is left", fds)
        print("# vmm: VmRSS %d KiB" % rss_kib(V.child.pid))
        if t.failed:
            print("# " + V.child.text().replace("\n", "\n# "))
    finally:
        V.close()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
