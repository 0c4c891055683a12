#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=600
"""sandboxctl beside the real daemon and real VMs: statuses, bytes, signals, a
terminal, and a sandbox of run's that goes whatever happens to its client."""
import fcntl
import hashlib
import json
import os
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import daemon
daemon.need()
import tap

CTL = os.environ["SANDBOXD_CTL"]
BOX = "real"                    # a name, resolved each time
STALL_S = 70                    # over the daemon's HTTP_STALL_MS


def ctl(*args, **how):
    how.setdefault("timeout", 180)
    if "input" not in how:
        how.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([CTL, *args], capture_output=True, check=False,
                          **how)


def popen(*args, **how):
    how.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([CTL, *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **how)


def sh(script, *options, **how):
    return ctl("exec", *options, BOX, "--", "sh", "-c", script, **how)


def ids():
    return ctl("ls", "-q").stdout.decode().split()


def gone(count, seconds=30):
    """Only so many sandboxes are left, soon."""
    end = time.monotonic() + seconds
    while len(ids()) != count and time.monotonic() < end:
        time.sleep(0.2)
    return len(ids()) == count


class Stalled:
    """An exec whose output nobody reads for longer than the daemon's patience
    with a client that says nothing."""

    def __init__(self):
        self.p = popen("exec", BOX, "--", "sh", "-c",
                       "head -c 20000000 /dev/zero; echo end >&2; exit 9")
        self.since = time.monotonic()

    def check(self, t):
        time.sleep(max(0, STALL_S - (time.monotonic() - self.since)))
        out, err = self.p.communicate(timeout=120)
        t.equal((self.p.returncode, len(out), err), (9, 20000000, b"end\n"),
                "stdout stuck for %d s -> all of the output after that" %
                STALL_S)


def check_create(t):
    r = ctl("create", "--name", BOX, "--timeout", "900", "--metadata", "a=b",
            "-e", "FROM=create")
    box = r.stdout.decode().strip()
    t.ok(r.returncode == 0 and ids() == [box], "create: listed", r)
    shown = json.loads(ctl("show", "--json", box[3:9]).stdout)
    t.equal((shown["sandbox_id"], shown["state"], shown["name"],
             shown["metadata"], shown["on_disconnect"]),
            (box, "running", BOX, {"a": "b"}, "keep"),
            "show: by a prefix without \"sb-\"")
    t.equal(ctl("wait", "--state", "running", BOX).returncode, 0,
            "wait: it runs")
    r = ctl("create", "nosuch")
    t.equal(r.returncode, 3, "create: no such template -> 3")
    r = ctl("create", "--memory", "262144")
    t.ok(r.returncode == 1 and b"memory_mib" in r.stderr,
         "create: over the maximum -> 1, and which member", r)
    health = json.loads(ctl("health", "--json").stdout)
    t.equal(health["sandboxes"]["running"], 1, "health: counts it")


def check_statuses(t):
    for script, want in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137),
                         ("kill -15 $$", 143), ("no-such-program", 127)):
        t.equal(sh(script).returncode, want, "sh: %s -> %d" % (script, want))
    r = ctl("exec", BOX, "--", "no-such-program")
    t.ok(r.returncode == 127 and b"no-such-program" in r.stderr,
         "exec: no such program -> 127, and its name", r)
    r = ctl("exec", BOX, "--", "/etc/passwd")
    t.equal(r.returncode, 126, "exec: not executable -> 126")
    r = ctl("exec", "-w", "/no/where", BOX, "--", "pwd")
    t.ok(r.returncode == 125 and b"/no/where" in r.stderr,
         "exec: no such directory -> 125, and its name", r)
    r = ctl("exec", "-u", "nobody-here", BOX, "--", "id")
    t.ok(r.returncode == 125 and b"nobody-here" in r.stderr,
         "exec: no such user -> 125, and its name", r)
    began = time.monotonic()
    r = sh("setsid sleep 100 & sleep 100", "--timeout", "1")
    took = time.monotonic() - began
    t.ok(r.returncode == 137 and b"longer than 1 s" in r.stderr and took < 20,
         "exec: --timeout 1 -> 137 and why", (r, took))
    r = sh('echo $FROM $A; pwd; id -u', "-e", "A=x y", "-w", "/tmp",
           "-u", "1000")
    t.equal(r.stdout, b"create x y\n/tmp\n1000\n",
            "exec: environment, directory, user")
    r = ctl("exec", BOX, "--", "printf", "%s.", "", "a b", "'\"$`\\", "é\n")
    t.equal(r.stdout, ".a b.'\"$`\\.é\n.".encode(),
            "exec: arguments arrive as they are")


def check_bytes(t):
    r = sh("echo out; echo err >&2")
    t.equal((r.stdout, r.stderr), (b"out\n", b"err\n"),
            "exec: stdout and stderr apart")
    data = random.Random(3).randbytes(10 * 1000 * 1000)
    r = sh("cat", "-i", input=data)
    t.equal(hashlib.sha256(r.stdout).digest(), hashlib.sha256(data).digest(),
            "exec -i: 10 MB of random bytes there and back")
    r = sh("cat; echo done")
    t.equal(r.stdout, b"done\n", "exec without -i: cat ends at once")
    p = popen("exec", BOX, "--", "yes")
    p.stdout.read(1000000)
    p.stdout.close()
    t.equal(p.wait(30), 141, "exec yes | head: ends as by SIGPIPE")
    p.stderr.close()
    end = time.monotonic() + 10
    while b"yes" in sh("ps -o comm").stdout and time.monotonic() < end:
        time.sleep(0.2)
    t.ok(b"yes" not in sh("ps -o comm").stdout, "... and yes is ended, too")


def check_signals(t):
    trap = "trap 'echo got; exit 5' %s; echo ready; while :; do sleep 0.1; done"
    for sig in ("TERM", "INT", "HUP"):
        p = popen("exec", BOX, "--", "sh", "-c", trap % sig)
        p.stdout.readline()
        p.send_signal(getattr(signal, "SIG" + sig))
        out, _ = p.communicate(timeout=30)
        t.equal((p.returncode, out), (5, b"got\n"),
                "SIG%s: the program's own handler runs" % sig)
    p = popen("exec", BOX, "--", "sh", "-c", "trap '' TERM; echo ready; "
              "sleep 1000")
    p.stdout.readline()
    p.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    p.send_signal(signal.SIGTERM)
    t.equal(p.wait(10), 143, "SIGTERM twice at who ignores it -> we end")


def check_terminal(t):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    before = termios.tcgetattr(slave)

    def session():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    p = subprocess.Popen([CTL, "exec", "-t", BOX, "--", "sh"], stdin=slave,
                         stdout=slave, stderr=slave, preexec_fn=session)
    seen = b""

    def expect(what, seconds=20):
        nonlocal seen
        end = time.monotonic() + seconds
        while what not in seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([master], [], [], left)[0]:
                return False
            seen += os.read(master, 65536)
        seen = seen.split(what, 1)[1]
        return True

    try:
        os.write(master, b"stty size; tty\n")
        t.ok(expect(b"33 101"), "tty: the guest's has our size", seen)
        t.ok(expect(b"/dev/pts/"), "tty: it is one", seen)
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 50, 90, 0, 0))
        time.sleep(0.5)
        os.write(master, b"stty size\n")
        t.ok(expect(b"50 90"), "tty: SIGWINCH -> resized", seen)
        os.write(master, b"sleep 1000\n")
        time.sleep(0.5)
        os.write(master, b"\x03")
        time.sleep(0.3)
        os.write(master, b"echo c=$?\n")
        t.ok(expect(b"c=130"), "tty: ^C interrupts in the guest", seen)
        os.write(master, b"exit 6\n")
        t.equal(p.wait(20), 6, "tty: the shell's status")
        t.ok(termios.tcgetattr(slave) == before, "tty: restored")
    finally:
        p.kill()
        os.close(master)
        os.close(slave)


def check_run(t):
    n = len(ids())
    for argv, want in ((["sh", "-c", "exit 3"], 3), (["nope"], 127)):
        r = ctl("run", "seed", "--", *argv)
        t.ok(r.returncode == want and len(ids()) == n,
             "run: %s -> %d, deleted" % (argv[0], want), r)
    for sig, want in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        p = popen("run", "seed", "--", "sh", "-c", "echo up; sleep 1000")
        p.stdout.readline()
        p.send_signal(sig)
        t.ok(p.wait(30) == want and len(ids()) == n,
             "run: %s -> forwarded, deleted" % sig.name, p.returncode)
    p = popen("run", "seed", "--", "sh", "-c", "echo up; sleep 1000")
    p.stdout.readline()
    p.kill()
    p.wait()
    t.ok(gone(n), "run: SIGKILL -> the sandbox goes", ids())
    p = popen("run", "seed", "--", "true")
    time.sleep(0.3)
    p.kill()
    p.wait()
    t.ok(gone(n), "run: SIGKILL during create -> the sandbox goes", ids())
    p = popen("run", "seed", "--", "true")
    time.sleep(0.3)
    p.send_signal(signal.SIGTERM)
    t.ok(p.wait(60) == 143 and len(ids()) == n,
         "run: SIGTERM during create -> 143, nothing is left", p.returncode)


def check_gone(t):
    p = popen("exec", BOX, "--", "sh", "-c", "echo up; sleep 1000")
    p.stdout.readline()
    box = ids()[0]
    t.equal(ctl("rm", BOX).returncode, 0, "rm: by name")
    t.equal(p.wait(10), 125, "exec: the sandbox goes -> 125")
    err = p.stderr.read()
    t.ok(b"gone" in err.lower(), "... and says so", err)
    t.equal(ctl("rm", box).returncode, 0, "rm: again, whole id -> 0")
    t.equal(ctl("rm", BOX).returncode, 3, "rm: again, by name -> 3")
    t.equal(ctl("wait", box).returncode, 0, "wait: gone -> 0")
    t.equal(ctl("show", box).returncode, 3, "show: gone -> 3")
    t.equal(ids(), [], "ls: nothing is left")
    r = ctl("doctor")
    t.ok(r.returncode == 0 and b"0 left over" in r.stdout,
         "doctor: nothing is left", r)


def main():
    tap.default_signals()
    t = tap.Tap()
    t.run(check_create)
    stalled = Stalled()
    t.run(check_statuses, check_bytes, check_signals, check_terminal,
          check_run, stalled_check(stalled), check_gone)
    return t.done()


def stalled_check(stalled):
    def check_stalled(t):
        stalled.check(t)
    return check_stalled


sys.exit(main())
