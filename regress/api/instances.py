#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=200
"""Several daemons on one machine do not see each other: the same uids or
addresses are refused while both run, and the VMs of one that has stopped are
safe from one that takes its range.  Also: how a daemon goes to the background.
Real VM."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need()
import api
import tap

A = api.Api()
WITH = os.path.join(daemon.ROOT, "regress", "with-daemon")
EXE = os.path.join(daemon.ROOT, "build-san" if os.environ.get("SAN") == "1"
                   else "build", "sandboxd")
DIR = tempfile.mkdtemp(prefix="sbi.", dir="/tmp")
os.chmod(DIR, 0o755)


def config(**change):
    """The first daemon's configuration, with a place of its own."""
    with open(os.environ["SANDBOXD_CONF"]) as f:
        text = f.read()
    change = dict({"state": '"%s/s"' % DIR, "socket": '"%s/sock"' % DIR,
                   "tag": '"test"'}, **change)
    for word, value in change.items():
        text, n = re.subn(r"(?m)^%s .*$" % word, "%s %s" % (word, value), text)
        assert n == 1, word
    path = os.path.join(DIR, "conf")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o600)
    return path


def start(path):
    """In the background; (status, what it said, seconds)."""
    began = time.monotonic()
    with open(os.path.join(DIR, "log"), "w+") as log:
        status = subprocess.run([EXE, "-f", path], stdin=subprocess.DEVNULL,
                                stdout=log, stderr=log, timeout=60).returncode
        log.seek(0)
        return status, log.read(), time.monotonic() - began


def stop():
    with open(os.path.join(DIR, "s", "lock")) as f:
        pid = int(f.read())
    assert pid > 1
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 20
    while os.path.exists("/proc/%d" % pid) and time.monotonic() < end:
        time.sleep(0.02)


OTHER_UIDS, OTHER_POOL = "1998000000 count 256", "10.127.16.0/20"


def refused(t):
    status, said, _ = start(config(pool=OTHER_POOL))
    t.ok(status == 1 and "uids" in said and "another sandboxd" in said,
         "the same uids: refused, and says what to change", said)
    status, said, _ = start(config(uids=OTHER_UIDS, pool=OTHER_POOL,
                                   tag='"%s"' % os.environ["SANDBOXD_TAG"]))
    t.ok(status == 1 and "tag" in said and "another sandboxd" in said,
         "the same tag: refused", said)
    status, said, _ = start(config(uids=OTHER_UIDS))
    t.ok(status == 1 and "pool" in said and "another sandboxd" in said,
         "the same addresses: refused", said)
    status, said, _ = start(config(
        uids=OTHER_UIDS, pool=OTHER_POOL,
        socket='"%s"' % os.environ["SANDBOXD_SOCKET"]))
    t.ok(status == 1 and "another daemon answers" in said,
         "the same socket: refused", said)
    status, said, _ = start(config(
        uids=OTHER_UIDS, pool=OTHER_POOL,
        state='"%s"' % os.environ["SANDBOXD_STATE"]))
    t.ok(status == 1 and "state directory" in said,
         "the same state directory: refused", said)


def apart(t):
    status, said, _ = start(config(uids=OTHER_UIDS, pool=OTHER_POOL))
    t.equal(status, 0, "another place: starts in the background, status 0")
    t.equal(api.Api(DIR + "/sock").health()["status"], "ok",
            "and serves when the command has ended")
    t.equal(api.Api(DIR + "/sock").list_all(), [], "it sees no other sandbox")
    stop()


def takes_over_a_range(t):
    box = A.create(on_disconnect="keep")["sandbox_id"]
    pid = daemon.vmm_pid(box)
    subprocess.run([WITH, "--stop"], check=True)
    status, said, _ = start(config())
    t.equal(status, 0, "the first has stopped: its range may be taken")
    t.ok(daemon.status(pid) is not None,
         "the VMs of the stopped one are left alone", said)
    stop()
    subprocess.run([WITH, "--start"], check=True)
    t.equal(A.exec(box, ["echo", "hi"])["stdout"], "hi\n",
            "and work when it is back")
    A.delete(box)


def same_answer(t):
    box = A.create()["sandbox_id"]
    seen = {A.show(box)["expires_at"] for _ in range(20)}
    t.equal(len(seen), 1, "expires_at: the same in each answer")
    A.delete(box)


def main():
    t = tap.Tap()
    t.run(refused, apart, takes_over_a_range, same_answer)
    shutil.rmtree(DIR)
    return t.done()


sys.exit(main())
