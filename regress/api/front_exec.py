#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""POST exec against a real front, parent and guest played by the test: one JSON
answer, and a line for each event."""
import base64
import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import api
import front
import gproto
import tap

OUTPUT_MAX = 1048576
PROBLEM = "application/problem+json"


def say(*pieces, code=0, **how):
    """A guest's command that writes these (channel, bytes) and exits."""
    def command(s):
        s.begin()
        for channel, data in pieces:
            s.output(data, channel)
        s.exit(code, **how)
    return command


def refuse(stage, errno):
    return lambda s: s.refuse(stage, errno)


def post(f, box, headers=None, **members):
    return f.api.request("POST", "/sandboxes/%s/exec" % box.id, data=members,
                         headers=headers)


def answers(t):
    with front.Front() as f:
        box = f.add_box()
        box.env = b"A=1\0B=2\0"
        r = f.api.exec(box.id, ["echo", "hi", "\u00e9"])
        t.equal(r, {"exit_code": 0, "signal": None, "timed_out": False,
                    "oom_killed": False, "duration_ms": 1,
                    "stdout": "hi \u00e9\n", "stderr": "", "encoding": "utf-8",
                    "stdout_bytes": 6, "stderr_bytes": 0,
                    "stdout_truncated": False, "stderr_truncated": False},
                "one JSON answer")
        m = f.seen("FRONT_ATTACH_STREAM")[0]
        t.equal((m["owner"], m["id"], m["on_disconnect"]),
                (os.getuid() + 7000, box.id, 0), "attached for the owner")
        d = f.seen("FRONT_DETACH_STREAM")
        t.equal([(x["stream"], x["reason"]) for x in d], [(1000, 0)],
                "detached with \"ended\"")
        r = f.api.exec(box.id, ["env"], env={"B": "3", "C": "x=y\nz"})
        t.equal(r["stdout"], "A=1\nB=2\nB=3\nC=x=y\nz\n",
                "env: the sandbox's first, the command's after it")
        t.equal(f.api.exec(box.id, ["cat"], stdin="input")["stdout"],
                "input", "stdin as text, then its end")
        t.equal(f.api.exec(box.id, ["cat"], stdin="")["stdout"], "",
                "empty stdin -> end at once")
        blob = os.urandom(200000)
        r = f.api.exec(box.id, ["cat"],
                       stdin=base64.b64encode(blob).decode(),
                       stdin_encoding="base64", encoding="base64")
        t.ok(r["encoding"] == "base64" and
             base64.b64decode(r["stdout"]) == blob,
             "stdin and stdout in base64, 200,000 random bytes")
        t.equal(f.api.exec(box.id, ["cat"])["stdout"], "",
                "no stdin member -> the guest is told to use /dev/null")
        r = f.api.exec(box.id, ["err", "oops"])
        t.ok(r["stderr"] == "oops\n" and r["stdout"] == "",
             "stderr apart from stdout")
        f.api.exec(box.id, ["echo"], timeout_s=0.25, cwd="/tmp", user="1000",
                   on_disconnect="keep")
        t.equal(f.seen("FRONT_ATTACH_STREAM")[-1]["on_disconnect"], 2,
                "on_disconnect goes to the parent")


def arguments(t):
    got = []

    def record(s):
        got.append((s.argv, s.env, s.cwd, s.user, s.timeout_ms, s.flags))
        s.begin()
        s.exit(0)
    with front.Front() as f:
        box = f.add_box(command=record)
        f.api.exec(box.id, ["a b", "", "\"'\n$`", "\u4e16"], cwd="w", user="u:g",
                   timeout_s=0.25, env={"K": ""})
        t.equal(got[-1], ([b"a b", b"", b"\"'\n$`", "\u4e16".encode()],
                          [b"K="], b"w", b"u:g", 250, 0),
                "argv, env, cwd, user, timeout arrive as they were sent")
        f.api.exec(box.id, ["x"], timeout_s=3, stdin="")
        t.equal(got[-1][4:], (3000, gproto.FLAG_STDIN), "stdin asked for")
        big = ["x" * 131071] * 7
        f.api.exec(box.id, big)
        t.equal([len(a) for a in got[-1][0]], [131071] * 7,
                "917,497 bytes of argv arrive, four times the window")
        f.api.exec(box.id, ["x", "sandboxd-sync\r\n" * 3])
        t.equal(got[-1][0][1], b"sandboxd-sync\r\n" * 3,
                "an argument much like a sync record arrives")
        env = {"V%05d" % i: "x\n=y" for i in range(10000)}
        f.api.exec(box.id, ["x"], env=env)
        t.equal(got[-1][1], [("%s=%s" % kv).encode() for kv in env.items()],
                "10,000 variables with newline and '=' arrive")


def codes(t):
    with front.Front() as f:
        for what, name, want in (
                (say(code=7), "exit 7", (7, None, False, False)),
                (say(code=9, signaled=1), "killed by 9", (137, 9, False,
                                                           False)),
                (say(code=15, signaled=1), "killed by 15", (143, 15, False,
                                                             False)),
                (say(code=9, signaled=1, timed_out=1), "timeout",
                 (137, 9, True, False)),
                (say(code=0, timed_out=1), "timeout, exited 0",
                 (137, None, True, False)),
                (say(code=9, signaled=1, oom=1), "out of memory",
                 (137, 9, False, True)),
                (refuse(4, 2), "missing program", (127, None, False, False)),
                (refuse(4, 13), "not executable", (126, None, False, False)),
                (refuse(4, 8), "no program format", (126, None, False,
                                                     False))):
            box = f.add_box(command=what)
            r = f.api.exec(box.id, ["prog"])
            t.ok((r["exit_code"], r["signal"], r["timed_out"],
                  r["oom_killed"]) == want, "%s -> %r" % (name, want), r)
            if want[0] in (126, 127):
                t.ok(r["error"].startswith("prog: "), "%s: says so" % name, r)
        for what, name, status, code, text in (
                (refuse(3, 2), "no cwd", 400, "bad_cwd", "/no/where"),
                (refuse(2, 2), "no user", 400, "bad_user", "nobody2"),
                (refuse(1, 7), "too long", 400, "bad_command", "too large"),
                (refuse(4, 7), "E2BIG", 400, "bad_command", "prog"),
                (refuse(5, 11), "no resources", 503, "no_capacity", "")):
            box = f.add_box(command=what)
            r = post(f, box, argv=["prog"], cwd="/no/where", user="nobody2")
            p = r.json()
            t.ok(r.status == status and p["code"] == code and
                 text in p["detail"] and p["sandbox_id"] == box.id,
                 "%s -> %d %s" % (name, status, code), p)


def outputs(t):
    with front.Front() as f:
        big = b"x" * (OUTPUT_MAX - 1) + "\u00e9".encode() + b"tail"
        box = f.add_box(command=say((1, big), (2, b"e" * 10)))
        r = f.api.exec(box.id, ["x"])
        t.ok(r["stdout"] == "x" * (OUTPUT_MAX - 1) and r["stdout_truncated"]
             and r["stdout_bytes"] == len(big) and r["encoding"] == "utf-8"
             and not r["stderr_truncated"] and r["stderr"] == "e" * 10,
             "output over 1 MiB is cut at a character, and says so",
             (len(r["stdout"]), r["stdout_truncated"], r["encoding"]))
        box = f.add_box(command=say((1, bytes(5 << 20))))
        r = f.api.exec(box.id, ["x"])
        t.ok(len(r["stdout"]) == OUTPUT_MAX and r["stdout_bytes"] == 5 << 20
             and r["exit_code"] == 0,
             "a command with 5 MiB of output is not stopped by the cut")
        box = f.add_box(command=say((1, b"ok\xff"), (2, b"fine")))
        r = f.api.exec(box.id, ["x"])
        t.ok(r["encoding"] == "base64" and
             base64.b64decode(r["stdout"]) == b"ok\xff" and
             base64.b64decode(r["stderr"]) == b"fine",
             "bytes that are not UTF-8 -> base64, and says so", r)
        box = f.add_box(command=say((1, "a\u00e9".encode()[:-1])))
        r = f.api.exec(box.id, ["x"])
        t.ok(r["encoding"] == "base64", "half a character at the end is none")
        box = f.add_box(command=say((1, b"a\0b\x1b\x7f\"\\")))
        t.equal(f.api.exec(box.id, ["x"])["stdout"], "a\0b\x1b\x7f\"\\",
                "control characters and NUL survive as text")


def lines(t):
    with front.Front() as f:
        word = "\u00e9\u4e16\U0001f600"
        raw = (word * 3).encode()
        box = f.add_box(command=say(*[(1, raw[i:i + 1]) for i in
                                      range(len(raw))], (2, b"\xfe\xff"),
                                    (1, b"z\xe4"), code=3))
        got = list(f.api.exec_events(box.id, ["x"]))
        t.equal([e["type"] for e in got[:1] + got[-1:]],
                ["process_started", "process_exited"],
                "first process_started, last process_exited")
        out = "".join(e["data"] for e in got if e["type"] == "stdout" and
                      "encoding" not in e)
        t.equal(out, word * 3 + "z", "characters are never split")
        t.equal([base64.b64decode(e["data"]) for e in got
                 if e.get("encoding") == "base64"], [b"\xfe\xff", b"\xe4"],
                "what is no UTF-8 comes as base64, nothing is lost")
        t.equal(got[-1]["exit_code"], 3, "process_exited has the code")
        got = list(f.api.exec_events(box.id, ["x"], encoding="base64"))
        t.equal(b"".join(base64.b64decode(e["data"]) for e in got
                         if e["type"] == "stdout"), raw + b"z\xe4",
                "encoding base64 -> every event in base64")
        blob = os.urandom(300000)
        box = f.add_box(command=say((1, blob)))
        got = b"".join(base64.b64decode(e["data"]) if "encoding" in e else
                       e["data"].encode() for e in
                       f.api.exec_events(box.id, ["x"])
                       if e["type"] == "stdout")
        t.ok(got == blob, "300,000 random bytes arrive as they were")
        box = f.add_box(command=refuse(4, 2))
        got = list(f.api.exec_events(box.id, ["x"]))
        t.equal([(e["type"], e["exit_code"]) for e in got],
                [("process_exited", 127)], "missing program -> only its end")
        box = f.add_box(command=refuse(3, 2))
        r = post(f, box, argv=["x"], cwd="/nope",
                 headers={"Accept": "application/x-ndjson"})
        t.equal(r.status, 400, "bad cwd -> a problem with its status")
        box = f.add_box(misbehave="close")
        got = list(f.api.exec_events(box.id, ["x"]))
        t.equal([e["type"] for e in got], ["process_started", "error"],
                "guest lost -> the last line is an error")
        t.equal(got[-1]["code"], "guest_lost", "with its code")


def as_it_happens(t):
    with front.Front() as f:
        def slow(s):
            s.begin()
            s.output(b"one")
            s.wait_for(lambda: s.closed, 1.0)
            s.output(b"two")
            s.exit(0)
        box = f.add_box(command=slow)
        began, times = time.monotonic(), []
        for e in f.api.exec_events(box.id, ["x"]):
            times.append((e["type"], time.monotonic() - began))
        t.ok(times[1][1] < 0.5 < 0.9 < times[2][1],
             "an event is sent when it happens", times)
        with api.Conn(f.path) as c:
            c.send(b"POST /sandboxes/%s/exec HTTP/1.0\r\nAccept: "
                   b"application/x-ndjson\r\nContent-Length: 14\r\n\r\n"
                   b'{"argv":["x"]}' % box.id.encode())
            r = c.read_response()
            events = [json.loads(x) for x in r.body.split(b"\n")[:-1]]
            t.ok(r.header("transfer-encoding") is None and
                 events[-1]["type"] == "process_exited",
                 "HTTP/1.0 -> no chunks, the end of the stream ends it")


def keepalive(t):
    with front.Front() as f:
        box = f.add_box()
        began = time.monotonic()
        gaps, last = [], began
        for e in f.api.exec_events(box.id, ["sleep", "17"]):
            now = time.monotonic()
            gaps.append((e["type"], round(now - last, 1)))
            last = now
        t.ok(("keepalive" in [g[0] for g in gaps]) and
             max(g[1] for g in gaps) <= 15.5,
             "a quiet command is never silent for more than 15 s", gaps)


def refused(t):
    bad = [
        ({}, "bad_member", "argv"), ({"argv": []}, "bad_member", "argv"),
        ({"argv": "ls"}, "bad_member", "argv"),
        ({"argv": [1]}, "bad_member", "argv"),
        ({"argv": ["x" * 131072]}, "bad_member", "argv"),
        ({"argv": ["x"], "shell": True}, "unknown_member", "shell"),
        ({"argv": ["x"], "tty": True}, "unknown_member", "tty"),
        ({"argv": ["x"], "type": "start"}, "unknown_member", "type"),
        ({"argv": ["x"], "env": {"": "1"}}, "bad_member", "env"),
        ({"argv": ["x"], "env": {"A=": "1"}}, "bad_member", "env"),
        ({"argv": ["x"], "env": {"A": 1}}, "bad_member", "env"),
        ({"argv": ["x"], "env": {"A": "x" * 131071}}, "bad_member", "env"),
        ({"argv": ["x"], "env": ["A=1"]}, "bad_member", "env"),
        ({"argv": ["x"], "cwd": ""}, "bad_member", "cwd"),
        ({"argv": ["x"], "cwd": "x" * 4096}, "bad_member", "cwd"),
        ({"argv": ["x"], "user": 0}, "bad_member", "user"),
        ({"argv": ["x"], "timeout_s": 0}, "out_of_range", "timeout_s"),
        ({"argv": ["x"], "timeout_s": -1}, "out_of_range", "timeout_s"),
        ({"argv": ["x"], "timeout_s": 1e99}, "out_of_range", "timeout_s"),
        ({"argv": ["x"], "timeout_s": "1"}, "bad_member", "timeout_s"),
        ({"argv": ["x"], "timeout_s": 0.0004}, "out_of_range", "timeout_s"),
        ({"argv": ["x"], "stdin": True}, "bad_member", "stdin"),
        ({"argv": ["x"], "stdin": "@@", "stdin_encoding": "base64"},
         "bad_member", "stdin"),
        ({"argv": ["x"], "stdin_encoding": "base64"}, "bad_member",
         "stdin_encoding"),
        ({"argv": ["x"], "stdin": "", "stdin_encoding": "hex"}, "bad_member",
         "stdin_encoding"),
        ({"argv": ["x"], "encoding": "latin1"}, "bad_member", "encoding"),
        ({"argv": ["x"], "on_disconnect": "stay"}, "bad_member",
         "on_disconnect"),
        (b'{"argv":["x\\u0000"]}', "bad_json", None),
        (b'{"argv":["x"],"argv":["y"]}', "bad_json", None),
    ]
    with front.Front() as f:
        box = f.add_box()
        for body, code, member in bad:
            raw = body if isinstance(body, bytes) else json.dumps(
                body).encode()
            r = f.api.request("POST", "/sandboxes/%s/exec" % box.id, body=raw)
            p = r.json()
            t.ok(r.status == 400 and p["code"] == code and
                 r.header("content-type") == PROBLEM and
                 (member is None or '"%s' % member in p["detail"]),
                 "exec with %s -> 400 %s" % (raw[:50], code), p)
        t.equal(f.seen("FRONT_ATTACH_STREAM", 0, 0), [],
                "nothing was asked of the parent for any of them")
        r = post(f, box, argv=["x"], headers={"Accept": "text/html"})
        t.equal(r.status, 406, "Accept without one of ours -> 406")
        r = f.api.request("POST", "/sandboxes/%s/exec" % box.id,
                          body=b" " * (OUTPUT_MAX + 1))
        t.equal(r.status, 413, "a body over 1 MiB -> 413")
        r = f.api.request("POST", "/sandboxes/sb-aaaaaaaaaaaaaaaa/exec",
                          data={"argv": ["x"]})
        t.equal((r.status, r.json()["code"]), (404, "no_sandbox"),
                "no such sandbox -> 404")
        box.state = front.FAILED
        r = post(f, box, argv=["x"])
        t.equal((r.status, r.json()["code"]), (409, "state_conflict"),
                "not running -> 409")


def no_channel(t):
    with front.Front() as f:
        box = f.add_box(misbehave="no-hello", deadline_ms=60000)
        c = api.Conn(f.path)
        c.send_request("POST", "/sandboxes/%s/exec" % box.id,
                       data={"argv": ["echo", "late"]})
        f.seen("FRONT_ATTACH_STREAM")
        time.sleep(0.3)
        f.connect(box)
        t.equal(c.read_response().json()["stdout"], "late\n",
                "a command waits for the channel")
        c.close()
        box = f.add_box(guest=False, deadline_ms=60000)
        c = api.Conn(f.path)
        c.send_request("POST", "/sandboxes/%s/exec" % box.id,
                       data={"argv": ["x"]})
        f.seen("FRONT_ATTACH_STREAM", 2)
        time.sleep(0.1)
        f.api.delete(box.id)
        r = c.read_response()
        t.equal((r.status, r.json()["code"]), (409, "sandbox_gone"),
                "deleted while it waits -> gone")
        c.close()


def vanish(t):
    with front.Front() as f:
        for accept in ("application/json", "application/x-ndjson"):
            box = f.add_box()
            f.forget()
            c = api.Conn(f.path)
            c.send_request("POST", "/sandboxes/%s/exec" % box.id,
                           data={"argv": ["sleep", "60"]},
                           headers={"Accept": accept})
            front.eventually(lambda: "START" in box.guest.log)
            if accept != "application/json":
                c.read_head()
            began = time.monotonic()
            c.close()
            d = f.seen("FRONT_DETACH_STREAM")
            t.ok([x["reason"] for x in d] == [1] and
                 time.monotonic() - began < 1,
                 "%s: client gone -> detached with \"vanished\"" % accept, d)
            t.ok(front.eventually(lambda: "CLOSE" in box.guest.log),
                 "%s: and the command is killed" % accept)
        box = f.add_box()
        f.forget()
        c = api.Conn(f.path)
        c.send_request("POST", "/sandboxes/%s/exec" % box.id,
                       data={"argv": ["sleep", "1"]})
        c.sock.shutdown(socket.SHUT_WR)
        r = c.read_response()
        t.ok(r.status == 200 and [x["reason"] for x in f.seen(
            "FRONT_DETACH_STREAM")] == [0],
            "half-closed client -> the command ends in peace", r.body)
        c.close()
        f.on["FRONT_ATTACH_STREAM"] = lambda m: None
        f.forget()
        c = api.Conn(f.path)
        c.send_request("POST", "/sandboxes/%s/exec" % box.id,
                       data={"argv": ["sleep", "1"]})
        m = f.seen("FRONT_ATTACH_STREAM")[0]
        c.close()
        time.sleep(0.3)
        t.equal(f.seen("FRONT_DETACH_STREAM", 0, 0), [],
                "gone before the parent's answer -> nothing to detach yet")
        f.answer(m, "PARENT_ATTACH_OK", stream=77)
        t.equal([(x["stream"], x["reason"]) for x in
                 f.seen("FRONT_DETACH_STREAM")], [(77, 1)],
                "detached as soon as the parent has answered")


def main():
    t = tap.Tap()
    t.run(answers, arguments, codes, outputs, lines, as_it_happens, keepalive,
          refused, no_channel, vanish)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
