#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""How netd is confined, read from /proc, and what ends it: messages that the
parent may not send, and starts that are not the parent's."""
import os
import resource
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import msg	# noqa: E402
import netns	# noqa: E402
import tap	# noqa: E402

CAP_NET_ADMIN = 12		# linux/capability.h
LIBRARIES = {"libevent_core-2.1", "libmnl", "libnftnl", "libbsd", "libmd",
             "libcap", "libc", "ld-linux-x86-64", "linux-vdso"}


def status(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f
                    if ":\t" in line)


def limits(pid):
    with open("/proc/%d/limits" % pid, encoding="ascii") as f:
        return {line[:25].strip(): line[26:].split()[:2] for line in f}


def test_status(t):
    n = netns.Netd()
    s = status(n.pid)
    t.equal(s["Uid"].split(), [str(netns.NETD_UID)] * 4, "uid, all four")
    t.equal(s["Gid"].split(), [str(netns.NETD_UID)] * 4, "gid, all four")
    t.equal(s["Groups"].split(), [], "no further group")
    only = "%016x" % (1 << CAP_NET_ADMIN)
    t.equal((s["CapEff"], s["CapPrm"], s["CapBnd"]), (only,) * 3,
            "CAP_NET_ADMIN and nothing else, bounding set included")
    t.equal((s["CapInh"], s["CapAmb"]), ("0" * 16,) * 2,
            "nothing to hand on")
    t.equal((s["NoNewPrivs"], s["Seccomp"]), ("1", "2"),
            "no_new_privs and a filter")
    t.equal(s["Threads"], "1", "one thread")
    t.equal(os.readlink("/proc/%d/root" % n.pid), os.path.realpath(n.root),
            "root directory is the empty one")
    t.equal(os.readlink("/proc/%d/cwd" % n.pid), os.path.realpath(n.root),
            "working directory, too")
    with open("/proc/%d/maps" % n.pid, encoding="ascii") as f:
        maps = f.read()
    t.ok("rwx" not in maps and "-wx" not in maps, "no memory to write and run")
    lim = limits(n.pid)
    t.equal((lim["Max core file size"], lim["Max processes"],
             lim["Max open files"]),
            (["0", "0"], ["0", "0"], ["64", "64"]), "resource limits")
    held = sorted(os.readlink("/proc/%d/fd/%s" % (n.pid, f)).split(":")[0]
                  for f in os.listdir("/proc/%d/fd" % n.pid))
    files = [x for x in held if x not in ("socket", "pipe", "anon_inode")]
    t.equal(files, ["/dev/null"] + [x for x in files if "(deleted)" in x],
            "no file but its log")
    st = os.stat("/proc/%d/status" % n.pid)
    t.equal(st.st_uid, 0, "not dumpable: its /proc belongs to root")
    n.stop()


def test_fsize(t):
    """A log on a pipe: no file can be written.  (A log that is a file has to.)
    """
    r, w = os.pipe()
    n = netns.Netd(before_exec=lambda: os.dup2(w, 2))
    t.equal(limits(n.pid)["Max file size"], ["0", "0"], "file size limit 0")
    n.stop()
    os.close(r)
    os.close(w)


def test_log_file(t):
    n = netns.Netd()
    tun, m = n.create(1)
    t.equal(m.name, "NETD_CREATE_TAP_OK", "a log that is a file: works on")
    t.ok("tap created name=sbabcd-1" in n.text(), "and holds the line",
         n.text())
    os.close(tun)
    n.stop()


def test_libraries(t):
    out = subprocess.run(["ldd", netns.NETD], capture_output=True, text=True,
                         check=True).stdout
    names = {line.split()[0].rsplit("/", 1)[-1].split(".so")[0]
             for line in out.splitlines() if line.strip()}
    t.ok(names <= LIBRARIES, "only its own libraries", names - LIBRARIES)
    t.ok("libjson-c" not in names, "no JSON in netd")


def refuses(t, name, *steps, text):
    """Each step a function of the child; then it must end with 1."""
    n = netns.Netd(ready=False)
    try:
        for s in steps:
            s(n)
    except (BrokenPipeError, ConnectionResetError):
        pass
    t.equal(n.wait(), 1, name + ": ends with 1")
    t.ok(text in n.text(), name + ": says why", n.text())
    n.close()
    n.forget_root()


def setup(**change):
    def step(n):
        f = dict(uid=netns.NETD_UID, gid=netns.NETD_UID, root=n.root,
                 tag="abcd", pool=netns.POOL, pool_prefix=16)
        f.update(change)
        n.send("PARENT_SETUP_NETD", **f)
    return step


def begin(n):
    n.send("PARENT_START_NETD")


def ready(n):
    n.expect("NETD_READY", 30)


def test_messages(t):
    good = msg.pack("PARENT_REMOVE_TAP", slot=1, generation=1)
    null = os.open("/dev/null", os.O_RDWR)
    refuses(t, "garbage", lambda n: n.send_raw(b"x" * 100), text="message")
    refuses(t, "empty header", lambda n: n.send_raw(bytes(16)),
            text="message")
    refuses(t, "one byte", lambda n: n.send_raw(b"\1"), text="too short")
    refuses(t, "16385 bytes", lambda n: n.send_raw(bytes(16385)),
            text="lost its tail")
    refuses(t, "tap before the start", setup(),
            lambda n: n.send("PARENT_CREATE_TAP", fd=null),
            text="may not come")
    refuses(t, "another child's message",
            lambda n: n.send("PARENT_SETUP_VMM"), text="may not come")
    refuses(t, "its own message", lambda n: n.send("NETD_READY"),
            text="may not come")
    refuses(t, "set-up after the start", setup(), begin, ready, setup(),
            text="may not come")
    refuses(t, "a missing descriptor", setup(), begin, ready,
            lambda n: n.send("PARENT_CREATE_TAP"), text="descriptor")
    refuses(t, "a descriptor too many", setup(), begin, ready,
            lambda n: n.send("PARENT_REMOVE_TAP", fd=null),
            text="descriptor")
    refuses(t, "two descriptors", setup(), begin, ready,
            lambda n: n.send_raw(msg.pack("PARENT_CREATE_TAP"),
                                 [null, null]), text="descriptor")
    refuses(t, "trailing bytes", setup(), begin, ready,
            lambda n: n.send_raw(good + b"x"), text="length")
    refuses(t, "start without set-up", begin, text="before")
    refuses(t, "uid 0", setup(uid=0), text="uid or gid 0")
    refuses(t, "gid 0", setup(gid=0), text="uid or gid 0")
    refuses(t, "bad tag", setup(tag="a/b"), text="tag")
    refuses(t, "relative root", setup(root="x"), text="root")
    refuses(t, "pool prefix 31", setup(pool_prefix=31), text="prefix")
    refuses(t, "pool prefix 0", setup(pool_prefix=0), text="prefix")
    refuses(t, "pool with host bits", setup(pool=netns.POOL + 1),
            text="beyond its prefix")
    refuses(t, "no root directory", setup(root="/nonexistent"), begin,
            text="/nonexistent")
    os.close(null)
    t.equal(netns.tables(), ["sandboxd-abcd"], "a table may stay, no more")
    netns.Netd().stop()
    t.equal(netns.tables(), [], "until the next one ends well")


def test_starts(t):
    r = subprocess.run([netns.NETD], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, check=False,
                       timeout=20, env={})
    t.ok(r.returncode == 1 and "not by hand" in r.stderr,
         "started by hand: refuses", r)
    a, b = socket.socketpair()		# a stream, not SOCK_SEQPACKET
    n = netns.Netd(ready=False, before_exec=lambda: os.dup2(b.fileno(), 3))
    t.equal(n.wait(), 1, "started with a stream socket: refuses")
    n.forget_root()
    a.close()
    b.close()
    n = netns.Netd(ready=False, before_exec=lambda: os.setresuid(
        1000, 1000, 1000))
    t.equal(n.wait(), 1, "started without root: refuses")
    t.ok("as root" in n.text(), "started without root: says why", n.text())
    n.forget_root()
    n = netns.Netd(ready=False, before_exec=lambda: os.close(2))
    t.equal(n.wait(), 1, "started without stderr: refuses")
    n.forget_root()


def test_signals(t):
    n = netns.Netd()
    for sig in (signal.SIGINT, signal.SIGHUP):
        os.kill(n.pid, sig)
    tun, m = n.create(1)
    t.equal(m.name, "NETD_CREATE_TAP_OK",
            "a terminal's signals are left to the parent")
    os.close(tun)
    n.stop()


def test_path(t):
    """No program, no PATH, no file: works where nothing can be executed."""
    n = netns.Netd(before_exec=lambda: resource.setrlimit(
        resource.RLIMIT_NPROC, (0, 0)))
    tun, m = n.create(1)
    t.equal(m.name, "NETD_CREATE_TAP_OK", "works without starting a program")
    with open("/proc/%d/environ" % n.pid, "rb") as f:
        t.equal(f.read(), b"", "works with an empty environment")
    os.close(tun)
    n.stop()


def test_flood(t):
    """A parent that does not read answers does not hang netd for good."""
    n = netns.Netd()
    data = msg.pack("PARENT_REMOVE_TAP", 1, slot=99999, generation=1)
    n.sock.setblocking(False)
    sent = 0
    try:
        for _ in range(2000):
            n.sock.send(data)
            sent += 1
    except BlockingIOError:
        pass
    n.sock.setblocking(True)
    got = [n.recv(5).name for _ in range(sent)]
    t.ok(sent > 100 and set(got) == {"NETD_FAIL"},
         "%d requests at once: each is answered" % sent, set(got))
    with open("/proc/%d/statm" % n.pid, encoding="ascii") as f:
        rss = int(f.read().split()[1]) * 4
    print("# resident %d KiB" % rss)
    n.stop()


def main():
    netns.need()
    t = tap.Tap()
    t.run(test_status, test_fsize, test_log_file)
    if netns.SANITIZED:
        t.skip("libraries", "sanitizers bring their own")
    else:
        t.run(test_libraries)
    t.run(test_messages, test_starts, test_signals, test_path, test_flood)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
