#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=300
"""Two or three of the children killed at nearly the same time, in every order
and with small gaps: they come back in any order, and the sandbox that runs is
neither lost nor swept."""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need()
import api
import tap

A = api.Api(timeout=5)
GAPS_MS = (0, 3, 30, 80)
BACK_S = 25         # a child that dies often is started later each time


def kill(names, gap_ms):
    pids = daemon.children()
    for name in names:
        pid = pids.get(name, 0)
        if pid > 1:
            os.kill(pid, signal.SIGKILL)
            time.sleep(gap_ms / 1000 * random.random())


def works(box):
    """None, or what was wrong at the end of the time."""
    end = time.monotonic() + BACK_S
    why = ""
    while time.monotonic() < end:
        try:
            if A.exec(box, ["echo", "hi"])["stdout"] == "hi\n":
                return None
        except (OSError, EOFError, ValueError, api.ApiError) as e:
            why = repr(e)
            if isinstance(e, api.ApiError) and e.status == 409:
                break           # lost for good
        time.sleep(0.05)
    return why or "no right answer"


def main():
    t = tap.Tap()
    box = A.create(on_disconnect="keep", memory_mib=96)["sandbox_id"]
    was = daemon.vmm_pid(box)
    for names in (("front", "netd"), ("netd", "front"), ("front", "vmm"),
                  ("vmm", "front"), ("netd", "vmm"), ("vmm", "netd"),
                  ("front", "netd", "vmm"), ("vmm", "netd", "front")):
        for gap in GAPS_MS:
            kill(names, gap)
            why = works(box)
            if why is not None:
                break
            time.sleep(2.1)     # not a quick death: those are put off
        if not t.ok(why is None, "%s killed: the sandbox goes on" %
                    ", ".join(names), "gap %d ms: %s" % (gap, why)):
            break
    t.equal(daemon.vmm_pid(box), was, "after all of it: the same VMM")
    A.delete(box)
    t.equal(A.list_all(), [], "after all of it: deleted")
    return t.done()


sys.exit(main())
