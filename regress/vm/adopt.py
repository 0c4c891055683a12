#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=240
"""kill -9 of vmm: VMs live on, a fresh vmm adopts them, commands run, deaths
are seen; what nobody owns is swept, and nothing else is touched."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import tap	# noqa: E402
import vmm	# noqa: E402

V = None


def failed(f, *args, **kw):
    try:
        f(*args, **kw)
    except vmm.Failed as e:
        return e.error
    return None


def test_adopt(t):
    vm = V.start()
    host = V.host(vm)
    host.run(["/bin/sh", "-c", "echo before > /tmp/f"])
    V.kill9()
    time.sleep(0.2)
    t.ok(vmm.alive(vm.pid), "kill -9 of vmm: the VM lives on")
    t.equal(host.run(["/bin/echo", "a"]).stdout, b"a\n",
            "kill -9 of vmm: the open channel works on")
    V.run()
    for what, fields in (("start time", {"start_time": vm.start_time + 1}),
                         ("pid", {"pid": os.getpid()}),
                         ("uid", {"uid": vm.uid + 1, "slot": 1}),
                         ("slot", {"slot": 5})):
        t.ok(failed(V.adopt, vm, **fields) in ("E_GONE", "E_INTERNAL"),
             "adopt: refused with another %s" % what)
    t.ok(vmm.alive(vm.pid), "adopt: a refusal touches nothing")
    V.adopt(vm)
    V.adopt(vm)
    t.ok(True, "adopt: works, and once more")
    host.wire.sock.close()
    V.reconnect(vm)
    host = V.host(vm)
    r = host.run(["/bin/cat", "/tmp/f"])
    t.equal(r.stdout, b"before\n", "adopted: a fresh channel, the same guest")
    t.equal(V.sweep(), 0, "sweep: an adopted VM is not swept")
    t.equal(failed(V.destroy, vm, generation=vm.generation + 1),
            "E_CONFLICT", "destroy: another generation is refused")
    V.destroy(vm)
    t.equal(V.residue(), [], "adopted VM destroyed: nothing is left")


def test_adopted_death(t):
    for how, cause in (("kill", "vmm_error"), ("panic", "guest_panic"),
                       ("reboot", "guest_stopped")):
        vm = V.start()
        host = V.host(vm)
        V.kill9()
        V.run()
        V.adopt(vm)
        time.sleep(0.3)
        began = time.monotonic()
        if how == "kill":
            os.kill(vm.pid, signal.SIGKILL)
        elif how == "panic":
            host.exec(["/bin/sh", "-c", "echo c > /proc/sysrq-trigger"])
        else:
            host.exec(["/bin/busybox", "reboot", "-f"])
        m = V.died()
        t.ok(time.monotonic() - began < 1,
             "adopted, %s: noticed within 1 s" % how)
        t.equal((m["id"], vmm.CAUSE[m["cause"]]), (vm.id, cause),
                "adopted, %s: cause %s" % (how, cause))
        V.destroy(vm)
        t.equal(V.residue(), [], "adopted, %s: nothing is left" % how)


def test_panic_while_away(t):
    vm = V.start()
    host = V.host(vm)
    V.kill9()
    host.exec(["/bin/sh", "-c", "echo c > /proc/sysrq-trigger"])
    time.sleep(0.7)
    t.ok(vmm.alive(vm.pid), "panic without a vmm: QEMU waits, paused")
    V.run()
    V.adopt(vm)
    m = V.died()
    t.equal((m["id"], vmm.CAUSE[m["cause"]]), (vm.id, "guest_panic"),
            "panic without a vmm: the fresh one still learns the cause")
    V.destroy(vm)


def test_death_while_away(t):
    vm = V.start()
    V.kill9()
    os.kill(vm.pid, signal.SIGKILL)
    V.run()
    t.equal(failed(V.adopt, vm), "E_GONE", "adopt: a dead VM is gone")
    V.destroy(vm)
    t.equal(V.residue(), [], "dead while vmm was away: destroy cleans up")


def test_destroy_unknown(t):
    """After a crash, of a VM that was not adopted."""
    vm = V.start()
    V.kill9()
    V.run()
    V.destroy(vm)
    t.ok(not vmm.alive(vm.pid), "destroy of an unknown VM: killed")
    t.equal(V.residue(), [], "destroy of an unknown VM: nothing is left")
    lone = vmm.VM(vmm.new_id(), 9, V.uid(9), 1)
    V.destroy(lone)
    t.ok(True, "destroy of what never was succeeds")


def test_sweep(t):
    kept = V.start(0)
    lost = V.start(1)
    V.kill9()
    # A process with a slot's uid, one with a neighbour's, one of root's.
    stray = subprocess.Popen(["sleep", "100"], user=V.uid(7))
    other = subprocess.Popen(["sleep", "100"],
                             user=V.setup["uid_first"] - 1)
    front = subprocess.Popen(["sleep", "100"], user=V.setup["uid_first"])
    root = subprocess.Popen(["sleep", "100"])
    os.mkdir(V.state + "/vm/" + vmm.new_id())
    V.run()
    V.adopt(kept)
    began = time.monotonic()
    n = V.sweep()
    took = time.monotonic() - began
    stray.wait(5)
    t.ok(n >= 3, "sweep: counts what it removed", n)
    t.ok(took < 2, "sweep: quick", took)
    t.ok(not vmm.alive(lost.pid), "sweep: a VM nobody adopted is killed")
    t.equal(stray.returncode, -signal.SIGKILL,
            "sweep: a process with a slot's uid is killed")
    t.ok(other.poll() is None and front.poll() is None and
         root.poll() is None,
         "sweep: processes of other uids are not touched")
    t.ok(vmm.alive(kept.pid), "sweep: the adopted VM lives")
    t.equal(V.sweep(), 0, "sweep: again: nothing to do")
    for p in (other, front, root):
        p.kill()
        p.wait()
    V.destroy(kept)
    t.equal(V.residue(), [], "sweep: nothing is left")


def test_parent_gone(t):
    vm = V.start()
    status = V.child.stop()
    t.equal(status, 0, "parent gone: vmm ends with status 0")
    time.sleep(0.2)
    t.ok(vmm.alive(vm.pid), "parent gone: the VM lives on")
    V.run()
    V.adopt(vm)
    V.reconnect(vm)
    host = V.host(vm)
    t.equal(host.run(["/bin/echo", "a"]).stdout, b"a\n",
            "parent gone: adopted by the next vmm, a command runs")
    V.destroy(vm)
    t.equal(V.residue(), [], "parent gone: nothing is left after destroy")


def main():
    global V
    why = vmm.missing()
    if why is not None:
        print("1..0 # SKIP " + why)
        return 0
    t = tap.Tap()
    V = vmm.Vmm()
    try:
        t.run(test_adopt, test_adopted_death, test_panic_while_away,
              test_death_while_away, test_destroy_unknown, test_sweep,
              test_parent_gone)
        if t.failed:
            print("# " + V.child.text().replace("\n", "\n# "))
    finally:
        V.close()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
