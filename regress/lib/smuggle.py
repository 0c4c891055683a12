# SPDX-License-Identifier: ISC
"""Requests that two readers of one stream might see differently.

Every row is one visible request with another hidden in or behind it.  The
hidden one names the path /sandboxes/..., which the proxy refuses to everyone;
both run a command that leaves its mark, so that what was executed, and how
often, can be read back.  X-Request-Id says whose reply is whose.
"""
import collections
import json

# status: of the direct reply.  mark: the visible request executes.  keeps: the
# connection may go on, all of the row has been read as one request.  via_only:
# direct, the hidden bytes are simply the next request, which is in order.
Row = collections.namedtuple("Row", "name raw status mark keeps via_only")


def request(line, *fields, body=b"", id=None):
    head = [line, "Host: a"] + list(fields)
    if id:
        head.append("X-Request-Id: " + id)
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


class Rows:
    def __init__(self, box, argv_for):
        self.box, self.argv_for = box, argv_for
        self.rows = []
        self.n = 0

    def json(self, mark):
        return json.dumps({"argv": self.argv_for(mark)}).encode()

    def exec_line(self, prefix="/v1"):
        return "POST %s/sandboxes/%s/exec HTTP/1.1" % (prefix, self.box)

    def hidden(self):
        body = self.json("h%d" % self.n)
        return request(self.exec_line(""), "Content-Type: application/json",
                       "Content-Length: %d" % len(body), body=body,
                       id="h%d" % self.n)

    def add(self, name, status, make, mark=False, keeps=False,
            via_only=False):
        """make(id, hidden, n) gives the bytes; n is the hidden length."""
        h = self.hidden()
        raw = make("v%d" % self.n, h, len(h))
        self.rows.append(Row(name, raw, status, mark, mark or keeps,
                             via_only))
        self.n += 1

    def body(self, name, status, line, *fields, keeps=False):
        """Hidden in a body that is framed properly."""
        self.add(name, status, lambda v, h, n: request(
            line, *[f.replace("LEN", str(n)) for f in fields], body=h, id=v),
                 keeps=keeps)

    def behind(self, name, status, line, *fields, first=b""):
        """Hidden behind what a careless reader takes for the whole request."""
        self.add(name, status, lambda v, h, n: request(
            line, *[f.replace("LEN", str(n)).replace("ALL", str(
                n + len(first))) for f in fields], body=first + h, id=v))

    def raw(self, name, status, before):
        """`before` as it is, then the hidden request."""
        self.add(name, status, lambda v, h, n: before.replace(
            b"ID", v.encode()) + h)


def bodies(r):
    """libraries.md 1.1: methods that a careless reader thinks have no body."""
    get = "GET /v1/healthz HTTP/1.1"
    length, chunks = "Content-Length: LEN", "Transfer-Encoding: chunked"
    for method, status in (("HEAD", 413), ("GET", 413), ("TRACE", 405),
                           ("OPTIONS", 405), ("BREW", 501)):
        line = method + " /v1/healthz HTTP/1.1"
        r.body(method + " with a body", status, line, length)
        r.add(method + " with chunks", status, lambda v, h, n: request(
            line, chunks, body=b"%x\r\n%s\r\n0\r\n\r\n" % (n, h), id=v))
    r.body("DELETE with a body", 413, "DELETE /v1/sandboxes/"
           "sb-aaaaaaaaaaaaaaaa HTTP/1.1", length)
    r.body("Expect: 100-continue", 413, get, length, "Expect: 100-continue")
    r.body("another expectation", 417, get, length, "Expect: tea")
    r.body("names with _", 400, r.exec_line(), length, "Content_Length: 0",
           "Transfer_Encoding: chunked", keeps=True)


def lengths(r):
    line = r.exec_line()
    last = b"0\r\n\r\n"
    for name, fields in (
            ("length and coding", ("Content-Length: ALL",
                                   "Transfer-Encoding: chunked")),
            ("coding and length", ("Transfer-Encoding: chunked",
                                   "Content-Length: ALL")),
            ("folded coding", ("Content-Length: ALL",
                               "Transfer-Encoding:\r\n chunked")),
            ("coding, space before the colon",
             ("Content-Length: ALL", "Transfer-Encoding : chunked")),
            ("coding with a control byte",
             ("Content-Length: ALL", "Transfer-Encoding: \x0bchunked")),
            ("xchunked", ("Content-Length: ALL",
                          "Transfer-Encoding: xchunked")),
            ("two codings", ("Transfer-Encoding: chunked",
                             "Transfer-Encoding: x")),
            ("chunked, identity",
             ("Transfer-Encoding: chunked, identity",)),
            ("identity", ("Transfer-Encoding: identity",))):
        r.behind(name, 400, line, *fields, first=last)
    r.behind("coding from HTTP/1.0", 400, line[:-1] + "0",
             "Transfer-Encoding: chunked", first=last)
    for name, fields in (
            ("two lengths", ("Content-Length: 0", "Content-Length: LEN")),
            ("two lengths turned", ("Content-Length: LEN",
                                    "Content-Length: 0")),
            ("a list of lengths", ("Content-Length: 0, LEN",)),
            ("length with a sign", ("Content-Length: +LEN",)),
            ("negative length", ("Content-Length: -1",)),
            ("length with a space inside", ("Content-Length: 0 LEN",)),
            ("length, space before the colon", ("Content-Length : LEN",)),
            ("length in hex", ("Content-Length: 0x0",))):
        r.behind(name, 400, line, *fields)


def chunks(r):
    line, coding = r.exec_line(), "Transfer-Encoding: chunked"
    for name, first in (
            ("size 0x3", b"0x3\r\nabc\r\n0\r\n\r\n"),
            ("size +3", b"+3\r\nabc\r\n0\r\n\r\n"),
            ("size -1", b"-1\r\nabc\r\n0\r\n\r\n"),
            ("size with a space", b"3 \r\nabc\r\n0\r\n\r\n"),
            ("size that overflows", b"10000000000000003\r\nabc\r\n0\r\n\r\n"),
            ("LF in an extension", b"3;x\nabc\r\n0\r\n\r\n"),
            ("LF after the size", b"3\nabc\r\n0\r\n\r\n"),
            ("data longer than its size", b"3\r\nabcd\r\n0\r\n\r\n"),
            ("LF after the data", b"3\r\nabc\n0\r\n\r\n"),
            ("trailer with a length", b"0\r\nContent-Length: 5\r\n\r\n"),
            ("LF ends the body", b"0\r\n\n")):
        r.behind("chunks: " + name, 400, line, coding, first=first)


def heads(r):
    ok = b"GET /v1/healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: ID\r\n"
    r.raw("LF ends the head", 400, ok + b"X: y\n\n")
    r.raw("lone CR in a value", 400, ok + b"X: y\rz\r\n\r\n")
    r.raw("NUL in a value", 400, ok + b"X: y\0z\r\n\r\n")
    r.raw("folded field", 400, ok + b"X: y\r\n z\r\n\r\n")
    r.raw("two Hosts", 400, ok + b"Host: b\r\n\r\n")
    r.raw("no Host", 400, ok.replace(b"Host: a\r\n", b"") + b"\r\n")
    r.raw("Host, space before the colon", 400,
          ok.replace(b"Host:", b"Host :") + b"\r\n")
    r.raw("HTTP/1.9", 505, ok.replace(b"/1.1", b"/1.9") + b"\r\n")
    r.raw("control byte in the path", 400,
          ok.replace(b"/healthz", b"/health\x01z") + b"\r\n")
    r.raw("LF in the request line", 400,
          ok.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\n", 1) + b"\r\n")
    r.raw("HTTP/1.0 with keep-alive", 200, ok.replace(b"/1.1", b"/1.0") +
          b"Connection: keep-alive\r\n\r\n")
    r.raw("close", 200, ok + b"Connection: close\r\n\r\n")


def upgrades(r):
    up = ("Upgrade: websocket", "Connection: Upgrade",
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    line = "GET /v1/sandboxes/%s/command HTTP/1.1" % r.box
    r.add("upgrade that is refused", 426, lambda v, h, n: request(
        line, *up, "Sec-WebSocket-Version: 777", body=h, id=v), via_only=True)
    r.behind("upgrade, then no frame", 101, line, *up,
             "Sec-WebSocket-Version: 13")
    r.behind("upgrade with a body", 413, line, *up,
             "Sec-WebSocket-Version: 13", "Content-Length: LEN")


def good(r):
    """Requests that are fine: executed once each."""
    line, json_type = r.exec_line(), "Content-Type: application/json"

    def whole(v, h, n):
        body = r.json(v)
        return request(line, json_type, "Content-Length: %d" % len(body),
                       body=body, id=v)

    def chunked(v, h, n):
        body = r.json(v)
        return request(line, json_type, "Transfer-Encoding: chunked",
                       body=b"%x;x=y\r\n%s\r\n0\r\n\r\n" % (len(body), body),
                       id=v)

    r.add("exec", 200, whole, mark=True)
    r.add("exec with chunks", 200, chunked, mark=True)
    r.add("exec, then the hidden one", 200,
          lambda v, h, n: whole(v, h, n) + h, mark=True, via_only=True)
    r.add("absolute-form", 200, lambda v, h, n: whole(v, h, n).replace(
        b"POST /v1", b"POST http://other/v1"), mark=True)


def all_rows(box, argv_for):
    r = Rows(box, argv_for)
    for part in (good, bodies, lengths, chunks, heads, upgrades):
        part(r)
    return r.rows
