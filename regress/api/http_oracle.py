#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Our HTTP reader against h11 and httptools (llhttp), on the corpus of
unit/http_test: what we take, they take, and see the same requests in it; what
they refuse, we refuse.  Skipped where neither is installed."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import tap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
KNOWN = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# Methods that llhttp does not know are errors to it; a server may do that
# (RFC 9110, 9.1), so it tells nothing about framing.
LLHTTP_ONLY = re.compile(r"^\? ")


def escape(data):
    return "".join(chr(c) if 0x20 <= c < 0x7f and c != 0x5c else "\\x%02x" % c
                   for c in data)


def line_of(method, target, body):
    """A request as http_test prints it, without its flags."""
    m = re.match(rb"(?i)https?://[^/?]*(.*)", target)
    if m:
        target = m.group(1)
        if not target:
            target = b"*" if method == b"OPTIONS" else b"/"
        elif target[:1] == b"?":
            target = b"/" + target
    name = method.decode("ascii")
    return "%s %s%s" % (name if name in KNOWN else "?", escape(target),
                        " [%s]" % escape(body) if body else "")


def read_h11(h11, data):
    """Lines of the whole requests, and "error", "more" or ""."""
    conn = h11.Connection(h11.SERVER, max_incomplete_event_size=100000)
    lines = []
    try:
        conn.receive_data(data)
        while True:
            ev = conn.next_event()
            if isinstance(ev, h11.Request):
                head, body = ev, b""
            elif isinstance(ev, h11.Data):
                body += bytes(ev.data)
            elif isinstance(ev, h11.EndOfMessage):
                lines.append(line_of(bytes(head.method), bytes(head.target),
                                     body))
                conn.send(h11.Response(status_code=404, headers=[
                    ("Content-Length", "0")]))
                conn.send(h11.EndOfMessage())
                if conn.our_state is not h11.DONE:
                    return lines, ""
                conn.start_next_cycle()
            elif ev is h11.NEED_DATA:
                rest = conn.trailing_data[0]
                begun = conn.their_state is not h11.IDLE
                return lines, "more" if rest.strip(b"\r\n") or begun else ""
            else:
                return lines, ""
    except h11.RemoteProtocolError:
        return lines, "error"


class Llhttp:
    """httptools' callbacks."""

    def __init__(self, httptools):
        self.lines = []
        self.begun = False
        self.parser = httptools.HttpRequestParser(self)

    def on_message_begin(self):
        self.url, self.body, self.begun = b"", b"", True

    def on_url(self, url):
        self.url += url

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        self.lines.append(line_of(self.parser.get_method(), self.url,
                                  self.body))
        self.begun = False


def read_httptools(httptools, data):
    p = Llhttp(httptools)
    try:
        p.parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        return p.lines, ""
    except httptools.HttpParserError:
        return p.lines, "error"
    return p.lines, "more" if p.begun else ""


def ours(verdict):
    """The verdict's requests without flags, and its end."""
    end = ""
    if verdict.endswith("..."):
        verdict, end = verdict[:-3], "more"
    m = re.search(r"(^| ; )!([a-z_]+)$", verdict)
    if m:
        verdict, end = verdict[:m.start()], "error"
    verdict = re.sub(r" ; $", "", verdict)
    parts = verdict.split(" ; ") if verdict else []
    return [re.sub(r"^(\S+ \S+)(?: close)?(?: expect)?", r"\1", p)
            for p in parts], end


def not_looser(lines, end, other_lines, other_end):
    """Equal, or we stopped where the other went on."""
    if end == "error":
        return lines == other_lines[:len(lines)]
    return lines == other_lines and (end == other_end)


def compare(t, name, module, read, rows, skip):
    equal = stricter = 0
    wrong = []
    for raw, verdict in rows:
        lines, end = ours(verdict)
        if skip and any(skip.match(x) for x in lines):
            continue
        other_lines, other_end = read(module, raw)
        if not not_looser(lines, end, other_lines, other_end):
            wrong.append("%r\n  ours %r %s\n  %s %r %s" % (
                raw[:300], lines, end, name, other_lines, other_end))
        elif end == "error" and other_end != "error":
            stricter += 1
        else:
            equal += 1
    t.ok(not wrong, "http_oracle: %s: %d equal, %d where we are stricter, "
         "none where we are looser" % (name, equal, stricter),
         "\n".join(wrong))
    t.ok(equal > 300, "http_oracle: %s: enough to compare" % name, equal)


def main():
    t = tap.Tap()
    build = os.environ.get("B", "build")
    out = subprocess.run([os.path.join(ROOT, build, "regress", "unit",
                                       "http_test"), "-d"], text=True,
                         capture_output=True, check=True).stdout
    rows = [(bytes.fromhex(r.split("\t")[0]), r.split("\t")[1])
            for r in out.splitlines()]
    for name, read, skip in (("h11", read_h11, None),
                             ("httptools", read_httptools, LLHTTP_ONLY)):
        try:
            module = __import__(name)
        except ImportError:
            t.skip("http_oracle: " + name, "python3-%s is not installed" % name)
            continue
        compare(t, name, module, read, rows, skip)
    return t.done()


sys.exit(main())
