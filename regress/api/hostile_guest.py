#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=300
"""Guest agents that answer malformed, oversized, endless, late or never, behind
a real parent, front and netd (vmm is played: its VMs are agents in threads, the
template's name says how each misbehaves).  One sandbox fails with its cause;
the daemon serves the others all the while."""
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import api
import daemon
import fakes
import gproto
import tap

BOOT_S = 2
# What a create ends with; the rest breaks later, in a command.
AT_BOOT = {"never": 504, "late": 504, "wrong-nonce": 504, "no-hello": 504,
           "no-config-done": 504, "version": 502, "config-fails": 500,
           "close-hello": 502, "garbage": 504}
IN_COMMAND = sorted(set(gproto.MISBEHAVIOURS) - set(AT_BOOT) -
                    {"endless", "hang"})


class Vms(threading.Thread):
    """Plays vmm."""

    def __init__(self, stub):
        super().__init__(daemon=True)
        self.stub, self.open, self.names = stub, {}, {}

    def start_vm(self, m):
        os.close(m.fd)
        ours, theirs = socket.socketpair()
        self.stub.answer(m, "VMM_START_VM_OK", fd=theirs.fileno(), id=m["id"],
                         generation=m["generation"], pid=1, start_time=1)
        theirs.close()
        guest = gproto.Guest(ours)
        guest.late_s = BOOT_S + 2
        self.open[m["id"]] = ours
        name = m["template"][4:] if m["template"] != "good" else None
        threading.Thread(target=self.serve, args=(guest, name),
                         daemon=True).start()

    @staticmethod
    def serve(guest, name):
        try:
            guest.serve(misbehave=name)
        except Exception:       # a test's end, or a socket that was shut
            pass

    def run(self):
        while True:
            try:
                m = self.stub.recv(3600)
            except (OSError, ValueError):
                return
            if m is None:
                return
            if m.name == "PARENT_START_VM":
                self.start_vm(m)
            elif m.name == "PARENT_DESTROY_VM":
                s = self.open.pop(m["id"], None)
                if s is not None:
                    try:
                        s.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
                self.stub.answer(m, "VMM_DESTROY_VM_OK", id=m["id"],
                                 generation=m["generation"])


def start(p):
    vmm = p.accept()
    vmm.send("VMM_READY", qemu_version="fake", kernel_version="fake")
    p.sweep()
    Vms(vmm).start()
    a = api.Api(os.path.join(p.dir, "api.sock"), timeout=30)
    a.wait_healthy()
    return a


def serves(t, a, good, what):
    began = time.monotonic()
    r = a.exec(good, ["echo", "alive"])
    s = time.monotonic() - began
    t.ok(r["stdout"] == "alive\n" and s < 2,
         "%s: another sandbox is served meanwhile" % what, "%.1f s" % s)


def at_boot(t, a, good):
    got = {}

    def create(name):
        r = a.request("POST", "/v1/sandboxes", data={"template": "bad-" + name})
        got[name] = r.status, r.json()

    threads = [threading.Thread(target=create, args=(n,)) for n in AT_BOOT]
    for th in threads:
        th.start()
    time.sleep(0.3)
    serves(t, a, good, "all that fail at boot")
    for th in threads:
        th.join()
    for name, want in sorted(AT_BOOT.items()):
        status, problem = got[name]
        t.ok(status == want and problem["detail"],
             "%s: create answers %d (%s)" % (name, want,
                                             gproto.MISBEHAVIOURS[name]),
             "%r %r" % (status, problem))


def in_command(t, a, good):
    for name in IN_COMMAND:
        box = a.create(template="bad-" + name,
                       on_disconnect="keep")["sandbox_id"]
        ws = a.command(box, ["cat"])
        r = ws.collect()
        if name == "twice" or name == "after-exit":
            # The command itself had ended well; what came after breaks it.
            ended = r.exited is not None
        else:
            ended = r.error is not None and r.close in (4000, 4002)
        t.ok(ended, "%s: the stream ends and says why (%s)" % (
            name, gproto.MISBEHAVIOURS[name]), "%r %r" % (r.error, r.close))
        end = time.monotonic() + 5
        while a.show(box)["state"] == "running" and time.monotonic() < end:
            time.sleep(0.05)
        show = a.show(box)
        t.ok(show["state"] == "failed" and show["cause"] == "guest_lost" and
             show["detail"], "%s: failed, with its cause" % name, show)
        serves(t, a, good, name)
        a.delete(box)


def endless(t, a, good, pids):
    box = a.create(template="bad-endless", on_disconnect="keep")["sandbox_id"]
    ws = a.command(box, ["cat"])
    ws.wait_for("process_started")
    time.sleep(1)
    before = {k: daemon.rss_kib(v) for k, v in pids.items()}
    time.sleep(3)
    serves(t, a, good, "endless")
    grown = {k: daemon.rss_kib(v) - before[k] for k, v in pids.items()}
    t.ok(max(grown.values()) < 1024, "endless output that nobody reads: "
         "no process grows", grown)
    ws.close()
    hang = a.create(template="bad-hang", on_disconnect="keep")["sandbox_id"]
    ws = a.command(hang, ["cat"])
    ws.wait_for("process_started")
    ws.close()
    serves(t, a, good, "hang")
    for b in (box, hang):
        t.equal(a.delete(b), 204, "and it is deleted like any other")


def main():
    t = tap.Tap()
    names = ["good"] + ["bad-" + n for n in gproto.MISBEHAVIOURS]
    with fakes.Parent("boot deadline %d" % BOOT_S, templates=names,
                      real=("front", "netd")) as p:
        a = start(p)
        good = a.create(template="good", on_disconnect="keep")["sandbox_id"]
        os.environ["SANDBOXD_PIDFILE"] = os.path.join(p.state, "lock")
        pids = daemon.children()
        t.run(lambda t: at_boot(t, a, good), lambda t: in_command(t, a, good),
              lambda t: endless(t, a, good, pids))
        t.equal(daemon.children(), pids, "no process of the daemon was lost")
        t.equal(a.delete(good), 204, "the good one lived to the end")
        t.equal(a.list_all(), [], "nothing is left")
    return t.done()


sys.exit(main())
