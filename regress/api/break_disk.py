#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=300
"""The state directory's file system is full: before a create, during one,
during a command, and when the daemon is killed and started again.  What runs
goes on, a create is refused and says why, deletes work, the ledger loads.  In
a mount namespace of its own: the state is on a small tmpfs."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
if "SANDBOXD_SOCKET" not in os.environ:
    sys.stdout.flush()
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private",
              os.path.join(daemon.ROOT, "regress", "with-daemon"),
              "-c", "limit sandboxes 8", os.path.abspath(sys.argv[0])])
import api
import tap

A = api.Api()
STATE = os.environ["SANDBOXD_STATE"]
SIZE_MIB = 40       # two logs of 4 MiB while one is compacted, and layers
LOG_BYTES = 4 << 20
BIG = {"metadata": {"k%d" % i: "m" * 240 for i in range(16)},
       "env": {"e%d" % i: "v" * 1000 for i in range(5)}}


def helper(what):
    return subprocess.run([os.path.join(daemon.ROOT, "regress",
                           "with-daemon"), what], timeout=90,
                          stderr=subprocess.PIPE, text=True)


def fill():
    """Not a byte is left."""
    fd = os.open(STATE + "/ballast", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for size in (1 << 20, 4096):
            try:
                while True:
                    os.pwrite(fd, b"x" * size, os.fstat(fd).st_size)
            except OSError:
                continue
    finally:
        os.close(fd)
    s = os.statvfs(STATE)
    assert s.f_bavail == 0, s


def drain():
    os.unlink(STATE + "/ballast")


def create(**members):
    members = dict({"template": "seed", "memory_mib": 96, "disk_mib": 16,
                    "on_disconnect": "keep"}, **members)
    return A.request("POST", "/v1/sandboxes", data=members)


def echo(box):
    return A.exec(box, ["echo", "alive"])["stdout"] == "alive\n"


def prepare():
    if helper("--stop").returncode:
        sys.exit("cannot stop the daemon")
    subprocess.run(["mount", "-t", "tmpfs", "-o",
                    "size=%dm,mode=755" % SIZE_MIB, "none", STATE], check=True)
    if helper("--start").returncode:
        sys.exit("cannot start the daemon on a tmpfs")


def full_before(t):
    box = create().json()["sandbox_id"]
    fill()
    r = create()
    t.ok(r.status in (503, 507) and b"space" in r.body.lower(),
         "full before a create: refused, and says what is full",
         "%d %s" % (r.status, r.body))
    t.ok(echo(box), "full: a command in a running sandbox works")
    t.equal(A.delete(box), 204, "full: a running sandbox is deleted")
    t.equal(A.list_all(), [], "full: nothing is left of either")
    drain()
    r = create()
    t.equal(r.status, 201, "room again: a create works")
    A.delete(r.json()["sandbox_id"])


def full_during_command(t):
    box = create().json()["sandbox_id"]
    ws = A.command(box, ["/bin/sh", "-c", "dd if=/dev/zero of=/big bs=64k "
                         "count=128 conv=fsync; echo $?; cat /proc/uptime"],
                   stdin=False)
    ws.wait_for("process_started")
    fill()
    r = ws.collect()
    t.ok(r.exited is not None or r.error is not None,
         "full under a guest that writes: its command ends with a word", r)
    ws.close()
    t.equal(A.health()["status"], "ok", "full under a guest: daemon is well")
    t.equal(A.delete(box), 204, "full under a guest: it is deleted")
    drain()


def log_used():
    """Bytes of the ledger's log before its zeros."""
    name = [n for n in os.listdir(STATE) if n.startswith("log.")][0]
    with open(os.path.join(STATE, name), "rb") as f:
        return len(f.read().rstrip(b"\0"))


def full_for_long(t):
    """Refused creates must not eat what deletes will need."""
    box = create().json()["sandbox_id"]
    fill()
    used, still = -1, 0
    for _ in range(2000):
        r = create(**BIG)
        if r.status == 201:
            t.ok(False, "full for long: no create gets through", r.body)
            break
        still = still + 1 if log_used() == used else 0
        used = log_used()
        if still == 20:
            break
    t.ok(still == 20 and used < LOG_BYTES - (LOG_BYTES >> 3),
         "full for long: refused creates leave the log room for deletes",
         "%d bytes used" % used)
    t.ok(echo(box), "full for long: a command works")
    return box


def killed_while_full(t):
    box = full_for_long(t)
    os.kill(daemon.parent_pid(), signal.SIGKILL)
    time.sleep(0.2)
    r = helper("--start")
    if not t.ok(r.returncode == 0, "killed while full: it starts again",
                r.stderr + open(os.environ["SANDBOXD_LOG"]).read()[-3000:]):
        drain()
        helper("--start")
        A.wait_healthy()
        A.delete_all()
        return
    A.wait_healthy()
    end = time.monotonic() + 15
    good = False
    while not good and time.monotonic() < end:
        try:
            good = echo(box)
        except api.ApiError:
            time.sleep(0.1)
    t.ok(good, "killed while full: its sandbox has been adopted")
    t.equal(A.delete(box), 204, "killed while full: and is deleted")
    drain()
    r = create()
    t.equal(r.status, 201, "killed while full: with room, a create works")
    A.delete(r.json()["sandbox_id"])


def main():
    t = tap.Tap()
    prepare()
    try:
        t.run(full_before, full_during_command, killed_while_full)
    finally:
        A.delete_all()
        helper("--stop")
        subprocess.run(["umount", STATE], check=False)
    return t.done()


sys.exit(main())
