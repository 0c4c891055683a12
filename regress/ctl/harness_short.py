#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: alone timeout=600
"""The harness and the benchmark, short: that they work, that nothing fails and
nothing is left, and that no aim is missed by far."""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, ROOT + "/regress/lib")
import tap  # noqa: E402

RUNS, WAVE = 6, 8


def outside(argv):
    """Its JSON; what it started must not find a daemon that we were given."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("SANDBOXD_")}
    r = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True,
                       check=False)
    try:
        return r, json.loads(r.stdout.strip().split("\n")[-1])
    except ValueError:
        return r, None


def check_harness(t):
    r, f = outside(["regress/with-daemon", "regress/harness", "--json",
                    str(RUNS), "--wave", str(WAVE)])
    if not t.ok(f is not None, "harness: runs to its end", r):
        return
    t.equal((r.returncode, f["done"], f["failures"], f["left_over"]),
            (0, RUNS + WAVE, 0, 0),
            "harness: %d in turn, %d at once -> no failure, nothing left" % (
                RUNS, WAVE))
    steps = [set(p["steps"]) for p in f["parts"]]
    t.ok(all({"stdin 10 MB", "output 1 MiB"} <= s for s in steps),
         "harness: 10 MB in and 1 MiB out were among them", steps)
    r, f = outside(["regress/with-daemon", "-c", "templates \"/usr/share\"",
                    "regress/harness", "--json", "2", "--no-waves"])
    t.ok(f is not None and (r.returncode, f["done"], f["failures"],
                            f["left_over"]) == (1, 0, 2, 0),
         "harness: every create is refused -> that many failures, 1", r)


def check_bench(t):
    r, f = outside(["regress/bench/run", "--short", "--json"])
    if not t.ok(f is not None, "bench: runs to its end", r):
        return
    if os.environ.get("SAN") == "1":
        t.skip("bench: aims", "sanitizers cost time and memory")
        return
    for a in f["aims"]:
        t.ok(a["met"], "bench: %s: %s %s, bound %s, twice that here" % (
            a["name"], a["value"], a["unit"], a["bound"]), a)
    t.ok(r.returncode == 0, "bench: exit status", r.stderr[-2000:])
    for name in ("ours / by hand", "ours (WebSocket) / by hand"):
        t.ok(f["figures"][name]["ratio"] > 0, "bench: %s %s" % (
            name, f["figures"][name]["ratio"]))


def main():
    t = tap.Tap()
    t.run(check_harness, check_bench)
    return t.done()


sys.exit(main())
