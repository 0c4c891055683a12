#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=900
"""What went wrong for users of other platforms, as a client meets it: commands
(21 to 36), odd paths (45), deletes that race (48).  Real VMs."""
import hashlib
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need()
import api
import tap

A = api.Api()
BOX = None


def sh(script, **members):
    return A.exec(BOX, ["/bin/sh", "-c", script], **members)


def timed(f, *args, **members):
    began = time.monotonic()
    r = f(*args, **members)
    return r, time.monotonic() - began


def case_21_background_child(t):
    r, s = timed(sh, "(sleep 30 &); echo hi")
    t.ok(r["stdout"] == "hi\n" and s < 5,
         "21: a background child that keeps stdout does not hold the stream",
         "%r after %.1f s" % (r, s))
    t.ok("sleep 30" in sh("ps")["stdout"], "21: that child lives on")


def case_22_timeout(t):
    r = sh("sleep 5", timeout_s=1)
    t.ok(r["timed_out"] and 1000 <= r["duration_ms"] < 1200,
         "22: timeout 1 ends sleep 5 after 1 s", r)


def case_23_timeout_kills_the_tree(t):
    r = sh("sleep 301 & setsid sleep 302 & wait", timeout_s=1)
    left = sh("ps")["stdout"]
    t.ok(r["timed_out"] and "sleep 301" not in left and
         "sleep 302" not in left,
         "23: the whole tree dies, setsid children too", left)


def case_24_independent(t):
    ws = A.command(BOX, ["sleep", "100"], stdin=False)
    ws.wait_for("process_started")
    r, s = timed(sh, "echo free")
    t.ok(r["stdout"] == "free\n" and s < 5,
         "24: a stuck command blocks no other", "%.1f s" % s)
    ws.signal("KILL")
    r = ws.collect()
    t.equal(r.exited and r.exited.get("signal"), 9,
            "24: it ends when it is signalled")


def case_25_argv_as_it_came(t):
    odd = ["a b", "", "'", '"', "$HOME", "<<EOF\nx\nEOF", "\\", "\t", "é",
           "-n", "*"]
    r = A.exec(BOX, ["/bin/sh", "-c",
                     'for a; do printf "%s\\0" "$a"; done', "sh"] + odd)
    t.equal(r["stdout"].split("\0")[:-1], odd,
            "25: every argument is passed as it came")


def growth(t, name, before, after):
    """Frozen growth of each process in KiB; at most 4 MB."""
    worst = max((after[k] - before[k], k) for k in before)
    t.ok(worst[0] <= 4096, name, "%s grew by %d KiB" % (worst[1], worst[0]))


def memory(pids):
    return {k: daemon.rss_kib(p) for k, p in pids.items()}


def case_26_reader_stops(t):
    pids = dict(daemon.children(), qemu=daemon.vmm_pid(BOX))
    # What QEMU's guest memory and translation cache need comes first.
    A.run(BOX, ["head", "-c", "8388608", "/dev/zero"])
    ws = A.command(BOX, ["head", "-c", "67108864", "/dev/zero"], stdin=False)
    ws.wait_for("process_started")
    time.sleep(1)
    before = memory(pids)
    time.sleep(10)
    growth(t, "26: a reader that stops for 10 s: no process grows by 4 MB",
           before, memory(pids))
    r = ws.collect()
    t.equal((len(r.stdout), r.exit_code), (64 << 20, 0),
            "26: nothing is lost when it reads again")


def case_26_slow_reader(t):
    pids = dict(daemon.children(), qemu=daemon.vmm_pid(BOX))
    # The guest's pages and QEMU's own are touched for the first time here.
    A.run(BOX, ["head", "-c", "33554432", "/dev/zero"])
    ws = A.command(BOX, ["head", "-c", "2147483648", "/dev/zero"], stdin=False)
    ws.wait_for("process_started")
    time.sleep(1)
    before, end = memory(pids), time.monotonic() + 8
    got = 0
    while time.monotonic() < end:
        op, data = ws.recv()
        got += len(data) if op == api.BINARY else 0
        time.sleep(0.03)
    t.ok(got > 1 << 20, "26: a slow reader gets its bytes", got)
    growth(t, "26: 2 GiB for a reader of 1 MB/s: flat memory at every hop",
           before, memory(pids))
    ws.close()
    time.sleep(1)
    t.ok("head" not in sh("ps")["stdout"],
         "26: the reader leaves, the command is killed")


def case_27_binary(t):
    r = A.run(BOX, ["/bin/sh", "-c",
                    "head -c 1048576 /dev/urandom | tee /tmp/r; "
                    "sha256sum </tmp/r >&2"])
    t.equal(hashlib.sha256(r.stdout).hexdigest(), r.stderr.decode().split()[0],
            "27: 1 MiB of random bytes, same sha256")
    r = A.exec(BOX, ["head", "-c", "1000", "/dev/urandom"])
    t.equal(r["stdout_encoding"] if "stdout_encoding" in r else r["encoding"],
            "base64", "27: bytes that are not UTF-8 are base64, and say so")
    events = list(A.exec_events(BOX, [
        "/bin/sh", "-c", "printf '\\303'; sleep 1; printf '\\251'"]))
    text = "".join(e["data"] for e in events if e["type"] == "stdout")
    t.equal(text, "é", "27: a character split over two events survives")


def case_28_stdin(t):
    r, s = timed(A.exec, BOX, ["cat"])
    t.ok(r["exit_code"] == 0 and s < 5, "28: cat without stdin ends at once")
    r = A.run(BOX, ["cat"], stdin=b"x" * 100000)
    t.equal((r.stdout, r.exit_code), (b"x" * 100000, 0),
            "28: half-close of stdin gives end of file")
    t.equal(r.order[-2:], ["process_exited", "close"],
            "28: output, then process_exited, then close")
    t.equal(r.close, 1000, "28: close 1000")


def case_29_vmm_killed(t):
    box = A.create(memory_mib=96)["sandbox_id"]
    ws = A.command(box, ["sleep", "60"], stdin=False)
    ws.wait_for("process_started")
    began = time.monotonic()
    os.kill(daemon.vmm_pid(box), signal.SIGKILL)
    r = ws.collect()
    s = time.monotonic() - began
    t.ok(r.error is not None and r.close == 4000 and s < 1.5,
         "29: VMM killed: error within 1 s", "%r %r %.2f s" % (
             r.error, r.close, s))
    show = A.show(box)
    t.equal((show["state"], show["cause"]), ("failed", "vmm_killed"),
            "29: the record says failed and why")
    A.delete(box)


def case_30_keepalive(t):
    ws = A.command(BOX, ["sleep", "17"], stdin=False)
    ws.collect()
    t.ok(ws.pings >= 1, "30: a quiet WebSocket is pinged within 20 s")
    began, gap, last = time.monotonic(), 0, time.monotonic()
    with api.Conn(A.path) as c:
        c.send_request("POST", "/v1/sandboxes/%s/exec" % BOX,
                       data={"argv": ["sleep", "17"]},
                       headers={"Accept": "application/x-ndjson"})
        c.read_head()
        for _ in c.chunks():
            gap = max(gap, time.monotonic() - last)
            last = time.monotonic()
    t.ok(gap < 20 and last - began > 16,
         "30: a quiet NDJSON answer has a line within 20 s", "%.1f s" % gap)


def case_31_exit_codes(t):
    r = sh("kill -9 $$")
    t.equal((r["exit_code"], r["signal"]), (137, 9), "31: kill -9 $$")
    t.equal(sh("exit 7")["exit_code"], 7, "31: exit 7")
    t.equal(A.exec(BOX, ["/no/such"])["exit_code"], 127, "31: missing: 127")
    t.equal(A.exec(BOX, ["nosuch"])["exit_code"], 127,
            "31: not in PATH: 127")
    t.equal(A.exec(BOX, ["/etc/passwd"])["exit_code"], 126,
            "31: not executable: 126")


def case_32_cwd(t):
    r = A.request("POST", "/v1/sandboxes/%s/exec" % BOX,
                  data={"argv": ["pwd"], "cwd": "/no/such/dir"})
    t.ok(400 <= r.status < 500 and "/no/such/dir" in r.json()["detail"],
         "32: a missing cwd is 4xx and named", r.body)
    t.equal(A.exec(BOX, ["pwd"], cwd="/tmp")["stdout"], "/tmp\n", "32: cwd")


def case_33_no_zombies(t):
    r = sh("i=0; while [ $i -lt 200 ]; do (sleep 0 &); i=$((i+1)); done; "
           "sleep 1; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l",
           timeout_s=60)
    t.equal(r["stdout"].strip(), "0", "33: 200 children, no zombie")


def case_34_out_of_memory(t):
    r = A.exec(BOX, ["tail", "/dev/zero"], timeout_s=60)
    t.ok(r["exit_code"] == 137 and r["oom_killed"],
         "34: out of memory: 137 and oom_killed", r)
    t.equal(sh("echo still here")["stdout"], "still here\n",
            "34: the sandbox goes on")


def case_35_panic(t):
    box = A.create(memory_mib=96)["sandbox_id"]
    ws = A.command(box, ["sleep", "60"], stdin=False)
    ws.wait_for("process_started")
    began = time.monotonic()
    other = A.command(box, ["/bin/sh", "-c", "echo c >/proc/sysrq-trigger"],
                      stdin=False)
    r = ws.collect()
    s = time.monotonic() - began
    t.ok(r.error is not None and r.close == 4000, "35: panic: streams end",
         "%r %r" % (r.error, r.close))
    t.ok(s < 2, "35: panic: noticed within 1 s (and the time to trigger it)",
         "%.2f s" % s)
    show = A.show(box)
    t.equal((show["state"], show["cause"]), ("failed", "guest_panic"),
            "35: the record says guest_panic")
    other.close()
    A.delete(box)


def case_36_environment(t):
    env = {"V%05d" % i: "x" for i in range(10000)}
    env["ODD"] = "a=b\nc"
    r = A.exec(BOX, ["/bin/sh", "-c", 'env | grep -c "^V"; printf %s "$ODD"'],
               env=env)
    t.equal(r["stdout"], "10000\na=b\nc", "36: 10,000 variables, passed exactly")
    for bad in ("", "A=B", "A\0"):
        r = A.request("POST", "/v1/sandboxes/%s/exec" % BOX,
                      data={"argv": ["true"], "env": {bad: "x"}})
        t.equal(r.status, 400, "36: a variable named %r is 400" % bad)
    r = A.request("POST", "/v1/sandboxes/%s/exec" % BOX,
                  data={"argv": ["true"], "env": {"A": "x" * 140000}})
    t.ok(400 <= r.status < 500,
         "36: a variable longer than the kernel takes is 4xx", r.status)
    box = A.create(memory_mib=96, env={"FROM": "create", "B": "1"})
    r = A.exec(box["sandbox_id"], ["/bin/sh", "-c", "echo $FROM $B"],
               env={"B": "2"})
    t.equal(r["stdout"], "create 2\n",
            "36: the sandbox's environment, the command's own wins")
    A.delete(box["sandbox_id"])


def case_45_paths(t):
    for target, want in (("/v1/sandboxes/..%2f..%2fetc", (400, 404)),
                         ("/v1/sandboxes/%00", (400,)),
                         ("/v1/../etc/passwd", (400, 404)),
                         ("//etc/passwd", (400, 404))):
        t.ok(A.request("GET", target).status in want, "45: GET " + target)
    for name in ("../seed", "/etc", "seed\0", "..", "a/b", "x" * 64):
        r = A.request("POST", "/v1/sandboxes", data={"template": name})
        t.ok(400 <= r.status < 500, "45: template %r is refused" % name,
             r.status)


def case_48_deletes(t):
    box = A.create(memory_mib=96)["sandbox_id"]
    ws = A.command(box, ["sleep", "60"], stdin=False)
    ws.wait_for("process_started")
    codes = []
    threads = [threading.Thread(target=lambda: codes.append(
        A.request("DELETE", "/v1/sandboxes/" + box).status))
        for _ in range(10)]
    for th in threads:
        th.start()
    r = ws.collect()
    for th in threads:
        th.join()
    t.equal(codes, [204] * 10, "48: ten deletes at once")
    t.ok(r.error is not None and r.close == 4000,
         "48: delete during a command: its stream ends with \"gone\"",
         "%r %r" % (r.error, r.close))
    t.equal(A.request("GET", "/v1/sandboxes/" + box).status, 404, "48: gone")
    got = []
    th = threading.Thread(target=lambda: got.append(
        A.request("POST", "/v1/sandboxes", data={"template": "seed"})))
    th.start()
    while True:
        new = [b["sandbox_id"] for b in A.list_all()
               if b["state"] == "creating"]
        if new:
            break
        time.sleep(0.01)
    t.equal(A.request("DELETE", "/v1/sandboxes/" + new[0]).status, 204,
            "48: delete during create")
    th.join()
    t.equal((got[0].status, got[0].json()["code"]), (409, "sandbox_gone"),
            "48: the create says that it is gone")


def main():
    global BOX
    t = tap.Tap()
    BOX = A.create(on_disconnect="keep", timeout_s=3600)["sandbox_id"]
    cases = [f for n, f in sorted(globals().items()) if n.startswith("case_")]
    if len(sys.argv) > 1:
        cases = [f for f in cases if any(w in f.__name__
                                         for w in sys.argv[1:])]
    t.run(*cases)
    A.delete(BOX)
    return t.done()


sys.exit(main())
