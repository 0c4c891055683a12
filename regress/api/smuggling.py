#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=300
"""Smuggling: requests that a proxy and we might cut differently (rows in
lib/smuggle.py), sent straight to the socket and through nginx with kept upstream
connections, strict and lenient.  Nothing hidden is executed, nothing is executed
twice, no reply goes to another request.

With -p the daemon's parent and the guest are played by the test (lib/front.py);
else it is a whole daemon and a real sandbox."""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
PLAYED = "-p" in sys.argv
import daemon
if not PLAYED:
    daemon.need()
import api
import smuggle
import tap

QUIET_S = 0.3			# no more replies after so long
SITE = """
server {
	listen unix:%(dir)s/%(name)s.sock;
	%(options)s
	location ^~ /sandboxes { return 403; }
	location / {
		proxy_pass http://up_%(name)s;
		proxy_http_version 1.1;
		proxy_set_header Host $host;
		proxy_set_header Upgrade $http_upgrade;
		proxy_set_header Connection $up;
		proxy_set_header X-Request-Id $http_x_request_id;
		proxy_buffering off;
		proxy_request_buffering %(buffering)s;
	}
}
upstream up_%(name)s { server unix:%(up)s; keepalive 1; }
"""
CONF = """
user root;
daemon off;
worker_processes 1;
pid %(dir)s/pid;
error_log %(dir)s/error.log;
events { worker_connections 256; }
http {
	access_log off;
	map $http_upgrade $up { default upgrade; "" ""; }
"""


class Nginx:
    def __init__(self, up):
        self.dir = tempfile.mkdtemp(prefix="sbn.", dir="/tmp")
        os.chmod(self.dir, 0o755)
        text = CONF % {"dir": self.dir}
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
            text += "%s_temp_path %s/%s;\n" % (kind, self.dir, kind)
        text += SITE % {"dir": self.dir, "name": "strict", "up": up,
                        "options": "", "buffering": "off"}
        text += SITE % {"dir": self.dir, "name": "lenient", "up": up,
                        "options": "ignore_invalid_headers off; "
                        "underscores_in_headers on; merge_slashes off;",
                        "buffering": "on"}
        with open(self.dir + "/conf", "w") as f:
            f.write(text + "}\n")
        self.proc = subprocess.Popen([shutil.which("nginx") or
                                      "/usr/sbin/nginx", "-c",
                                      self.dir + "/conf", "-p", self.dir],
                                     stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while not os.path.exists(self.path("lenient")):
            if time.monotonic() > end or self.proc.poll() is not None:
                raise RuntimeError(open(self.dir + "/error.log").read())
            time.sleep(0.05)

    def path(self, name):
        return "%s/%s.sock" % (self.dir, name)

    def stop(self):
        self.proc.terminate()
        self.proc.wait(10)
        shutil.rmtree(self.dir)


class Played:
    """A real front; the rest is the test's."""

    def __init__(self):
        import front
        self.marks = []
        self.front = front.Front()
        self.path = self.front.path
        self.box = self.front.add_box(command=self.command).id

    def command(self, s):
        self.marks.append(s.argv[1].decode())
        s.begin()
        s.exit(0)

    @staticmethod
    def argv_for(mark):
        return ["mark", mark]

    def seen(self):
        return list(self.marks)

    def stop(self):
        self.front.stop()


class Whole:
    """The daemon, one sandbox, a file in it."""

    def __init__(self):
        self.api = api.Api()
        self.path = self.api.path
        self.box = self.api.create(memory_mib=96,
                                   on_disconnect="keep")["sandbox_id"]

    @staticmethod
    def argv_for(mark):
        return ["/bin/sh", "-c", "echo %s >> /tmp/seen" % mark]

    def seen(self):
        r = self.api.exec(self.box, ["/bin/sh", "-c",
                                     "touch /tmp/seen; cat /tmp/seen"])
        return r["stdout"].split()

    def stop(self):
        self.api.delete(self.box)


def exchange(path, raw):
    """All that comes back: [(status, request id)], and whether it was closed."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(path)
    data, closed = b"", False
    try:
        s.sendall(raw)
        while True:
            got = s.recv(65536)
            if not got:
                closed = True
                break
            data += got
            # The first answer may take its time, what follows does not.
            s.settimeout(QUIET_S)
    except (TimeoutError, socket.timeout):
        pass
    except ConnectionError:
        closed = True
    s.close()
    replies = []
    for head in re.findall(rb"HTTP/1\.[01] (\d{3}) (.*?)\r\n\r\n", data, re.S):
        m = re.search(rb"(?i)^x-request-id: *(\S+)", head[1], re.M)
        status = int(head[0])
        if status != 100:
            replies.append((status, m.group(1).decode() if m else ""))
    return replies, closed


def in_turn(path, n):
    """Two requests on a fresh connection get their own answers."""
    for i in range(2):
        with api.Conn(path, timeout=10) as c:
            r = c.request("GET", "/v1/healthz", headers={
                "X-Request-Id": "p%d.%d" % (n, i)})
            if r.status != 200 or \
                    r.header("x-request-id") != "p%d.%d" % (n, i):
                return "%d for %s" % (r.status, r.header("x-request-id"))
    return None


def check_direct(t, target, rows):
    want = []
    for n, row in enumerate(rows):
        if row.via_only:
            continue
        replies, closed = exchange(target.path, row.raw)
        good = len(replies) == 1 and replies[0][0] == row.status
        good = good and (closed or row.keeps)
        t.ok(good and in_turn(target.path, n) is None,
             "smuggling: direct: %s -> %d, and no more" % (
                 row.name, row.status), (replies, closed))
        if row.mark:
            want.append("v%d" % n)
    t.equal(sorted(target.seen()), sorted(want),
            "smuggling: direct: what was executed, once each")
    return want


def check_via(t, target, path, kind, rows, before):
    want = list(before)
    for n, row in enumerate(rows):
        replies, _ = exchange(path, row.raw)
        ids = [i for s, i in replies if i]
        good = all(not i.startswith("h") for i in ids)
        good = good and all(i == "v%d" % n or re.fullmatch("[0-9a-f]{32}", i)
                            for i in ids)
        good = good and (not row.mark or replies[0] == (200, "v%d" % n))
        wrong = in_turn(path, n)
        t.ok(good and wrong is None, "smuggling: nginx, %s: %s -> %s" % (
            kind, row.name, " ".join(str(s) for s, _ in replies) or "nothing"),
            (replies, wrong))
        if row.mark:
            want.append("v%d" % n)
    t.equal(sorted(target.seen()), sorted(want),
            "smuggling: nginx, %s: what was executed, once each" % kind)
    return want


def check_cut(t, target, path, kind):
    """The client goes away inside a body that holds a hidden request."""
    r = smuggle.Rows(target.box, target.argv_for)
    h = r.hidden()
    for line, field, before in (
            (r.exec_line(), "Content-Length: %d" % (len(h) + 5), b""),
            (r.exec_line(), "Transfer-Encoding: chunked",
             b"%x\r\n" % (len(h) + 5))):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.sendall(smuggle.request(line, field, body=before + h, id="v0"))
        time.sleep(0.1)
        s.close()
        wrong = in_turn(path, 0)
        t.ok(wrong is None and "h0" not in target.seen(),
             "smuggling: %s: client gone inside a body, %s" % (kind, field[:7]),
             wrong)


def main():
    t = tap.Tap()
    target = Played() if PLAYED else Whole()
    rows = smuggle.all_rows(target.box, target.argv_for)
    marks = check_direct(t, target, rows)
    check_cut(t, target, target.path, "direct")
    nginx = Nginx(target.path)
    try:
        for kind in ("strict", "lenient"):
            marks = check_via(t, target, nginx.path(kind), kind, rows, marks)
            check_cut(t, target, nginx.path(kind), "nginx, " + kind)
    finally:
        nginx.stop()
        target.stop()
    return t.done()


sys.exit(main())
