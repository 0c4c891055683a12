#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: alone timeout=400
"""Front, vmm, netd, the parent and VMMs are killed at random moments while
clients create, run and delete; after each round everything works again and
nothing is left behind.  usage: chaos.py [SECONDS [SEED]] (45 in the suite)"""
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need()
import api
import tap

A = api.Api(timeout=60)
WITH = os.path.join(daemon.ROOT, "regress", "with-daemon")
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 45
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
KINDS = ("front", "vmm", "netd", "parent", "VMM", "front and vmm", "all")


def client(stop, wrong):
    """Creates, runs, deletes; every answer has to be true or a clear error."""
    while not stop.is_set():
        try:
            box = A.create(on_disconnect="keep", timeout_s=600)["sandbox_id"]
            r = A.exec(box, ["echo", "x"])
            if r["stdout"] != "x\n":
                wrong.append("echo said %r" % r)
            if A.delete(box) != 204:
                wrong.append("delete of %s took too long" % box)
            if A.request("GET", "/v1/sandboxes/" + box).status != 404:
                wrong.append("%s is there after its delete" % box)
        except api.ApiError as e:
            if e.status == 500 and e.problem.get("code") == "internal":
                wrong.append(str(e))
            time.sleep(0.1)
        except (OSError, EOFError, ValueError, KeyError):
            time.sleep(0.1)     # cut off: that is what this test does


def kill(pids):
    for pid in pids:
        assert pid > 1
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def vmms():
    first, count = map(int, os.environ["SANDBOXD_UIDS"].split())
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        s = daemon.status(int(entry))
        if s is not None and first + 16 <= int(s["Uid"][0]) < first + count:
            found.append(int(entry))
    return found


def strike(kind, rng):
    if kind == "VMM":
        kill(rng.sample(vmms(), min(1, len(vmms()))))
        return
    p = daemon.children()
    names = {"front and vmm": ["front", "vmm"],
             "all": ["parent", "front", "vmm", "netd"]}.get(kind, [kind])
    kill([p[n] for n in names if n in p])
    if "parent" in names:
        subprocess.run([WITH, "--start"], check=True, timeout=90)


def calm():
    """Everything answers again; what is left is deleted; then nothing is."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            A.delete_all()
            box = A.create()["sandbox_id"]
            good = A.exec(box, ["echo", "calm"])["stdout"] == "calm\n"
            A.delete(box)
            return good and not A.list_all()
        except (api.ApiError, OSError, EOFError):
            time.sleep(0.2)
    return False


def doctor():
    r = subprocess.run([os.environ["SANDBOXD_CTL"], "doctor", "-S",
                        os.environ["SANDBOXD_STATE"]], text=True,
                       capture_output=True)
    return [line for line in (r.stdout + r.stderr).splitlines()
            if not line.startswith(("ok ", "note "))] if r.returncode else []


def round_of(t, rng, kind, wrong):
    stop = threading.Event()
    threads = [threading.Thread(target=client, args=(stop, wrong))
               for _ in range(3)]
    for th in threads:
        th.start()
    time.sleep(rng.uniform(0.1, 3))
    strike(kind, rng)
    time.sleep(rng.uniform(0, 0.5))
    stop.set()
    for th in threads:
        th.join()
    t.ok(calm(), "%s killed among creates: all works again" % kind)
    t.equal(doctor(), [], "%s killed: nothing is left" % kind)


def resources():
    return {n: (daemon.rss_kib(p), len(os.listdir("/proc/%d/fd" % p)))
            for n, p in daemon.children().items()}


def steady(t):
    """A dozen lives of a sandbox: no descriptor and no memory stays."""
    for _ in range(3):
        A.delete(A.create()["sandbox_id"])
    before = resources()
    for _ in range(12):
        box = A.create()["sandbox_id"]
        A.exec(box, ["true"])
        A.delete(box)
    time.sleep(0.5)
    after = resources()
    t.equal({n: v[1] for n, v in after.items()},
            {n: v[1] for n, v in before.items()}, "descriptors: none stays")
    grown = {n: after[n][0] - before[n][0] for n in before}
    t.ok(max(grown.values()) < 1024, "memory: less than 1 MiB stays", grown)


def main():
    t = tap.Tap()
    rng = random.Random(SEED)
    print("# seed %d" % SEED)
    wrong, end, n = [], time.monotonic() + SECONDS, 0
    while time.monotonic() < end or n < 3:
        kind = KINDS[n % len(KINDS)] if SECONDS < 60 else rng.choice(KINDS)
        t.run(lambda t, k=kind: round_of(t, rng, k, wrong))
        n += 1
    t.equal(wrong, [], "no answer was false")
    t.run(steady)
    return t.done()


sys.exit(main())
