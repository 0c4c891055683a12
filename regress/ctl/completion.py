#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The completions know what sandboxctl knows: bash is really asked, and every
command and long option of the help is looked for in both files."""
import os
import re
import subprocess
import sys

import fake_api
import tap

FILES = {n: os.path.join(fake_api.ROOT, "etc/completions", n)
         for n in ("sandboxctl.bash", "_sandboxctl")}
SCRIPT = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sandboxctl
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(api, *words):
    env = api.env(PATH=os.path.dirname(fake_api.CTL) + ":" +
                  os.environ["PATH"])
    r = subprocess.run(["bash", "-c", SCRIPT, "bash", FILES["sandboxctl.bash"],
                        *words], env=env, capture_output=True, text=True,
                       check=False, timeout=30)
    return sorted(r.stdout.split()) if not r.stderr else r.stderr


def check_bash(t):
    with fake_api.FakeApi() as api:
        one = api.add("sb-aaaaaaaaaaaaaaaa", name="web")
        two = api.add("sb-bbbbbbbbbbbbbbbb")
        for words, want in (
                (["sandboxctl", "e"], ["exec"]),
                (["sandboxctl", "-s", api.path, "he"], ["health", "help"]),
                (["sandboxctl", "exec", ""], sorted([one, two, "web"])),
                (["sandboxctl", "exec", "sb-b"], [two]),
                (["sandboxctl", "exec", "-e", "A=b", "w"], ["web"]),
                (["sandboxctl", "rm", one, "sb-b"], [two]),
                (["sandboxctl", "show", "--js"], ["--json"]),
                (["sandboxctl", "show", one, ""], []),
                (["sandboxctl", "exec", one, "--", "--ti"], []),
                (["sandboxctl", "run", "s"], ["seed"]),
                (["sandboxctl", "create", "--on-disconnect", ""],
                 ["delete", "keep"]),
                (["sandboxctl", "help", "wa"], ["wait"])):
            t.equal(complete(api, *words), want,
                    "bash: %s" % " ".join(words[1:]))
        t.equal(complete(api, "sandboxctl", "-s", "/nonexistent", "exec", ""),
                [], "bash: no daemon -> nothing, and no noise")


def check_words(t):
    with fake_api.FakeApi() as api:
        overview = api.ctl("help").stdout.decode()
        commands = re.findall(r"^  (\w+) ", overview, re.M)
        wanted = set(commands)
        for c in commands:
            usage = api.ctl("help", c).stdout.decode().split("\n\n")[0]
            wanted |= set(re.findall(r"--[a-z][a-z-]*", usage))
        for name, path in FILES.items():
            with open(path) as f:
                text = f.read()
            missing = [w for w in sorted(wanted) if not re.search(
                r"(?<![\w-])%s(?![\w-])" % re.escape(w), text)]
            t.equal(missing, [], "%s: knows %d words of the help" % (
                name, len(wanted)))
        with open(os.path.join(fake_api.ROOT, "man/sandboxctl.8")) as f:
            page = f.read().replace("Fl Fl ", "--").replace("Cm ", "")
        t.equal([w for w in sorted(wanted) if not re.search(
            r"(?<![\w-])%s(?![\w-])" % re.escape(w), page)], [],
            "sandboxctl(8): knows them, too")


def main():
    t = tap.Tap()
    t.run(check_bash, check_words)
    return t.done()


sys.exit(main())
