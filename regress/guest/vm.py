#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: alone timeout=400
"""guestd as PID 1 of a real VM (QEMU, TCG), with a host in Python: every case
of _cases.py, and what needs a kernel of its own."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _guest
import _cases
import gproto
import tap
import vmhost

MACHINE_ID = "0123456789abcdef0123456789abcdef"
CONFIG = dict(hostname="box", address="10.0.0.2/30", gateway="10.0.0.1",
    mac="02:53:00:00:00:01", mtu=1400, dns=["10.9.8.7", "10.9.8.6"],
    machine_id=MACHINE_ID)


def t_identity(t, p):
    r = p.sh("hostname; cat /etc/hostname /etc/machine-id /etc/resolv.conf "
        "/etc/hosts; cat /sys/class/net/eth0/address /sys/class/net/eth0/mtu; "
        "ip -4 -o addr show eth0; ip route; cat /sys/class/net/lo/flags; "
        "cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6")
    out = r.stdout.decode()
    for want in ("box\nbox\n" + MACHINE_ID + "\n",
            "nameserver 10.9.8.7\nnameserver 10.9.8.6\n", "10.0.0.2\tbox\n",
            "127.0.0.1\tlocalhost\n", "02:53:00:00:00:01\n1400\n",
            "inet 10.0.0.2/30", "default via 10.0.0.1 dev eth0", "0x9\n1\n"):
        t.ok(want in out, "identity: %r" % want, out)
    r = p.sh("date +%s")
    t.ok(abs(int(r.stdout) - time.time()) <= 1, "identity: the clock", r)
    # A clone is told another identity while it runs.
    done = p.host.config(hostname="other", address="10.0.0.6/30",
        gateway="10.0.0.5", mac="02:53:00:00:00:02", time_ns=10 ** 18,
        entropy=os.urandom(64))
    t.equal(done, (0, ""), "identity: CONFIG again")
    out = p.sh("hostname; date -u +%Y; ip -4 -o addr show eth0; ip route; "
        "cat /sys/class/net/eth0/address").stdout.decode()
    t.ok(out.startswith("other\n2001\n") and "10.0.0.6/30" in out and
        "10.0.0.2" not in out and "default via 10.0.0.5" in out and
        "02:53:00:00:00:02" in out, "identity: all of it has changed", out)
    p.host.config(time_ns=time.time_ns(), **CONFIG)


def t_mounts(t, p):
    out = p.sh("cat /proc/mounts").stdout.decode()
    for kind, where in (("overlay", "/"), ("proc", "/proc"), ("sysfs", "/sys"),
            ("devtmpfs", "/dev"), ("devpts", "/dev/pts"),
            ("tmpfs", "/dev/shm"), ("tmpfs", "/run"), ("tmpfs", "/tmp"),
            ("cgroup2", "/sys/fs/cgroup")):
        t.ok(any(line.split()[1:3] == [where, kind]
            for line in out.splitlines()), "%s is %s" % (where, kind), out)
    r = p.sh("stat -c %a /tmp /dev/shm /run; echo x > /root/x && cat /root/x; "
        "ls -l /dev/fd /dev/stdin")
    t.ok(r.stdout.startswith(b"1777\n1777\n755\nx\n") and r.code == 0,
        "modes, a writable root, /dev/fd", r)


def t_agent(t, p):
    out = p.sh("cat /proc/1/oom_score_adj /proc/self/oom_score_adj; "
        "cat /proc/self/cgroup; cut -d' ' -f1,5,6 /proc/self/stat; "
        "ls /proc/1/fd | wc -l; ulimit -n; ulimit -Hn"
        ).stdout.decode().split("\n")
    t.equal(out[:2], ["-1000", "0"], "oom_score_adj of agent and command")
    t.ok(out[2].startswith("0::/commands/"), "a cgroup of its own", out[2])
    t.equal(out[5:7], ["1024", "1048576"], "limits of open files")
    r = p.host.run(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"])
    t.equal(r.stdout.split()[1::2], [b"0" * 16] * 2,
        "no signal is blocked or ignored")
    a, b = (p.sh("cat /proc/self/cgroup").stdout for _ in range(2))
    t.ok(a != b, "each command has another one", (a, b))
    s = p.host.exec(["sh", "-c", "cut -d' ' -f5,6 /proc/$$/stat; echo $$"])
    words = s.wait().stdout.split()
    t.equal(words, [words[2]] * 3, "own session and process group")
    out = p.sh("ls -d /sys/fs/cgroup/commands/*/ | wc -l; "
        "cat /sys/fs/cgroup/commands/memory.max; grep MemTotal /proc/meminfo; "
        "grep VmRSS /proc/1/status").stdout.decode().split()
    t.ok(int(out[0]) <= 3, "cgroups of ended commands are gone", out)
    t.ok(int(out[1]) < int(out[3]) * 1024 - (4 << 20),
        "all commands together have less than the memory", out)
    t.ok(int(out[6]) < 1500, "the agent takes %s kB" % out[6], out)


def t_34_memory(t, p):
    start = time.monotonic()
    r = p.host.run(["tail", "/dev/zero"], timeout=60)
    t.ok(r.signal == 9 and r.oom_killed and not r.timed_out,
        "34: tail /dev/zero: signal 9, oom_killed (%.1f s)"
        % (time.monotonic() - start), r)
    r = p.sh("tail /dev/zero; echo $?", timeout=60)
    t.ok(r.oom_killed and b"137" in r.stdout and r.code == 0,
        "34: in a shell, which lives on", r)
    many = [p.host.exec(["tail", "/dev/zero"]) for _ in range(4)]
    results = [s.wait(90) for s in many]
    t.ok(all(r.signal == 9 for r in results) and
        any(r.oom_killed for r in results), "34: four at once", results)
    r = p.sh("dd if=/dev/zero of=/tmp/fill bs=1M 2>&1; rm -f /tmp/fill",
        timeout=60)
    t.equal(p.sh("echo alive").stdout, b"alive\n",
        "34: a full /tmp does not take the agent")
    r = p.host.run(["true"])
    t.ok(not r.oom_killed, "34: the next command is not said to be killed", r)


def t_forks(t, p):
    start = time.monotonic()
    r = p.host.run(["sh", "-c", "f() { f | f & }; f; sleep 100"],
        timeout_ms=3000, timeout=60)
    t.ok(r.timed_out, "a fork bomb is killed at its timeout (%.1f s)"
        % (time.monotonic() - start), r)
    t.equal(p.sh("echo alive", timeout=30).stdout, b"alive\n",
        "and the next command runs")
    t.equal(p.sh("ls /proc | grep -c '^[0-9]'").code, 0, "processes are few")


def t_reconnect(t, vm, p):
    """Through the virtio-serial port: what the old host left is in it."""
    old = vm.sock
    s = p.host.exec(["sleep", "500"])
    pid = s.wait_started()
    p.host.exec(["cat", "/dev/zero"], auto_credit=False).wait_started()
    p.host.send_raw(gproto.header(gproto.DATA, s.id, 0, 30000) + b"y" * 12345)
    old.close()
    time.sleep(1.0)
    start = time.monotonic()
    p.host = vm.connect()
    p.host.sync()
    took = time.monotonic() - start
    p.host.hello()
    t.ok(took < 1, "reconnect in the middle of a frame: %.3f s" % took, took)
    t.equal(p.host.run(["echo", "1"]).stdout, b"1\n", "stream 1 anew")
    t.ok(p.sh("kill -0 %d" % pid).code != 0, "the old command is dead")
    bad = 0
    for i in range(20):
        if i % 3:
            p.host.send_raw(gproto.MAGIC[:i % 16] if i % 2 else
                gproto.header(gproto.OPEN, 9)[:i % 12])
        p.host = vm.connect()
        p.host.connect()
        bad += p.host.run(["echo", "x"]).stdout != b"x\n"
    t.equal(bad, 0, "20 reconnects one after the other")
    vm.sock.close()
    idle = cpu_s(vm.proc.pid)
    time.sleep(2)
    idle = cpu_s(vm.proc.pid) - idle
    t.ok(idle < 0.4, "without a host the guest idles (%.2f s CPU in 2 s)"
        % idle, idle)
    p.host = vm.connect()
    t.equal(p.host.connect(**CONFIG), (0, ""), "and is there again")


def cpu_s(pid):
    with open("/proc/%d/stat" % pid) as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def t_stopped_reader(t, vm, p):
    """10 s without credit and without reading: nothing grows or is lost."""
    s = p.host.exec(["sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' z"],
        keep=False)
    s.wait_started()
    p.host.pump_for(0.5)
    before = vm.rss_kib()
    time.sleep(10)
    grown = vm.rss_kib() - before
    t.ok(grown < 4096, "a host that stops for 10 s: QEMU grew %d KiB" % grown)
    s.wait(120)
    t.equal(s.received[gproto.STDOUT], 50000000, "then all of it comes")


def t_budget(t, p):
    part = gproto.exec_records(["true"] + ["y" * 50000] * 5)[:-100]
    opened = [p.host.open() for _ in range(200)]
    for s in opened:
        s.args(part)
    p.host.pump_until(lambda: p.host.ping() < 30, 60)
    n = sum(1 for s in opened if s.refused == (gproto.STAGE_RESOURCES, 11))
    t.ok(100 < n < 200, "200 half-told commands: %d are refused" % n, n)
    for s in opened:
        if not s.refused:
            s.close()
    p.host.pump_until(lambda: all(s.done for s in opened), 30)
    t.equal(p.host.run(["echo", "room"]).stdout, b"room\n",
        "then there is room")


def t_35_panic(t, vm, p):
    events = vm.qmp_events()
    time.sleep(0.2)
    start = time.monotonic()
    p.host.exec(["sh", "-c", "echo c > /proc/sysrq-trigger"])
    try:
        vm.proc.wait(10)
        took = time.monotonic() - start
    except Exception:   # still running: said by the check
        took = 99
    t.ok(took < 2, "35: a panic ends the VMM (%.2f s)" % took, took)
    t.ok("GUEST_PANICKED" in events(1), "35: and is told apart from a reboot")


def main():
    t = tap.Tap()
    why = vmhost.missing()
    if why:
        t.skip("vm", why)
        sys.exit(t.done())
    with vmhost.VM() as vm:
        p = _cases.Place(vm.connect(), True)
        p.host.sync()
        answered = time.monotonic() - vm.started
        p.host.hello()
        t.equal(p.host.config(time_ns=time.time_ns(), entropy=os.urandom(64),
            **CONFIG), (0, ""), "CONFIG is applied")
        configured = time.monotonic() - vm.started
        p.host.run(["true"])
        first = time.monotonic() - vm.started
        print("# start to first answer %.3f s (guest's uptime %.3f), to "
            "CONFIG_DONE %.3f, to the first command's end %.3f" % (answered,
            p.host.uptime_ms / 1000, configured, first))
        cases = [lambda t, c=c: c(t, p) for c in [t_identity, t_mounts,
            t_agent] + _cases.ALL + [t_34_memory, t_forks, t_budget]]
        t.run(*cases)
        t.run(lambda t: t_stopped_reader(t, vm, p),
            lambda t: t_reconnect(t, vm, p), lambda t: t_agent(t, p),
            lambda t: t_35_panic(t, vm, p))
        if t.failed:
            print("# console: " + vm.console_text()[-2000:])
    sys.exit(t.done())


main()
