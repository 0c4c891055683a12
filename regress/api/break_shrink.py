#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=120
"""The address pool is made smaller under sandboxes that run: the daemon refuses
to start and says what to do, and with the old pool they are all there."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need()
import api
import tap

WITH = os.path.join(daemon.ROOT, "regress", "with-daemon")
A = api.Api()


def helper(what):
    return subprocess.run([WITH, what], stderr=subprocess.DEVNULL,
                          timeout=90).returncode


def main():
    t = tap.Tap()
    boxes = [A.create(on_disconnect="keep", memory_mib=96,
                      disk_mib=16)["sandbox_id"] for _ in range(3)]
    helper("--stop")
    conf, log = os.environ["SANDBOXD_CONF"], os.environ["SANDBOXD_LOG"]
    with open(conf) as f:
        text = f.read()
    with open(conf, "w") as f:
        f.write(text.replace(".0/20\n", ".0/30\n") + "limit sandboxes 1\n")
    status = helper("--start")
    with open(log) as f:
        last = [x for x in f.read().splitlines() if "error" in x][-1:]
    t.ok(status != 0 and last and re.search(
        "sb-[a-z2-7]{16} .*pool and uids.*as large as they were", last[0]),
         "a pool that is too small: refused, with what to do", last)
    with open(conf, "w") as f:
        f.write(text)
    t.equal(helper("--start"), 0, "the pool as it was: it starts")
    A.wait_healthy()
    t.equal(sorted(b["sandbox_id"] for b in A.list_all()
                   if b["state"] == "running"), sorted(boxes),
            "the pool as it was: every sandbox is there")
    A.delete_all()
    return t.done()


sys.exit(main())
