# SPDX-License-Identifier: ISC
"""
The API as a client sees it: HTTP/1.1 over a unix socket and WebSocket frames
(RFC 6455), standard library only.  Used by all script tests; shares no code
with the daemon.

	api = Api()                     # $SANDBOXD_SOCKET, or a path
	box = api.create(template="seed")
	print(api.exec(box["sandbox_id"], ["echo", "hi"]))
	ws = api.command(box["sandbox_id"], ["cat"])
	ws.stdin(b"x"); ws.close_stdin(); print(ws.collect().stdout)
	api.delete(box["sandbox_id"])

Conn and WebSocket are the lower layers, for tests that misbehave on purpose.
"""
import base64
import hashlib
import json
import os
import socket
import struct
import threading
import time

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
STDIN, STDOUT, STDERR = 0, 1, 2


def default_socket():
    return os.environ.get("SANDBOXD_SOCKET", "/run/sandboxd/api.sock")


class ApiError(Exception):
    """A reply that is not the one that was asked for."""

    def __init__(self, response):
        self.response = response
        self.status = response.status
        try:
            self.problem = response.json()
        except ValueError:
            self.problem = {}
        self.code = self.problem.get("code")
        super().__init__("%d %s: %s" % (response.status, self.code,
                                        self.problem.get("detail")))


class Response:
    def __init__(self, version, status, reason, fields):
        self.version, self.status, self.reason = version, status, reason
        self.fields = fields            # list of (name in lower case, value)
        self.body = b""

    def header(self, name, default=None):
        for n, v in self.fields:
            if n == name.lower():
                return v
        return default

    def json(self):
        return json.loads(self.body.decode("utf-8"))


class Conn:
    """One connection; bytes out, responses in."""

    def __init__(self, path=None, timeout=120):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Blocking: a full backlog is waited for, not an error.
        self.sock.connect(path or default_socket())
        self.sock.settimeout(timeout)
        self.buf = b""
        self.sending = threading.Lock()     # frames of two threads stay whole

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def send(self, data):
        with self.sending:
            self.sock.sendall(data)

    def fill(self):
        """Reads once; False at the end of the stream."""
        data = self.sock.recv(65536)
        self.buf += data
        return bool(data)

    def line(self):
        while b"\n" not in self.buf:
            if not self.fill():
                raise EOFError("connection closed, left over: %r" % self.buf)
        line, self.buf = self.buf.split(b"\n", 1)
        if not line.endswith(b"\r"):
            raise ValueError("bare LF in the reply: %r" % line)
        return line[:-1]

    def exactly(self, n):
        parts = [self.buf[:n]]
        have = len(parts[0])
        self.buf = self.buf[n:]
        while have < n:
            data = self.sock.recv(min(n - have, 1 << 20))
            if not data:
                raise EOFError("%d of %d bytes" % (have, n))
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def at_eof(self):
        """Is the next thing the end?  A reset counts."""
        if self.buf:
            return False
        try:
            return not self.fill()
        except ConnectionError:
            return True

    def request_bytes(self, method, target, body=None, headers=None):
        fields = {"Host": "sandboxd"}
        if body is not None:
            fields["Content-Length"] = str(len(body))
        fields.update(headers or {})
        head = "%s %s HTTP/1.1\r\n" % (method, target)
        head += "".join("%s: %s\r\n" % f for f in fields.items()
                        if f[1] is not None)
        return head.encode("latin-1") + b"\r\n" + (body or b"")

    def send_request(self, method, target, body=None, headers=None, data=None):
        """`data` is sent as JSON, `body` as it is."""
        headers = dict(headers or {})
        if data is not None:
            body = json.dumps(data).encode()
            headers.setdefault("Content-Type", "application/json")
        self.send(self.request_bytes(method, target, body, headers))

    def read_head(self):
        version, status, reason = (self.line().decode("latin-1") + " ").split(
            " ", 2)
        fields = []
        while True:
            line = self.line().decode("latin-1")
            if line == "":
                break
            name, value = line.split(":", 1)
            fields.append((name.lower(), value.strip()))
        return Response(version, int(status), reason.strip(), fields)

    def chunks(self):
        """The pieces of a chunked body, as they come."""
        while True:
            size = int(self.line().split(b";")[0], 16)
            data = self.exactly(size)
            if size == 0:
                while self.line() != b"":
                    pass
                return
            if self.exactly(2) != b"\r\n":
                raise ValueError("chunk without its end")
            yield data

    def read_body(self, r, method="GET"):
        if method == "HEAD" or r.status in (204, 304) or r.status < 200:
            return r
        if (r.header("transfer-encoding") or "").lower() == "chunked":
            r.body = b"".join(self.chunks())
        elif r.header("content-length") is not None:
            r.body = self.exactly(int(r.header("content-length")))
        else:
            while self.fill():
                pass
            r.body, self.buf = self.buf, b""
        return r

    def read_response(self, method="GET"):
        r = self.read_head()
        while r.status == 100:
            r = self.read_head()
        return self.read_body(r, method)

    def request(self, method, target, body=None, headers=None, data=None):
        self.send_request(method, target, body, headers, data)
        return self.read_response(method)


class Result:
    """What a command's stream gave."""

    def __init__(self):
        self.pieces = {STDOUT: [], STDERR: []}
        self.events = []                # text messages in their order
        self.order = []                 # kinds of everything, in order
        self.pid = None
        self.exited = None              # the process_exited event
        self.error = None               # the error event
        self.close = None               # close code, None: no close frame
        self.reason = ""

    def joined(self, channel):
        """Output so far; joined once, not copied with each piece."""
        self.pieces[channel] = [b"".join(self.pieces[channel])]
        return self.pieces[channel][0]

    @property
    def stdout(self):
        return self.joined(STDOUT)

    @property
    def stderr(self):
        return self.joined(STDERR)

    @property
    def exit_code(self):
        return None if self.exited is None else self.exited.get("exit_code")


class WebSocket(Conn):
    """A client's side of a WebSocket; masks its frames."""

    def __init__(self, path=None, timeout=120):
        super().__init__(path, timeout)
        self.response = None
        self.pings = 0
        self.auto_pong = True
        self.message = None

    def handshake(self, target, protocol="sandbox.v1", headers=None,
                  key=None):
        key = key or base64.b64encode(os.urandom(16)).decode()
        fields = {"Connection": "Upgrade", "Upgrade": "websocket",
                  "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
        if protocol is not None:
            fields["Sec-WebSocket-Protocol"] = protocol
        fields.update(headers or {})
        self.send(self.request_bytes("GET", target, None, fields))
        r = self.response = self.read_head()
        if r.status != 101:
            raise ApiError(self.read_body(r))
        want = base64.b64encode(hashlib.sha1((
            key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        if r.header("sec-websocket-accept") != want.decode():
            raise ValueError("wrong Sec-WebSocket-Accept")
        return r

    def frame_bytes(self, opcode, data, fin=True, mask=True, rsv=0):
        head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
        bit = 0x80 if mask else 0
        if len(data) < 126:
            head += bytes([bit | len(data)])
        elif len(data) < 65536:
            head += bytes([bit | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", len(data))
        if not mask:
            return head + data
        key = os.urandom(4)
        n = len(data)
        pad = (key * (n // 4 + 1))[:n]
        body = int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")
        return head + key + body.to_bytes(n, "big")

    def send_frame(self, opcode, data=b"", **how):
        self.send(self.frame_bytes(opcode, data, **how))

    def send_json(self, value):
        self.send_frame(TEXT, json.dumps(value).encode())

    def recv_frame(self):
        """(opcode, data, fin)."""
        a, b = self.exactly(2)
        if a & 0x70:
            raise ValueError("reserved bits set")
        if b & 0x80:
            raise ValueError("server's frame is masked")
        n = b & 0x7f
        if n == 126:
            n = struct.unpack(">H", self.exactly(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.exactly(8))[0]
        return a & 0x0f, self.exactly(n), bool(a & 0x80)

    def recv(self):
        """
        The next whole message: (TEXT or BINARY, bytes), or (CLOSE, (code,
        reason)).  Pings are answered.  EOFError at an end without a close frame.
        """
        while True:
            op, data, fin = self.recv_frame()
            if op == PING:
                self.pings += 1
                if self.auto_pong:
                    self.send_frame(PONG, data)
                continue
            if op == PONG:
                continue
            if op == CLOSE:
                code = struct.unpack(">H", data[:2])[0] if data else 1005
                return CLOSE, (code, data[2:].decode("utf-8"))
            if op == CONTINUATION:
                op, data = self.message[0], self.message[1] + data
            if fin:
                self.message = None
                return op, data
            self.message = (op, data)

    def close_frame(self, code=1000, reason=""):
        self.send_frame(CLOSE, struct.pack(">H", code) + reason.encode())

    # The sandbox.v1 subprotocol.

    def start(self, argv, **members):
        self.send_json(dict({"type": "start", "argv": argv}, **members))

    def stdin(self, data, piece=65536):
        for i in range(0, len(data), piece):
            self.send_frame(BINARY, bytes([STDIN]) + data[i:i + piece])

    def close_stdin(self):
        self.send_json({"type": "close_stdin"})

    def signal(self, name):
        self.send_json({"type": "signal", "name": name})

    def resize(self, cols, rows):
        self.send_json({"type": "resize", "cols": cols, "rows": rows})

    def take(self, result):
        """One message into the result; False when it was the last."""
        try:
            op, data = self.recv()
        except (EOFError, ConnectionError):
            result.order.append("eof")
            return False
        if op == CLOSE:
            result.close, result.reason = data
            result.order.append("close")
            return False
        if op == BINARY:
            if data[0] not in result.pieces:
                raise ValueError("channel %d from the server" % data[0])
            result.pieces[data[0]].append(data[1:])
            result.order.append("output")
            return True
        event = json.loads(data.decode("utf-8"))
        result.events.append(event)
        result.order.append(event["type"])
        if event["type"] == "process_started":
            result.pid = event["pid"]
        elif event["type"] == "process_exited":
            result.exited = event
        elif event["type"] == "error":
            result.error = event
        return True

    def collect(self, result=None):
        """Everything until the end of the stream."""
        result = result or Result()
        while self.take(result):
            pass
        if result.close is not None:
            try:
                self.close_frame(1000)
            except OSError:
                pass
        return result

    def wait_for(self, kind, result=None):
        """Until an event of this type has come; returns the result so far."""
        result = result or Result()
        while not any(e["type"] == kind for e in result.events):
            if not self.take(result):
                raise EOFError("stream ended before %s: %r %r" % (
                    kind, result.events, result.close))
        return result


class Api:
    """The calls of the native API; an unexpected status is an ApiError."""

    def __init__(self, path=None, timeout=120):
        self.path = path or default_socket()
        self.timeout = timeout

    def request(self, method, target, body=None, headers=None, data=None):
        """One call on a connection of its own; any status is returned."""
        headers = dict({"Connection": "close"}, **(headers or {}))
        with Conn(self.path, self.timeout) as c:
            return c.request(method, target, body, headers, data)

    def call(self, wanted, method, target, **how):
        r = self.request(method, target, **how)
        if r.status not in wanted:
            raise ApiError(r)
        return r

    def create(self, key=None, **members):
        members.setdefault("template", "seed")
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.call((200, 201), "POST", "/v1/sandboxes", data=members,
                         headers=headers).json()

    def show(self, id):
        return self.call((200,), "GET", "/v1/sandboxes/" + id).json()

    def list(self, limit=None, after=None):
        """One page: {"sandboxes": [...], "next": ...}."""
        q = [n + "=" + str(v) for n, v in (("limit", limit), ("after", after))
             if v is not None]
        return self.call((200,), "GET", "/v1/sandboxes" +
                         ("?" + "&".join(q) if q else "")).json()

    def list_all(self):
        boxes, after = [], None
        while True:
            page = self.list(limit=1000, after=after)
            boxes += page["sandboxes"]
            after = page.get("next")
            if not after:
                return boxes

    def delete(self, id):
        """204 or 202."""
        return self.call((202, 204), "DELETE", "/v1/sandboxes/" + id).status

    def delete_all(self):
        for box in self.list_all():
            self.delete(box["sandbox_id"])

    def health(self):
        return self.call((200, 503), "GET", "/healthz").json()

    def wait_healthy(self, seconds=30):
        end = time.monotonic() + seconds
        while True:
            try:
                return self.health()
            except (OSError, EOFError, ApiError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def exec(self, id, argv, **members):
        """One JSON answer."""
        return self.call((200,), "POST", "/v1/sandboxes/%s/exec" % id,
                         data=dict({"argv": argv}, **members),
                         headers={"Accept": "application/json"}).json()

    def exec_events(self, id, argv, **members):
        """Yields the events of an NDJSON answer as they come."""
        with Conn(self.path, self.timeout) as c:
            c.send_request("POST", "/v1/sandboxes/%s/exec" % id,
                           data=dict({"argv": argv}, **members),
                           headers={"Accept": "application/x-ndjson"})
            r = c.read_head()
            if r.status != 200:
                raise ApiError(c.read_body(r))
            left = b""
            for piece in c.chunks():
                left += piece
                while b"\n" in left:
                    line, left = left.split(b"\n", 1)
                    yield json.loads(line.decode("utf-8"))
            if left:
                raise ValueError("last line without its end: %r" % left)

    def websocket(self, id, **how):
        """A WebSocket after its handshake, nothing started."""
        ws = WebSocket(self.path, self.timeout)
        try:
            ws.handshake("/v1/sandboxes/%s/command" % id, **how)
        except BaseException:
            ws.close()
            raise
        return ws

    def command(self, id, argv, **members):
        """A WebSocket on which the command has been asked for."""
        ws = self.websocket(id)
        ws.start(argv, **members)
        return ws

    def run(self, id, argv, stdin=None, **members):
        """A whole command over WebSocket; returns its Result."""
        members.setdefault("stdin", stdin is not None)
        ws = self.command(id, argv, **members)

        def feed():
            try:
                ws.stdin(stdin)
                ws.close_stdin()
            except OSError:
                pass            # the command has ended before it read all
        try:
            if stdin is not None:
                # Beside the reading: an echo would fill both directions.
                threading.Thread(target=feed, daemon=True).start()
            return ws.collect()
        finally:
            ws.close()
