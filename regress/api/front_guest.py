#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Hostile guests against a real front: whatever one of them does, its own channel
ends with a cause, and the other sandbox goes on at once."""
import os
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import front
import gproto
import tap

GROWTH_KIB = 4096 if os.environ.get("SAN") != "1" else 65536


def config(t):
    with front.Front() as f:
        box = f.add_box()
        got = {}
        for tag, data in box.guest.configs[0]:
            got.setdefault(tag, []).append(data)
        t.equal([got[x] for x in "hagmMd"],
                [[b"box"], [b"10.9.0.2/30"], [b"10.9.0.1"],
                 [b"02:53:0a:09:00:02"], [struct.pack("<H", 1500)],
                 [b"1.1.1.1", b"9.9.9.9"]],
                "config: name, address, gateway, MAC, MTU, resolvers")
        drift = struct.unpack("<Q", got["t"][0])[0] / 1e9 - time.time()
        t.ok(abs(drift) < 2, "config: the host's time", drift)
        t.ok(len(got["r"][0]) == 64 and len(set(got["r"][0])) > 20,
             "config: 64 bytes of entropy")
        t.ok(len(got["i"][0]) == 32 and int(got["i"][0], 16),
             "config: a machine id of 32 hex digits", got["i"])
        other = f.add_box()
        again = dict(other.guest.configs[0])
        t.ok(again["i"] != got["i"][0] and again["r"] != got["r"][0],
             "config: another sandbox, another machine id, other entropy")
        f.connect(box)
        again = dict(box.guest.configs[0])
        t.ok(again["i"] == got["i"][0] and again["r"] != got["r"][0],
             "config: reconnected -> the same machine id, fresh entropy")
        m = f.of(box, "FRONT_GUEST_READY_EVENT")[-1]
        t.equal(m["generation"], box.generation, "ready: with its generation")


def handshakes(t):
    """Guests that never become ready."""
    with front.Front() as f:
        good = f.add_box()
        for misbehave, error, text in (
                ("never", "guest_timeout", "within 600 ms"),
                ("wrong-nonce", "guest_timeout", "did not answer"),
                ("garbage", "guest_timeout", "did not answer"),
                ("no-hello", "guest_timeout", "did not finish"),
                ("no-config-done", "guest_timeout", "did not finish"),
                ("version", "guest_protocol", "version 8"),
                ("config-fails", "start_failed", "told to fail"),
                ("close-hello", "guest_lost", "ended")):
            box = f.add_box(misbehave=misbehave, deadline_ms=600)
            t.equal(f.api.exec(good.id, ["echo", "x"])["stdout"], "x\n",
                    "%s: the other sandbox works" % misbehave)
            m = f.lost(box, 3)
            t.ok(m is not None and m["error"] == front.E[error] and
                 text in m["detail"] and m["generation"] == box.generation,
                 "%s -> lost, %s" % (misbehave, error), m)
        box = f.add_box(misbehave="late", deadline_ms=8000)
        t.ok(front.eventually(
            lambda: f.of(box, "FRONT_GUEST_READY_EVENT"), 6),
            "late, but within the deadline -> ready")
        t.equal(f.api.exec(box.id, ["echo", "x"])["stdout"], "x\n",
                "and it works")


def raw(f, first=b"", after=b"", sync=True):
    """A guest that is only bytes: answers the sync, then sends these."""
    box = f.add_box(guest=False, deadline_ms=1500)
    got = b""
    while len(got) < 32:
        got += box.sock.recv(65536)
    box.sock.sendall(first)
    if sync:
        box.sock.sendall(got[:32])
    try:
        box.sock.sendall(after)
    except OSError:
        pass
    return box


def first_frames(t):
    hello = gproto.frame(gproto.HELLO, 0, gproto.HELLO_S.pack(
        1, 1, bytes(16), 5))
    done = gproto.frame(gproto.CONFIG_DONE, 0, bytes(4))
    pong = gproto.frame(gproto.PONG, 0, bytes(8))
    with front.Front() as f:
        for name, after in (
                ("a PING before HELLO", gproto.frame(gproto.PING, 0,
                                                     bytes(8))),
                ("CONFIG_DONE before HELLO", done),
                ("HELLO twice", hello + hello),
                ("CONFIG_DONE twice", hello + done + done),
                ("a PONG that nobody asked for", hello + done + pong),
                ("HELLO of version 0", gproto.frame(
                    gproto.HELLO, 0, gproto.HELLO_S.pack(0, 0, bytes(16),
                                                         0))),
                ("HELLO too short", gproto.header(gproto.HELLO, 0, 0, 27)),
                ("a frame of 2 GiB", gproto.header(gproto.DATA, 1, 1,
                                                   0x7fffffff)),
                ("a stream's frame before ready", hello +
                 gproto.frame(gproto.DATA, 1, b"x", 1)),
                ("an unknown type", hello + gproto.frame(0x66)),
                ("no frame", hello + b"GET / HTTP/1.1\r\n\r\n")):
            box = raw(f, after=after)
            m = f.lost(box, 3)
            t.ok(m is not None and m["error"] == front.E["guest_protocol"],
                 "%s -> guest_protocol" % name, m)
        box = raw(f, first=gproto.MAGIC * 1000 + os.urandom(100000) +
                  gproto.MAGIC[:9], after=hello + done)
        t.ok(front.eventually(lambda: f.of(box, "FRONT_GUEST_READY_EVENT")),
             "noise before the sync record is skipped")
        t.ok(f.alive(), "front lives")


def streams(t):
    """Guests that misbehave when a command is started."""
    for misbehave, error in (
            ("malformed", "guest_protocol"), ("type", "guest_protocol"),
            ("direction", "guest_protocol"), ("oversized", "guest_protocol"),
            ("short-exited", "guest_protocol"),
            ("bad-exited", "guest_protocol"), ("stream", "guest_protocol"),
            ("before-started", "guest_protocol"),
            ("channel", "guest_protocol"), ("credit", "guest_protocol"),
            ("empty", "guest_protocol"), ("grant", "guest_protocol"),
            ("pings", "guest_protocol"), ("close", "guest_lost")):
        with front.Front() as f:
            good = f.add_box()
            box = f.add_box()
            f.connect(box, misbehave=misbehave)
            front.eventually(lambda: len(f.of(
                box, "FRONT_GUEST_READY_EVENT")) == 2)
            before = f.rss_kib()
            ws = f.api.command(box.id, ["x"])
            r = ws.collect()
            m = f.lost(box)
            t.ok(r.error is not None and r.error["code"] == error and
                 r.close == 4002 and m["error"] == front.E[error],
                 "%s -> %s, close 4002" % (misbehave, error),
                 (r.events[-1:], r.close, m))
            t.equal(f.api.exec(good.id, ["echo", "x"])["stdout"], "x\n",
                    "%s: the other sandbox works" % misbehave)
            t.ok(f.rss_kib() - before < GROWTH_KIB, "%s: no growth" %
                 misbehave, (before, f.rss_kib()))
            ws.close()


def after_exit(t):
    for misbehave in ("twice", "after-exit"):
        with front.Front() as f:
            box = f.add_box()
            f.connect(box, misbehave=misbehave)
            front.eventually(lambda: len(f.of(
                box, "FRONT_GUEST_READY_EVENT")) == 2)
            r = f.api.run(box.id, ["x"])
            t.equal((r.exit_code, r.close), (0, 1000),
                    "%s: the command itself has ended well" % misbehave)
            t.equal(f.lost(box)["error"], front.E["guest_protocol"],
                    "%s -> guest_protocol" % misbehave)


def orders(t):
    """Frames of a stream where they may not be, one connection each."""
    start = struct.pack("<I", 7)
    exited = gproto.EXITED_S.pack(0, 0, 0, 0, 1, 0, 0)
    cases = (
        ("STARTED twice", lambda s: [(gproto.STARTED, start, 0)] * 2),
        ("EXITED before STARTED", lambda s: [(gproto.EXITED, exited, 0)]),
        ("REFUSED after STARTED", lambda s: [
            (gproto.STARTED, start, 0),
            (gproto.REFUSED, struct.pack("<BI", 4, 2), 0)]),
        ("REFUSED at stage 0", lambda s: [
            (gproto.REFUSED, struct.pack("<BI", 0, 2), 0)]),
        ("REFUSED at stage 6", lambda s: [
            (gproto.REFUSED, struct.pack("<BI", 6, 2), 0)]),
        ("EOF before STARTED", lambda s: [(gproto.EOF, b"", 1)]),
        ("EOF twice", lambda s: [(gproto.STARTED, start, 0),
                                 (gproto.EOF, b"", 1), (gproto.EOF, b"", 1)]),
        ("output after its EOF", lambda s: [
            (gproto.STARTED, start, 0), (gproto.EOF, b"", 1),
            (gproto.DATA, b"x", 1)]),
        ("CREDIT of 0", lambda s: [(gproto.CREDIT, bytes(4), 0)]),
        ("CREDIT over the window", lambda s: [
            (gproto.CREDIT, struct.pack("<I", 262145), 0)]),
        ("killed by signal 0", lambda s: [
            (gproto.STARTED, start, 0),
            (gproto.EXITED, gproto.EXITED_S.pack(1, 0, 0, 0, 1, 0, 0), 0)]),
        ("killed by signal 65", lambda s: [
            (gproto.STARTED, start, 0),
            (gproto.EXITED, gproto.EXITED_S.pack(1, 0, 0, 65, 1, 0, 0), 0)]),
    )
    with front.Front() as f:
        for name, frames in cases:
            def command(s, frames=frames):
                for ftype, payload, flags in frames(s):
                    s.guest.send(ftype, s.id, payload, flags)
            box = f.add_box(command=command)
            r = f.api.run(box.id, ["x"])
            m = f.lost(box, 5)
            t.ok(m is not None and m["error"] == front.E["guest_protocol"]
                 and r.close == 4002, "%s -> guest_protocol" % name,
                 (m, r.events))

        def eofs(s):
            s.begin()
            s.output(b"x")
            s.guest.send(gproto.EOF, s.id, b"", 1)
            s.guest.send(gproto.EOF, s.id, b"", 2)
            s.exit(0)
        box = f.add_box(command=eofs)
        r = f.api.run(box.id, ["x"])
        t.equal((r.stdout, r.close), (b"x", 1000), "EOF of both is as it "
                "should be")


def endless(t):
    """Output without end: for who reads it, for who does not, for nobody."""
    with front.Front() as f:
        good = f.add_box()
        box = f.add_box()
        f.connect(box, misbehave="endless")
        front.eventually(lambda: len(f.of(
            box, "FRONT_GUEST_READY_EVENT")) == 2)
        before = f.rss_kib()
        silent = f.api.command(box.id, ["x"])
        reading = f.api.command(box.id, ["x"])
        time.sleep(1)
        worst = 0
        for _ in range(20):
            began = time.monotonic()
            f.api.exec(good.id, ["echo", "x"])
            worst = max(worst, time.monotonic() - began)
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                reading.recv()
        t.ok(worst < 1.0, "endless output of one sandbox, the other answers",
             worst)
        t.ok(f.rss_kib() - before < GROWTH_KIB, "and nothing grows",
             (before, f.rss_kib()))
        r = f.api.request("POST", "/sandboxes/%s/exec" % good.id,
                          data={"argv": ["zero", str(20 << 20)]}).json()
        t.ok(r["stdout_bytes"] == 20 << 20 and r["stdout_truncated"],
             "20 MiB into a JSON answer is cut, not kept")
        silent.close()
        reading.close()
        t.ok(front.eventually(lambda: box.guest.log.count("CLOSE") == 2),
             "both are killed when their clients have gone")
        f.forget()
        time.sleep(0.5)
        t.ok(f.alive() and f.api.health()["status"] == "ok", "front lives")


def deaf(t):
    """A guest that does not read: nothing waits for it but its own clients."""
    with front.Front() as f:
        good = f.add_box()
        stop = threading.Event()

        class Deaf(gproto.Guest):
            def _stream_frame(self, s, frame):
                super()._stream_frame(s, frame)
                if frame.type == gproto.START:
                    stop.wait(20)

        box = f.add_box(guest=False)
        box.guest = Deaf(box.sock)
        box.guest.serve_thread()
        front.eventually(lambda: f.of(box, "FRONT_GUEST_READY_EVENT"))
        before = f.rss_kib()
        ws = f.api.command(box.id, ["cat"])
        ws.wait_for("process_started")
        ws.sock.settimeout(1.0)
        sent = 0
        try:
            while sent < 64 << 20:
                ws.stdin(bytes(65536))
                sent += 65536
        except TimeoutError:
            pass
        t.ok(sent < 4 << 20, "stdin that the guest does not take is not taken "
             "from the client", sent)
        t.ok(f.rss_kib() - before < GROWTH_KIB, "and nothing grows",
             (before, f.rss_kib()))
        t.equal(f.api.exec(good.id, ["echo", "x"])["stdout"], "x\n",
                "the other sandbox works")
        sent, ws2 = 0, f.api.websocket(box.id)
        ws.close()
        d = f.seen("FRONT_DETACH_STREAM", 2)
        t.equal(d[-1]["reason"], 1, "its client can still vanish")
        stop.set()
        ws2.close()


def too_many(t):
    with front.Front() as f:
        box = f.add_box(command=lambda s: s.begin())
        clients = []
        for i in range(200):
            ws = f.api.command(box.id, ["x"])
            clients.append(ws)
        clients[-1].wait_for("process_started")
        t.ok(True, "200 commands at once in one sandbox")
        for ws in clients:
            ws.close()
        t.ok(front.eventually(lambda: box.guest.log.count("CLOSE") == 200),
             "all are killed when their clients go")
        results = []
        for _ in range(60):
            ws = f.api.command(box.id, ["x"])
            r = ws.wait_for if len(results) < 56 else ws.collect
            if len(results) < 56:
                r("process_started")
                results.append("started")
            else:
                results.append(r().error["code"])
            clients.append(ws)
        t.equal(results[55:], ["started"] + ["no_capacity"] * 4,
                "a guest that never ends them gets no 257th")
        for ws in clients:
            ws.close()


def replaced(t):
    with front.Front() as f:
        box = f.add_box()
        ws = f.api.command(box.id, ["sleep", "60"])
        ws.wait_for("process_started")
        f.connect(box)
        r = ws.collect()
        t.ok(r.error["code"] == "guest_lost" and r.close == 4002,
             "a new channel ends the old one's streams", (r.events, r.close))
        t.equal(f.api.exec(box.id, ["echo", "x"])["stdout"], "x\n",
                "and serves new ones")
        f.send("PARENT_CLOSE_CHANNEL", id=box.id, generation=999,
               error=front.E["sandbox_gone"])
        t.equal(f.api.exec(box.id, ["echo", "x"])["stdout"], "x\n",
                "a close for another generation is not meant")
        fds = f.fds()
        for _ in range(20):
            f.connect(box)
        f.close_channel(box, "sandbox_gone")
        t.ok(front.eventually(lambda: f.fds() <= fds),
             "descriptors are given back", (fds, f.fds()))


def main():
    t = tap.Tap()
    t.run(config, handshakes, first_frames, streams, after_exit, orders,
          endless, deaf, too_many, replaced)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
