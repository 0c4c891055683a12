#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=300
"""Back-pressure and limits of a real front, parent and guests played by the test:
memory stays flat, nobody waits for somebody else."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import api
import front
import gproto
import tap

MIB = 1 << 20
GROWTH_KIB = 4096 if os.environ.get("SAN") != "1" else 65536


def flood(total):
    def command(s):
        s.begin()
        blob, left = bytes(32768), total
        while left > 0 and s.output(blob[:min(left, 32768)]):
            left -= 32768
        s.exit(9 if left > 0 else 0, signaled=1 if left > 0 else 0)
    return command


class Peak:
    """The largest RSS of front while this is open."""

    def __init__(self, f):
        self.f, self.first, self.peak = f, f.rss_kib(), 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self.stop.wait(0.02):
            self.peak = max(self.peak, self.f.rss_kib())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    @property
    def growth(self):
        return self.peak - self.first


def websocket_volume(t):
    with front.Front() as f:
        box = f.add_box(command=flood(256 * MIB))
        with Peak(f) as p:
            began = time.monotonic()
            ws = f.api.command(box.id, ["x"], stdin=False)
            n, step = 0, 0
            while True:
                op, data = ws.recv()
                if op == api.CLOSE:
                    break
                if op == api.BINARY:
                    n += len(data) - 1
                    if n > step:
                        step += 8 * MIB
                        time.sleep(0.05)
            took = time.monotonic() - began
        ws.close()
        t.ok(n == 256 * MIB and data[0] == 1000,
             "256 MiB to a reader that pauses (%.0f MB/s)" % (
                 n / took / 1e6), (n, data))
        t.ok(p.growth <= GROWTH_KIB, "memory stays flat (%+d KiB)" % p.growth,
             (p.first, p.peak))


def stopped_reader(t):
    with front.Front() as f:
        good = f.add_box()
        box = f.add_box(command=flood(64 * MIB))
        with Peak(f) as p:
            ws = f.api.command(box.id, ["x"], stdin=False)
            c = api.Conn(f.path)
            c.send_request("POST", "/sandboxes/%s/exec" % box.id,
                           data={"argv": ["x"]},
                           headers={"Accept": "application/x-ndjson"})
            cpu = f.cpu_s()
            began = time.monotonic()
            worst = 0
            while time.monotonic() - began < 10:
                one = time.monotonic()
                f.api.exec(good.id, ["echo", "x"])
                worst = max(worst, time.monotonic() - one)
                time.sleep(0.2)
            cpu = f.cpu_s() - cpu
        t.ok(p.growth <= GROWTH_KIB, "two readers that stop for 10 s: memory "
             "stays flat (%+d KiB)" % p.growth, (p.first, p.peak))
        t.ok(worst < 1.0, "meanwhile another sandbox answers", worst)
        t.ok(cpu < 1.0, "and front does not spin (%.2f s of CPU)" % cpu, cpu)
        r = ws.collect()
        t.ok(len(r.stdout) == 64 * MIB and r.close == 1000,
             "the WebSocket then gets all 64 MiB", (len(r.stdout), r.close))
        ws.close()
        n, last = 0, b""
        c.read_head()
        for piece in c.chunks():
            n += piece.count(b"\\u0000")
            last = piece
        t.ok(n == 64 * MIB and b"process_exited" in last,
             "and so do the lines of the POST", (n, last[:100]))
        c.close()


def ten_streams(t):
    with front.Front() as f:
        boxes = [f.add_box(command=flood(16 * MIB)) for _ in range(5)]
        results = []

        def one(i):
            r = f.api.run(boxes[i % 5].id, ["x"])
            results.append((len(r.stdout), r.exit_code, r.close))
        with Peak(f) as p:
            threads = [threading.Thread(target=one, args=(i,))
                       for i in range(10)]
            for x in threads:
                x.start()
            for x in threads:
                x.join()
        t.equal(results, [(16 * MIB, 0, 1000)] * 10,
                "10 streams at once, 16 MiB each")
        t.ok(p.growth <= 3 * GROWTH_KIB, "memory is bounded by their windows "
             "(%+d KiB)" % p.growth, (p.first, p.peak))


def upload(t):
    with front.Front() as f:
        got = []

        def sink(s):
            s.begin()
            n = 0
            while not (s.stdin_eof and not s.stdin):
                s.wait_for(lambda: s.stdin or s.stdin_eof)
                with s.cond:
                    k, s.stdin = len(s.stdin), bytearray()
                n += k
                if k:
                    time.sleep(0.002)
                    s.guest.send(gproto.CREDIT, s.id,
                                 (k + 16 * (k // 32768 + (k % 32768 > 0))).to_bytes(4, "little"))
            got.append(n)
            s.exit(0)
        box = f.add_box(command=sink)
        with Peak(f) as p:
            ws = f.api.command(box.id, ["x"])
            ws.wait_for("process_started")
            for _ in range(64):
                ws.stdin(bytes(MIB // 2 * 2 - 1), piece=MIB)
            ws.close_stdin()
            r = ws.collect()
        ws.close()
        t.ok(got == [64 * (MIB - 1)] and r.close == 1000,
             "64 MiB through stdin, to a guest that is slow", (got, r.close,
                                                              r.error))
        t.ok(p.growth <= GROWTH_KIB, "memory stays flat (%+d KiB)" % p.growth,
             (p.first, p.peak))


def greedy_client(t):
    """Input that nobody asked for is not taken."""
    with front.Front() as f:
        box = f.add_box()
        f.on["FRONT_CREATE_SANDBOX"] = lambda m: None
        with Peak(f) as p:
            c = api.Conn(f.path, 1)
            c.send_request("POST", "/sandboxes", data={"template": "seed"})
            f.seen("FRONT_CREATE_SANDBOX")
            sent = 0
            try:
                while sent < 300 * MIB:
                    c.send(bytes(65536))
                    sent += 65536
            except TimeoutError:
                pass
            t.ok(sent < MIB, "bytes sent while a request is handled stay with "
                 "their sender", sent)
            c.close()
            t.ok(len(f.seen("FRONT_CANCEL_CREATE")) == 1,
                 "and the client's going is still seen")
            c = api.Conn(f.path, 1)
            sent = 0
            try:
                while sent < 30 * MIB:
                    c.send(b"GET /sandboxes HTTP/1.1\r\nHost: x\r\n\r\n" * 500)
                    sent += 500 * 39
            except (TimeoutError, BrokenPipeError):
                pass
            t.ok(sent < 10 * MIB, "a client that asks and does not read is "
                 "not listened to", sent)
            c.close()
        t.ok(p.growth <= GROWTH_KIB, "memory stays flat (%+d KiB)" % p.growth,
             (p.first, p.peak))
        t.equal(f.api.exec(box.id, ["echo", "x"])["stdout"], "x\n",
                "front goes on")


def pipelining(t):
    with front.Front() as f:
        box = f.add_box()
        with api.Conn(f.path) as c:
            one = c.request_bytes("GET", "/sandboxes/" + box.id)
            two = c.request_bytes("POST", "/sandboxes/%s/exec" % box.id,
                                  b'{"argv":["echo","two"]}')
            three = c.request_bytes("GET", "/nowhere")
            four = c.request_bytes("DELETE", "/sandboxes/" + box.id)
            five = c.request_bytes("HEAD", "/healthz")
            c.send(one + two + three + four + five + one)
            got = [c.read_response() for _ in range(4)]
            got.append(c.read_response("HEAD"))
            got.append(c.read_response())
            t.equal([r.status for r in got], [200, 200, 404, 204, 200, 404],
                    "six requests in one write, answered in their order")
            t.equal(got[1].json()["stdout"], "two\n", "each with its own "
                    "answer")
            for byte in one:
                c.send(bytes([byte]))
            t.equal(c.read_response().status, 404, "a request byte by byte")
        with api.Conn(f.path) as c:
            c.send(c.request_bytes("GET", "/healthz") * 1000)
            n = 0
            for _ in range(1000):
                n += c.read_response().status == 200
            t.equal(n, 1000, "1,000 requests in one write")
        with api.Conn(f.path) as c:
            c.send(c.request_bytes("GET", "/healthz") * 2)
            c.sock.shutdown(socket.SHUT_WR)
            got = [c.read_response().status for _ in range(2)]
            t.ok(got == [200, 200] and c.at_eof(), "two requests, then "
                 "half-closed -> two answers, then the end", got)
        with api.Conn(f.path) as c:
            c.send(b"GET /healthz HT")
            c.sock.shutdown(socket.SHUT_WR)
            r = c.read_response()
            t.ok(r.status == 400 and c.at_eof(),
                 "half-closed within a request -> 400", r.status)
        with api.Conn(f.path) as c:
            c.send(c.request_bytes("HEAD", "/healthz", b"x" * 40, {}) +
                   b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            r = c.read_head()
            t.ok(r.status == 413 and c.at_eof(), "HEAD with a body -> refused, "
                 "and nothing behind it is read as a request", r.status)


def early_refusals(t):
    with front.Front() as f:
        with api.Conn(f.path) as c:
            c.send(b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nExpect: "
                   b"100-continue\r\nContent-Length: 19\r\n\r\n")
            t.equal(c.read_head().status, 100, "Expect -> 100 Continue")
            c.send(b'{"template":"seed"}')
            t.equal(c.read_response().status, 201, "then the body is read")
        with api.Conn(f.path) as c:
            c.send(b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nExpect: "
                   b"100-continue\r\nContent-Length: 99999\r\n\r\n")
            t.equal(c.read_head().status, 413,
                    "Expect with a body too long -> 413 at once")
        with api.Conn(f.path) as c:
            try:
                c.send(b"POST /sandboxes HTTP/1.1\r\nHost: x\r\n"
                       b"Content-Length: 99999999\r\n\r\n" + bytes(5 * MIB))
            except BrokenPipeError:
                pass
            t.equal(c.read_response().status, 413,
                    "a client that sends on nevertheless can read its 413")


SHIM = """
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
int setrlimit(__rlimit_resource_t what, const struct rlimit *r)
{
	struct rlimit few = { %d, %d };
	return (int)syscall(SYS_prlimit64, 0, what,
	    what == RLIMIT_NOFILE ? &few : r, (void *)0);
}
"""


def few_descriptors(n):
    """A library that gives a process n descriptors, whatever it asks for."""
    folder = tempfile.mkdtemp(prefix="sbf.")
    path = os.path.join(folder, "shim.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, "-xc", "-"],
                   input=(SHIM % (n, n)).encode(), check=True)
    return folder, path


def descriptors(t):
    if GROWTH_KIB != 4096:
        return t.skip("no descriptors left", "a sanitizer goes first")
    folder, shim = few_descriptors(24)
    with front.Front(env={"LD_PRELOAD": shim}) as f:
        shutil.rmtree(folder)
        fds = f.fds()
        conns = [api.Conn(f.path, 5) for _ in range(40)]
        time.sleep(0.5)
        t.ok("no descriptors left" in f.peer.text(), "out of descriptors, and "
             "the log says so", f.peer.text())
        cpu, lines = f.cpu_s(), f.peer.text().count("\n")
        time.sleep(2)
        cpu = f.cpu_s() - cpu
        lines = f.peer.text().count("\n") - lines
        t.ok(cpu < 0.1 and lines <= 2, "no descriptors left: no spinning "
             "(%.2f s of CPU in 2 s), no flood of the log (%d lines)" % (
                 cpu, lines), (cpu, lines))
        for c in conns[:30]:
            c.close()
        began = time.monotonic()
        t.ok(f.api.request("GET", "/healthz").status in (200, 503) and
             time.monotonic() - began < 3, "descriptors again: accepted again")
        for c in conns[30:]:
            c.close()
        t.ok(front.eventually(lambda: f.fds() <= fds),
             "all are given back", (fds, f.fds()))
        t.equal(f.api.request("GET", "/healthz").status, 200, "as before")


def limits(t):
    with front.Front() as f:
        f.on["FRONT_IDENTIFY_CLIENT"] = lambda m: f.answer(
            m, "PARENT_IDENTIFY_OK", owner=1, uid=uid[0])
        uid = [1]
        conns = [api.Conn(f.path, 10) for _ in range(256)]
        for c in conns[::50]:
            t.equal(c.request("GET", "/healthz").status, 200,
                    "one of 256 connections of one uid is served")
        with api.Conn(f.path, 5) as c:
            r = c.read_response()
            t.ok(r.status == 429 and r.json()["code"] == "owner_limit" and
                 r.header("retry-after") == "1" and c.at_eof(),
                 "the 257th -> 429", (r.status, r.body))
        uid[0] = 2
        began = time.monotonic()
        t.equal(f.api.request("GET", "/healthz").status, 200,
                "another uid is served")
        t.ok(time.monotonic() - began < 0.5, "at once")
        for n in (3, 4, 5):
            uid[0] = n
            conns += [api.Conn(f.path, 10) for _ in range(256)]
            front.eventually(lambda: f.fds() >= len(conns))
        uid[0] = 6
        with api.Conn(f.path, 5) as c:
            r = c.read_response()
            t.ok(r.status == 503 and r.json()["code"] == "no_capacity",
                 "the 1,025th connection -> 503", (r.status, r.body))
        for c in conns:
            c.close()
        t.ok(front.eventually(lambda: f.fds() < 12), "all are given back",
             f.fds())


def leaks(t):
    with front.Front() as f:
        box = f.add_box()
        for _ in range(50):
            f.api.exec(box.id, ["echo", "x"])
        time.sleep(0.2)
        before, fds = f.rss_kib(), f.fds()
        with api.Conn(f.path) as c:
            for i in range(3000):
                c.request("GET", "/sandboxes/" + box.id)
                if i % 3 == 0:
                    c.request("GET", "/nowhere?x")
        for _ in range(300):
            f.api.exec(box.id, ["echo", "x"])
            f.api.run(box.id, ["echo", "x"])
        for _ in range(100):
            f.connect(box)
        t.ok(front.eventually(lambda: f.fds() == fds, 3),
             "4,000 requests, 600 commands, 100 channels: as many descriptors "
             "as before", (fds, f.fds()))
        t.ok(f.rss_kib() - before < (1024 if GROWTH_KIB == 4096 else 65536),
             "and as much memory", (before, f.rss_kib()))


def main():
    t = tap.Tap()
    t.run(websocket_volume, stopped_reader, ten_streams, upload,
          greedy_client, pipelining, early_refusals, descriptors, limits,
          leaks)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
