#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The confinement of a running front, as /proc shows it, and its start: who may
start it, in what order, and what it does with messages that make no sense."""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import api
import front
import msg
import tap


def process(t):
    with front.Front() as f:
        box = f.add_box()
        f.api.exec(box.id, ["echo", "x"])
        s = f.status()
        for name in ("Uid", "Gid"):
            t.equal(s[name].split(), [str(front.UID)] * 4,
                    "%s: all four its own" % name)
        t.equal(s["Groups"].split(), [], "no other group")
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            t.equal(int(s[name], 16), 0, "%s: empty" % name)
        t.equal((s["NoNewPrivs"], s["Seccomp"], s["Seccomp_filters"],
                 s["Threads"]), ("1", "2", "1", "1"),
                "no new privileges, one filter, one thread")
        proc = "/proc/%d/" % f.pid
        t.equal(os.readlink(proc + "root"), f.root, "root: the empty folder")
        t.equal(os.readlink(proc + "cwd"), f.root, "and there it is")
        t.equal(os.listdir(proc + "root/"), [], "which is empty")
        st = os.stat(proc + "root/")
        t.ok(st.st_uid == 0 and st.st_mode & 0o022 == 0,
             "and which it cannot write to", oct(st.st_mode))
        with open(proc + "net/dev") as dev:
            names = [line.split(":")[0].strip() for line in dev if ":" in line]
        t.equal(names, ["lo"], "network: an empty namespace")
        with open(proc + "limits") as limits:
            rows = {line[:26].strip(): line[26:].split()[:2]
                    for line in limits}
        t.equal(rows["Max processes"], ["0", "0"], "limit: no process")
        t.equal(rows["Max core file size"], ["0", "0"], "limit: no core")
        with open(proc + "maps") as maps:
            bad = [line for line in maps
                   if "wx" in line.split()[1].replace("w-x", "wx")]
        t.equal(bad, [], "memory: nothing both writable and executable")
        with open(proc + "environ", "rb") as env:
            t.ok(front.SAN_ENV or env.read() == b"", "environment: empty")


def refuses(name, t, *steps, want=1, text=""):
    """Sends these to a fresh front; it has to end with that status."""
    child = msg.Child(front.EXE, before_exec=front.new_netns)
    try:
        for step in steps:
            step(child)
        status = child.wait(5)
    except (TimeoutError, OSError, msg.Error) as e:
        status = repr(e)
    finally:
        if child.status is None:
            child.kill()
    t.ok(status == want and text in child.text(), name,
         (status, child.text()))


def starts(t):
    r = subprocess.run([front.EXE], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    t.ok(r.returncode == 1 and b"started by sandboxd" in r.stderr,
         "started by hand -> refuses", r.stderr)
    a, b = socket.socketpair()
    r = subprocess.run(["sh", "-c", "exec %s 3<&%d" % (front.EXE,
                                                       a.fileno())],
                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       stdout=subprocess.DEVNULL, pass_fds=[a.fileno()])
    t.ok(r.returncode == 1 and b"started by sandboxd" in r.stderr,
         "descriptor 3 is a stream socket -> refuses", r.stderr)
    a.close()
    b.close()
    root = os.path.dirname(front.EXE)
    setup = dict(uid=front.UID, gid=front.UID, root=root, version="1")
    null = os.open("/dev/null", os.O_RDWR)
    give = lambda c: c.send("PARENT_GIVE_LISTENER", fd=null)
    tell = lambda c: c.send("PARENT_SETUP_FRONT", **setup)
    go = lambda c: c.send("PARENT_START_FRONT")
    refuses("started without a listener -> ends", t, tell, go,
            text="without its set-up")
    refuses("started without a set-up -> ends", t, give, go,
            text="without its set-up")
    refuses("two listeners -> ends", t, tell, give, give,
            text="second listener")
    refuses("a root that is not there -> ends", t, give, lambda c: c.send(
        "PARENT_SETUP_FRONT", uid=1, gid=1, root="/nowhere"), go,
        text="confine")
    refuses("a message of the running phase before its time -> ends", t,
            lambda c: c.send("PARENT_OPEN_API"), text="may not come")
    refuses("a listener without a descriptor -> ends", t,
            lambda c: c.send("PARENT_GIVE_LISTENER"), text="descriptor")
    refuses("no message -> ends", t, lambda c: c.send_raw(b"hello"),
            text="bad message")
    refuses("a vmm's message -> ends", t, lambda c: c.send("PARENT_START_VMM"),
            text="may not come")
    refuses("the parent goes at once -> ends in peace", t,
            lambda c: c.close(), want=0, text="parent has gone")
    os.close(null)


def barrier(t):
    with front.Front(open_api=False) as f:
        c = api.Conn(f.path, 1)
        c.send_request("GET", "/healthz")
        try:
            c.read_response()
            early = True
        except TimeoutError:
            early = False
        t.ok(not early, "no client is served before PARENT_OPEN_API")
        t.equal(f.seen("FRONT_IDENTIFY_CLIENT", 0, 0), [], "none is accepted")
        f.send("PARENT_OPEN_API")
        t.equal(c.read_response().status, 200, "then it is")
        f.send("PARENT_OPEN_API")
        t.equal(f.api.health()["status"], "ok", "said twice: no harm")
    with front.Front() as f:
        began = time.monotonic()
        f.peer.sock.shutdown(socket.SHUT_RDWR)
        t.ok(f.peer.wait(5) == 0 and time.monotonic() - began < 1,
             "the parent goes -> so does front")
    for name, how in (
            ("answer of the wrong kind", lambda f, m: f.answer(
                m, "PARENT_DELETE_OK", done=1)),
            ("a set-up message", lambda f, m: f.send("PARENT_START_FRONT"))):
        with front.Front() as f:
            f.on["FRONT_GET_HEALTH"] = lambda m, how=how, f=f: how(f, m)
            try:
                f.api.request("GET", "/healthz")
            except (OSError, EOFError):
                pass
            t.equal(f.peer.wait(5), 1, "%s from the parent -> ends" % name)
    with front.Front() as f:
        f.api.health()
        f.send("PARENT_END_LIST", request_id=4711, msg_flags=1)
        t.equal(f.api.health()["status"], "ok",
                "a late answer is dropped")


def main():
    t = tap.Tap()
    t.run(process, starts, barrier)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
