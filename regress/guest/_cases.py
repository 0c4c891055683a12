# SPDX-License-Identifier: ISC
"""What a command must be like, in a VM and without one.

Each case takes a Tap and a Place: .host (a connected gproto.Host), .vm, .root
(may become another user).  The numbers are those of the project's list of
faults that users of other systems met.
"""
import hashlib
import os
import random
import signal
import struct
import time

import gproto

INITIAL = gproto.WINDOW


class Place:
    def __init__(self, host, vm, root=True):
        self.host, self.vm, self.root = host, vm, root

    def sh(self, script, **kw):
        return self.host.run(["sh", "-c", script], **kw)


def refused(t, place, stage, errno, name, argv=("true",), **kw):
    try:
        r = place.host.run(list(argv), **kw)
        t.ok(False, name, "ran: %r" % r)
    except gproto.Refused as e:
        t.equal((e.stage, e.errno), (stage, errno), name)


def case_21_background(t, p):
    start = time.monotonic()
    r = p.sh("(sleep 30 & echo $!); echo hi")
    took = time.monotonic() - start
    t.ok(took < 5 and r.stdout.endswith(b"hi\n"),
        "21: a background child does not hold the stream (%.2f s)" % took, r)
    pid = r.stdout.split()[0].decode()
    t.equal(p.sh("kill -0 " + pid).code, 0, "21: the child lives on")
    p.sh("kill -9 " + pid)
    r = p.sh("d=$(mktemp -d); echo $d; (i=0; while [ $i -lt 300 ]; do "
        "i=$((i+1)); head -c 1000 /dev/zero; echo >> $d/n; sleep 0.02; "
        "done) & exit 3")
    folder = r.stdout.split(b"\n")[0].decode()
    t.equal(r.code, 3, "21: exit code with a child that writes on")
    time.sleep(0.5)
    a = len(p.sh("cat %s/n" % folder).stdout)
    time.sleep(0.5)
    b = len(p.sh("cat %s/n" % folder).stdout)
    t.ok(b > a > 0, "21: its later output is discarded, it is not killed",
        "%d then %d" % (a, b))
    p.sh("rm -r " + folder)


def case_22_timeout(t, p):
    start = time.monotonic()
    r = p.host.run(["sleep", "5"], timeout_ms=1000)
    took = time.monotonic() - start
    t.ok(0.8 <= took <= 1.2, "22: sleep 5 with timeout 1 ends at 1 s (%.3f)"
        % took, took)
    t.ok(r.timed_out and r.signal == 9, "22: timed_out, signal 9", r)
    r = p.host.run(["true"], timeout_ms=60000)
    t.ok(not r.timed_out and r.code == 0, "22: in time: no timed_out", r)


def case_23_tree(t, p):
    r = p.sh("sleep 300 & echo $!; setsid sleep 301 & echo $!; "
        "(setsid sh -c 'sleep 302 & echo $!; wait' &) ; wait; sleep 303",
        timeout_ms=1000)
    t.ok(r.timed_out, "23: timed out", r)
    pids = r.stdout.split()
    time.sleep(0.1)
    alive = [pid for pid in pids if p.sh("kill -0 " + pid.decode()).code == 0]
    t.ok(len(pids) == 3 and not alive,
        "23: children and setsid children die with it", (pids, alive))


def case_24_independent(t, p):
    stuck = [p.host.exec(["sleep", "600"]) for _ in range(5)]
    for s in stuck:
        s.wait_started()
    start = time.monotonic()
    for _ in range(10):
        p.host.run(["true"])
    t.ok(time.monotonic() - start < 5, "24: stuck commands block no other")
    for s in stuck:
        s.close()
    results = [s.wait(5) for s in stuck]
    t.ok(all(r.signal == 9 and not r.timed_out for r in results),
        "24: CLOSE kills them", results)


def case_25_argv(t, p):
    words = ["a b", "'q'", '"', "$HOME", "`x`", "\\", "*", "", "line\nline",
        "<<EOF", "\xe9".encode("latin-1"), "-n", "%s"]
    r = p.host.run(["printf", "[%s]"] + words)
    want = b"".join(b"[" + gproto._bytes(w) + b"]" for w in words)
    t.equal(r.stdout, want, "25: argv is passed as it came")
    r = p.sh("cat <<'EOF'\nit's \"here\" $x\nEOF\n")
    t.equal(r.stdout, b"it's \"here\" $x\n", "25: a heredoc")


def case_26_slow_reader(t, p):
    s = p.host.exec(["head", "-c", "200000000", "/dev/zero"],
        auto_credit=False, keep=False)
    s.wait_started()
    p.host.pump_for(1.0)
    got = s.received[gproto.STDOUT]
    t.ok(got + gproto.FRAME_COST <= INITIAL and got > INITIAL * 0.9,
        "26: the producer stops at its window", got)
    start = time.monotonic()
    t.equal(p.host.run(["echo", "alive"]).stdout, b"alive\n",
        "26: other streams go on")
    t.ok(time.monotonic() - start < 3, "26: and are not slow")
    s.grant(1000)
    p.host.pump_for(0.3)
    more = s.received[gproto.STDOUT] - got
    t.ok(0 < more <= 1000, "26: 1,000 more bytes of credit, as much output",
        more)
    s.close()
    r = s.wait(5)
    t.ok(r.signal == 9, "26: CLOSE ends it without a reader", r)
    t.equal(r.stdout_bytes, got + more, "26: its count is what was sent")


def case_27_binary(t, p):
    data = random.Random(27).randbytes(1 << 20) + gproto.MAGIC * 2
    digest = hashlib.sha256(data).hexdigest()
    r = p.host.run(["cat"], stdin=data, timeout=60)
    t.equal(hashlib.sha256(r.stdout).hexdigest(), digest,
        "27: 1 MiB of random bytes through cat")
    t.equal(r.stdout_bytes, len(data), "27: stdout_bytes")
    r = p.host.run(["sha256sum"], stdin=data, timeout=60)
    t.equal(r.stdout.split()[0].decode(), digest, "27: sha256sum inside")
    r = p.sh("i=0; while [ $i -lt 50 ]; do printf '\\303'; printf '\\251'; "
        "i=$((i+1)); done")
    t.equal(r.stdout.decode(), "\u00e9" * 50, "27: split characters")


def case_28_stdin(t, p):
    start = time.monotonic()
    r = p.host.run(["cat"])
    t.ok(r.code == 0 and r.stdout == b"" and time.monotonic() - start < 3,
        "28: cat without stdin ends at once", r)
    s = p.host.exec(["sh", "-c", "cat; echo end; read x || echo none"],
        stdin=True)
    s.write(b"one ")
    p.host.pump_for(0.2)
    s.write(b"two ")
    s.close_stdin()
    r = s.wait()
    t.equal(r.stdout, b"one two end\nnone\n", "28: half-close gives EOF")
    s = p.host.exec(["sh", "-c", "exec <&-; sleep 0.3; echo done"], stdin=True)
    s.write(b"x" * 1000000)
    t.equal(s.wait().stdout, b"done\n",
        "28: stdin that nobody reads does not hang the writer")
    s = p.host.exec(["sleep", "2"], stdin=True)
    sent = 0
    while s.send_credit > 20000:
        sent += s.write(b"y" * 10000)
    p.host.pump_for(0.3)
    t.ok(s.send_credit < INITIAL / 2,
        "28: a command that does not read stops its writer", s.send_credit)
    s.close()
    s.wait()


def case_31_codes(t, p):
    r = p.sh("kill -9 $$")
    t.equal((r.signal, r.code), (9, None), "31: kill -9 $$")
    t.equal(p.sh("exit 7").code, 7, "31: exit 7")
    t.equal(p.sh("exit 255").code, 255, "31: exit 255")
    r = p.sh("kill -SEGV $$")
    t.equal(r.signal, 11, "31: SIGSEGV")
    refused(t, p, gproto.STAGE_EXEC, 2, "31: a missing program: ENOENT",
        ["no-such-program"])
    refused(t, p, gproto.STAGE_EXEC, 2, "31: ... by its path",
        ["/no/such/program"])
    refused(t, p, gproto.STAGE_EXEC, 13, "31: not executable: EACCES",
        ["/etc/passwd"])
    refused(t, p, gproto.STAGE_EXEC, 13, "31: a folder: EACCES", ["/etc"])
    refused(t, p, gproto.STAGE_EXEC, 2, "31: an empty name: ENOENT", [""])
    refused(t, p, gproto.STAGE_RECORDS, 22, "31: no argv at all: EINVAL", [])
    refused(t, p, gproto.STAGE_EXEC, 2, "31: PATH without it", ["true"],
        env={"PATH": "/etc:/dev"})


def case_32_cwd(t, p):
    refused(t, p, gproto.STAGE_CWD, 2, "32: cwd that does not exist",
        cwd="/no/such/folder")
    refused(t, p, gproto.STAGE_CWD, 20, "32: cwd that is a file",
        cwd="/etc/passwd")
    t.equal(p.host.run(["pwd"], cwd="/tmp").stdout, b"/tmp\n", "32: a good one")


def case_33_zombies(t, p):
    script = ("i=0; while [ $i -lt 200 ]; do (sleep 0.0$((i%7)) &) ; "
        "i=$((i+1)); done; wait")
    streams = [p.host.exec(["sh", "-c", "(sleep 0.0%d &); exit %d"
        % (i % 9, i % 256)]) for i in range(100)]
    codes = [s.wait(60).code for s in streams]
    t.equal(codes, [i % 256 for i in range(100)],
        "33: 100 commands at once: each its own exit code")
    p.sh(script, timeout=60)
    time.sleep(0.6)
    if p.vm:
        r = p.sh("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '")
        t.equal(r.stdout.strip(), b"0", "33: 200 orphans leave no zombie")
    else:
        left = [c for c in p.children() if c[1] == "Z"]
        t.equal(left, [], "33: 200 orphans leave no zombie")


def case_36_env(t, p):
    many = {"V%05d" % i: "value %d" % i for i in range(10000)}
    many["A"] = "line one\nx=y=z\n"
    many["E"] = ""
    r = p.host.run(["cat", "/proc/self/environ"], env=many, timeout=60)
    got = dict(e.split(b"=", 1) for e in r.stdout.split(b"\0") if e)
    bad = [k for k, v in many.items() if got.get(k.encode()) != v.encode()]
    t.ok(not bad, "36: 10,000 variables, newline and = in a value", bad[:5])
    refused(t, p, gproto.STAGE_RECORDS, 22, "36: an empty name", env=["=x"])
    refused(t, p, gproto.STAGE_RECORDS, 22, "36: no =", env=["x"])
    refused(t, p, gproto.STAGE_RECORDS, 22, "36: NUL", env=[b"A=\0"])
    r = p.host.run(["sh", "-c", "echo $A"], env=["A=1", "B=2", "A=3"])
    t.equal(r.stdout, b"3\n", "36: the later of two wins")
    r = p.host.run(["sh", "-c", "echo $PATH; echo $HOME $USER $LOGNAME"])
    t.ok(b"/usr/bin:" in r.stdout and b" root root" in r.stdout,
        "36: defaults of PATH, HOME, USER, LOGNAME", r)
    big = "b" * 131000
    r = p.host.run(["sh", "-c", "echo ${#B}"], env={"B": big}, timeout=30)
    t.equal(r.stdout, b"131000\n", "36: a variable of 131,000 bytes")
    refused(t, p, gproto.STAGE_RECORDS, 7, "36: what Linux cannot hold: E2BIG",
        env={"B": "b" * 131072})
    refused(t, p, gproto.STAGE_RECORDS, 7, "36: 2 MiB and more: E2BIG",
        argv=["true"] + ["x" * 100000] * 22)


def case_large_arguments(t, p):
    """More than the first window: needs credit given back."""
    args = ["x" * 10000] * 100
    r = p.host.run(["sh", "-c", "echo $#", "sh"] + args, timeout=30)
    t.equal(r.stdout, b"100\n", "args: 1 MB of them")
    streams = [p.host.exec(["sh", "-c", "echo $#", "sh"] + args[:40])
        for _ in range(8)]
    t.equal([s.wait(30).stdout for s in streams], [b"40\n"] * 8,
        "args: 400 kB each, 8 at once")


def case_ten_megabytes(t, p):
    data = random.Random(10).randbytes(10000000)
    r = p.host.run(["sh", "-c", "cat | sha256sum | cut -c1-64"], stdin=data,
        timeout=100)
    t.equal(r.stdout.decode().strip(), hashlib.sha256(data).hexdigest(),
        "10 MB through a pipeline: sha256")


def case_streams_apart(t, p):
    r = p.sh("echo out; echo err >&2; echo out2; exec 1>&-; sleep 0.2; "
        "echo err2 >&2")
    t.equal((r.stdout, r.stderr), (b"out\nout2\n", b"err\nerr2\n"),
        "stdout and stderr apart")
    t.equal((r.stdout_bytes, r.stderr_bytes), (9, 9), "their counts")
    s = p.host.exec(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"])
    p.host.pump_until(lambda: len(s.eof) == 2 or s.done)
    t.ok(not s.done and s.wait().code == 4, "EOF of both before the end")
    t.equal(s.events[-1], "EXITED", "EXITED is last")
    s = p.host.exec(["sh", "-c", "head -c 1000000 /dev/zero"],
        auto_credit=False)
    s.wait_started()
    p.host.pump_for(0.5)
    t.ok(not s.done, "EXITED waits until the output has been taken")
    while not s.done:
        s.grant(65536)
        p.host.pump_for(0.01)
    t.equal(len(s.result.stdout), 1000000, "all of it came before EXITED")


def case_user(t, p):
    if not p.root:
        t.skip("user", "not root")
        return
    r = p.sh("id -u; id -g; id -G", user="1234:77")
    t.equal(r.stdout, b"1234\n77\n77\n", "user: uid:gid")
    r = p.sh("id -u; echo $HOME $USER", user="12345")
    t.equal(r.stdout, b"12345\n/ 12345\n", "user: a uid that nobody has")
    r = p.sh("id -un; id -gn; echo $USER", user="nobody")
    t.equal(r.stdout, b"nobody\nnogroup\nnobody\n", "user: a name")
    refused(t, p, gproto.STAGE_USER, 2, "user: an unknown name",
        user="no-such-user")
    for bad in ("4294967295", "1:x", "nobody:1", ":5"):
        try:
            p.sh("true", user=bad)
            t.ok(False, "user: %s refused" % bad)
        except gproto.Refused as e:
            t.equal(e.stage, gproto.STAGE_USER, "user: %s refused" % bad)
    r = p.sh("echo a > /dev/stdout; echo b > /dev/stderr; "
        "cat /proc/self/status | grep -i '^cap' | sort -u | grep -c 0000$",
        user="nobody")
    t.ok(r.stdout.startswith(b"a\n") and r.stderr == b"b\n",
        "user: may open /dev/stdout and /dev/stderr again", r)


def case_signals(t, p):
    s = p.host.exec(["sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; "
        "while :; do sleep 0.05; done"])
    p.host.pump_until(lambda: b"ready" in s.stdout)
    s.signal(signal.SIGTERM)
    r = s.wait()
    t.equal((r.code, r.stdout), (5, b"ready\ngot\n"), "SIGNAL to the group")
    s = p.host.exec(["sh", "-c", "setsid sleep 300 & echo ready; wait"])
    p.host.pump_until(lambda: b"ready" in s.stdout)
    time.sleep(0.1)
    s.signal(signal.SIGTERM, tree=True)
    t.equal(s.wait().signal, 15, "SIGNAL to the whole tree")
    s = p.host.exec(["sh", "-c", "trap '' TERM INT HUP; echo ready; sleep 300"])
    p.host.pump_until(lambda: b"ready" in s.stdout)
    s.signal(signal.SIGKILL, tree=True)
    t.equal(s.wait().signal, 9, "SIGKILL to the whole tree")
    s = p.host.exec(["sleep", "300"])
    s.wait_started()
    s.signal(0)
    s.signal(200)
    s.signal(signal.SIGINT)
    t.equal(s.wait().signal, 2, "signal numbers that are none do no harm")
    s = p.host.exec(["sh", "-c", "setsid sleep 300 & echo $!; wait"])
    p.host.pump_until(lambda: b"\n" in s.stdout)
    pid = s.stdout.split()[0].decode()
    time.sleep(0.1)
    s.close()
    s.wait()
    time.sleep(0.1)
    t.ok(p.sh("kill -0 " + pid).code != 0, "CLOSE kills a setsid child, too")


def case_tty(t, p):
    s = p.host.open()
    s.resize(101, 37)
    s.args(gproto.exec_records(["sh", "-c", "stty size; tty; read x; "
        "echo \"<$x>\"; stty size; echo err >&2; exit 6"],
        flags=gproto.FLAG_TTY))
    s.start()
    p.host.pump_until(lambda: b"/dev/pts" in s.stdout)
    t.ok(s.stdout.startswith(b"37 101\r\n"), "tty: its size from the start",
        s.stdout)
    s.resize(80, 24)
    s.write(b"typed\n")
    r = s.wait()
    t.equal(r.code, 6, "tty: exit code")
    t.ok(b"<typed>\r\n24 80\r\nerr\r\n" in r.stdout and not r.stderr,
        "tty: input, new size, stderr in the same stream", r)
    # Many: cat closes its terminal a moment before it exits.
    bad = []
    for _ in range(20 if p.vm else 200):
        s = p.host.exec(["cat"], tty=True)
        s.write(b"abc\n")
        s.close_stdin()
        r = s.wait()
        if r.code != 0 or not r.stdout.endswith(b"abc\r\n"):
            bad.append(r)
    t.ok(not bad, "tty: EOF is ^D, and no SIGHUP at the end", bad)
    s = p.host.exec(["sh", "-c", "exec <&- >&- 2>&-; sleep 0.3; "
        "echo again > /dev/tty; exit 5"], tty=True)
    r = s.wait()
    t.ok(r.code == 5 and r.stdout == b"again\r\n",
        "tty: a command may close it and open it again", r)
    s = p.host.exec(["sleep", "300"], tty=True)
    s.wait_started()
    s.write(b"\x03")
    t.equal(s.wait().signal, 2, "tty: ^C is SIGINT")
    s = p.host.exec(["sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"],
        tty=True)
    t.equal(len(s.wait(30).stdout), 300000, "tty: 300,000 bytes come whole")
    s = p.host.exec(["sh", "-c", "(trap '' HUP; sleep 3) & echo hi"], tty=True)
    start = time.monotonic()
    r = s.wait()
    t.ok(r.stdout == b"hi\r\n" and time.monotonic() - start < 2,
        "tty: a background child does not hold the stream", r)


ALL = [case_21_background, case_22_timeout, case_23_tree, case_24_independent,
    case_25_argv, case_26_slow_reader, case_27_binary, case_28_stdin,
    case_31_codes, case_32_cwd, case_33_zombies, case_36_env,
    case_large_arguments, case_ten_megabytes, case_streams_apart, case_user,
    case_signals, case_tty]
