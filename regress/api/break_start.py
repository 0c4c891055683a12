#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=120
"""What is missing at the daemon's start, or hidden from it: each error says
what failed, on what, and what to do; nothing is left."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
import api
import tap

WITH = os.path.join(daemon.ROOT, "regress", "with-daemon")
INNER = "break-start-inner"


def inner():
    """Beside the daemon: one create, its error, the log."""
    r = api.Api(timeout=60).request("POST", "/v1/sandboxes",
                                    data={"template": "seed"})
    print("status %d %s" % (r.status, r.body.decode()))
    with open(os.environ["SANDBOXD_LOG"]) as f:
        print(f.read())
    print("left %r" % api.Api().list_all())
    return 0


def run(*lines, hide=None):
    argv = [WITH]
    for line in lines:
        argv += ["-c", line]
    argv += [os.path.abspath(sys.argv[0]), INNER]
    if hide is not None:
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                "mount -t tmpfs none %s && exec \"$@\"" % hide, "sh"] + argv
    r = subprocess.run(argv, capture_output=True, text=True, timeout=90)
    return r.returncode, r.stdout + r.stderr


def refused(t, what, wanted, *lines, **how):
    """The create is refused with words that match, and all is clean; what the
    doctor finds missing is what was hidden."""
    status, text = run(*lines, **how)
    if "hide" in how:
        said = re.findall(r"^with-daemon: (.*)$", text, re.M)
        status = sum(1 for s in said if how["hide"] not in s and not re.match(
            r"sandboxctl doctor: status 1$|.*not ready; 0 left over", s))
    m = re.search(r"^status (\d+) (.*)$", text, re.M)
    t.ok(status == 0 and m and int(m.group(1)) >= 400 and
         all(re.search(w, m.group(2)) for w in wanted) and
         "left []" in text, what + ": a create says so, nothing is left", text)
    return text


def paths(t):
    with tempfile.TemporaryDirectory() as d:
        absent = d + "/absent"
        for word in ("kernel", "initramfs", "qemu", "mke2fs", "templates"):
            text = refused(t, word + " absent", [
                "no_template" if word == "templates" else re.escape(absent)],
                '%s "%s"' % (word, absent))
            t.ok(re.search(r"vmm: warning: .*" + re.escape(absent), text),
                 word + " absent: the log says so at the start", text)


def tun(t):
    refused(t, "/dev/net/tun absent", ["/dev/net/tun", "modprobe tun"],
            hide="/dev/net")


def user(t):
    with tempfile.TemporaryDirectory() as d:
        conf = d + "/conf"
        with open(conf, "w") as f:
            f.write('state "%s/s"\nsocket "%s/sock"\n' % (d, d))
        os.chmod(d, 0o755)
        exe = os.path.join(daemon.ROOT, os.environ.get("B", "build"),
                           "sandboxd")
        r = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", exe,
                            "-d", "-f", conf], capture_output=True, text=True,
                           timeout=30)
        t.ok(r.returncode == 1 and "root" in r.stderr and
             not os.path.exists(d + "/s"), "not root: refused, nothing made",
             r.stderr)


def main():
    if sys.argv[1:] == [INNER]:
        return inner()
    t = tap.Tap()
    t.run(paths, tun, user)
    return t.done()


sys.exit(main())
