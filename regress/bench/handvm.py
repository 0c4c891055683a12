# SPDX-License-Identifier: ISC
"""The VMM run by hand that ours is measured against: the command line of one of
the daemon's own VMs, word for word, with descriptors and files of our own, as
root, without a jail, a cgroup or a daemon.
"""
import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import gproto  # noqa: E402

TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def find_qemu(box):
    """Command line of the QEMU that runs this sandbox."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                argv = f.read().decode().split("\0")[:-1]
        except (OSError, UnicodeDecodeError):
            continue
        if len(argv) > 3 and argv[1:3] == ["-name", box]:
            return argv
    raise RuntimeError("no QEMU runs " + box)


class HandVM:
    """argv: find_qemu()'s.  build: folder with images/ and templates/.  blank:
    the empty writable layer that the daemon copies for its own VMs."""

    def __init__(self, argv, build, blank):
        self.dir = tempfile.mkdtemp(prefix="handvm")
        self.layer = self.dir + "/layer.img"
        self.blank = blank
        self.argv = list(argv)
        self.replace("-kernel", build + "/images/vmlinux")
        self.replace("-initrd", build + "/images/initramfs.cpio")
        self.root = build + "/templates/seed/rootfs.ext4"
        self.pid = self.sock = None
        self.fds = []

    def replace(self, option, value):
        self.argv[self.argv.index(option) + 1] = value

    def number(self, pattern):
        """The descriptor's number in the one argument that fits."""
        for a in self.argv:
            m = re.fullmatch(pattern, a)
            if m:
                return int(m[1])
        raise RuntimeError("no argument is " + pattern)

    def listening(self, name):
        s = socket.socket(socket.AF_UNIX)
        s.bind(self.dir + "/" + name)
        s.listen(8)
        return s

    def tap(self):
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack(
            "16sH22x", b"handvm%d" % (os.getpid() % 100000),
            IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
        return fd

    def descriptors(self):
        """{number in QEMU: our object or descriptor}."""
        sets = [int(m[1]) for a in self.argv
                if (m := re.fullmatch(r"fd=(\d+),set=2", a))]
        console, theirs = socket.socketpair()
        self.console = console
        return {
            self.number(r"socket,id=agent,fd=(\d+),.*"):
                self.listening("agent"),
            self.number(r"socket,id=monitor,fd=(\d+),.*"):
                self.listening("monitor"),
            self.number(r"socket,id=console,fd=(\d+)"): theirs,
            self.number(r"tap,id=net,fd=(\d+)"): self.tap(),
            self.number(r"fd=(\d+),set=1"): os.open(self.root, os.O_RDONLY),
            sets[0]: os.open(self.layer, os.O_RDONLY),
            sets[1]: os.open(self.layer, os.O_RDWR)}

    def start(self):
        """Returns the time it was executed at; its disk is there before."""
        subprocess.run(["cp", "--sparse=always", self.blank, self.layer],
                       check=True)
        objects = self.descriptors()
        fds = {n: o if isinstance(o, int) else o.fileno()
               for n, o in objects.items()}
        # Out of the way of their numbers, then to them.
        high = {n: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
                for n, fd in fds.items()}
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 1, self.dir + "/log",
                    os.O_WRONLY | os.O_CREAT, 0o600),
                   (os.POSIX_SPAWN_DUP2, 1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, high[n], n) for n in high]
        began = time.monotonic()
        self.pid = os.posix_spawn(self.argv[0], self.argv, {}, file_actions=
                                  actions)
        for fd in high.values():
            os.close(fd)
        for o in objects.values():
            if isinstance(o, int):
                os.close(o)
            else:
                o.close()
        return began

    def first_answer(self, timeout=120):
        """Connects and waits for the agent's answer; returns when it came."""
        self.sock = gproto.connect_unix(self.dir + "/agent", timeout)
        self.host = gproto.Host(self.sock, timeout)
        self.host.sync(timeout)
        return time.monotonic()

    def configure(self):
        self.host.version = None
        self.host.hello()
        e, text = self.host.config(hostname="hand",
                                   time_ns=time.time_ns())
        if e != 0:
            raise RuntimeError("CONFIG: %s %s" % (os.strerror(e), text))

    def drain(self, argv, expect):
        """
        Runs a command, counts its output without keeping it; seconds.  Faster
        than gproto.Host: frames are only stepped over.
        """
        s = self.host.exec(argv, auto_credit=False, keep=False)
        s.wait_started()
        began = time.monotonic()
        wire, sock = self.host.wire, self.sock
        sock.setblocking(True)
        buf = bytearray(1 << 20)
        view = memoryview(buf)
        have, skip, owed, got = 0, 0, 0, 0
        head = gproto.HEADER
        first = bytes(wire.buf[wire.at:])
        wire.buf.clear()
        wire.at = 0
        view[:len(first)] = first
        have = len(first)
        done = False
        while True:
            at = min(skip, have)
            skip -= at
            while have - at >= head.size:
                _, kind, flags, _, n = head.unpack_from(buf, at)
                if kind == gproto.DATA:
                    owed += n + gproto.FRAME_COST
                    got += n if flags == gproto.STDOUT else 0
                elif kind == gproto.EXITED:
                    done = True
                at += head.size
                step = min(n, have - at)
                at += step
                skip = n - step
            rest = bytes(view[at:have])
            view[:len(rest)] = rest
            have = len(rest)
            if done:
                break
            if owed >= gproto.WINDOW // 4:
                sock.sendall(gproto.frame(gproto.CREDIT, s.id,
                                          struct.pack("<I", owed)))
                owed = 0
            n = sock.recv_into(view[have:])
            if n == 0:
                raise EOFError("agent's channel ended")
            have += n
        took = time.monotonic() - began
        sock.setblocking(False)
        s.result = True
        if got != expect:
            raise RuntimeError("%d of %d bytes" % (got, expect))
        return took

    def stop(self):
        if self.sock is not None:
            self.sock.close()
            self.sock = None
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = None
            self.console.close()
        for name in ("agent", "monitor"):
            try:
                os.unlink(self.dir + "/" + name)
            except FileNotFoundError:
                pass

    def remove(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
