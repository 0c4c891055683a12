#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Limits of a VM's cgroup: vmm's own code, run where all the controllers are,
which is in a guest (this host may have none)."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import tap	# noqa: E402
import vmm	# noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = ["regress/vm/cgroup_guest.c", "vmmctl/cgroup.c", "vmmctl/fault.c",
           "common/log.c", "common/id.c"]
# cgroup-v2.rst: units and spelling of the files
WANT = {
    "have": "1 1 1 1", "memory.max": str(24 << 20), "memory.swap.max": "0",
    "cpu.max": "300000 100000", "pids.max": "7", "again": "-1",
    "contains": "1 0", "busy": "0 oom 0", "killed": "9",
    "greedy": "9 oom 1", "gone": "1 -1", "undone": "-1", "top": "-1",
}


def build(d):
    out = os.path.join(d, "t")
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-static", "-D_GNU_SOURCE",
                    "-DLIBBSD_OPENBSD_VIS", "-Icommon", "-Ivmmctl",
                    "-I" + os.path.join(vmm.BUILD, "gen"), "-o", out,
                    *SOURCES, "-lbsd", "-lmd"],
                   cwd=os.path.join(HERE, "..", ".."), check=True)
    with open(out, "rb") as f:
        return f.read()


def test_limits(t, v, program):
    vm = v.start(memory_mib=192)
    host = v.host(vm)
    r = host.run(["/bin/sh", "-c", "cat > /run/t; chmod 700 /run/t; "
                  "exec /run/t"], stdin=program, timeout=60)
    got = dict(line.split(" ", 1) for line in
               r.stdout.decode().splitlines() if " " in line)
    for name, want in WANT.items():
        t.equal(got.get(name), want, "cgroup in a guest: " + name)
    t.ok(got.get("refused", "").startswith("-1 cgroup cpu.max"),
         "cgroup in a guest: a limit that the kernel refuses fails the start",
         got.get("refused"))
    if t.failed:
        print("# %r %r" % (r.stdout, r.stderr))
    v.destroy(vm)


def main():
    why = vmm.missing()
    if why is None and shutil.which("gcc") is None:
        why = "no gcc"
    if why is not None:
        print("1..0 # SKIP " + why)
        return 0
    t = tap.Tap()
    with tempfile.TemporaryDirectory(prefix="vmm-") as d:
        program = build(d)
    v = vmm.Vmm()
    try:
        t.run(lambda t: test_limits(t, v, program))
    finally:
        v.close()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
