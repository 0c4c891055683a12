#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Commands over a WebSocket against a real front, parent and guest played by the
test: the subprotocol, its order, its close codes, and clients that break it."""
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import api
import front
import gproto
import tap
from api import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT

COMMAND = "/v1/sandboxes/%s/command"


def order(t):
    with front.Front() as f:
        box = f.add_box()
        r = f.api.run(box.id, ["echo", "hi"])
        t.equal((r.stdout, r.stderr, r.exit_code, r.close, r.order),
                (b"hi\n", b"", 0, 1000, ["process_started", "output",
                                         "process_exited", "close"]),
                "process_started, output, process_exited, close 1000")
        t.equal(r.pid, 4321, "process_started has the pid")
        t.equal(r.exited, {"type": "process_exited", "exit_code": 0,
                           "signal": None, "timed_out": False,
                           "oom_killed": False, "duration_ms": 1,
                           "stdout_bytes": 3, "stderr_bytes": 0},
                "members of process_exited")
        t.equal([(m["stream"], m["reason"]) for m in
                 f.seen("FRONT_DETACH_STREAM")], [(1000, 0)],
                "detached with \"ended\"")
        r = f.api.run(box.id, ["err", "x"])
        t.equal((r.stdout, r.stderr), (b"", b"x\n"), "stderr on channel 2")
        blob = os.urandom(1 << 20)
        r = f.api.run(box.id, ["cat"], stdin=blob)
        t.ok(r.stdout == blob and r.close == 1000,
             "1 MiB of random bytes through stdin and back",
             (len(r.stdout), r.close))
        blob = gproto.MAGIC * 30000 + b"\xa5" * 100
        r = f.api.run(box.id, ["cat"], stdin=blob)
        t.ok(r.stdout == blob, "bytes that look like sync records, too",
             (len(r.stdout), r.close))
        r = f.api.run(box.id, ["exit", "7"])
        t.equal((r.exit_code, r.close), (7, 1000), "exit 7 -> 7")
        r = f.api.run(box.id, ["kill", "9"])
        t.equal((r.exit_code, r.exited["signal"]), (137, 9),
                "killed by 9 -> 137, signal 9")
        r = f.api.run(box.id, ["nope"])
        t.ok(r.order == ["process_exited", "close"] and r.exit_code == 127 and
             r.exited["error"].startswith("nope: ") and r.close == 1000,
             "missing program -> 127", (r.events, r.close))

        def timeout(s):
            s.begin()
            s.exit(9, signaled=1, timed_out=1)
        box = f.add_box(command=timeout)
        r = f.api.run(box.id, ["x"], timeout_s=0.1)
        t.ok(r.exited["timed_out"] and r.exit_code == 137 and r.close == 4001,
             "timeout -> timed_out, 137, close 4001", (r.exited, r.close))


def members(t):
    got = []

    def record(s):
        got.append(s)
        s.begin()
        s.wait_for(lambda: s.stdin_eof or len(s.sizes) > 1 and
                   len(s.signals) > 2 or s.closed, 5)
        s.exit(0)
    with front.Front() as f:
        box = f.add_box(command=record)
        ws = f.api.command(box.id, ["sh"], tty=True, cols=100, rows=40,
                           cwd="/", user="u", env={"T": "1"}, timeout_s=1.5)
        ws.wait_for("process_started")
        ws.resize(120, 50)
        for name in ("TERM", "SIGINT", "SIGWINCH"):
            ws.signal(name)
        t.equal(ws.collect().close, 1000, "tty: runs to its end")
        s = got[-1]
        t.equal((s.flags, s.sizes[0], s.cwd, s.user, s.env, s.timeout_ms),
                (gproto.FLAG_STDIN | gproto.FLAG_TTY, (100, 40), b"/", b"u",
                 [b"T=1"], 1500), "start's members reach the guest")
        t.ok(front.eventually(lambda: (120, 50) in s.sizes), "resize", s.sizes)
        t.ok(front.eventually(lambda: [x[0] for x in s.signals] ==
                              [15, 2, 28]),
             "signals by name, with SIG or without", s.signals)
        ws = f.api.command(box.id, ["x"])
        ws.wait_for("process_started")
        t.equal(got[-1].flags, gproto.FLAG_STDIN, "stdin is wanted by default")
        ws.close_stdin()
        ws.close_stdin()
        t.equal(ws.collect().close, 1000, "close_stdin twice is no fault")
        ws = f.api.command(box.id, ["x"], stdin=False)
        ws.wait_for("process_started")
        t.equal(got[-1].flags, 0, "\"stdin\": false -> /dev/null")
        ws.close()
        f.seen("FRONT_DETACH_STREAM", 3)
        f.forget()
        f.api.run(box.id, ["x"], stdin=b"", on_disconnect="keep")
        t.equal(([m["on_disconnect"] for m in f.seen("FRONT_ATTACH_STREAM",
                                                     2)],
                 [m["reason"] for m in f.seen("FRONT_DETACH_STREAM", 2)]),
                ([0, 2], [0, 0]),
                "on_disconnect in start -> attached anew, detached twice")


def handshake(t):
    with front.Front() as f:
        box = f.add_box()

        def refused(name, want, target=COMMAND % box.id, **how):
            ws = api.WebSocket(f.path, 10)
            try:
                ws.handshake(target, **how)
                got = (101, None)
            except api.ApiError as e:
                got = (e.status, e.code)
            ws.close()
            t.equal(got, want, "handshake: " + name)
        refused("version 8 -> 426", (426, "upgrade_required"),
                headers={"Sec-WebSocket-Version": "8"})
        refused("no key -> 400", (400, "bad_header"),
                headers={"Sec-WebSocket-Key": None})
        refused("a short key -> 400", (400, "bad_header"), key="abc")
        refused("an unknown subprotocol -> 400", (400, "bad_header"),
                protocol="v5.channel.k8s.io")
        refused("no such sandbox -> 404", (404, "no_sandbox"),
                target=COMMAND % "sb-aaaaaaaaaaaaaaaa")
        refused("query -> 400", (400, "bad_parameter"),
                target=COMMAND % box.id + "?x=1")
        box.state = front.FAILED
        refused("not running -> 409", (409, "state_conflict"))
        box.state = front.RUNNING
        ws = api.WebSocket(f.path, 10)
        r = ws.handshake(COMMAND % box.id, protocol="foo, sandbox.v1")
        t.equal(r.header("sec-websocket-protocol"), "sandbox.v1",
                "handshake: the known subprotocol is chosen")
        ws.close()
        ws = api.WebSocket(f.path, 10)
        r = ws.handshake(COMMAND % box.id, protocol=None)
        t.equal(r.header("sec-websocket-protocol"), None,
                "handshake: none named -> none answered")
        ws.start(["echo", "x"])
        t.equal(ws.collect().stdout, b"x\n", "and it speaks sandbox.v1")
        ws.close()
        ws = api.WebSocket(f.path, 10)
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        head = ws.request_bytes("GET", COMMAND % box.id, None, {
            "Connection": "keep-alive, Upgrade", "Upgrade": "WebSocket",
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key})
        ws.send(head + ws.frame_bytes(
            TEXT, b'{"type":"start","argv":["echo","early"]}'))
        r = ws.read_head()
        t.equal(r.header("sec-websocket-accept"),
                "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "handshake: RFC 6455's sample")
        t.equal(ws.collect().stdout, b"early\n",
                "a start that comes with the handshake is not lost")
        ws.close()


def breaks(t):
    """Clients that do not keep to the protocol: error, close code, killed."""
    start = b'{"type":"start","argv":["cat"]}'
    with front.Front() as f:
        box = f.add_box()

        def case(name, code, *frames, before=(), event=None, reason=None):
            f.forget()
            ws = f.api.websocket(box.id)
            for frame in before:
                ws.send(frame)
            r = api.Result()
            if before:
                ws.wait_for("process_started", r)
            for frame in frames:
                try:
                    ws.send(frame)
                except OSError:
                    break
            ws.collect(r)
            d = [m["reason"] for m in f.seen("FRONT_DETACH_STREAM")]
            want = [1 if before else 0] if reason is None else [reason]
            t.ok(r.close == code and (event is None or (
                r.error or {}).get("code") == event) and d == want,
                "%s -> close %d" % (name, code), (r.order, r.error, r.close,
                                                  r.reason, d))
            ws.close()
        fr = api.WebSocket.frame_bytes
        w = api.WebSocket.__new__(api.WebSocket)

        def text(data, **how):
            return fr(w, TEXT, data, **how)

        def binary(data, **how):
            return fr(w, BINARY, data, **how)
        run = [text(start)]
        case("no JSON", 1002, text(b"hello"), event="bad_json")
        case("a key twice", 1002, text(b'{"type":"start","type":"start"}'),
             event="bad_json")
        case("another first message", 1002, text(b'{"type":"resize"}'),
             event="bad_json")
        case("an array", 1002, text(b'[]'), event="bad_json")
        case("data first", 1002, binary(b"\0x"), event="bad_json")
        case("start without argv", 1008, text(b'{"type":"start"}'),
             event="bad_member")
        case("start with an unknown member", 1008,
             text(start[:-1] + b',"tyy":1}'), event="unknown_member")
        case("cols without tty", 1008, text(start[:-1] + b',"cols":1}'),
             event="bad_member")
        case("cols out of range", 1008,
             text(start[:-1] + b',"tty":true,"cols":70000}'),
             event="out_of_range")
        case("start twice", 1008, text(start), before=run, event="bad_member")
        case("an unknown type", 1008, text(b'{"type":"stop"}'), before=run,
             event="bad_member")
        case("an unknown signal", 1008,
             text(b'{"type":"signal","name":"SIGFOO"}'), before=run,
             event="bad_member")
        case("a signal by number", 1008,
             text(b'{"type":"signal","name":9}'), before=run,
             event="bad_member")
        case("resize without rows", 1008,
             text(b'{"type":"resize","cols":80}'), before=run,
             event="bad_member")
        case("resize to 0", 1008,
             text(b'{"type":"resize","cols":0,"rows":1}'), before=run,
             event="out_of_range")
        case("close_stdin with more", 1008,
             text(b'{"type":"close_stdin","x":1}'), before=run,
             event="unknown_member")
        case("data on channel 1", 1002, binary(b"\1x"), before=run,
             event="bad_json")
        case("data on channel 255", 1002, binary(b"\xff"), before=run,
             event="bad_json")
        case("data without a channel", 1002, binary(b""), before=run,
             event="bad_json")
        sleep = b'{"type":"start","argv":["sleep","9"]'
        case("data after close_stdin", 1002, binary(b"\0x"), event="bad_json",
             before=[text(sleep + b"}"), text(b'{"type":"close_stdin"}')])
        case("data without stdin", 1002, binary(b"\0x"), event="bad_json",
             before=[text(sleep + b',"stdin":false}')])
        case("an unmasked frame", 1002, text(start, mask=False))
        case("reserved bits", 1002, text(start, rsv=4))
        case("an unknown opcode", 1002, fr(w, 3, b"x"))
        case("a continuation of nothing", 1002, fr(w, CONTINUATION, b"x"))
        case("a fragmented ping", 1002, fr(w, PING, b"x", fin=False))
        case("a ping of 126 bytes", 1002, fr(w, PING, b"x" * 126))
        case("text that is not UTF-8", 1007, text(b'{"\xff"'))
        case("a message over 1 MiB", 1009,
             text(b" " * 1048577))
        case("data over 1 MiB", 1009, binary(b"\0" * 1048577), before=run)
        case("a close frame before start", 1000,
             fr(w, CLOSE, b"\x03\xe8"), reason=1)
        case("a close frame while it runs", 1000,
             fr(w, CLOSE, b"\x03\xe8bye"), before=run)
        case("a close frame without a code", 1000, fr(w, CLOSE, b""),
             before=run)
        case("a close frame with a bad code", 1002,
             fr(w, CLOSE, b"\x03\xed"), before=run)
        t.ok(front.eventually(lambda: box.guest.log.count("CLOSE") >= 16),
             "commands of clients that broke it are killed",
             box.guest.log.count("CLOSE"))


def accepted(t):
    with front.Front() as f:
        box = f.add_box()
        ws = f.api.websocket(box.id)
        whole = b'{"type":"start","argv":["cat"]}'
        ws.send_frame(TEXT, whole[:5], fin=False)
        ws.send_frame(PING, b"between")
        ws.send_frame(CONTINUATION, whole[5:], fin=True)
        op, data, _ = ws.recv_frame()
        t.equal((op, data), (PONG, b"between"), "ping between -> pong")
        ws.wait_for("process_started")
        ws.send_frame(BINARY, b"\0ab", fin=False)
        ws.send_frame(CONTINUATION, b"cd", fin=False)
        ws.send_frame(CONTINUATION, b"", fin=True)
        ws.send_frame(BINARY, b"\0")
        ws.send_frame(PONG, b"nobody asked")
        for byte in ws.frame_bytes(BINARY, b"\0slow"):
            ws.send(bytes([byte]))
        ws.close_stdin()
        r = ws.collect()
        t.equal((r.stdout, r.close), (b"abcdslow", 1000),
                "fragments, empty data, a frame byte by byte")
        t.ok(ws.at_eof(), "the connection ends after the close frames")
        ws.close()


def errors(t):
    with front.Front() as f:
        for what, name, code, close in (
                (lambda s: s.refuse(3, 2), "bad cwd", "bad_cwd", 1008),
                (lambda s: s.refuse(2, 2), "bad user", "bad_user", 1008),
                (lambda s: s.refuse(1, 7), "too long", "bad_command", 1008),
                (lambda s: s.refuse(5, 11), "no resources", "no_capacity",
                 1011)):
            box = f.add_box(command=what)
            r = f.api.run(box.id, ["x"], cwd="/nope")
            t.ok(r.order == ["error", "close"] and r.error["code"] == code and
                 r.close == close, "%s -> error %s, close %d" % (
                     name, code, close), (r.events, r.close))
        box = f.add_box()
        ws = f.api.command(box.id, ["sleep", "60"])
        ws.wait_for("process_started")
        f.api.delete(box.id)
        r = ws.collect()
        t.ok(r.error["code"] == "sandbox_gone" and r.close == 4000 and
             r.error["detail"] == "deleted by its owner",
             "deleted while it runs -> sandbox_gone, close 4000",
             (r.events, r.close))
        box = f.add_box()
        ws = f.api.websocket(box.id)
        f.api.delete(box.id)
        r = ws.collect()
        t.ok(r.error["code"] == "sandbox_gone" and r.close == 4000,
             "deleted before start -> the same", (r.events, r.close))
        box = f.add_box()
        ws = f.api.command(box.id, ["sleep", "60"])
        ws.wait_for("process_started")
        box.sock.shutdown(socket.SHUT_RDWR)
        r = ws.collect()
        t.ok(r.error["code"] == "guest_lost" and r.close == 4002,
             "guest lost -> close 4002", (r.events, r.close))


def vanish(t):
    with front.Front() as f:
        box = f.add_box()

        def gone(name, how, started=True, data=b""):
            f.forget()
            box.guest.log.clear()
            ws = f.api.command(box.id, ["cat"])
            if started:
                ws.wait_for("process_started")
            else:
                f.seen("FRONT_ATTACH_STREAM")
            if data:
                ws.send(data)
            began = time.monotonic()
            how(ws)
            d = [m["reason"] for m in f.seen("FRONT_DETACH_STREAM")]
            t.ok(d == [1] and time.monotonic() - began < 1 and
                 (not started or front.eventually(
                     lambda: "CLOSE" in box.guest.log)),
                 "%s -> killed, detached with \"vanished\"" % name, d)
        gone("client closed", lambda ws: ws.close())
        gone("client shut down",
             lambda ws: ws.sock.shutdown(socket.SHUT_RDWR))
        gone("client closed in mid-frame", lambda ws: ws.close(),
             data=b"\x82\xfe\x10\x00")
        gone("client closed before it started", lambda ws: ws.close(),
             started=False)
        f.forget()
        ws = f.api.command(box.id, ["cat"])
        ws.wait_for("process_started")
        ws.stdin(b"last words")
        ws.sock.shutdown(socket.SHUT_WR)
        r = ws.collect()
        t.equal((r.stdout, r.close,
                 [m["reason"] for m in f.seen("FRONT_DETACH_STREAM")]),
                (b"last words", 1000, [0]),
                "half-closed -> end of stdin, output and end still arrive")
        ws.close()
        f.forget()
        ws = f.api.command(box.id, ["sleep", "1.5"])
        ws.wait_for("process_started")
        ws.sock.shutdown(socket.SHUT_WR)
        time.sleep(0.8)
        t.equal(f.seen("FRONT_DETACH_STREAM", 0, 0), [],
                "half-closed -> not vanished")
        ws.close()
        t.equal([m["reason"] for m in f.seen("FRONT_DETACH_STREAM")], [1],
                "half-closed, then closed -> vanished")


def stop(t):
    with front.Front() as f:
        box = f.add_box()
        ws = f.api.command(box.id, ["sleep", "60"])
        ws.wait_for("process_started")
        f.peer.sock.shutdown(socket.SHUT_RDWR)
        r = ws.collect()
        t.equal((r.order[-1], r.close), ("close", 1001),
                "the parent has gone -> close 1001")
        t.equal(f.peer.wait(), 0, "and front ends")
    with front.Front() as f:
        box = f.add_box()
        ws = f.api.command(box.id, ["sleep", "60"])
        ws.wait_for("process_started")
        os.kill(f.pid, 15)
        t.equal((ws.collect().close, f.peer.wait()), (1001, 0),
                "SIGTERM -> the same")


def pings(t):
    with front.Front() as f:
        box = f.add_box()
        began = time.monotonic()
        ws = f.api.command(box.id, ["sleep", "17"])
        r = ws.collect()
        t.ok(r.close == 1000 and ws.pings == 1,
             "a quiet command -> a ping every 15 s", (ws.pings, r.close))
        t.ok(time.monotonic() - began > 16, "and it is not cut")


def many(t):
    with front.Front() as f:
        boxes = [f.add_box() for _ in range(3)]
        results = []

        def one(i):
            blob = os.urandom(300000)
            r = f.api.run(boxes[i % 3].id, ["cat"], stdin=blob)
            results.append(r.stdout == blob and r.close == 1000)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(30)]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        t.equal(results, [True] * 30,
                "30 commands at once in 3 sandboxes, 300 kB each way")


def main():
    t = tap.Tap()
    t.run(order, members, handshake, breaks, accepted, errors, vanish, stop,
          pings, many)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
