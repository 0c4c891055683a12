#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=240
"""guestd's commands without a VM: every case of _cases.py."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _guest
import _cases
import tap


class Here(_cases.Place):
    def __init__(self, guestd):
        super().__init__(guestd.host(), False, os.geteuid() == 0)
        self.guestd = guestd

    def children(self):
        """(pid, state) of the agent's children."""
        out = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    state, ppid = f.read().rsplit(")", 1)[1].split()[:2]
            except OSError:
                continue
            if int(ppid) == self.guestd.proc.pid:
                out.append((pid, state))
        return out


def main():
    t = tap.Tap()
    with _guest.Guestd() as g:
        p = Here(g)
        has_cgroup = g.cgroup is not None
        p.sh("true")
        time.sleep(0.1)
        fds, rss = g.open_fds(), g.rss_kib()
        for case in _cases.ALL:
            if case is _cases.case_23_tree and not has_cgroup:
                t.skip("23: tree", "no cgroup2 with cgroup.kill")
                continue
            t.run(lambda t, case=case: case(t, p))
        end = time.monotonic() + 10
        while p.children() and time.monotonic() < end:
            time.sleep(0.1)
        t.equal(p.children(), [], "nothing of it is left running")
        p.sh("true")
        time.sleep(0.2)
        t.equal(g.open_fds(), fds, "no descriptor has leaked")
        if "san" not in _guest.binary():
            grown = g.rss_kib() - rss
            t.ok(grown < 2048, "the agent grew by %d KiB" % grown, grown)
    t.ok("Sanitizer" not in g.err and "runtime error" not in g.err,
        "no sanitizer's finding", g.err[-3000:])
    sys.exit(t.done())


main()
