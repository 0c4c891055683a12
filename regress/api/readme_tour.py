#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=300
"""Runs the README's tour against a real daemon: every "$ " line of its console
blocks in one shell, and compares what is printed with what the README says.
"..." in an expected line stands for anything."""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MARK = "--end-of-step--"


def steps():
    """[(command, [expected lines])] of all console blocks."""
    with open(ROOT + "/README.md") as f:
        text = f.read()
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for line in block.split("\n")[:-1]:
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def pattern(lines):
    text = "\n".join(lines)
    return re.sub(r"(?:\\\.){3}", ".*", re.escape(text))


def run(tour):
    """Standard output of each step; one shell, so that variables stay."""
    script = "".join(f'{cmd}\n{{ s=$?; printf "%s\\n" "{MARK}"; '
                     '(exit $s); }\n' for cmd, _ in tour)
    env = dict(os.environ, PATH=os.path.dirname(os.environ["SANDBOXD_CTL"]) +
               ":" + os.environ["PATH"])
    with tempfile.TemporaryDirectory() as d:
        r = subprocess.run(["bash", "-c", script], cwd=d, env=env, text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           errors="replace")
    return r.stdout.split(MARK + "\n")[:-1]


def main():
    tour = steps()
    out = run(tour)
    failed = 0
    for n, (cmd, want) in enumerate(tour, 1):
        got = out[n - 1] if n <= len(out) else None
        good = got is not None and re.fullmatch(pattern(want),
                                                got.rstrip("\n"))
        failed += not good
        print(f"{'' if good else 'not '}ok {n} - tour: {cmd[:60]}")
        if not good:
            print(f"# want {want}\n# got {got!r}")
    print(f"1..{len(tour)}")
    return failed != 0 or len(tour) < 10


if "SANDBOXD_SOCKET" not in os.environ:
    os.execv(ROOT + "/regress/with-daemon",
             [ROOT + "/regress/with-daemon", __file__])
sys.exit(main())
