#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=300
"""nginx in front of the API socket, as etc/nginx.conf says: WebSocket command,
upload through stdin, keep-alive past the proxy's own timeout, a client that
goes away.  Real nginx, real VM."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need()
import api
import tap

D = api.Api()			# straight to the daemon
READ_TIMEOUT = 20


class Nginx:
    """The shipped example, its paths and its timeout put in place."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="sbn.", dir="/tmp")
        os.chmod(self.dir, 0o755)
        self.socket = os.path.join(self.dir, "web.sock")
        with open(os.path.join(daemon.ROOT, "etc", "nginx.conf")) as f:
            site = f.read()
        site = site.replace("/run/sandboxd/api.sock", D.path)
        site = re.sub(r"listen [^;]*;", "listen unix:%s;" % self.socket, site)
        site, n = re.subn(r"proxy_read_timeout [^;]*;",
                          "proxy_read_timeout %ds;" % READ_TIMEOUT, site)
        assert n >= 1, "etc/nginx.conf has no proxy_read_timeout"
        conf = os.path.join(self.dir, "nginx.conf")
        temp = "".join("%s_temp_path %s/%s;\n" % (k, self.dir, k) for k in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(conf, "w") as f:
            f.write("user root;\ndaemon off;\nworker_processes 1;\n"
                    "pid %s/pid;\nerror_log %s/error.log;\n"
                    "events { worker_connections 256; }\nhttp {\n"
                    "access_log %s/access.log;\n%s%s}\n" % (
                        self.dir, self.dir, self.dir, temp, site))
        self.proc = subprocess.Popen([shutil.which("nginx") or
                                      "/usr/sbin/nginx", "-c", conf,
                                      "-p", self.dir])
        end = time.monotonic() + 10
        while not os.path.exists(self.socket):
            if time.monotonic() > end or self.proc.poll() is not None:
                raise RuntimeError(open(self.dir + "/error.log").read())
            time.sleep(0.05)

    def stop(self):
        self.proc.terminate()
        self.proc.wait(10)
        shutil.rmtree(self.dir)


def main():
    t = tap.Tap()
    nginx = Nginx()
    P = api.Api(nginx.socket)

    def control(t):
        t.equal(P.health()["status"], "ok", "healthz through nginx")
        box = P.create(memory_mib=96, on_disconnect="keep")["sandbox_id"]
        t.equal(P.show(box)["state"], "running", "create and show")
        t.equal(P.exec(box, ["echo", "hi"])["stdout"], "hi\n", "exec")
        t.equal(P.request("POST", "/v1/sandboxes", data={"x": 1}).status, 400,
                "problems come through")
        t.equal(P.delete(box), 204, "delete")

    def streams(t):
        box = P.create(on_disconnect="keep")["sandbox_id"]
        data = os.urandom(10 << 20)
        r = P.run(box, ["sha256sum"], stdin=data)
        t.equal(r.stdout.decode().split()[:1],
                [hashlib.sha256(data).hexdigest()],
                "WebSocket: 10 MB through stdin, its sha256 comes back")
        began = time.monotonic()
        r = P.run(box, ["/bin/sh", "-c", "sleep %d; echo ok" % (
            READ_TIMEOUT + 10)])
        t.ok(r.stdout == b"ok\n" and time.monotonic() - began > READ_TIMEOUT,
             "a quiet command outlives the proxy's timeout", r.events)
        kinds = [e["type"] for e in P.exec_events(
            box, ["/bin/sh", "-c", "echo a; sleep 1; echo b"])]
        t.equal([k for k in kinds if k != "keepalive"],
                ["process_started", "stdout", "stdout", "process_exited"],
                "NDJSON events come one by one")
        P.delete(box)

    def abort(t):
        box = P.create(memory_mib=96, on_disconnect="delete")["sandbox_id"]
        ws = P.command(box, ["sleep", "100"], stdin=False)
        ws.wait_for("process_started")
        ws.close()
        end = time.monotonic() + 5
        while D.request("GET", "/v1/sandboxes/" + box).status != 404:
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        t.equal(D.request("GET", "/v1/sandboxes/" + box).status, 404,
                "the client goes away: on_disconnect delete")

    t.run(control, streams, abort)
    D.delete_all()
    nginx.stop()
    return t.done()


sys.exit(main())
