# SPDX-License-Identifier: ISC
"""A small API server for tests of sandboxctl: the routes of the real one over a
unix socket, "commands" that are Python functions, and answers that are wrong on
purpose.

	with FakeApi() as api:
	    box = api.add(name="one")
	    r = api.ctl("exec", box, "--", "echo", "hi")
	    r.returncode, r.stdout, r.stderr
	    api.answers["GET /healthz"] = b"HTTP/1.1 200 OK\\r\\n..."   # raw bytes
"""
import base64
import hashlib
import json
import os
import random
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, ROOT + "/regress/lib")
BUILD = os.environ.get("B") or ("build-san" if os.environ.get("SAN") == "1"
                                else "build")
CTL = os.path.join(ROOT, BUILD, "sandboxctl")
BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Gone(Exception):
    """The client has hung up."""


def reply(status, body=b"", ctype="application/json", fields=()):
    head = [f"HTTP/1.1 {status} X", "Cache-Control: no-store", *fields]
    if status != 204:
        head += [f"Content-Type: {ctype}", f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def problem(status, code, title, detail=None, **more):
    p = dict({"type": "urn:sandboxd:error:" + code, "title": title,
              "status": status, "code": code}, **more)
    if detail is not None:
        p["detail"] = detail
    return reply(status, json.dumps(p).encode(), "application/problem+json")


def found(body, status=200):
    return reply(status, json.dumps(body, ensure_ascii=False).encode())


class Stream:
    """The server's side of a command's WebSocket, after its start message."""

    def __init__(self, api, conn, box):
        self.api, self.conn, self.box = api, conn, box
        self.rest = b""
        self.start = {}
        self.stdin_eof = False
        self.signals, self.sizes, self.pongs = [], [], []
        self.closed = None              # the client's close code
        self.sent = {1: 0, 2: 0}

    def exactly(self, n):
        while len(self.rest) < n:
            try:
                data = self.conn.recv(65536)
            except OSError:
                data = b""
            if not data:
                raise Gone()
            self.rest += data
        out, self.rest = self.rest[:n], self.rest[n:]
        return out

    def recv(self):
        """(opcode, payload) of a frame; checks that it is masked and whole."""
        a, b = self.exactly(2)
        if not b & 0x80:
            self.api.faults.append("client's frame is not masked")
        if a & 0x70 or not a & 0x80:
            self.api.faults.append("client's frame has odd bits %02x" % a)
        n = b & 0x7f
        if n == 126:
            n, = struct.unpack(">H", self.exactly(2))
        elif n == 127:
            n, = struct.unpack(">Q", self.exactly(8))
        key = self.exactly(4)
        data = self.exactly(n)
        pad = (key * (n // 4 + 1))[:n]
        return a & 15, (int.from_bytes(data, "big") ^
                        int.from_bytes(pad, "big")).to_bytes(n, "big")

    def raw(self, data):
        try:
            self.conn.sendall(data)
        except OSError as e:
            raise Gone() from e

    def frame(self, op, data, fin=True):
        n = len(data)
        head = bytes([(0x80 if fin else 0) | op])
        head += bytes([n]) if n < 126 else (
            b"\x7e" + struct.pack(">H", n) if n < 65536 else
            b"\x7f" + struct.pack(">Q", n))
        self.raw(head + data)

    def event(self, kind, **members):
        self.frame(TEXT, json.dumps(dict({"type": kind}, **members)).encode())

    def out(self, data, channel=1):
        self.sent[channel] += len(data)
        self.frame(BINARY, bytes([channel]) + data)

    def exit(self, code=0, **more):
        self.event("process_exited", **dict({
            "exit_code": code, "timed_out": False, "oom_killed": False,
            "duration_ms": 1, "stdout_bytes": self.sent[1],
            "stderr_bytes": self.sent[2]}, **more))
        self.end(1000)

    def end(self, code, reason=b""):
        self.frame(CLOSE, struct.pack(">H", code) + reason)
        try:
            while self.closed is None:
                self.take()
        except Gone:
            pass

    def take(self):
        """One message of the client's; bytes of stdin, or None."""
        op, data = self.recv()
        if op == BINARY:
            if data[:1] != b"\0":
                self.api.faults.append("stdin on channel %r" % data[:1])
            return data[1:]
        if op == CLOSE:
            self.closed = struct.unpack(">H", data[:2])[0] if data else 1005
        elif op == PONG:
            self.pongs.append(data)
        elif op == TEXT:
            m = json.loads(data)
            if m["type"] == "close_stdin":
                self.stdin_eof = True
            elif m["type"] == "signal":
                self.signals.append(m["name"])
            elif m["type"] == "resize":
                self.sizes.append((m["cols"], m["rows"]))
            else:
                self.api.faults.append("unexpected %r" % m)
        return None

    def stdin(self):
        """All of it."""
        parts = []
        while not self.stdin_eof:
            data = self.take()
            if data:
                parts.append(data)
        return b"".join(parts)

    def readable(self, seconds):
        return bool(self.rest or
                    select.select([self.conn], [], [], seconds)[0])


# What "runs" in a fake sandbox, by argv[0].
def cmd_echo(s, argv):
    s.out(" ".join(argv).encode() + b"\n")
    s.exit()


def cmd_both(s, argv):
    s.out(b"to stdout\n", 1)
    s.out(b"to stderr\n", 2)
    s.exit()


def cmd_exit(s, argv):
    s.exit(int(argv[0]))


def cmd_killed(s, argv):
    s.exit(128 + int(argv[0]), signal=int(argv[0]))


def cmd_timed_out(s, argv):
    s.exit(137, signal=9, timed_out=True)


def cmd_oom(s, argv):
    s.exit(137, signal=9, oom_killed=True)


def cmd_missing(s, argv):
    s.exit(127, error="missing: No such file or directory")


def cmd_cat(s, argv):
    data = s.stdin()
    for i in range(0, len(data), 65536):
        s.out(data[i:i + 65536])
    s.exit()


def cmd_sha256(s, argv):
    s.out(hashlib.sha256(s.stdin()).hexdigest().encode() + b"\n")
    s.exit()


def cmd_spec(s, argv):
    """The start message itself."""
    s.out(json.dumps(s.start, ensure_ascii=False).encode())
    s.exit()


def cmd_random(s, argv):
    """So many bytes, in frames of odd sizes, half of them fragmented."""
    data = random.Random(int(argv[1])).randbytes(int(argv[0]))
    at = 0
    rnd = random.Random(1)
    while at < len(data):
        n = rnd.randrange(1, 70000)
        piece = data[at:at + n]
        if n % 2:
            s.out(piece)
        else:
            s.frame(BINARY, b"\1", fin=False)
            s.frame(PING, b"between")
            s.frame(0, piece[:n // 3], fin=False)
            s.frame(0, piece[n // 3:])
            s.sent[1] += len(piece)
        at += n
    s.exit()


def cmd_endless(s, argv):
    """Output until the client is gone; counts what it has taken."""
    block = bytes(65535)
    while True:
        s.out(block)


def cmd_sleep(s, argv):
    """Until a signal comes, or for so long; exits as killed by it."""
    end = time.monotonic() + float(argv[0])
    s.out(b"started\n")
    while not s.signals and time.monotonic() < end:
        if s.readable(max(0, end - time.monotonic())):
            s.take()
    if s.signals:
        import signal
        s.exit(128 + signal.Signals["SIG" + s.signals[0]],
               signal=int(signal.Signals["SIG" + s.signals[0]]))
    else:
        s.exit()


def cmd_deaf(s, argv):
    """Takes signals and does nothing about them."""
    s.out(b"started\n")
    while True:
        s.take()


def cmd_sizes(s, argv):
    """On a tty: prints each new size, ends at a "q"."""
    s.out(f"{s.start['cols']}x{s.start['rows']}\r\n".encode())
    while True:
        n = len(s.sizes)
        data = s.take()
        if len(s.sizes) > n:
            s.out(f"{s.sizes[-1][0]}x{s.sizes[-1][1]}\r\n".encode())
        if data:
            s.out(b"key " + data + b"\r\n")
        if data and b"q" in data:
            s.exit(3)
            return


def cmd_break(s, argv):
    """No end: the connection just closes, or closes with a code."""
    s.out(b"half\n")
    if argv:
        s.end(int(argv[0]), b"because")
    else:
        s.conn.shutdown(socket.SHUT_RDWR)


def cmd_error(s, argv):
    s.event("error", code="sandbox_gone", detail="deleted by a client")
    s.end(4000)


def cmd_silent_end(s, argv):
    """process_exited, and then nothing at all."""
    s.event("process_exited", exit_code=5)
    time.sleep(30)


COMMANDS = {n[4:]: f for n, f in list(globals().items())
            if n.startswith("cmd_")}


class FakeApi:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="fake")
        self.path = self.dir + "/api.sock"
        self.boxes = {}                 # id -> object, in order
        self.requests = []              # (method, target, body)
        self.streams = []
        self.faults = []                # what the client did wrong
        self.answers = {}               # "METHOD path" -> bytes or function
        self.commands = dict(COMMANDS)
        self.raw_stream = None          # f(stream) right after the upgrade
        self.create_delay = 0
        self.page_max = 1000
        self.keys = {}

    def __enter__(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(self.path)
        self.sock.listen(64)
        self.acceptor = threading.Thread(target=self.accept, daemon=True)
        self.acceptor.start()
        return self

    def __exit__(self, *unused):
        # Closed under its feet, it would accept on the next one's descriptor.
        self.sock.shutdown(socket.SHUT_RDWR)
        self.acceptor.join()
        self.sock.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def add(self, id=None, **members):
        if id is None:
            id = "sb-" + "".join(random.choice(BASE32) for _ in range(16))
        self.boxes[id] = dict({
            "sandbox_id": id, "state": "running", "template": "seed",
            "name": "", "vcpu": 1, "memory_mib": 128, "disk_mib": 512,
            "timeout_s": 300, "on_disconnect": "keep",
            "created_at": "2026-01-02T03:04:05.678Z",
            "expires_at": "2026-01-02T03:09:05.678Z", "boot_ms": 900,
            "address": "10.0.0.2", "metadata": {}}, **members)
        return id

    # sandboxctl against it

    def env(self, **more):
        e = dict(os.environ, SANDBOXD_SOCKET=self.path)
        e.pop("SANDBOXD_STATE", None)
        e.update(more)
        return e

    def ctl(self, *args, **how):
        how.setdefault("env", self.env())
        how.setdefault("timeout", 60)
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        if "input" not in how:
            how.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([CTL, *args], check=False, **how)

    def popen(self, *args, **how):
        how.setdefault("env", self.env())
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        how.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([CTL, *args], **how)

    def asked(self, method, prefix=""):
        return [r for r in self.requests if r[0] == method and
                r[1].startswith(prefix)]

    # the server

    def accept(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,),
                             daemon=True).start()

    def serve(self, conn):
        try:
            self.one(conn)
        except (Gone, OSError):
            pass
        finally:
            conn.close()

    def one(self, conn):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = conn.recv(65536)
            if not piece:
                return
            data += piece
        head, rest = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        method, target, version = lines[0].split(" ")
        fields = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            fields[name.lower()] = value
        if version != "HTTP/1.1" or "host" not in fields:
            self.faults.append("request: %r" % lines)
        n = int(fields.get("content-length", "0"))
        while len(rest) < n:
            rest += conn.recv(65536)
        body = json.loads(rest[:n]) if n else None
        self.requests.append((method, target, body))
        path = target.split("?")[0]
        answer = self.answers.get(f"{method} {path}")
        if answer is not None:
            if callable(answer):
                answer = answer(conn)
            if answer:
                conn.sendall(answer)
            return
        if path.endswith("/command"):
            self.command(conn, path.split("/")[3], fields, rest[n:])
        else:
            conn.sendall(self.route(method, target, body, fields))

    def route(self, method, target, body, fields):
        path, _, query = target.partition("?")
        if path == "/healthz":
            return found({"status": "ok", "version": "0.1.0", "uptime_s": 5,
                          "sandboxes": {"running": len(self.boxes)},
                          "driver": "qemu", "notes": ["one", "two"],
                          "accelerator": {"name": "tcg", "reason": "told"}})
        if path == "/v1/sandboxes":
            if method == "POST":
                return self.create(body, fields.get("idempotency-key"))
            return self.list(dict(urllib.parse.parse_qsl(query)))
        m = re.fullmatch("/v1/sandboxes/([^/]+)", path)
        if m is None:
            return problem(404, "no_route", "No such resource")
        if method == "DELETE":
            self.boxes.pop(m[1], None)
            return reply(204)
        if m[1] not in self.boxes:
            return problem(404, "no_sandbox", "No such sandbox",
                           "there is no sandbox of yours with this id")
        return found(self.boxes[m[1]])

    def create(self, body, key):
        if body["template"] == "none":
            return problem(404, "no_template", "No such template", "none")
        if body["template"] == "full":
            return problem(503, "no_capacity", "No capacity", "5 of 5 slots",
                           retry_after_s=1)
        time.sleep(self.create_delay)
        if key is not None and key in self.keys:
            return found(self.boxes[self.keys[key]])
        id = self.add(**{k: v for k, v in body.items() if k != "env"})
        if key is not None:
            self.keys[key] = id
        return found(self.boxes[id], 201)

    def list(self, query):
        ids = list(self.boxes)
        if "after" in query:
            ids = ids[ids.index(query["after"]) + 1:]
        n = min(int(query.get("limit", "100")), self.page_max)
        page = {"sandboxes": [self.boxes[i] for i in ids[:n]], "next": None}
        if len(ids) > n:
            page["next"] = ids[n - 1]
        return found(page)

    def command(self, conn, id, fields, rest):
        if id not in self.boxes:
            conn.sendall(problem(404, "no_sandbox", "No such sandbox"))
            return
        accept = base64.b64encode(hashlib.sha1((
            fields["sec-websocket-key"] +
            "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        if (fields.get("sec-websocket-protocol") != "sandbox.v1" or
                fields.get("sec-websocket-version") != "13"):
            self.faults.append("upgrade: %r" % fields)
        conn.sendall(b"HTTP/1.1 101 Switching Protocols\r\n"
                     b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
                     b"Sec-WebSocket-Protocol: sandbox.v1\r\n"
                     b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        s = Stream(self, conn, id)
        s.rest = rest
        self.streams.append(s)
        try:
            _, data = s.recv()
            s.start = json.loads(data)
            if self.raw_stream is not None:
                self.raw_stream(s)
                return
            s.event("process_started", pid=42)
            argv = s.start["argv"]
            self.commands[argv[0]](s, argv[1:])
        except Gone:
            s.closed = s.closed or "gone"
            if s.start.get("on_disconnect") == "delete":
                self.boxes.pop(id, None)
