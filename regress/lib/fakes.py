# SPDX-License-Identifier: ISC
"""A real parent (build/sandboxd) whose three children are played by the test.

Each child executable is a stub that hands its end of the socketpair to the test
and lives on until the test ends it, so that the parent sees a real process:

    with Parent() as p:
        p.ready()                       # barrier, sweep, OPEN_API
        owner = p.identify()
        sb = p.create(owner)            # through tap, VM, channel, ready
"""
import array
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import msg

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = "build-san" if os.environ.get("SAN") == "1" else "build"

STUB = """#!/usr/bin/python3 -I
import array, os, socket, sys
here = os.path.dirname(os.path.abspath(sys.argv[0]))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(os.path.join(here, "control"))
name = os.path.basename(sys.argv[0]) + " %d" % os.getpid()
s.sendmsg([name.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
    array.array("i", [3]))])
os.close(3)
s.recv(1)
"""
NAMES = ("front", "vmm", "netd")


class Stub(msg.Peer):
    """The test's end as one child: what the parent says comes to recv()."""

    def __init__(self, name, pid, sock, control):
        super().__init__(sock)
        self.name, self.pid, self.control = name, pid, control
        self.setup = None

    def end(self):
        """The process exits and the channel closes."""
        self.close()
        self.control.close()
        self.unlisten()

    def unlisten(self):
        if self.name == "front" and self.setup is not None:
            self.listener.close()

    def kill(self):
        # First: the parent kills a child whose channel closes.
        os.kill(self.pid, signal.SIGKILL)
        self.close()
        self.unlisten()


class Parent:
    def __init__(self, *conf, state=None, templates=("seed",), real=()):
        self.dir = tempfile.mkdtemp(prefix="sbp.", dir="/tmp")
        os.chmod(self.dir, 0o755)
        self.state = state or os.path.join(self.dir, "s")
        self.libexec = os.path.join(self.dir, "l")
        self.templates = os.path.join(self.dir, "t")
        os.mkdir(self.libexec)
        for name in templates:
            os.makedirs(os.path.join(self.templates, name))
            with open(os.path.join(self.templates, name,
                                   "template.json"), "w") as f:
                f.write("{}")
        for name in NAMES:
            path = os.path.join(self.libexec, name)
            if name in real:
                os.symlink(os.path.join(ROOT, BUILD, "libexec", name), path)
                continue
            with open(path, "w") as f:
                f.write(STUB)
            os.chmod(path, 0o755)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(os.path.join(self.libexec, "control"))
        self.listener.listen(8)
        self.conf = os.path.join(self.dir, "conf")
        # A place of its own: two daemons may not have the same.
        n = secrets.randbelow(1024)
        self.uid_first = 1999000000 + 256 * n
        self.net = "10.%d.%d" % (128 + n // 16, n % 16 * 16)
        lines = ['state "%s"' % self.state,
                 'socket "%s/api.sock"' % self.dir,
                 'libexec "%s"' % self.libexec,
                 'templates "%s"' % self.templates,
                 'verdict "%s/verdict"' % self.dir,
                 "uids %d count 256" % self.uid_first,
                 "pool %s.0/20" % self.net]
        if not any(c.startswith("accel") for c in conf):
            lines.append("accel tcg")
        with open(self.conf, "w") as f:
            f.write("\n".join(lines + list(conf)) + "\n")
        os.chmod(self.conf, 0o600)
        self.log = open(os.path.join(self.dir, "log"), "w+")
        self.start()

    def start(self):
        self.stubs = {}
        self.proc = subprocess.Popen(
            [os.path.join(ROOT, BUILD, "sandboxd"), "-d", "-v", "-f",
             self.conf], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)
        return self

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.stop()
        if kind is not None:
            for line in self.text().splitlines():
                print("# log: " + line)
        shutil.rmtree(self.dir)

    def text(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode()

    def stop(self, sig=signal.SIGTERM):
        for s in self.stubs.values():
            s.end()
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
            self.proc.wait(20)

    # ---- children ----

    def accept(self, timeout=20):
        """The next child that starts; its set-up messages are read."""
        self.listener.settimeout(timeout)
        control, _ = self.listener.accept()
        data, anc, _, _ = control.recvmsg(64, socket.CMSG_SPACE(4))
        fds = array.array("i")
        fds.frombytes(anc[0][2])
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET,
                             fileno=fds[0])
        name, pid = data.decode().split()
        stub = Stub(name, int(pid), sock, control)
        stub.setup = stub.recv()
        if name == "front":
            got = stub.expect("PARENT_GIVE_LISTENER")
            stub.listener = socket.socket(fileno=got.fd)
        stub.expect("PARENT_START_" + name.upper())
        self.stubs[name] = stub
        setattr(self, name, stub)
        return stub

    def accept_all(self):
        for _ in NAMES:
            self.accept()

    def say_ready(self, *names):
        for name in names or NAMES:
            fields = {}
            if name == "vmm":
                fields = dict(cgroup_tracking=1, qemu_version="fake",
                              kernel_version="fake")
            self.stubs[name].send(name.upper() + "_READY", **fields)

    def sweep(self, removed=0):
        self.vmm.answer(self.vmm.expect("PARENT_SWEEP_VMS"), "VMM_SWEEP_OK",
                        removed=removed)

    def ready(self):
        self.accept_all()
        self.say_ready()
        self.sweep()
        self.front.expect("PARENT_OPEN_API")

    # ---- what front asks ----

    def identify(self):
        a, b = socket.socketpair()
        m = self.front.request("FRONT_IDENTIFY_CLIENT", fd=a.fileno())
        a.close()
        b.close()
        return m["owner"]

    def ask_create(self, owner, **fields):
        fields.setdefault("template", "seed")
        fields.setdefault("fingerprint", b"f" * 32)
        return self.front.start("FRONT_CREATE_SANDBOX", owner=owner, **fields)

    # ---- what the actuators answer ----

    def tap(self):
        m = self.netd.expect("PARENT_CREATE_TAP")
        os.close(m.fd)
        self.netd.answer(m, "NETD_CREATE_TAP_OK", slot=m["slot"],
                         generation=m["generation"], ifindex=7, name="sbx")
        return m

    def start_vm(self, pid=1):
        m = self.vmm.expect("PARENT_START_VM")
        os.close(m.fd)
        a, b = socket.socketpair()
        self.vmm.answer(m, "VMM_START_VM_OK", fd=a.fileno(), id=m["id"],
                        generation=m["generation"], pid=pid, start_time=42)
        a.close()
        b.close()
        return m

    def channel(self):
        m = self.front.expect("PARENT_OPEN_CHANNEL")
        os.close(m.fd)
        return m

    def guest_ready(self, m):
        self.front.send("FRONT_GUEST_READY_EVENT", id=m["id"],
                        generation=m["generation"])
        self.vmm.expect("PARENT_VM_BOOTED")

    def create(self, owner, **fields):
        request = self.ask_create(owner, **fields)
        self.tap()
        self.start_vm()
        self.guest_ready(self.channel())
        return self.front.wait_answer(request)

    def release(self, console=b"", channel=True):
        """Answers the release of one sandbox; returns what was destroyed."""
        if channel:
            self.front.expect("PARENT_CLOSE_CHANNEL")
        m = self.vmm.expect("PARENT_DESTROY_VM")
        self.vmm.answer(m, "VMM_DESTROY_VM_OK", id=m["id"],
                        generation=m["generation"], console=console)
        t = self.netd.expect("PARENT_REMOVE_TAP")
        self.netd.answer(t, "NETD_REMOVE_TAP_OK", slot=t["slot"],
                         generation=t["generation"])
        return m

    def ledger(self):
        """The entries as the files on disk have them."""
        with open(os.path.join(self.state, "state.json")) as f:
            body = json.load(f)["body"]
        entries = body["entries"]
        with open(os.path.join(self.state, body["log"]), "rb") as f:
            for line in f.read().split(b"\0")[0].splitlines():
                change = json.loads(line[17:].decode("latin-1"))
                if "put" in change:
                    entries[change["put"]] = change["value"]
                elif "mark" in change:
                    entries[change["mark"]].update(change["value"])
                else:
                    entries.pop(change["drop"], None)
        return entries


def eventually(what, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False
