#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=600
"""kill -9 of each process of the daemon, and of all four: nothing is lost but
open streams.  Real VMs."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need()
import api
import tap

A = api.Api()
BOXES = []


def eventually(what, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if what():
                return True
        except (OSError, EOFError, api.ApiError):
            pass
        time.sleep(0.01)
    return False


def echo(box):
    return A.exec(box, ["echo", "alive"])["stdout"] == "alive\n"


def vmms():
    return [daemon.vmm_pid(b) for b in BOXES]


def kill(name):
    pid = daemon.children()[name]
    os.kill(pid, signal.SIGKILL)
    return pid


def front(t):
    was = vmms()
    streams = []
    for i in range(10):
        ws = A.command(BOXES[i % 2], [
            "/bin/sh", "-c", "while :; do echo x; done"],
            stdin=False, on_disconnect="delete" if i % 2 else "keep")
        ws.wait_for("process_started")
        streams.append(ws)
    began = time.monotonic()
    kill("front")
    back = eventually(lambda: A.health()["status"] == "ok")
    s = time.monotonic() - began
    t.ok(back and s < 1, "front killed in 10 streams: back within 1 s",
         "%.2f s" % s)
    for ws in streams:
        r = ws.collect()
        if r.exited is not None:
            t.ok(False, "front killed: a stream said that it had ended well")
        ws.close()
    t.ok(all(eventually(lambda b=b: echo(b)) for b in BOXES),
         "front killed: the sandboxes live on, new commands work")
    t.equal(vmms(), was, "front killed: the same VMMs")
    t.ok(eventually(lambda: "echo x" not in A.exec(
        BOXES[0], ["ps"])["stdout"]),
         "front killed: commands of lost streams do not run on")


def vmm(t):
    was = vmms()
    ws = A.command(BOXES[0], ["/bin/sh", "-c", "sleep 2; echo done"],
                   stdin=False)
    ws.wait_for("process_started")
    kill("vmm")
    r = ws.collect()
    t.equal((r.stdout, r.exit_code), (b"done\n", 0),
            "vmm killed: an open stream does not even notice")
    t.ok(eventually(lambda: "vmm" in daemon.children() and echo(BOXES[1])),
         "vmm killed: new commands work")
    t.equal(vmms(), was, "vmm killed: the same VMMs")
    t.ok(eventually(lambda: BOXES.append(
        A.create(memory_mib=96, on_disconnect="keep")["sandbox_id"]) or True),
         "vmm killed: the next create works")
    box = BOXES.pop()
    os.kill(daemon.vmm_pid(box), signal.SIGKILL)
    t.ok(eventually(lambda: A.show(box)["state"] == "failed", 2),
         "vmm killed: the new one notices a VM's death")
    A.delete(box)
    os.kill(daemon.vmm_pid(BOXES[1]), signal.SIGKILL)
    t.ok(eventually(lambda: A.show(BOXES[1])["state"] == "failed", 2),
         "vmm killed: also that of a VM which it adopted")
    A.delete(BOXES.pop())


def netd(t):
    kill("netd")
    box = None

    def create():
        nonlocal box
        box = A.create(memory_mib=96)["sandbox_id"]
        return True
    t.ok(eventually(create), "netd killed: the next create works")
    t.ok(echo(box) and echo(BOXES[0]), "netd killed: old and new work")
    A.delete(box)


def restart():
    subprocess.run([os.path.join(daemon.ROOT, "regress", "with-daemon"),
                    "--start"], check=True, timeout=60)


def all_four(t):
    box = BOXES[0]
    was, expires = daemon.vmm_pid(box), A.show(box)["expires_at"]
    half = A.request  # an acknowledged create with a key, to be asked again
    key = half("POST", "/v1/sandboxes", data={"template": "seed",
               "memory_mib": 96}, headers={"Idempotency-Key": "k"}).json()
    for pid in sorted(daemon.children().values()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    restart()
    t.ok(eventually(lambda: echo(box), 20),
         "all four killed: the sandbox is there, a command runs in it")
    t.equal(daemon.vmm_pid(box), was, "all four killed: the same VMM")
    t.ok(abs(int(A.show(box)["expires_at"][17:19]) - int(expires[17:19])) in
         (0, 1, 59), "all four killed: the same deadline", expires)
    again = half("POST", "/v1/sandboxes", data={"template": "seed",
                 "memory_mib": 96}, headers={"Idempotency-Key": "k"})
    t.equal((again.status, again.json()["sandbox_id"]),
            (200, key["sandbox_id"]), "all four killed: the key still holds")
    t.equal(len(A.list_all()), 2, "all four killed: no other sandbox")
    A.delete(key["sandbox_id"])


def orderly(t):
    box = BOXES[0]
    was = daemon.vmm_pid(box)
    subprocess.run([os.path.join(daemon.ROOT, "regress", "with-daemon"),
                    "--stop"], check=True, timeout=60)
    t.ok(os.path.exists("/proc/%d" % was), "stopped: the VM lives on")
    restart()
    t.ok(eventually(lambda: echo(box), 20) and daemon.vmm_pid(box) == was,
         "started again: adopted")
    os.kill(was, signal.SIGKILL)
    t.ok(eventually(lambda: A.show(box)["state"] == "failed", 2),
         "started again: its death is noticed")


def main():
    t = tap.Tap()
    for _ in range(2):
        BOXES.append(A.create(on_disconnect="keep")["sandbox_id"])
    t.run(front, vmm, netd, all_four, orderly)
    A.delete_all()
    return t.done()


sys.exit(main())
