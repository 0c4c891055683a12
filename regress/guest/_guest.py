# SPDX-License-Identifier: ISC
"""Starts guestd with its channel on a socket, without a VM (guestd(8), -T)."""
import os
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
    "..", "lib"))
import gproto

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.join(ROOT, os.environ.get("B") or
    ("build-san" if os.environ.get("SAN") == "1" else "build"))
UNIFIED = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")


def binary():
    """Built with sanitizers where there is one, else what the guest runs."""
    san = os.path.join(BUILD, "regress", "guestd-san")
    return san if os.path.exists(san) else os.path.join(BUILD, "guestd")


def cgroup_folder():
    """A fresh folder in a cgroup2 with cgroup.kill, or None."""
    for base in UNIFIED:
        if not os.path.exists(os.path.join(base, "cgroup.procs")):
            continue
        try:
            path = tempfile.mkdtemp(prefix="guestd-test-", dir=base)
        except OSError:
            continue
        if os.path.exists(os.path.join(path, "cgroup.kill")):
            return path
        os.rmdir(path)
    return None


class Guestd:
    """listen True: hosts connect() to it one after the other."""

    def __init__(self, listen=False, cgroup=True):
        self.dir = tempfile.mkdtemp(prefix="guestd-test")
        self.cgroup = cgroup_folder() if cgroup else None
        self.path = os.path.join(self.dir, "s")
        if listen:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            end.bind(self.path)
            end.listen(1)
            self.sock = None
        else:
            self.sock, end = socket.socketpair()
        args = [binary(), "-T", str(end.fileno())]
        if self.cgroup:
            args += ["-C", self.cgroup]
        self.proc = subprocess.Popen(args, pass_fds=[end.fileno()],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end.close()

    def connect(self, timeout=20.0):
        if self.sock is not None:
            self.sock.close()
        self.sock = gproto.connect_unix(self.path)
        return gproto.Host(self.sock, timeout)

    def host(self, timeout=20.0):
        h = gproto.Host(self.sock, timeout)
        h.connect()
        return h

    def rss_kib(self):
        with open("/proc/%d/status" % self.proc.pid) as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])

    def open_fds(self):
        return len(os.listdir("/proc/%d/fd" % self.proc.pid))

    def stop(self):
        """Returns what it said on stderr."""
        if self.sock is not None:
            self.sock.close()
        self.proc.kill()
        err = self.proc.communicate()[1].decode("utf-8", "replace")
        if self.cgroup:
            self._remove_cgroups()
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        os.rmdir(self.dir)
        return err

    def _remove_cgroups(self):
        with open(os.path.join(self.cgroup, "cgroup.kill"), "w") as f:
            f.write("1")
        for _ in range(200):
            try:
                for path, folders, _ in os.walk(self.cgroup, topdown=False):
                    for name in folders:
                        os.rmdir(os.path.join(path, name))
                os.rmdir(self.cgroup)
                return
            except OSError:
                import time
                time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.err = self.stop()
