#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=180
"""sandboxctl exec and run against a fake API: bytes, exit statuses, signals,
slow readers, terminals, and a server that dies."""
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

import fake_api
import tap


def rss_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    return 0


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def check_statuses(t):
    with fake_api.FakeApi() as api:
        box = api.add()
        for argv, want in ((["exit", "0"], 0), (["exit", "7"], 7),
                           (["exit", "255"], 255), (["killed", "9"], 137),
                           (["killed", "15"], 143), (["missing"], 127),
                           (["exit", "126"], 126), (["timed_out"], 137),
                           (["oom"], 137), (["break"], 125),
                           (["break", "1011"], 125), (["break", "1001"], 125),
                           (["error"], 125), (["silent_end"], 5)):
            r = api.ctl("exec", box, "--", *argv)
            t.equal(r.returncode, want, "exec: %s -> %d" % (
                " ".join(argv), want))
            if argv[0] == "timed_out":
                t.ok(b"ran longer" in r.stderr, "exec: timed out -> said",
                     r.stderr)
            elif argv[0] == "oom":
                t.ok(b"out of memory" in r.stderr, "exec: oom -> said",
                     r.stderr)
            elif argv[0] == "missing":
                t.equal(r.stderr,
                        b"sandboxctl: missing: No such file or directory\n",
                        "exec: cannot be invoked -> said")
            elif argv[0] == "error":
                t.ok(b"exec: Sandbox is gone: deleted by a client" in r.stderr,
                     "exec: error event -> said", r.stderr)
            elif argv[0] == "break":
                t.ok(r.stdout == b"half\n" and
                     r.stderr.startswith(b"sandboxctl: exec: "),
                     "exec: end without process_exited -> output kept, "
                     "failure said", r)
        r = api.ctl("exec", "sb-" + "q" * 16, "--", "true")
        t.equal(r.returncode, 125, "exec: no such sandbox -> 125")
        for args in ([], [box], [box, "--"], [box, "-i", "--", "x"],
                     ["-t", box, "--", "x"], ["--timeout", "0", box, "x"],
                     ["--json", box, "x"], ["-Z", box, "x"]):
            r = api.ctl("exec", *args)
            t.ok(r.returncode == 125 and b"usage:" in r.stderr,
                 "exec: %r -> usage, 125" % (args[:2],), r)
        t.equal(api.faults, [], "exec: every frame was well formed")


def check_spec(t):
    with fake_api.FakeApi() as api:
        box = api.add(name="n")
        r = api.ctl("exec", "-i", "-e", "A=1", "-e", "A=2", "-e", "B=x=y\nz",
                    "-w", "/tmp dir", "-u", "1000:5", "--timeout", "9", "n",
                    "--", "spec", "--", "-x", "", "a b", "é\u202e'\"\\$\n")
        t.equal(json.loads(r.stdout), {
            "type": "start", "argv": ["spec", "--", "-x", "", "a b",
                                      "é\u202e'\"\\$\n"],
            "env": {"A": "2", "B": "x=y\nz"}, "cwd": "/tmp dir",
            "user": "1000:5", "timeout_s": 9, "stdin": True,
            "on_disconnect": "keep"}, "exec: words arrive as they are")
        r = api.ctl("exec", box, "spec", "-i", "--help")
        t.equal(json.loads(r.stdout), {
            "type": "start", "argv": ["spec", "-i", "--help"], "stdin": False,
            "on_disconnect": "keep"}, "exec: without -- the same")
        r = api.ctl("exec", box, "--", "spec", b"\xff\xfe")
        t.ok(r.returncode == 125 and b"UTF-8" in r.stderr,
             "exec: an argument that is no text -> 125", r)
        big = ["spec"] + ["x" * 1000] * 900
        r = api.ctl("exec", box, "--", *big)
        t.equal(json.loads(r.stdout)["argv"], big,
                "exec: 900 kB of arguments arrive")
        r = api.ctl("exec", box, "--", *(big * 2))
        t.ok(r.returncode == 125 and b"does not fit" in r.stderr,
             "exec: over 1 MiB -> 125", r.stderr[:200])


def check_bytes(t):
    with fake_api.FakeApi() as api:
        box = api.add()
        r = api.ctl("exec", box, "--", "both")
        t.equal((r.stdout, r.stderr), (b"to stdout\n", b"to stderr\n"),
                "exec: stdout and stderr apart, byte for byte")
        n = 5 * 1024 * 1024 + 77
        r = api.ctl("exec", box, "--", "random", str(n), "7")
        t.equal(hashlib.sha256(r.stdout).digest(),
                hashlib.sha256(random.Random(7).randbytes(n)).digest(),
                "exec: 5 MiB of random output in odd frames -> same bytes")
        data = random.Random(8).randbytes(10 * 1000 * 1000)
        r = api.ctl("exec", "-i", box, "--", "sha256", input=data)
        t.equal(r.stdout.decode().strip(), hashlib.sha256(data).hexdigest(),
                "exec: 10 MB through stdin -> same sha256")
        r = api.ctl("exec", "-i", box, "--", "cat", input=b"")
        t.equal((r.returncode, r.stdout), (0, b""),
                "exec: empty stdin -> EOF at once")
        r = api.ctl("exec", "-i", box, "--", "cat", stdin=None,
                    preexec_fn=lambda: os.close(0))
        t.equal((r.returncode, r.stdout), (0, b""),
                "exec: stdin closed -> EOF at once")
        r = api.ctl("exec", box, "--", "random", "100000", "1",
                    preexec_fn=lambda: os.close(2))
        t.ok(r.returncode == 0 and len(r.stdout) == 100000,
             "exec: stderr closed -> goes on", r.returncode)
        with open(api.dir + "/in", "wb") as f:
            f.write(data)
        with open(api.dir + "/in", "rb") as f, \
                open(api.dir + "/out", "wb") as g:
            r = api.ctl("exec", "-i", box, "--", "cat", stdin=f, stdout=g)
        with open(api.dir + "/out", "rb") as g:
            t.ok(g.read() == data, "exec: file to file -> same bytes")
        # An exec that ends while we still have input must not wait for it.
        p = api.popen("exec", "-i", box, "--", "exit", "4",
                      stdin=subprocess.PIPE)
        try:
            t.equal(p.wait(10), 4, "exec: ends although stdin stays open")
        finally:
            p.stdin.close()


def check_pipe_flags(t):
    """O_NONBLOCK on a shared pipe would break its other users."""
    with fake_api.FakeApi() as api:
        box = api.add()
        r, w = os.pipe()
        p = api.popen("exec", box, "--", "sleep", "0.5", stdout=w)
        os.read(r, 100)
        t.equal(fcntl.fcntl(w, fcntl.F_GETFL) & os.O_NONBLOCK, 0,
                "exec: our stdout is not made non-blocking")
        p.wait(10)
        os.close(r)
        os.close(w)


def check_slow(t):
    with fake_api.FakeApi() as api:
        box = api.add()
        p = api.popen("exec", box, "--", "endless")
        p.stdout.read(1 << 20)
        before = rss_kib(p.pid)
        s = api.streams[-1]
        time.sleep(0.5)
        taken = s.sent[1]
        time.sleep(1.5)
        t.ok(s.sent[1] == taken, "slow stdout: the socket is not read on",
             (s.sent, taken))
        t.ok(rss_kib(p.pid) - before < 512, "slow stdout: memory is flat",
             (before, rss_kib(p.pid)))
        for _ in range(64):
            p.stdout.read(1 << 20)
        t.ok(rss_kib(p.pid) - before < 512, "64 MiB later: memory is flat",
             (before, rss_kib(p.pid)))
        t.ok(until(lambda: s.sent[1] > taken), "slow stdout: goes on after")
        p.stdout.close()
        t.equal(p.wait(10), 141, "stdout closed -> ends as by SIGPIPE")
        t.equal(p.stderr.read(), b"", "stdout closed -> without a word")
        t.ok(until(lambda: s.closed), "stdout closed -> the server sees it")
        full = open("/dev/full", "wb")
        r = api.ctl("exec", box, "--", "echo", "x", stdout=full)
        t.ok(r.returncode == 125 and b"stdout: No space" in r.stderr,
             "stdout full -> 125 and why", r)
        r = api.ctl("ls", stdout=full)
        t.ok(r.returncode == 1 and b"stdout: No space" in r.stderr,
             "ls, stdout full -> 1 and why", r)


def check_stuck_pongs(t):
    """Pings lie behind the output that waits: pongs come unasked."""
    with fake_api.FakeApi() as api:
        box = api.add()

        def flood(s, argv):
            s.conn.settimeout(1)
            try:
                while True:
                    s.out(bytes(30000))
            except fake_api.Gone:
                pass
            s.conn.settimeout(15)
            end = time.monotonic() + 15
            while not s.pongs and time.monotonic() < end:
                s.take()

        api.commands["flood"] = flood
        p = api.popen("exec", box, "--", "flood")
        t.ok(until(lambda: api.streams and api.streams[-1].pongs, 15),
             "stdout stuck for 10 s -> a pong all the same")
        p.stdout.close()
        p.wait(10)


def check_signals(t):
    with fake_api.FakeApi() as api:
        box = api.add()
        for sig, name in ((signal.SIGINT, "INT"), (signal.SIGTERM, "TERM"),
                          (signal.SIGHUP, "HUP"), (signal.SIGQUIT, "QUIT")):
            p = api.popen("exec", box, "--", "sleep", "30")
            p.stdout.readline()
            p.send_signal(sig)
            t.equal(p.wait(10), 128 + sig, "SIG%s: the command's end -> %d" % (
                name, 128 + sig))
            t.equal(api.streams[-1].signals, [name], "SIG%s: forwarded" % name)
        p = api.popen("exec", box, "--", "deaf")
        p.stdout.readline()
        p.send_signal(signal.SIGTERM)
        s = api.streams[-1]
        t.ok(until(lambda: s.signals == ["TERM"]), "deaf: first is forwarded")
        time.sleep(0.2)
        t.equal(p.poll(), None, "deaf: first does not end us")
        p.send_signal(signal.SIGINT)
        t.equal(p.wait(10), 130, "deaf: the second ends us")
        t.ok(until(lambda: s.closed), "deaf: the server sees us go")
        t.equal(s.signals, ["TERM"], "deaf: the second is not forwarded")

        def ignore():
            signal.signal(signal.SIGINT, signal.SIG_IGN)

        p = api.popen("exec", box, "--", "sleep", "1", preexec_fn=ignore)
        p.stdout.readline()
        p.send_signal(signal.SIGINT)
        t.equal((p.wait(10), api.streams[-1].signals), (0, []),
                "SIGINT ignored at our start -> stays ignored")

        # A server that does not read: the signal cannot be sent.
        def blocked(s, argv):
            time.sleep(60)

        api.commands["blocked"] = blocked
        p = api.popen("exec", "-i", box, "--", "blocked",
                      stdin=open("/dev/zero", "rb"))
        time.sleep(0.5)
        start = time.monotonic()
        p.send_signal(signal.SIGTERM)
        t.equal(p.wait(20), 143, "stream that takes nothing -> ends anyway")
        t.ok(3 < time.monotonic() - start < 8, "... after 5 s",
             time.monotonic() - start)


def check_run(t):
    with fake_api.FakeApi() as api:
        for argv, want in ((["echo", "hi"], 0), (["exit", "9"], 9),
                           (["missing"], 127), (["break"], 125),
                           (["error"], 125), (["killed", "9"], 137)):
            r = api.ctl("run", "seed", "--", *argv)
            t.equal((r.returncode, api.boxes, len(api.asked("DELETE"))),
                    (want, {}, 1), "run: %s -> %d, deleted" % (
                        " ".join(argv), want))
            api.requests.clear()
        r = api.ctl("run", "--memory", "99", "--timeout", "1000", "-i", "tpl",
                    "--", "spec")
        create = [q for q in api.requests if q[0] == "POST"][0][2]
        t.equal(create, {"template": "tpl", "on_disconnect": "delete",
                         "memory_mib": 99, "timeout_s": 1150},
                "run: the sandbox outlives the command's time limit")
        t.equal(json.loads(r.stdout)["on_disconnect"], "delete",
                "run: the stream says delete")
        r = api.ctl("run", "none", "--", "true")
        t.equal(r.returncode, 125, "run: no such template -> 125")
        r = api.ctl("run", "seed")
        t.equal(r.returncode, 125, "run: no command -> 125")
        for sig in (signal.SIGINT, signal.SIGTERM):
            p = api.popen("run", "seed", "--", "sleep", "30")
            p.stdout.readline()
            p.send_signal(sig)
            why = p.communicate(timeout=10)[1]
            t.equal((p.returncode, why, api.boxes), (128 + sig, b"", {}),
                    "run: %s -> forwarded, deleted" % sig.name)
            p = api.popen("run", "seed", "--", "deaf")
            p.stdout.readline()
            p.send_signal(sig)
            time.sleep(0.2)
            p.send_signal(sig)
            t.equal((p.wait(10), api.boxes), (128 + sig, {}),
                    "run: %s twice at a deaf command -> deleted" % sig.name)
            api.create_delay = 0.7
            p = api.popen("run", "seed", "--", "echo", "never")
            until(lambda: api.asked("POST"))
            time.sleep(0.2)
            p.send_signal(sig)
            out = p.communicate(timeout=10)[0]
            t.equal((p.returncode, out, api.boxes), (128 + sig, b"", {}),
                    "run: %s during create -> nothing runs, deleted" %
                    sig.name)
            api.create_delay = 0
            api.requests.clear()
        p = api.popen("run", "seed", "--", "endless")
        p.stdout.read(1000)
        p.stdout.close()
        t.equal((p.wait(10), api.boxes), (141, {}),
                "run: stdout closed -> deleted")
        p = api.popen("run", "seed", "--", "sleep", "30")
        p.stdout.readline()
        p.kill()
        p.wait()
        t.ok(until(lambda: not api.boxes),
             "run: SIGKILL -> the stream's end says delete")

        def refuse(conn):
            return fake_api.problem(500, "internal", "Internal error")

        real = api.route

        def route(method, target, body, fields):
            if method == "DELETE":
                return refuse(None)
            return real(method, target, body, fields)

        api.route = route
        r = api.ctl("run", "seed", "--", "echo", "x")
        t.ok(r.returncode == 125 and r.stdout == b"x\n" and
             b"not deleted" in r.stderr,
             "run: delete fails -> said, 125 where the command's was 0", r)
        r = api.ctl("run", "seed", "--", "exit", "3")
        t.equal(r.returncode, 3, "run: delete fails -> the command's own else")


def set_size(fd, cols, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


class Terminal:
    """sandboxctl on a pseudo terminal of its own session."""

    def __init__(self, api, *args):
        self.master, self.slave = pty.openpty()
        set_size(self.slave, 101, 33)
        self.before = termios.tcgetattr(self.slave)

        def session():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.p = api.popen(*args, stdin=self.slave, stdout=self.slave,
                           stderr=self.slave, preexec_fn=session)
        self.seen = b""

    def expect(self, what, seconds=10):
        end = time.monotonic() + seconds
        while what not in self.seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [],
                                              left)[0]:
                return False
            self.seen += os.read(self.master, 65536)
        self.seen = self.seen.split(what, 1)[1]
        return True

    def raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        os.close(self.master)
        os.close(self.slave)


def check_tty(t):
    with fake_api.FakeApi() as api:
        box = api.add()
        term = Terminal(api, "exec", "-t", box, "--", "sizes")
        t.ok(term.expect(b"101x33"), "tty: size at the start")
        t.equal(api.streams[-1].start.get("tty"), True, "tty: asked for")
        t.ok(term.raw(), "tty: raw mode")
        set_size(term.slave, 120, 40)
        t.ok(term.expect(b"120x40"), "tty: SIGWINCH -> resize")
        os.write(term.master, b"\x03")
        t.ok(term.expect(b"key \x03"), "tty: ^C goes to the guest as a byte")
        os.write(term.master, b"\x1a")
        t.ok(term.expect(b"key \x1a"), "tty: ^Z too")
        os.kill(term.p.pid, signal.SIGTSTP)
        t.ok(until(lambda: open("/proc/%d/stat" % term.p.pid).read().split(
            ")")[1].split()[0] == "T"), "tty: SIGTSTP from outside -> stops")
        t.ok(term.restored(), "tty: restored while stopped")
        set_size(term.slave, 90, 20)
        os.kill(term.p.pid, signal.SIGCONT)
        t.ok(term.expect(b"90x20"), "tty: goes on, with the new size")
        t.ok(term.raw(), "tty: raw again")
        os.write(term.master, b"q")
        t.equal(term.p.wait(10), 3, "tty: exit status")
        t.ok(term.restored(), "tty: restored at the end")
        term.close()
        for argv, sig, want in ((["break"], 0, 125), (["error"], 0, 125),
                                (["sleep", "30"], signal.SIGTERM, 143),
                                (["deaf"], signal.SIGINT, 130),
                                (["deaf"], signal.SIGSEGV, -11),
                                (["deaf"], signal.SIGABRT, -6)):
            term = Terminal(api, "exec", "-t", box, "--", *argv)
            term.expect(b"started" if sig else b"half", 2)
            if sig:
                term.p.send_signal(sig)
                time.sleep(0.2)
                if argv[0] == "deaf" and sig == signal.SIGINT:
                    term.p.send_signal(sig)
            t.equal(term.p.wait(10), want, "tty: %s, signal %d -> %d" % (
                argv[0], sig, want))
            t.ok(term.restored(), "tty: restored after that")
            term.close()
        term = Terminal(api, "exec", box, "--", "sleep", "30")
        term.expect(b"started")
        t.ok(not term.raw(), "no -t: the terminal is left alone")
        os.write(term.master, b"\x03")
        t.equal(term.p.wait(10), 130, "no -t: ^C is a signal, forwarded")
        term.close()


def main():
    tap.default_signals()
    t = tap.Tap()
    t.run(check_statuses, check_spec, check_bytes, check_pipe_flags,
          check_slow, check_stuck_pongs, check_signals, check_run, check_tty)
    return t.done()


sys.exit(main())
