#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""sandboxctl's commands against a fake API: what is asked, what is printed, and
with which status it ends (chroot(1)'s custom for exec and run; 0 to 4 else)."""
import json
import os
import re
import socket
import stat
import sys
import threading
import time

import fake_api
import tap

KEEP = ["create", "exec", "run", "ls", "show", "rm", "wait", "health",
        "doctor", "version", "help"]


def text(b):
    return b.decode("utf-8")


def check_create(t):
    with fake_api.FakeApi() as api:
        r = api.ctl("create")
        t.equal(r.returncode, 0, "create: no argument -> 0")
        t.ok(re.fullmatch(r"sb-[a-z2-7]{16}\n", text(r.stdout)),
             "create: prints the id and nothing else", r.stdout)
        t.equal(api.requests[-1], ("POST", "/v1/sandboxes", {
            "template": "seed", "on_disconnect": "keep"}),
            "create: asks for seed, to be kept, and for nothing else")
        r = api.ctl("create", "--memory", "256", "--vcpu", "2", "--disk",
                    "64", "--timeout", "9", "--name", "n1", "--metadata",
                    "a=b=c", "--metadata", "d=", "-e", "X=1", "-e", "X=2",
                    "-e", "HERE", "--on-disconnect", "delete", "tiny",
                    env=api.env(HERE="there"))
        t.equal(api.requests[-1][2], {
            "template": "tiny", "on_disconnect": "delete", "name": "n1",
            "memory_mib": 256, "vcpu": 2, "disk_mib": 64, "timeout_s": 9,
            "env": {"X": "2", "HERE": "there"},
            "metadata": {"a": "b=c", "d": ""}},
            "create: every option becomes its member")
        a = api.ctl("create", "--key", "k1").stdout
        b = api.ctl("create", "--key", "k1").stdout
        t.equal(a, b, "create: --key twice -> one sandbox")
        r = api.ctl("--json", "create", "--name", "j")
        t.equal(json.loads(r.stdout)["name"], "j",
                "create: --json before the command -> the object")
        r = api.ctl("create", "none")
        t.equal((r.returncode, r.stdout), (3, b""),
                "create: no such template -> 3")
        t.ok(b"No such template: none" in r.stderr,
             "create: the problem is told", r.stderr)
        r = api.ctl("create", "full")
        t.equal(r.returncode, 1, "create: no capacity -> 1")
        t.ok(b"try again in 1 s" in r.stderr,
             "create: retry_after_s is told", r.stderr)
        for args in (["--memory", "1"], ["--memory", "x"], ["--vcpu", "0"],
                     ["--timeout", "-1"], ["--metadata", "novalue"],
                     ["-e", "=x"], ["-e", "NOT_THERE_AT_ALL"], ["--what"],
                     ["a", "b"], ["--key", "a b"], ["--key", ""]):
            n = len(api.requests)
            r = api.ctl("create", *args)
            t.ok(r.returncode == 2 and b"usage: sandboxctl create" in
                 r.stderr and not r.stdout and len(api.requests) == n,
                 "create: %r -> usage, 2, nothing asked" % (args,), r)
        t.equal(api.faults, [], "create: every request was well formed")


def check_lists(t):
    with fake_api.FakeApi() as api:
        r = api.ctl("ls")
        t.equal((r.returncode, len(r.stdout.splitlines())), (0, 1),
                "ls: no sandbox -> only the header")
        t.equal(api.ctl("ls", "--no-header").stdout, b"",
                "ls: --no-header, no sandbox -> nothing")
        ids = [api.add(name="box-%d" % i) for i in range(250)]
        api.page_max = 70
        r = api.ctl("ls", "-q")
        t.equal(text(r.stdout).split(), ids,
                "ls: -q, 250 in pages of 70 -> all ids in order")
        r = api.ctl("ls", "--json")
        t.equal([b["sandbox_id"] for b in json.loads(r.stdout)], ids,
                "ls: --json -> one array")
        lines = text(api.ctl("ls").stdout).splitlines()
        t.ok(lines[0].startswith("ID ") and len(lines) == 251 and
             all(line.startswith(i) for line, i in zip(lines[1:], ids)),
             "ls: header and a line for each", lines[:3])
        t.ok("128 MiB" in lines[1] and "ago" in lines[1],
             "ls: table says sizes and times for people", lines[1])
        t.equal(api.ctl("ls", "x").returncode, 2, "ls: argument -> 2")
        r = api.ctl("show", ids[3])
        t.ok(r.returncode == 0 and b"sandbox_id: " + ids[3].encode() + b"\n"
             in r.stdout and b"boot_ms: 900\n" in r.stdout,
             "show: a line for each member", r.stdout)
        r = api.ctl("show", "--json", ids[3])
        t.equal(json.loads(r.stdout), api.boxes[ids[3]],
                "show: --json -> the object as it came")
        gone = "sb-" + "a" * 16
        r = api.ctl("show", gone)
        t.equal((r.returncode, r.stdout), (3, b""), "show: gone -> 3")


def check_prefixes(t):
    with fake_api.FakeApi() as api:
        one = api.add("sb-abcdefghijklmnop", name="web")
        two = api.add("sb-abcxyzxyzxyzxyzx", name="db")
        three = api.add("sb-zzzzzzzzzzzzzzzz", name="abc")
        for word, want in (("sb-abcd", one), ("abcd", one), ("abcx", two),
                           ("web", one), ("z", three), ("abc", three),
                           (two, two)):
            r = api.ctl("show", "-q", word)
            t.equal((r.returncode, text(r.stdout).strip()), (0, want),
                    "id: \"%s\" -> the one that it stands for" % word)
        r = api.ctl("show", "ab")
        t.ok(r.returncode == 1 and one.encode() in r.stderr and
             two.encode() in r.stderr and three.encode() not in r.stderr,
             "id: two fit -> 1 and both are named", r)
        r = api.ctl("exec", "sb-a", "--", "echo")
        t.equal(r.returncode, 125, "id: two fit, exec -> 125")
        for word in ("nothing", "", "..", "a/b", "%41", "é"):
            r = api.ctl("rm", word)
            t.equal(r.returncode, 3, "id: \"%s\" -> 3" % word)
        t.equal(api.asked("DELETE"), [], "id: nothing was deleted by that")
        api.add("sb-2222222222222222", name="twin")
        api.add("sb-3333333333333333", name="twin")
        r = api.ctl("rm", "twin")
        t.equal((r.returncode, api.asked("DELETE")), (1, []),
                "id: a name that two have -> 1")


def check_rm(t):
    with fake_api.FakeApi() as api:
        a, b, c = api.add(), api.add(), api.add()
        r = api.ctl("rm", a, b)
        t.equal((r.returncode, r.stdout, r.stderr, list(api.boxes)),
                (0, b"", b"", [c]), "rm: two -> gone, and not a word")
        r = api.ctl("rm", a)
        t.equal(r.returncode, 0, "rm: gone already, whole id -> 0")
        r = api.ctl("rm", "nope", c)
        t.equal((r.returncode, list(api.boxes)), (3, []),
                "rm: one unknown, one known -> 3, the other is gone")
        d = api.add()
        r = api.ctl("rm", "--json", d)
        t.equal(json.loads(r.stdout), [{"sandbox_id": d, "deleted": True}],
                "rm: --json -> an array")
        t.equal(api.ctl("rm").returncode, 2, "rm: nothing named -> 2")
        e = api.add()
        api.answers["DELETE /v1/sandboxes/" + e] = fake_api.reply(202)
        t.equal(api.ctl("rm", e).returncode, 4,
                "rm: 202, still being deleted -> 4")


def check_wait(t):
    with fake_api.FakeApi() as api:
        a = api.add()
        t.equal(api.ctl("wait", "--state", "running", a).returncode, 0,
                "wait: it is in that state -> 0")
        r = api.ctl("wait", "--state", "runing", a)
        t.ok(r.returncode == 2 and b"runing" in r.stderr,
             "wait: no such state -> named, 2", r)
        start = time.monotonic()
        r = api.ctl("wait", "--timeout", "1", a)
        took = time.monotonic() - start
        t.ok(r.returncode == 4 and 0.9 < took < 2.5,
             "wait: time is over -> 4 after that time", (r, took))
        threading.Timer(0.5, lambda: api.boxes.pop(a)).start()
        t.equal(api.ctl("wait", a).returncode, 0, "wait: it goes -> 0")
        b = api.add(state="failed", detail="guest_panic")
        r = api.ctl("wait", "--state", "running", b)
        t.ok(r.returncode == 1 and b"guest_panic" in r.stderr,
             "wait: it has failed -> 1 and why", r)


def check_health(t):
    with fake_api.FakeApi() as api:
        r = api.ctl("health")
        t.ok(r.returncode == 0 and b"status: ok\n" in r.stdout and
             b"accelerator.name: tcg\n" in r.stdout and
             b"notes: one\nnotes: two\n" in r.stdout,
             "health: lines", r.stdout)
        t.equal(json.loads(api.ctl("health", "--json").stdout)["uptime_s"], 5,
                "health: --json -> the object")
        api.answers["GET /healthz"] = fake_api.problem(
            503, "restarting", "A part of the daemon is restarting")
        t.equal(api.ctl("health").returncode, 1, "health: 503 -> 1")
        del api.answers["GET /healthz"]
        r = api.ctl("version")
        t.ok(re.fullmatch(rb"sandboxctl [0-9.]+\nsandboxd 0\.1\.0\n",
                          r.stdout), "version: both", r.stdout)
        r = api.ctl("version", "--json", "-s", "/nonexistent")
        t.ok(r.returncode == 0 and
             json.loads(r.stdout)["sandboxd"] is None and
             b"/nonexistent" in r.stderr, "version: no daemon -> ours, 0", r)
        t.ok(re.fullmatch(rb"sandboxctl [0-9.]+\n",
                          api.ctl("--version").stdout), "--version")


def check_help(t):
    with fake_api.FakeApi() as api:
        r = api.ctl()
        t.ok(r.returncode == 2 and r.stderr.startswith(b"usage: sandboxctl ")
             and not r.stdout, "no command -> usage on stderr, 2", r)
        r = api.ctl("frobnicate")
        t.ok(r.returncode == 2 and b"frobnicate" in r.stderr,
             "unknown command -> named, 2", r)
        r = api.ctl("help")
        t.ok(r.returncode == 0 and all(
            re.search(rb"^  %s " % k.encode(), r.stdout, re.M) for k in KEEP),
            "help: lists every command on stdout", r.stdout)
        for k in KEEP:
            r = api.ctl("help", k)
            t.ok(r.returncode == 0 and r.stdout.startswith(
                b"usage: sandboxctl %s" % k.encode()),
                "help: %s -> its usage" % k, r)
            if k != "help":
                t.equal(api.ctl(k, "-h").stdout, r.stdout,
                        "%s -h -> the same" % k)
        t.equal(api.ctl("help", "nope").returncode, 2, "help: unknown -> 2")
        t.equal(api.requests, [], "help: nothing is asked of the daemon")


def check_reach(t):
    with fake_api.FakeApi() as api:
        r = api.ctl("ls", "-s", api.dir + "/none")
        t.ok(r.returncode == 1 and b"no such socket" in r.stderr and
             b"SANDBOXD_SOCKET" in r.stderr, "socket: missing -> 1, and what "
             "to do", r.stderr)
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(api.dir + "/dead")
        r = api.ctl("ls", "-s", api.dir + "/dead")
        t.ok(r.returncode == 1 and b"not running" in r.stderr,
             "socket: nobody listens -> 1", r.stderr)
        r = api.ctl("exec", "-s", api.dir + "/dead", "sb-" + "a" * 16, "--",
                    "true")
        t.equal(r.returncode, 125, "socket: nobody listens, exec -> 125")
        r = api.ctl("ls", "-s", "/" + "x" * 200)
        t.ok(r.returncode == 1 and b"107" in r.stderr,
             "socket: path too long -> 1 and the limit", r.stderr)
        if os.geteuid() == 0:
            os.chmod(api.path, 0o600)
            os.chmod(api.dir, 0o755)
            r = api.ctl("ls", user=65534, group=65534)
            t.ok(r.returncode == 1 and b"permission denied" in r.stderr and
                 b"group" in r.stderr, "socket: not ours -> 1, and who may",
                 r.stderr)
        else:
            t.skip("socket: not ours -> 1", "needs root")
        t.ok(stat.S_ISSOCK(os.stat(api.path).st_mode), "socket: still there")


def main():
    t = tap.Tap()
    t.run(check_create, check_lists, check_prefixes, check_rm, check_wait,
          check_health, check_help, check_reach)
    return t.done()


sys.exit(main())
