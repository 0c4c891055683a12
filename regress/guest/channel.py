#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=240
"""guestd's end of the guest protocol against hosts that keep its rules, break
them, vanish and come back."""
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _guest
import gproto
import tap

QUIET_S = 0.4


def fresh(g):
    h = g.connect()
    h.connect()
    return h


def is_dead(h):
    """The guest neither answers nor says anything, until the next sync."""
    h.pump_for(QUIET_S)
    before = h.wire.bytes_in
    h.send(gproto.PING, 0, b"12345678")
    h.pump_for(QUIET_S)
    return h.wire.bytes_in == before


def ends(t, g, name, action):
    """After what action(host) does the connection is over; a sync mends it."""
    h = fresh(g)
    action(h)
    dead = is_dead(h)
    h.sync()
    h.version = None
    h.next_id = 1
    h.hello()
    t.ok(dead and h.run(["echo", "again"]).stdout == b"again\n",
        "%s: ends the connection, a sync brings it back" % name, dead)


def open_stream(h, start=True, argv=("sleep", "60"), flags=gproto.FLAG_STDIN):
    s = h.open()
    if start:
        s.args(gproto.exec_records(list(argv), flags=flags))
        s.start()
        s.wait_started()
    return s


def overdraw(h):
    s = open_stream(h)
    payload = bytes(gproto.PAYLOAD_MAX)
    for _ in range(20):
        h.send(gproto.DATA, s.id, payload)


def overdraw_empty(h):
    s = open_stream(h, start=False)
    for _ in range(gproto.WINDOW // gproto.FRAME_COST):
        h.send_raw(gproto.frame(gproto.ARGS, s.id))
    # Some of it has been given back by now; far more than that follows.
    h.send_raw(gproto.frame(gproto.ARGS, s.id, bytes(32768)) * 600)


def t_rules(t, g):
    f, send = gproto.frame, gproto.Host.send_raw
    ends(t, g, "DATA beyond credit", overdraw)
    ends(t, g, "ARGS beyond the bound of a stream", overdraw_empty_or_refused)
    ends(t, g, "an unknown type", lambda h: send(h, f(0x66)))
    ends(t, g, "a frame for hosts", lambda h: send(h, f(gproto.EXITED, 1,
        bytes(31))))
    ends(t, g, "no frame at all", lambda h: send(h, b"GET / HTTP/1.1\r\n\r\n"))
    ends(t, g, "a length of 4 GiB", lambda h: send(h, gproto.header(
        gproto.DATA, 1, 0, 0xffffffff)))
    ends(t, g, "HELLO twice", lambda h: h.send(gproto.HELLO, 0,
        gproto.HELLO_S.pack(1, 1, bytes(16), 0)))
    ends(t, g, "OPEN with an old id", lambda h: (h.send(gproto.OPEN, 9, b"\1"),
        h.send(gproto.OPEN, 9, b"\1")))
    ends(t, g, "a stream that was never opened", lambda h: h.send(
        gproto.START, 77))
    ends(t, g, "DATA before START", lambda h: (open_stream(h, False),
        h.send(gproto.DATA, 1, b"x")))
    ends(t, g, "ARGS after START", lambda h: (open_stream(h),
        h.send(gproto.ARGS, 1, b"x")))
    ends(t, g, "CREDIT of 0", lambda h: (open_stream(h),
        h.send(gproto.CREDIT, 1, bytes(4))))
    ends(t, g, "CREDIT without end", lambda h: (open_stream(h),
        h.send(gproto.CREDIT, 1, b"\xff" * 4),
        h.send(gproto.CREDIT, 1, b"\xff" * 4)))
    ends(t, g, "PING without reading the answers", flood)


def overdraw_empty_or_refused(h):
    try:
        overdraw_empty(h)
    except (OSError, TimeoutError):
        pass
    h.streams[1].done or h.pump_for(0.2)
    if h.streams[1].refused:
        # Over GP_ARGS_MAX first: then the rest is ignored, so overdraw anew.
        h.send_raw(gproto.frame(0x66))


def flood(h):
    """Without reading; the guest gives up rather than queue without bound."""
    block = gproto.frame(gproto.PING, 0, b"abcdefgh") * 2000
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            h.wire.sock.send(block)
        except BlockingIOError:
            time.sleep(0.01)
    # What was cut by the full socket.
    h.wire.sock.setblocking(True)
    h.wire.sock.settimeout(5)
    h.wire.sock.send(bytes(64))
    h.wire.sock.setblocking(False)
    while h.wire.read_some(QUIET_S):
        h.wire.at = len(h.wire.buf)


def t_refusals(t, g):
    h = fresh(g)
    h.send(gproto.OPEN, 1, b"\x09")
    s = gproto.Stream(h, 1)
    h.streams[1] = s
    h.next_id = 2
    try:
        s.wait(5)
        t.ok(False, "an unknown kind is refused")
    except gproto.Refused as e:
        t.equal((e.stage, e.errno), (gproto.STAGE_RECORDS, 95),
            "an unknown kind is refused")
    for name, data in (("records cut short", b"a\x05\0\0\0tr"),
            ("an unknown record", gproto.record("a", b"true") +
                gproto.record("Z", b"")),
            ("no ARGS", b"")):
        s = h.open()
        s.args(data)
        s.start()
        try:
            s.wait(5)
            t.ok(False, "%s: refused" % name)
        except gproto.Refused as e:
            t.equal(e.stage, gproto.STAGE_RECORDS, "%s: refused" % name)
    s = h.open()
    s.close()
    try:
        s.wait(5)
        t.ok(False, "CLOSE before START: refused")
    except gproto.Refused as e:
        t.equal(e.errno, 125, "CLOSE before START: refused, ECANCELED")
    # Frames that crossed with the end of their stream are no fault.
    for s in list(h.streams.values()):
        h.send(gproto.CREDIT, s.id, struct.pack("<I", 100))
        h.send(gproto.DATA, s.id, b"late")
        h.send(gproto.CLOSE, s.id)
    t.equal(h.run(["echo", "on"]).stdout, b"on\n",
        "late frames for ended streams are ignored")


def t_limits(t, g):
    h = fresh(g)
    streams = [h.exec(["sleep", "100"]) for _ in range(257)]
    codes = []
    for s in streams:
        try:
            s.wait_started(30)
        except gproto.Refused as e:
            codes.append((e.stage, e.errno))
    t.equal(codes, [(gproto.STAGE_RESOURCES, 11)],
        "256 streams, the next is refused with EAGAIN")
    for s in streams[:256]:
        s.close()
    for s in streams[:256]:
        s.wait(30)
    t.equal(h.run(["echo", "room"]).stdout, b"room\n", "and then there is room")


def t_args_budget(t, g):
    h = fresh(g)
    part = gproto.exec_records(["true"] + ["y" * 50000] * 5)[:-100]
    opened = [h.open() for _ in range(250)]
    for s in opened:
        s.args(part)
    h.pump_for(1.0)
    refused = [s.refused for s in opened if s.refused]
    rss = g.rss_kib()
    with open("/proc/meminfo") as f:
        budget = max(int(f.readline().split()[1]) // 8, 4096)
    t.ok(rss < budget * 2 + 8192, "250 half-told commands: %d KiB, %d refused"
        % (rss, len(refused)), rss)
    t.equal(set(refused) - {(gproto.STAGE_RESOURCES, 11)}, set(),
        "what is beyond the budget is refused with EAGAIN")
    for s in opened:
        if not s.refused:
            s.close()
    h.pump_until(lambda: all(s.done for s in opened), 20)
    r = h.run(["sh", "-c", "echo $#", "sh"] + ["z" * 50000] * 30, timeout=20)
    t.equal(r.stdout, b"30\n", "a large one passes afterwards")


def t_resync(t, g):
    """The host vanishes at every byte of a frame; the next one is served."""
    data = gproto.frame(gproto.OPEN, 50, b"\1") + gproto.frame(gproto.ARGS, 50,
        gproto.exec_records(["cat"], flags=gproto.FLAG_STDIN)) + \
        gproto.frame(gproto.START, 50) + gproto.frame(gproto.DATA, 50,
        b"q" * 40)
    bad = 0
    for cut in range(0, len(data), 3):
        h = fresh(g)
        h.send_raw(data[:cut])
        h = fresh(g)
        bad += h.run(["echo", str(cut)]).stdout != b"%d\n" % cut
    t.equal(bad, 0, "a host that vanishes in a frame, at any byte")
    h = fresh(g)
    bad = 0
    for cut in range(0, 32):
        h.send_raw(data[:cut] + (gproto.MAGIC + b"n" * 16)[:cut])
        h.connect()
        bad += h.run(["echo", str(cut)]).stdout != b"%d\n" % cut
    t.equal(bad, 0, "a sync record cut at any byte, then another")
    h.send_raw(random.Random(1).randbytes(300000))
    h.connect()
    t.equal(h.run(["echo", "x"]).stdout, b"x\n", "300,000 random bytes first")


def t_lost_streams(t, g):
    h = fresh(g)
    mark = "/tmp/guestd-test-%d" % os.getpid()
    s = h.exec(["sh", "-c", "cat > %s; sleep 400" % mark], stdin=True)
    s.wait_started()
    s.write(b"before\n")
    pid = s.pid
    s2 = h.exec(["head", "-c", "100000000", "/dev/zero"], auto_credit=False)
    s2.wait_started()
    time.sleep(0.2)
    # Cut within a DATA frame that lacks 40 bytes: the sync must not be them.
    h.send_raw(gproto.header(gproto.DATA, s.id, 0, 60) +
        b"0123456789012345678\n")
    h = fresh(g)
    end = time.monotonic() + 5
    while os.path.exists("/proc/%d" % pid) and time.monotonic() < end:
        time.sleep(0.02)
    t.ok(not os.path.exists("/proc/%d" % pid),
        "a new connection kills what the old one ran")
    with open(mark, "rb") as f:
        t.equal(f.read(), b"before\n",
            "the sync record has not become a command's input")
    os.unlink(mark)
    t.equal(h.run(["echo", "1"]).stdout, b"1\n", "stream 1 again")
    t.equal([f for f in h.streams.values() if f.id != 1], [],
        "nothing of the old connection comes up")


def t_ping(t, g):
    h = fresh(g)
    t.ok(h.ping(b"8 bytes!") < 1, "PING is answered with its bytes")
    t.ok(h.uptime_ms > 0 and h.boot_id != bytes(16), "HELLO: uptime, boot id")
    with open("/proc/sys/kernel/random/boot_id") as f:
        t.equal(h.boot_id.hex(), f.read().strip().replace("-", ""),
            "HELLO: the kernel's boot id")
    t.equal(h.config(hostname="a", dns=["10.0.0.1"]), (0, ""), "CONFIG twice")
    for name, raw in (("an unknown record", gproto.record("Z", b"")),
            ("a bad address", gproto.record("a", b"10.0.0.300/30")),
            ("no prefix", gproto.record("a", b"10.0.0.3")),
            ("a bad MAC", gproto.record("m", b"02:53:00:00:00:zz")),
            ("a newline in the hostname", gproto.record("h", b"a\nb")),
            ("four resolvers", gproto.record("d", b"10.0.0.1") * 4),
            ("records cut short", b"h\x09")):
        h.config_done = None
        h.send(gproto.CONFIG, 0, raw)
        h.pump_until(lambda: h.config_done is not None)
        t.ok(h.config_done[0] == 22 and h.config_done[1],
            "CONFIG with %s: EINVAL and why" % name, h.config_done)
    h.sync()
    h.version = None
    h.hello(5, 9)
    t.equal(h.version, 1, "a host from the future is told our version")


def t_manual(t, g):
    """guest-protocol(7)'s example, as it is printed there."""
    page = os.path.join(_guest.ROOT, "man", "guest-protocol.7")
    with open(page) as f:
        text = f.read().split(".Bd -literal", 1)[1].split(".Ed")[0]
    h = g.connect()
    h.send_raw(bytes.fromhex("".join(text.split("\n", 1)[1].split())))
    t.equal(h.wire.read_some(5) and h.wire.find_sync(), b"0123456789abcdef",
        "manual: its sync record is answered")
    s = gproto.Stream(h, 1)
    h.streams[1] = s
    r = s.wait(10)
    t.ok(r.code == 0 and h.version == 1 and s.events == ["STARTED", "EOF",
        "EOF", "EXITED"], "manual: its command runs", (r, s.events))


def t_fair(t, g):
    h = fresh(g)
    streams = [h.exec(["sh", "-c", "exec cat /dev/zero"], keep=False)
        for _ in range(8)]
    h.pump_for(1.5)
    got = [s.received[gproto.STDOUT] for s in streams]
    t.ok(min(got) * 4 > max(got), "eight endless writers share the channel",
        got)
    start = time.monotonic()
    t.equal(h.run(["echo", "hi"]).stdout, b"hi\n", "a ninth command")
    t.ok(time.monotonic() - start < 2, "answers beside them")
    for s in streams:
        s.close()
    for s in streams:
        s.wait(10)


def main():
    t = tap.Tap()
    if os.geteuid() != 0:
        t.skip("channel", "needs root for setuid in commands")
        sys.exit(t.done())
    with _guest.Guestd(listen=True) as g:
        fresh(g).run(["true"])
        time.sleep(0.2)
        fds = g.open_fds()
        t.run(*[lambda t, f=f: f(t, g) for f in (t_ping, t_rules, t_refusals,
            t_limits, t_args_budget, t_resync, t_lost_streams, t_manual,
            t_fair)])
        fresh(g).run(["true"])
        time.sleep(0.3)
        t.equal(g.open_fds(), fds, "no descriptor has leaked")
    t.ok("Sanitizer" not in g.err and "runtime error" not in g.err,
        "no sanitizer's finding", g.err[-3000:])
    sys.exit(t.done())


main()
