#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=180
"""sandboxctl against a server that lies, is malformed, huge, slow or dead, and
against names that hold terminal commands: it says so and ends, never hangs,
crashes or lets a control character through to the terminal."""
import json
import resource
import socket
import struct
import sys
import time

import fake_api
import tap

BOX = "sb-aaaaaaaaaaaaaaaa"
# What a terminal obeys: C0 but newline, DEL, C1 (also in UTF-8), bidi ...
EVIL = ("\x1b]0;owned\x07\x1b[2J\r\n\t\x9b31m\u202eabc\u2066\x7f\x00x"
        "\ufeff\u200f\x08\x0b").replace("\x00", "")


def controls(data):
    """Bytes that must not reach a terminal."""
    text = data.decode("utf-8")         # must be UTF-8 in the first place
    return [c for c in text if c != "\n" and (
        ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or
        c in "\u061c\u200e\u200f\u2028\u2029\ufeff" or
        "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069")]


def ends_badly(t, r, name, want=1):
    t.ok(r.returncode == want and r.stderr.startswith(b"sandboxctl: ") and
         not controls(r.stderr) and len(r.stderr) < 3000,
         "%s -> %d and a reason" % (name, want), r)


def check_http(t):
    ok = b'{"status":"ok"}'
    n = b"Content-Length: %d\r\n" % len(ok)
    good = b"HTTP/1.1 200 OK\r\n" + n + b"\r\n" + ok
    cases = {
        "nothing at all": b"",
        "half a status line": b"HTTP/1.",
        "head without end": b"HTTP/1.1 200 OK\r\n" + n,
        "body cut short": good[:-3],
        "HTTP/1.0": good.replace(b"1.1", b"1.0"),
        "HTTP/2": good.replace(b"HTTP/1.1", b"HTTP/2"),
        "status 99": good.replace(b"200", b"099"),
        "status of two digits": good.replace(b"200", b"20"),
        "status of four digits": good.replace(b"200", b"2000"),
        "status with a sign": good.replace(b"200", b"+20"),
        "bare LF": good.replace(b"\r\n", b"\n"),
        "NUL in the head": good.replace(b"OK", b"O\0K"),
        "folded field": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n" + n + b"\r\n" + ok,
        "field without colon": good.replace(b"Content", b"x\r\nContent"),
        "blank before the colon": good.replace(b"Length:", b"Length :"),
        "two lengths": good.replace(n, n + n),
        "length with a sign": good.replace(b"Length: ", b"Length: +"),
        "negative length": good.replace(b"Length: ", b"Length: -"),
        "length of 30 digits": good.replace(b"Length: ", b"Length: " +
                                            b"9" * 29),
        "length over the bound": b"HTTP/1.1 200 OK\r\nContent-Length: "
                                 b"999999999\r\n\r\n{",
        "length and chunks": good.replace(n, n +
                                          b"Transfer-Encoding: chunked\r\n"),
        "other transfer coding": good.replace(
            n, b"Transfer-Encoding: gzip, chunked\r\n"),
        "neither length nor chunks": good.replace(n, b""),
        "chunk size that is none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                                   b"chunked\r\n\r\nzz\r\n",
        "chunk size of 20 digits": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                                   b"chunked\r\n\r\n" + b"f" * 20 + b"\r\n",
        "chunk longer than it says": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                                     b"chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n",
        "chunks without end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                              b"chunked\r\n\r\n2\r\n{}\r\n",
        "status line of 1 MB": b"HTTP/1.1 200 " + b"x" * 1000000,
        "5,000 fields": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 5000,
        "only informational": b"HTTP/1.1 103 Early\r\n\r\n" * 1000,
        "101 for a plain request": b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n"
                                   b"Connection: Upgrade\r\n\r\n",
        "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    }
    with fake_api.FakeApi() as api:
        api.answers["GET /healthz"] = good
        t.equal(api.ctl("health").stdout, b"status: ok\n",
                "HTTP: the good answer that the others are made from")
        api.answers["GET /healthz"] = (
            b"HTTP/1.1 200\r\ntransfer-encoding: Chunked\r\n\r\n5;x=y\r\n"
            b'{"sta\r\nA\r\ntus":"ok"}\r\n0\r\n\r\n')
        t.equal(api.ctl("health").stdout, b"status: ok\n", "HTTP: chunks")
        api.answers["GET /healthz"] = b"HTTP/1.1 100 C\r\n\r\n" + good
        t.equal(api.ctl("health").returncode, 0, "HTTP: 100 before it")
        for name, raw in cases.items():
            api.answers["GET /healthz"] = raw
            ends_badly(t, api.ctl("health"), "HTTP: " + name)


def check_json(t):
    with fake_api.FakeApi() as api:
        for name, body in (
                ("empty", b""), ("not JSON", b"<html>"), ("cut", b'{"a":'),
                ("an array", b"[1]"), ("null", b"null"),
                ("a key twice", b'{"a":1,"a":2}'),
                ("not UTF-8", b'{"a":"\xff"}'), ("NUL", b'{"a":"\\u0000"}'),
                ("deep", b'{"a":' + b"[" * 5000),
                ("trailing text", b"{}x"),
                ("14 MB of values", b'{"a":[' + b"1," * 7000000 + b"1]}")):
            api.answers["GET /v1/sandboxes"] = fake_api.reply(200, body)
            ends_badly(t, api.ctl("ls"), "JSON: " + name)
        for name, page in (
                ("no list", {}), ("list is text", {"sandboxes": "x"}),
                ("element is a number", {"sandboxes": [1]}),
                ("id is missing", {"sandboxes": [{}]}),
                ("id is no id", {"sandboxes": [{"sandbox_id": "../../x"}]}),
                ("id is a number", {"sandboxes": [{"sandbox_id": 5}]}),
                ("cursor that is no id", {"sandboxes": [], "next": "&x=y"}),
                ("cursor without end", {"sandboxes": [{"sandbox_id": BOX}],
                                        "next": BOX}),
                ("empty page with cursor", {"sandboxes": [], "next": BOX})):
            api.answers["GET /v1/sandboxes"] = fake_api.found(page)
            ends_badly(t, api.ctl("ls"), "list: " + name)
        for name, answer in (("no id", {}), ("id is no id",
                                             {"sandbox_id": "sb-../"})):
            api.answers["POST /v1/sandboxes"] = fake_api.found(answer, 201)
            ends_badly(t, api.ctl("create"), "create: " + name)
            ends_badly(t, api.ctl("run", "seed", "--", "x"), "run: " + name,
                       125)
        for name, raw in (("no body", fake_api.reply(500)),
                          ("body is no JSON", fake_api.reply(500, b"oops")),
                          ("title is a number", fake_api.reply(
                              500, b'{"title":5,"detail":{}}')),
                          ("detail of 1 MB", fake_api.problem(
                              500, "x", "T", "d" * 1000000))):
            api.answers["POST /v1/sandboxes"] = raw
            ends_badly(t, api.ctl("create"), "problem: " + name)


def check_terminal(t):
    with fake_api.FakeApi() as api:
        api.add(BOX, name=EVIL, template=EVIL, state=EVIL,
                created_at=EVIL, detail=EVIL, metadata={EVIL: EVIL})
        for args in (["ls"], ["show", BOX], ["--json", "ls"],
                     ["--json", "show", BOX]):
            r = api.ctl(*args)
            t.ok(r.returncode == 0 and not controls(r.stdout) and
                 b"owned" in r.stdout, "escapes: %s -> none on stdout" %
                 " ".join(args), r.stdout)
        t.equal(json.loads(api.ctl("--json", "show", BOX).stdout),
                api.boxes[BOX], "escapes: --json still says the same")
        api.add("sb-bbbbbbbbbbbbbbbb", name="sb")
        r = api.ctl("show", "sb-")
        ends_badly(t, r, "escapes: among candidates")
        api.answers["DELETE /v1/sandboxes/" + BOX] = fake_api.problem(
            409, EVIL, EVIL, EVIL)
        ends_badly(t, api.ctl("rm", BOX), "escapes: in a problem")
        ends_badly(t, api.ctl("create", "-s", "/" + EVIL),
                   "escapes: in our own words")

        def raw(s):
            s.event("error", code=EVIL, detail=EVIL)
            s.end(4000, EVIL.encode()[:40])

        api.raw_stream = raw
        ends_badly(t, api.ctl("exec", BOX, "--", "x"), "escapes: in an event",
                   125)
        api.raw_stream = lambda s: s.end(4000, "\x1b[2J".encode())
        ends_badly(t, api.ctl("exec", BOX, "--", "x"),
                   "escapes: in a close reason", 125)


def check_upgrade(t):
    ok = {"Upgrade": "websocket", "Connection": "Upgrade",
          "Sec-WebSocket-Protocol": "sandbox.v1",
          "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="}
    with fake_api.FakeApi() as api:
        api.add(BOX)
        for name, change in (
                ("accept for another key", {}),
                ("no accept", {"Sec-WebSocket-Accept": None}),
                ("no upgrade", {"Upgrade": None}),
                ("other upgrade", {"Upgrade": "h2c"}),
                ("other protocol", {"Sec-WebSocket-Protocol": "other"}),
                ("extension", {"Sec-WebSocket-Extensions":
                               "permessage-deflate"})):
            fields = {k: v for k, v in {**ok, **change}.items()
                      if v is not None}
            api.answers["GET /v1/sandboxes/%s/command" % BOX] = (
                "HTTP/1.1 101 X\r\n" + "".join(
                    "%s: %s\r\n" % f for f in fields.items()) +
                "\r\n").encode()
            ends_badly(t, api.ctl("exec", BOX, "--", "x"),
                       "upgrade: " + name, 125)
        api.answers["GET /v1/sandboxes/%s/command" % BOX] = \
            fake_api.found({"a": 1})
        ends_badly(t, api.ctl("exec", BOX, "--", "x"), "upgrade: 200", 125)


def check_frames(t):
    started = b'{"type":"process_started","pid":1}'

    def frame(op, data, bits=0x80, mask=False):
        n = len(data)
        m = 0x80 if mask else 0
        return bytes([bits | op]) + (
            bytes([m | n]) if n < 126 else b"\x7e" + struct.pack(">H", n)
        ) + (b"abcd" if mask else b"") + data

    cases = {
        "nothing": b"",
        "masked": frame(1, started, mask=True),
        "reserved bit": frame(1, started, 0xc0),
        "unknown opcode": frame(3, b"x"),
        "unknown control": frame(11, b"x"),
        "fragmented ping": frame(9, b"x", 0),
        "ping of 200 bytes": frame(9, b"x" * 200),
        "continuation of nothing": frame(0, b"x"),
        "text in binary": frame(2, b"\1x", 0) + frame(1, started),
        "text that is not UTF-8": frame(1, b"\xff"),
        "text that is no JSON": frame(1, b"hello"),
        "text that is an array": frame(1, b"[]"),
        "event without type": frame(1, b"{}"),
        "exit code 256": frame(1, b'{"type":"process_exited",'
                                  b'"exit_code":256}'),
        "exit code -1": frame(1, b'{"type":"process_exited","exit_code":-1}'),
        "exit code is text": frame(1, b'{"type":"process_exited",'
                                      b'"exit_code":"0"}'),
        "no exit code": frame(1, b'{"type":"process_exited"}'),
        "signal 500": frame(1, b'{"type":"process_exited","signal":500}'),
        "two ends": frame(1, b'{"type":"process_exited","exit_code":0}') * 2,
        "output after the end": frame(
            1, b'{"type":"process_exited","exit_code":0}') + frame(2, b"\1x"),
        "empty binary": frame(2, b""),
        "channel 0": frame(2, b"\0x"),
        "channel 3": frame(2, b"\3x"),
        "channel 255": frame(2, b"\xffx"),
        "length not minimal": b"\x82\x7e\0\5hello",
        "length of 2^63": b"\x82\x7f" + b"\xff" * 8,
        "binary of 2 GiB": b"\x82\x7f" + struct.pack(">Q", 1 << 31) +
                           b"\1" * 1000,
        "text of 1 GiB": b"\x81\x7f" + struct.pack(">Q", 1 << 30) +
                         b"{" * 1000,
        "close of one byte": frame(8, b"\3"),
        "close code 999": frame(8, struct.pack(">H", 999)),
        "close reason not UTF-8": frame(8, struct.pack(">H", 1000) + b"\xff"),
        "cut inside of a frame": frame(2, b"\1" + b"x" * 100)[:50],
        "plain text": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    }
    with fake_api.FakeApi() as api:
        api.add(BOX)
        for name, raw in cases.items():
            def send(s, raw=raw):
                s.raw(raw)
                s.conn.shutdown(socket.SHUT_WR)
                time.sleep(0.05)

            api.raw_stream = send
            ends_badly(t, api.ctl("exec", BOX, "--", "x", timeout=20),
                       "frame: " + name, 125)

        def unknown(s):
            s.event("news_of_a_later_server", value=[1])
            s.frame(fake_api.PONG, b"unasked")
            s.event("process_started", pid=1)
            s.exit(6)

        api.raw_stream = unknown
        t.equal(api.ctl("exec", BOX, "--", "x").returncode, 6,
                "frame: unknown events and pongs are no harm")


def check_memory(t):
    """256 MiB of address space are enough whatever the server sends."""
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))

    if fake_api.BUILD == "build-san":
        t.skip("memory: bounded", "sanitizers reserve address space")
        return
    with fake_api.FakeApi() as api:
        api.add(BOX)

        def text(s):
            s.frame(1, b"[", fin=False)
            while True:
                s.frame(0, b"[" * 60000, fin=False)

        api.raw_stream = text
        ends_badly(t, api.ctl("exec", BOX, "--", "x", preexec_fn=bound),
                   "memory: text message without end", 125)

        def pings(s):
            s.event("process_started", pid=1)
            end = time.monotonic() + 2
            while time.monotonic() < end:
                s.raw(b"\x89\x7d" + b"p" * 125)
            s.exit(8)

        api.raw_stream = pings
        r = api.ctl("exec", BOX, "--", "x", preexec_fn=bound)
        t.equal(r.returncode, 8, "memory: two seconds of nothing but pings")

        def body(conn):
            conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                         b"\r\n")
            try:
                while True:
                    conn.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            except OSError:
                pass

        api.answers["GET /healthz"] = body
        ends_badly(t, api.ctl("health", preexec_fn=bound),
                   "memory: body without end")


def main():
    t = tap.Tap()
    t.run(check_http, check_json, check_terminal, check_upgrade, check_frames,
          check_memory)
    return t.done()


sys.exit(main())
