#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: alone timeout=300
"""Everything at once, at random times (chaos.py has one kill at a time): clients
that create, run, delete, vanish and share keys, timeouts, VMMs that die, and
each process of the daemon killed.

usage: regress/fault/crowd.py [SECONDS [SEED]]        (45 seconds)

After each round: the daemon answers, all deletes are done, `sandboxctl doctor`
finds no residue, the ledger loads, no process of the daemon burns CPU, none has
more descriptors than before; a key has made one sandbox and no more."""
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need("limit sandboxes 24")
import api
import tap

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 45
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
RNG = random.Random(SEED)
BACK_S = 40         # children that die often are started later each time
SIZES = {"memory_mib": 96, "disk_mib": 16}
FAULTS = (OSError, EOFError, ValueError, api.ApiError)
# What may be answered while processes die.
REFUSALS = (404, 409, 410, 429, 502, 503, 504)
WRONG = []          # what no fault excuses


def wrong(text):
    WRONG.append(text)


def check_refusal(what, e):
    if isinstance(e, api.ApiError) and (e.code is None or (
            e.status not in REFUSALS and e.code != "start_failed")):
        wrong("%s: %s" % (what, e))


def create(**members):
    return api.Api(timeout=90).create(**dict(SIZES, **members))


# ---- clients; each has its own random numbers ----

def whole_life(rng):
    try:
        box = create(on_disconnect=rng.choice(["keep", "delete"]))
        a = api.Api(timeout=30)
        r = a.run(box["sandbox_id"], ["/bin/sh", "-c", "cat; exit 7"],
                  b"x" * rng.randrange(1, 100000))
        if r.exited is not None and r.exit_code not in (7, None):
            wrong("exit code %r of exit 7" % r.exit_code)
        a.delete(box["sandbox_id"])
    except FAULTS as e:
        check_refusal("create, run, delete", e)


def vanish_in_create(rng):
    try:
        c = api.Conn(timeout=5)
        c.send_request("POST", "/v1/sandboxes",
                       data=dict(SIZES, template="seed"))
        time.sleep(rng.random() * 3)
        c.close()
    except FAULTS as e:
        check_refusal("vanishing", e)


def vanish_in_exec(rng):
    try:
        box = create(on_disconnect="delete")
        ws = api.Api(timeout=20).command(box["sandbox_id"], [
            "/bin/sh", "-c", "while :; do echo x; done"], stdin=False)
        time.sleep(rng.random())
        ws.close()
    except FAULTS as e:
        check_refusal("vanishing in exec", e)


def delete_in_exec(rng):
    try:
        box = create()
        ws = api.Api(timeout=30).command(box["sandbox_id"], ["cat"])
        time.sleep(rng.random() / 2)
        api.Api(timeout=60).delete(box["sandbox_id"])
        r = ws.collect()
        if r.exited is not None and "signal" not in r.exited:
            wrong("a deleted sandbox's cat ended well: %r" % r.exited)
        ws.close()
    except FAULTS as e:
        check_refusal("delete in exec", e)


def delete_in_create(rng):
    """Found by its name in the list, deleted in whatever phase it is."""
    name = "d%d" % rng.randrange(1 << 30)
    t = threading.Thread(target=quiet_create, args=(name,))
    t.start()
    try:
        time.sleep(rng.random() * 2)
        a = api.Api(timeout=60)
        for box in a.list_all():
            if box.get("name") == name:
                a.delete(box["sandbox_id"])
    except FAULTS as e:
        check_refusal("delete in create", e)
    t.join()


def quiet_create(name):
    try:
        create(name=name)
    except FAULTS as e:
        check_refusal("create", e)


def short_timeout(rng):
    try:
        box = create(timeout_s=1)
        api.Api(timeout=30).run(box["sandbox_id"], ["sleep", "60"])
    except FAULTS as e:
        check_refusal("timeout", e)


def shared_key(rng):
    """20 clients, one key; who gets no answer asks again."""
    key = "k%d" % rng.randrange(1 << 30)
    seen = set()
    end = time.monotonic() + BACK_S

    def one():
        while time.monotonic() < end:
            try:
                seen.add(api.Api(timeout=30).create(
                    key, on_disconnect="keep", **SIZES)["sandbox_id"])
                return
            except FAULTS as e:
                # A create that failed has freed its key: again, too.
                check_refusal("one key", e)
                time.sleep(0.2)

    threads = [threading.Thread(target=one) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if len(seen) > 1:
        wrong("one key, %d sandboxes: %s" % (len(seen), sorted(seen)))


def rude(rng):
    """Bytes that are no request, and connections that stay."""
    held = []
    try:
        for _ in range(40):
            c = api.Conn(timeout=2)
            held.append(c)
            c.send(rng.choice([b"", b"\0" * 9000, b"GET /", b"\r\n" * 50,
                               b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 30,
                               rng.randbytes(2000)]))
        time.sleep(rng.random())
    except FAULTS:
        pass
    for c in held:
        c.close()


# ---- faults ----

def kill_child(rng):
    time.sleep(rng.random() * 3)
    for name in rng.sample(["front", "vmm", "netd"], rng.choice([1, 1, 2, 3])):
        pid = daemon.children().get(name, 0)
        if pid > 1:
            kill(pid)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_parent(rng):
    time.sleep(rng.random() * 3)
    pid = daemon.parent_pid()
    if pid > 1:
        kill(pid)
    time.sleep(rng.random() / 5)
    r = subprocess.run([os.path.join(daemon.ROOT, "regress", "with-daemon"),
                        "--start"], stderr=subprocess.PIPE, text=True,
                       timeout=120)
    if r.returncode != 0:
        wrong("the daemon does not start again: " + r.stderr)


def kill_a_vmm(rng):
    time.sleep(rng.random() * 3)
    pids = vmm_pids()
    if pids:
        kill(rng.choice(pids))


def vmm_pids():
    first, count = map(int, os.environ["SANDBOXD_UIDS"].split())
    found = []
    for entry in os.listdir("/proc"):
        s = daemon.status(int(entry)) if entry.isdigit() else None
        if s is not None and s["Name"][0].startswith("qemu") and \
                first <= int(s["Uid"][0]) < first + count:
            found.append(int(entry))
    return found


CLIENTS = [whole_life, whole_life, vanish_in_create, vanish_in_exec,
           delete_in_exec, delete_in_create, delete_in_create, short_timeout,
           shared_key, rude]
KILLERS = [kill_child, kill_child, kill_parent, kill_a_vmm, None]


# ---- afterwards ----

def settle():
    """Everything deleted; None, or what stood in the way."""
    end = time.monotonic() + BACK_S
    why = ""
    while time.monotonic() < end:
        try:
            a = api.Api(timeout=40)
            # With vmm there again: its children have been adopted or swept.
            if len(daemon.children()) == 4:
                left = a.list_all()
                for box in left:
                    a.delete(box["sandbox_id"])
                if not left and not vmm_pids():
                    return None
                why = "left: %r %r" % (
                    [(b["sandbox_id"], b["state"]) for b in left], vmm_pids())
            else:
                why = "processes: %r" % sorted(daemon.children())
        except FAULTS as e:
            why = repr(e)
        time.sleep(0.1)
    return why


def doctor():
    """None, or what it found that is neither "ok" nor "note"."""
    r = subprocess.run([os.environ["SANDBOXD_CTL"], "doctor", "-S",
                        os.environ["SANDBOXD_STATE"]], text=True,
                       capture_output=True, timeout=60)
    if r.returncode == 0:
        return None
    return "\n".join(x for x in (r.stdout + r.stderr).splitlines()
                     if not re.match(r"(ok|note) ", x))


def cpu_ticks(pids):
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as f:
            words = f.read().rsplit(")", 1)[1].split()
        total += int(words[11]) + int(words[12])
    return total


def burns():
    """CPU of the four over half a second in which nobody asks anything."""
    pids = list(daemon.children().values())
    try:
        before = cpu_ticks(pids)
        time.sleep(0.5)
        ticks = cpu_ticks(pids) - before
    except FileNotFoundError:
        return "a process ended by itself"
    return "%d ticks in 0.5 s" % ticks if ticks > 10 else None


def descriptors():
    return {name: len(os.listdir("/proc/%d/fd" % pid))
            for name, pid in daemon.children().items()}


def leaks(idle):
    """More descriptors than when it was idle, after time to close them."""
    end = time.monotonic() + 5
    while True:
        now = descriptors()
        more = {n: (idle[n], c) for n, c in now.items() if c > idle[n]}
        if not more or time.monotonic() > end:
            return repr(more) if more else None
        time.sleep(0.2)


def one_round(n, idle):
    """None, or what was wrong."""
    crowd = [RNG.choice(CLIENTS) for _ in range(RNG.randrange(2, 7))]
    killer = RNG.choice(KILLERS)
    if killer is not None:
        crowd.append(killer)
    threads = [threading.Thread(target=f, args=(random.Random(
        RNG.randrange(1 << 30)),)) for f in crowd]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    found = [("settles", settle()), ("doctor", doctor()),
             ("rests", burns()), ("descriptors", leaks(idle))]
    found += [("answers", w) for w in WRONG]
    WRONG.clear()
    bad = ["%s: %s" % f for f in found if f[1] is not None]
    return "round %d (%s):\n%s" % (n, ", ".join(
        f.__name__ for f in crowd), "\n".join(bad)) if bad else None


def main():
    t = tap.Tap()
    print("# seed %d" % SEED, flush=True)
    a = api.Api(timeout=60)
    a.delete(create()["sandbox_id"])
    idle = descriptors()
    end = time.monotonic() + SECONDS
    n = 0
    bad = None
    while bad is None and time.monotonic() < end:
        n += 1
        bad = one_round(n, idle)
    t.ok(bad is None, "%d rounds of everything: nothing wrong after any" % n,
         "%s\nagain: %s %d %d" % (bad, sys.argv[0], SECONDS, SEED))
    try:
        box = create()["sandbox_id"]
        t.equal(a.exec(box, ["echo", "hi"])["stdout"], "hi\n",
                "after all of it: create and run")
        t.equal(a.delete(box), 204, "after all of it: delete")
    except FAULTS as e:
        t.ok(False, "after all of it: create, run, delete", e)
    return t.done()


sys.exit(main())
