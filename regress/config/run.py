#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""sandboxd -n against the files of this folder.

pass-X.conf is right; what -v prints is in pass-X.ok, if that is there, and reads
back to the same.  fail-X.conf gives exactly the messages in fail-X.ok.  The
files are copied first, so that owner and mode of a check-out do not matter."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
SANDBOXD = os.path.abspath(os.path.join(
    os.environ.get("B", os.path.join(TOP, "build")), "sandboxd"))
count = 0
failed = 0


def ok(good, name, why=""):
    global count, failed
    count += 1
    print("%sok %d - %s" % ("" if good else "not ", count, name))
    if not good:
        failed += 1
        for line in str(why).splitlines():
            print("# " + line)


def check(path, *options):
    """(exit status, stdout, stderr)"""
    r = subprocess.run([SANDBOXD, "-n", *options, "-f", path],
                       capture_output=True, timeout=20, check=False,
                       env={"LC_ALL": "C"})
    return r.returncode, r.stdout.decode(), r.stderr.decode()


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return f.read()


def write(name, text, mode=0o644):
    with open(name, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(name, mode)


def test_pass(name):
    status, out, err = check(name + ".conf", "-v")
    ok(status == 0, name + ": accepted", err)
    if os.path.exists(os.path.join(HERE, name + ".ok")):
        ok(out == read(name + ".ok"), name + ": printed as expected", out)
    write("again.conf", out)
    status, again, err = check("again.conf", "-v")
    ok(status == 0 and again == out and out != "",
       name + ": printed form reads back to itself", err + again)


def test_fail(name):
    status, out, err = check(name + ".conf")
    ok(status != 0 and out == "", name + ": refused", out)
    ok(err == read(name + ".ok"), name + ": exact messages", err)


def test_last_wins():
    _, out, _ = check("pass-again.conf", "-v")
    lines = out.splitlines()
    ok('state "/srv/second"' in lines and "dns { 192.0.2.4 }" in lines,
       "a later statement replaces an earlier one", out)


def test_example():
    """Every default of the code stands in etc/sandboxd.conf."""
    with open(os.path.join(TOP, "etc", "sandboxd.conf"),
              encoding="utf-8") as f:
        text = f.read()
    write("example.conf", text)
    write("uncommented.conf", re.sub(r"(?m)^#(?=[a-z])", "", text))
    status, _, err = check("example.conf")
    ok(status == 0, "example: accepted as it is", err)
    status, out, err = check("uncommented.conf", "-v")
    ok(status == 0, "example: accepted without its comment signs", err)
    _, defaults, _ = check("pass-empty.conf", "-v")
    by_place = ("kernel ", "initramfs ", "templates ", "libexec ")

    def plain(t):
        return [x for x in t.splitlines() if not x.startswith(by_place)]
    ok(plain(out) == plain(defaults), "example: shows the defaults",
       out + "---\n" + defaults)
    stated = {x.split()[0] for x in out.splitlines()}
    shown = {x[1:].split()[0] for x in text.splitlines()
             if re.match("#[a-z]", x)}
    ok(stated - shown <= {"tag", "front", "netd"},
       "example: no statement is missing", stated - shown)


def test_tag():
    """A tag follows the directory, not its spelling, made or not."""
    def tag(state):
        write("t.conf", 'state "%s"\n' % state)
        _, out, _ = check("t.conf", "-v")
        return re.search(r'(?m)^tag "([a-z2-7]{4})"$', out).group(1)
    here = os.path.realpath(".")
    os.symlink(here, "link")
    os.mkdir("made")
    a, b = tag(here + "/made"), tag(here + "/link/made")
    ok(a == b, "tag: the same through a symbolic link", (a, b))
    before = tag(here + "/link/later/deep")
    os.makedirs("later/deep")
    ok(before == tag(here + "/later/deep"),
       "tag: the same before and after the directory is made")
    ok(a != before, "tag: two directories differ")


def test_secrecy():
    write("mode.conf", "", 0o664)
    _, _, err = check("mode.conf")
    text = "mode.conf: group or others can write to it; chmod go-w it\n"
    ok(err == text, "a file that its group can write to is refused", err)
    os.chmod("mode.conf", 0o646)
    _, _, err = check("mode.conf")
    ok(err == text, "a file that others can write to is refused", err)
    if os.geteuid() == 0:
        os.chmod("mode.conf", 0o644)
        os.chown("mode.conf", 65534, 65534)
        _, _, err = check("mode.conf")
        ok(err == "mode.conf: owned by uid 65534, not by root or the "
           "caller\n", "a file of somebody else's is refused", err)
    else:
        ok(True, "a file of somebody else's is refused # SKIP needs root")
    status, _, err = check("nowhere.conf")
    ok(status != 0 and err == "nowhere.conf: No such file or directory\n",
       "a file that is not there is refused", err)
    os.mkdir("folder.conf")
    _, _, err = check("folder.conf")
    ok(err == "folder.conf: not a regular file\n", "a folder is refused", err)


def test_long():
    """Many faults, and a file without an end: bounded, no crash."""
    write("many.conf", "bad\n" * 5000)
    _, _, err = check("many.conf")
    ok(len(err.splitlines()) == 5000, "5000 faults give 5000 messages",
       len(err.splitlines()))
    write("one.conf", "state " + "x" * 3000000)
    status, _, err = check("one.conf")
    ok(status == 1 and err == "one.conf:1: line is too long\n",
       "a line of 3 MB is one fault", err[:200])


def main():
    if not os.access(SANDBOXD, os.X_OK):
        print("Bail out! %s is not built" % SANDBOXD)
        return 1
    with tempfile.TemporaryDirectory(prefix="config-test-") as tmp:
        os.chdir(tmp)
        for f in sorted(os.listdir(HERE)):
            if f.endswith(".conf"):
                shutil.copyfile(os.path.join(HERE, f), f)
                os.chmod(f, 0o644)
        for f in sorted(os.listdir(".")):
            name = f.removesuffix(".conf")
            if name.startswith("pass-"):
                test_pass(name)
            elif name.startswith("fail-"):
                test_fail(name)
        test_last_wins()
        test_example()
        test_tag()
        test_secrecy()
        test_long()
        os.chdir("/")
    print("1..%d" % count)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
