#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The parent's life cycle, its children played by the test: order of the steps,
roll-back of each, races of delete, keys, hostile front, deaths of children."""
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from fakes import Parent, eventually
from tap import Tap

t = Tap()
STATES = {1: "creating", 2: "running", 4: "deleting", 5: "failed", 6: "deleted"}


def errors():
    path = os.path.join(os.path.dirname(__file__), "..", "..", "common",
                        "errors.def")
    rows = [line.split('"')[1] for line in open(path)
            if line.startswith("SBX_ERROR(E_")]
    return {name: i + 1 for i, name in enumerate(rows)}


E = errors()


def show(p, owner, sb):
    return p.front.request("FRONT_SHOW_SANDBOX", owner=owner, id=sb)


def barrier():
    with Parent() as p:
        p.accept_all()
        t.equal(p.front.setup["uid"], p.uid_first, "front: uid of the range")
        t.equal(p.netd.setup["uid"], p.uid_first + 1, "netd: another uid")
        p.say_ready("front", "netd")
        time.sleep(0.3)
        t.ok(not p.vmm.inbox and "ready socket" not in p.text(),
             "barrier: nothing happens before every child is ready")
        p.say_ready("vmm")
        p.sweep()
        p.front.expect("PARENT_OPEN_API")
        t.ok(eventually(lambda: "ready socket" in p.text()),
             "barrier: API opened after the sweep")


def good_life(p, owner):
    request = p.ask_create(owner, name="web", metadata=b"k\0v\0",
                           env=b"A=1\0", key="k1")
    m = p.tap()
    entry = [v for k, v in p.ledger().items() if k.startswith("sandbox/")]
    t.equal(entry[0]["state"], "creating", "ledger: intent before the first act")
    t.equal(m["uid"], p.uid_first + 16 + m["slot"], "tap: owned by the slot's uid")
    v = p.start_vm(pid=77)
    t.equal((v["slot"], v["uid"], v["gid"], v["memory_mib"]),
         (m["slot"], m["uid"], m["uid"], 128), "vm: same slot, default size")
    c = p.channel()
    t.equal((c["address"], c["gateway"], c["hostname"], c["prefix"]),
         ("%s.%d" % (p.net, 4 * m["slot"] + 2),
          "%s.%d" % (p.net, 4 * m["slot"] + 1), "web", 30),
         "channel: the guest's network is the slot's")
    p.guest_ready(c)
    a = p.front.wait_answer(request)
    t.equal((a["state"], a["replayed"], a["name"], a["metadata"]),
         (2, 0, "web", b"k\0v\0"), "create: answered when the guest is ready")
    entry = p.ledger()["sandbox/" + a["id"]]
    t.equal((entry["state"], entry["pid"], entry["start_time"]),
         ("running", 77, 42), "ledger: running, with its process")
    r = p.front.wait_answer(p.ask_create(owner, name="web", key="k1"))
    t.equal((r["id"], r["replayed"]), (a["id"], 1), "same key, same body: replay")
    r = p.front.wait_answer(p.ask_create(owner, key="k1",
                                         fingerprint=b"x" * 32))
    t.equal(r["error"], E["key_reused"], "same key, other body: refused")
    return a["id"], m["slot"]


def delete(p, owner, sb):
    first = p.front.start("FRONT_DELETE_SANDBOX", owner=owner, id=sb)
    more = [p.front.start("FRONT_DELETE_SANDBOX", owner=owner, id=sb)
            for _ in range(9)]
    p.release()
    done = [p.front.wait_answer(r)["done"] for r in [first] + more]
    t.equal(done, [1] * 10, "delete: ten at once, all answered after the release")
    t.ok("sandbox/" + sb not in p.ledger(), "ledger: the record is gone")
    r = p.front.request("FRONT_DELETE_SANDBOX", owner=owner, id=sb)
    t.equal(r["done"], 1, "delete: again, succeeds")
    t.equal(show(p, owner, sb).name, "PARENT_FAIL", "show: gone")
    r = p.front.wait_answer(p.ask_create(owner, key="k1"))
    t.equal((r["id"], STATES[r["state"]]), (sb, "deleted"),
         "key outlives its sandbox: no second VM")


def failing_steps(p, owner):
    r = p.ask_create(owner, key="retry")
    m = p.netd.expect("PARENT_CREATE_TAP")
    os.close(m.fd)
    p.netd.answer(m, "NETD_FAIL", slot=m["slot"], generation=m["generation"],
                  error=E["network_failed"], detail="tap: busy")
    p.release()
    a = p.front.wait_answer(r)
    t.equal((a.name, a["error"], a["detail"]),
         ("PARENT_FAIL", E["network_failed"], "tap: busy"),
         "tap fails: released, then answered with the cause")
    r = p.ask_create(owner, key="retry")
    p.tap()
    m = p.vmm.expect("PARENT_START_VM")
    os.close(m.fd)
    p.vmm.answer(m, "VMM_FAIL", id=m["id"], generation=m["generation"],
                 error=E["no_template"], detail="no root")
    p.release()
    a = p.front.wait_answer(r)
    t.equal(a["error"], E["no_template"], "vm fails: the failed key was free")
    r = p.ask_create(owner)
    p.tap()
    p.start_vm()
    c = p.channel()
    p.front.send("FRONT_GUEST_LOST_EVENT", id=c["id"],
                 generation=c["generation"], error=E["guest_timeout"],
                 detail="no answer")
    p.release(console=b"Kernel panic\x1b[2J")
    a = p.front.wait_answer(r)
    t.ok(a["error"] == E["guest_timeout"] and
         "Kernel panic [2J" in a["detail"],
         "guest never answers: cause and the console's tail, made harmless")
    t.equal([k for k in p.ledger() if k.startswith("sandbox/")], [],
         "ledger: failed creates leave nothing")


def delete_during_create(p, owner):
    r = p.ask_create(owner)
    m = p.netd.expect("PARENT_CREATE_TAP")
    os.close(m.fd)
    listed = p.front.start("FRONT_LIST_SANDBOXES", owner=owner, limit=10)
    one = p.front.wait_answer(listed)
    p.front.wait_answer(listed)
    d = p.front.start("FRONT_DELETE_SANDBOX", owner=owner, id=one["id"])
    p.front.expect("PARENT_CLOSE_CHANNEL")
    p.netd.answer(m, "NETD_CREATE_TAP_OK", slot=m["slot"],
                  generation=m["generation"])
    p.release(channel=False)
    a, b = p.front.wait_answer(r), p.front.wait_answer(d)
    t.equal((a["error"], b["done"]), (E["sandbox_gone"], 1),
         "delete during create: both answered, nothing left")


def release_is_retried(p, owner):
    sb = p.create(owner)["id"]
    d = p.front.start("FRONT_DELETE_SANDBOX", owner=owner, id=sb)
    p.front.expect("PARENT_CLOSE_CHANNEL")
    m = p.vmm.expect("PARENT_DESTROY_VM")
    p.vmm.answer(m, "VMM_FAIL", id=m["id"], generation=m["generation"],
                 error=E["internal"], detail="busy")
    again = p.vmm.expect("PARENT_DESTROY_VM")
    t.equal(again["id"], sb, "release fails: tried again, not reported as done")
    t.equal(STATES[show(p, owner, sb)["state"]], "deleting", "show: deleting")
    p.vmm.answer(again, "VMM_DESTROY_VM_OK", id=again["id"],
                 generation=again["generation"])
    x = p.netd.expect("PARENT_REMOVE_TAP")
    p.netd.answer(x, "NETD_REMOVE_TAP_OK", slot=x["slot"],
                  generation=x["generation"])
    t.equal(p.front.wait_answer(d)["done"], 1, "release: answered at last")


def vm_dies(p, owner):
    sb = p.create(owner)
    got = p.ledger()["sandbox/" + sb["id"]]
    p.vmm.send("VMM_VM_DIED_EVENT", id=sb["id"],
               generation=got["generation"] + 1, cause=1, detail="other")
    p.vmm.send("VMM_VM_DIED_EVENT", id=sb["id"],
               generation=got["generation"], cause=1, detail="panic")
    closed = p.front.expect("PARENT_CLOSE_CHANNEL")
    t.equal(closed["id"], sb["id"], "vm dies: its streams are ended")
    p.release(channel=False)
    a = show(p, owner, sb["id"])
    t.equal((STATES[a["state"]], a["cause"], a["detail"], a["address"]),
         ("failed", 1, "panic", ""),
         "vm dies: failed with its cause, everything given back")
    d = p.front.start("FRONT_DELETE_SANDBOX", owner=owner, id=sb["id"])
    p.front.expect("PARENT_CLOSE_CHANNEL")
    t.equal(p.front.wait_answer(d)["done"], 1, "failed record: deleted at once")


def hostile_front(p, owner):
    a = p.front.request("FRONT_SHOW_SANDBOX", owner=owner ^ 1,
                        id="sb-aaaaaaaaaaaaaaaa")
    t.equal(a["error"], E["unauthorized"], "owner handle that was never given")
    for fields, code in (
            (dict(template="../seed"), "bad_member"),
            (dict(template="nosuch"), "no_template"),
            (dict(memory_mib=4097), "out_of_range"),
            (dict(memory_mib=1), "out_of_range"),
            (dict(vcpu=5), "out_of_range"),
            (dict(timeout_s=86401), "out_of_range"),
            (dict(name="a b"), "bad_member"),
            (dict(key="a\nb"), "bad_header"),
            (dict(on_disconnect=9), "bad_member"),
            (dict(env=b"A=1"), "internal"),
            (dict(fingerprint=b"short"), "internal")):
        r = p.ask_create(owner, **fields)
        a = p.front.wait_answer(r)
        t.equal((a.name, a.fields.get("error")), ("PARENT_FAIL", E[code]),
             "create with %r: %s" % (fields, code))
    p.front.send("FRONT_GUEST_READY_EVENT", id="sb-aaaaaaaaaaaaaaaa",
                 generation=1)
    p.front.send("FRONT_DETACH_STREAM", stream=12345, reason=1)
    p.front.send("FRONT_CANCEL_CREATE", request=99999)
    t.equal(p.front.request("FRONT_GET_HEALTH")["running"], 0,
         "events about nothing: ignored")


def streams(p, owner):
    sb = p.create(owner, on_disconnect=1)["id"]
    a = p.front.request("FRONT_ATTACH_STREAM", owner=owner, id=sb)
    p.front.send("FRONT_DETACH_STREAM", stream=a["stream"], reason=0)
    a = p.front.request("FRONT_ATTACH_STREAM", owner=owner, id=sb,
                        on_disconnect=2)
    p.front.send("FRONT_DETACH_STREAM", stream=a["stream"], reason=1)
    t.equal(STATES[show(p, owner, sb)["state"]], "running",
         "stream ends, or asks to keep: the sandbox stays")
    a = p.front.request("FRONT_ATTACH_STREAM", owner=owner, id=sb)
    p.front.send("FRONT_DETACH_STREAM", stream=a["stream"], reason=1)
    p.release()
    t.ok(eventually(lambda: show(p, owner, sb).name == "PARENT_FAIL"),
         "client vanishes: on_disconnect delete")


def cancelled(p, owner):
    r = p.ask_create(owner)
    m = p.netd.expect("PARENT_CREATE_TAP")
    os.close(m.fd)
    p.front.send("FRONT_CANCEL_CREATE", request=r)
    p.front.expect("PARENT_CLOSE_CHANNEL")
    p.netd.answer(m, "NETD_CREATE_TAP_OK", slot=m["slot"],
                  generation=m["generation"])
    p.release(channel=False)
    t.equal(p.front.request("FRONT_GET_HEALTH")["creating"], 0,
         "client vanishes during its create: rolled back")


def front_dies(p, owner):
    keep = p.create(owner, on_disconnect=2)["id"]
    lose = p.create(owner, on_disconnect=1)["id"]
    p.front.request("FRONT_ATTACH_STREAM", owner=owner, id=lose)
    began = time.monotonic()
    p.front.kill()
    p.accept()
    p.say_ready("front")
    p.front.expect("PARENT_OPEN_API")
    t.ok(time.monotonic() - began < 1.0, "front dies: back within 1 s")
    for _ in range(2):
        m = p.vmm.expect("PARENT_CONNECT_VM")
        a, b = socket.socketpair()
        p.vmm.answer(m, "VMM_CONNECT_VM_OK", fd=a.fileno(), id=m["id"],
                     generation=m["generation"])
        a.close()
        b.close()
        p.channel()
    a = p.front.request("FRONT_SHOW_SANDBOX", owner=owner, id=keep)
    t.equal(a.fields.get("error"), E["unauthorized"],
         "front dies: the old handles are worth nothing")
    owner = p.identify()
    t.equal(STATES[show(p, owner, keep)["state"]], "running",
         "front dies: sandboxes go on, with a channel for the new one")
    p.release()
    t.ok(eventually(lambda: show(p, owner, lose).name == "PARENT_FAIL"),
         "client did not come back in its time: on_disconnect delete")
    return owner, keep


def vmm_dies(p, owner, keep):
    gone = p.create(owner)["id"]
    p.vmm.kill()
    p.accept()
    a = p.front.wait_answer(p.ask_create(owner))
    t.equal((a["error"], a["retry_after_s"]), (E["restarting"], 1),
         "vmm is restarting: creates are told to come again")
    p.say_ready("vmm")
    for _ in range(2):
        m = p.vmm.expect("PARENT_ADOPT_VM")
        if m["id"] == keep:
            p.vmm.answer(m, "VMM_ADOPT_VM_OK", id=m["id"],
                         generation=m["generation"])
        else:
            p.vmm.answer(m, "VMM_FAIL", id=m["id"], error=E["sandbox_gone"],
                         generation=m["generation"], detail="no process")
    names = sorted(p.vmm.recv().name for _ in range(2))
    t.equal(names, ["PARENT_DESTROY_VM", "PARENT_SWEEP_VMS"],
         "vmm dies: living VMs adopted with their channels, the dead "
         "released, the rest swept")
    a = show(p, owner, gone)
    t.equal((STATES[a["state"]], a["detail"]), ("failed", "no process"),
         "vmm dies: a VM that is gone is failed")
    t.equal(STATES[show(p, owner, keep)["state"]], "running",
         "vmm dies: the adopted one runs")


def all_children_die(p):
    """In whatever order they come back, each goes on as soon as it can."""
    for order in (("front", "netd", "vmm"), ("vmm", "netd", "front"),
                  ("netd", "front", "vmm")):
        for name in order:
            p.stubs[name].kill()
        p.accept_all()
        for name in order:
            p.say_ready(name)
            if name == "front":
                p.front.expect("PARENT_OPEN_API")
        p.sweep()
        owner = p.identify()
        t.ok(eventually(lambda: p.front.wait_answer(p.ask_create(
            owner, template="no"))["error"] == E["no_template"]),
                "all children die, back as %s: served again" % (order,))


def parent_dies(p):
    owner = p.identify()
    sb = p.create(owner, key="again")["id"]
    p.ask_create(owner)
    half = p.tap()
    p.proc.send_signal(signal.SIGKILL)
    p.proc.wait()
    for s in p.stubs.values():
        s.end()
    p.start()
    p.accept_all()
    p.say_ready()
    seen = {}
    while "PARENT_ADOPT_VM" not in seen or "PARENT_DESTROY_VM" not in seen:
        m = p.vmm.recv()
        seen[m.name] = m
    t.equal((seen["PARENT_ADOPT_VM"]["id"],
          seen["PARENT_ADOPT_VM"]["start_time"]), (sb, 42),
         "parent killed: the acknowledged sandbox is looked for again")
    t.equal(seen["PARENT_DESTROY_VM"]["slot"], half["slot"],
         "parent killed: the half-made one is rolled back")
    m = seen["PARENT_ADOPT_VM"]
    p.vmm.answer(m, "VMM_ADOPT_VM_OK", id=m["id"], generation=m["generation"])
    p.vmm.answer(seen["PARENT_DESTROY_VM"], "VMM_DESTROY_VM_OK",
                 id=seen["PARENT_DESTROY_VM"]["id"],
                 generation=seen["PARENT_DESTROY_VM"]["generation"])
    x = p.netd.expect("PARENT_REMOVE_TAP")
    p.netd.answer(x, "NETD_REMOVE_TAP_OK", slot=x["slot"],
                  generation=x["generation"])
    p.sweep()
    while p.front.recv().name != "PARENT_OPEN_API":
        pass
    t.equal(p.vmm.expect("PARENT_CONNECT_VM")["id"], sb,
         "parent killed: the channel is opened again for the new front")
    owner = p.identify()
    a = p.front.wait_answer(p.ask_create(owner, key="again"))
    t.equal((a["id"], a["replayed"], STATES[a["state"]]), (sb, 1, "running"),
         "parent killed: the key still gives the same sandbox")


def timeouts(p, owner):
    began = time.monotonic()
    sb = p.create(owner, timeout_s=1)["id"]
    p.release()
    t.ok(0.9 < time.monotonic() - began < 2.5, "timeout: deleted after 1 s")
    t.ok(eventually(lambda: show(p, owner, sb).name == "PARENT_FAIL"),
         "timeout: gone")


def limits():
    with Parent("limit sandboxes 3", "limit owner 2") as p:
        p.ready()
        owner = p.identify()
        for _ in range(2):
            p.create(owner)
        a = p.front.wait_answer(p.ask_create(owner))
        t.equal((a["error"], a["retry_after_s"]), (E["owner_limit"], 1),
             "owner's limit: refused, come again")


def slots():
    with Parent("limit sandboxes 100") as p:
        p.ready()
        owner = p.identify()
        used = []
        for _ in range(300):
            sb = p.create(owner)
            used.append(sb["address"])
            d = p.front.start("FRONT_DELETE_SANDBOX", owner=owner, id=sb["id"])
            p.release()
            p.front.wait_answer(d)
        t.equal(len(set(used)), 240, "300 in a row: the 240 slots are reused")


def probe():
    for works in (True, False):
        with Parent("accel auto", "boot deadline 1") as p:
            p.accept_all()
            p.front.send("FRONT_READY")
            p.netd.send("NETD_READY")
            p.vmm.send("VMM_READY", kvm_node=1, qemu_version="fake")
            p.sweep()
            p.tap()
            t.equal(p.start_vm()["kvm"], 1, "accel auto: KVM is tried")
            c = p.channel()
            if works:
                p.front.send("FRONT_GUEST_READY_EVENT", id=c["id"],
                             generation=c["generation"])
            else:
                p.front.send("FRONT_GUEST_LOST_EVENT", id=c["id"],
                             generation=c["generation"],
                             error=E["guest_timeout"], detail="hung")
            seen = sorted(p.front.recv().name for _ in range(2))
            t.equal(seen, ["PARENT_CLOSE_CHANNEL", "PARENT_OPEN_API"],
                 "accel auto: the API opens when it is decided")
            p.release(channel=False)
            h = p.front.request("FRONT_GET_HEALTH")
            t.equal((h["accel"], h["running"]), ("kvm" if works else "tcg", 0),
                 "accel auto: %s, the probe is no sandbox" % h["accel_reason"])


def main():
    barrier()
    with Parent("reconnect 1") as p:
        p.ready()
        owner = p.identify()
        sb, _ = good_life(p, owner)
        delete(p, owner, sb)
        failing_steps(p, owner)
        delete_during_create(p, owner)
        release_is_retried(p, owner)
        vm_dies(p, owner)
        hostile_front(p, owner)
        streams(p, owner)
        cancelled(p, owner)
        timeouts(p, owner)
        owner, keep = front_dies(p, owner)
        vmm_dies(p, owner, keep)
    with Parent() as p:
        p.ready()
        all_children_die(p)
    with Parent() as p:
        p.ready()
        parent_dies(p)
    limits()
    slots()
    probe()


t.run(*[lambda _: main()])
sys.exit(t.done())
