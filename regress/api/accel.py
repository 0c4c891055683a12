#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=200
"""accel auto believes KVM only after a real guest has booted under it; the
verdict is remembered, and accel kvm refuses to start where KVM does not work.
What is right depends on the host; that it is consistent does not."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
VERDICT = "/tmp/sandboxd-accel-test.%d" % os.getpid() \
    if "SANDBOXD_SOCKET" not in os.environ else os.environ["TEST_VERDICT"]
os.environ["TEST_VERDICT"] = VERDICT
daemon.need("accel auto", 'verdict "%s"' % VERDICT)
import api
import tap

A = api.Api()
WITH = os.path.join(daemon.ROOT, "regress", "with-daemon")


def verdict(t):
    a = A.health()["accelerator"]
    node = os.path.exists("/dev/kvm")
    t.ok(a["name"] in ("kvm", "tcg") and a["reason"],
         "auto: %s, because %s" % (a["name"], a["reason"]))
    if not node:
        t.ok("no /dev/kvm" in a["reason"], "auto: no node, no KVM")
        return
    with open(VERDICT) as f:
        kept = json.load(f)
    t.equal((kept["kvm"], kept["reason"]), (a["name"] == "kvm", a["reason"]),
            "the verdict is kept, with its reason")
    t.equal(os.stat(VERDICT).st_uid, 0, "and is root's")
    t.equal(A.list_all(), [], "the probe is no sandbox")


def works(t):
    r = A.create()
    t.equal(A.exec(r["sandbox_id"], ["echo", "hi"])["stdout"], "hi\n",
            "a sandbox works under what was decided")
    with open("/proc/%d/cmdline" % daemon.vmm_pid(r["sandbox_id"])) as f:
        args = f.read().split("\0")
    name = args[args.index("-accel") + 1].split(",")[0]
    t.equal(name, A.health()["accelerator"]["name"], "its VMM uses just that")
    A.delete(r["sandbox_id"])


def remembered(t):
    reason = A.health()["accelerator"]["reason"]
    subprocess.run([WITH, "--stop"], check=True)
    began = time.monotonic()
    subprocess.run([WITH, "--start"], check=True)
    s = time.monotonic() - began
    t.equal(A.health()["accelerator"]["reason"], reason,
            "after a restart: the same verdict")
    t.ok(s < 5, "without another try", "%.1f s" % s)


def kvm_only(t):
    name = A.health()["accelerator"]["name"]
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("SANDBOXD_")}
    r = subprocess.run([WITH, "-c", "accel kvm", "-c",
                        'verdict "%s"' % VERDICT, "true"], env=env,
                       text=True, capture_output=True)
    if name == "kvm":
        t.equal(r.returncode, 0, "accel kvm: starts")
    else:
        t.ok(r.returncode != 0 and "accel kvm:" in r.stderr,
             "accel kvm: refuses to start and says why", r.stderr)


def main():
    t = tap.Tap()
    t.run(verdict, works, remembered, kvm_only)
    if os.path.exists(VERDICT):
        os.unlink(VERDICT)
    return t.done()


sys.exit(main())
