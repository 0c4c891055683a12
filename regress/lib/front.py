# SPDX-License-Identifier: ISC
"""
A real front process; its parent and its guests are played by the test.

    with Front() as f:
        box = f.add_box()                   # a sandbox with a scripted guest
        f.api.exec(box.id, ["echo", "hi"])
        f.seen("FRONT_DETACH_STREAM")       # what front has told the parent

Front.on[NAME] = f(message) replaces what the parent does for a message; it
answers by itself (f.peer.answer(...)) or returns None for "later".
"""
import ctypes
import itertools
import os
import random
import socket
import stat
import struct
import sys
import tempfile
import threading
import time

import api as client
import gproto
import msg

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.environ.get("B") or (
    "build-san" if os.environ.get("SAN") == "1" else "build")
EXE = os.path.join(ROOT, BUILD, "libexec", "front")
UID = 1999990000
# A sanitizer keeps 256 MiB of freed memory, else.
SAN_ENV = {"ASAN_OPTIONS": "quarantine_size_mb=8"} if os.environ.get(
    "SAN") == "1" else {}
CLONE_NEWNET = 0x40000000
BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
RUNNING, DELETING, FAILED, DELETED = 2, 4, 5, 6


def errors():
    """errors.def as {code: number}."""
    with open(os.path.join(ROOT, "common", "errors.def")) as f:
        rows = [line.split('"')[1] for line in f
                if line.startswith("SBX_ERROR(E_")]
    return {code: i + 1 for i, code in enumerate(rows)}


E = errors()


def new_id():
    return "sb-" + "".join(random.choice(BASE32) for _ in range(16))


def eventually(condition, seconds=10.0):
    """The condition's value as soon as it is true; its last one else."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.01)


def new_netns():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


class Box:
    """A sandbox as the parent knows it, and the guest's end of its channel."""

    def __init__(self, id, generation):
        self.id, self.generation = id, generation
        self.state = RUNNING
        self.env = b""
        self.fields = {}
        self.guest = self.sock = None


class Front:
    def __init__(self, open_api=True, log=False, env=None, **setup):
        if os.geteuid() != 0:
            print("1..0 # SKIP needs root")
            sys.exit(0)
        self.dir = tempfile.mkdtemp(prefix="sbf.", dir="/tmp")
        os.chmod(self.dir, 0o755)
        self.root = os.path.join(self.dir, "empty")
        os.mkdir(self.root, 0o755)
        self.path = os.path.join(self.dir, "api.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o666)
        self.listener.listen(128)
        self.api = client.Api(self.path, timeout=30)
        self.boxes, self.keys, self.owners = {}, {}, {}
        self.messages = []          # all that front has sent
        self.on = {}
        self.generations = itertools.count(1)
        self.streams = itertools.count(1000)
        self.cond = threading.Condition()
        self.sending = threading.Lock()
        self.gone = False
        self.peer = msg.Child(EXE, env=env or SAN_ENV, before_exec=new_netns, log=log)
        fields = dict(uid=UID, gid=UID, root=self.root, verbose=1,
                      version="9.9.9", guest_boot_ms=5000)
        fields.update(setup)
        self.peer.send("PARENT_SETUP_FRONT", **fields)
        self.peer.send("PARENT_GIVE_LISTENER", fd=self.listener.fileno())
        self.peer.send("PARENT_START_FRONT")
        self.peer.expect("FRONT_READY")
        threading.Thread(target=self._serve, daemon=True).start()
        if open_api:
            self.send("PARENT_OPEN_API")

    @property
    def pid(self):
        return self.peer.pid

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        text = self.stop()
        if kind is not None:
            for line in text.splitlines():
                print("# front: " + line)

    def stop(self):
        """Ends front as the parent's death would; returns its log."""
        for box in self.boxes.values():
            self.cut(box)
        if self.peer.status is None:
            try:
                self.peer.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            try:
                self.peer.wait(10)
            except TimeoutError:
                self.peer.kill()
        self.listener.close()
        os.unlink(self.path)
        os.rmdir(self.root)
        os.rmdir(self.dir)
        return self.peer.text()

    # ---- what front has said ----

    def seen(self, name, count=1, seconds=10.0):
        """The messages of that name once there are `count`, or those there."""
        def some():
            return [m for m in self.messages if m.name == name]
        eventually(lambda: len(some()) >= count, seconds)
        return some()

    def forget(self):
        self.messages.clear()

    # ---- the parent ----

    def send(self, name, /, **how):
        with self.sending:
            self.peer.send(name, **how)

    def answer(self, m, name, /, **how):
        with self.sending:
            self.peer.answer(m, name, **how)

    def fail(self, m, code, **fields):
        self.answer(m, "PARENT_FAIL", error=E[code], **fields)

    def _serve(self):
        while True:
            try:
                m = self.peer._recv(3600)
            except (OSError, msg.Error, ValueError):
                m = None
            if m is None:
                self.gone = True
                return
            self.messages.append(m)
            try:
                act = self.on.get(m.name) or getattr(
                    self, "_" + m.name.lower(), None)
                if act is not None:
                    act(m)
            except OSError:
                pass
            finally:
                if m.fd is not None:
                    os.close(m.fd)

    def _front_identify_client(self, m):
        s = socket.socket(fileno=os.dup(m.fd))
        _, uid, _ = struct.unpack("3i", s.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        s.close()
        self.owners[uid + 7000] = uid
        self.answer(m, "PARENT_IDENTIFY_OK", owner=uid + 7000, uid=uid)

    def give(self, m, box, replayed=0, more=False):
        self.answer(m, "PARENT_GIVE_SANDBOX", more_follow=more, id=box.id,
                    state=box.state, replayed=replayed,
                    created_ms=1796083200123, expires_ms=1796083500123,
                    boot_ms=321, address="10.9.0.2",
                    **{k: v for k, v in box.fields.items()})

    def _front_create_sandbox(self, m):
        if m["key"] and m["key"] in self.keys:
            box, print_ = self.keys[m["key"]]
            if print_ != m["fingerprint"]:
                return self.fail(m, "key_reused", sandbox=box.id)
            return self.give(m, box, replayed=1)
        box = self.add_box(**{k: m[k] for k in (
            "template", "name", "on_disconnect", "metadata")},
            vcpu=m["vcpu"] or 1, memory_mib=m["memory_mib"] or 128,
            disk_mib=m["disk_mib"] or 64, timeout_s=m["timeout_s"] or 300,
            wait=False)
        box.env = m["env"]
        if m["key"]:
            self.keys[m["key"]] = (box, m["fingerprint"])
        return self.give(m, box)

    def _front_show_sandbox(self, m):
        box = self.boxes.get(m["id"])
        if box is None:
            return self.fail(m, "no_sandbox", sandbox=m["id"],
                             detail="no sandbox has this id")
        return self.give(m, box)

    def _front_list_sandboxes(self, m):
        ids = list(self.boxes)
        start = ids.index(m["after"]) + 1 if m["after"] in ids else 0
        page = ids[start:start + m["limit"]]
        for id in page:
            self.give(m, self.boxes[id], more=True)
        self.answer(m, "PARENT_END_LIST", next=page[-1] if page and
                    start + len(page) < len(ids) else "")

    def _front_delete_sandbox(self, m):
        box = self.boxes.pop(m["id"], None)
        if box is not None:
            self.close_channel(box, "sandbox_gone", "deleted by its owner")
        self.answer(m, "PARENT_DELETE_OK", done=1)

    def _front_attach_stream(self, m):
        box = self.boxes.get(m["id"])
        if box is None:
            return self.fail(m, "no_sandbox", sandbox=m["id"],
                             detail="no sandbox has this id")
        if box.state != RUNNING:
            return self.fail(m, "state_conflict", sandbox=m["id"],
                             detail="the sandbox is not running")
        self.answer(m, "PARENT_ATTACH_OK", stream=next(self.streams),
                    env=box.env)

    def _front_get_health(self, m):
        self.answer(m, "PARENT_GIVE_HEALTH", uptime_ms=12345,
                    running=len(self.boxes), driver="qemu", accel="tcg",
                    accel_reason="no /dev/kvm", notes="one note\nanother")

    # ---- sandboxes and their guests ----

    def add_box(self, misbehave=None, guest=True, command=gproto.builtin,
                deadline_ms=5000, wait=True, **fields):
        box = Box(new_id(), next(self.generations))
        fields.setdefault("template", "seed")
        box.fields = fields
        self.boxes[box.id] = box
        self.connect(box, misbehave, guest, command, deadline_ms, wait)
        return box

    def connect(self, box, misbehave=None, guest=True, command=gproto.builtin,
                deadline_ms=5000, wait=True):
        """Gives front a (new) channel; returns the guest's end."""
        ours, theirs = socket.socketpair()
        before = len(self.of(box, "FRONT_GUEST_READY_EVENT"))
        box.sock = ours
        if guest:
            box.guest = gproto.Guest(ours, command)
            box.guest.serve_thread(misbehave=misbehave)
        self.send("PARENT_OPEN_CHANNEL", fd=theirs.fileno(), id=box.id,
                  generation=box.generation, deadline_ms=deadline_ms,
                  hostname="box", address="10.9.0.2", gateway="10.9.0.1",
                  prefix=30, mac="02:53:0a:09:00:02", mtu=1500,
                  dns="1.1.1.1 9.9.9.9")
        theirs.close()
        if guest and wait and misbehave is None:
            eventually(lambda: len(
                self.of(box, "FRONT_GUEST_READY_EVENT")) > before)
        return ours

    def of(self, box, name):
        return [m for m in self.messages if m.name == name and
                m["id"] == box.id]

    def lost(self, box, seconds=10.0):
        """The LOST event of this sandbox, or None."""
        eventually(lambda: self.of(box, "FRONT_GUEST_LOST_EVENT"), seconds)
        some = self.of(box, "FRONT_GUEST_LOST_EVENT")
        return some[-1] if some else None

    def close_channel(self, box, code, detail=""):
        self.send("PARENT_CLOSE_CHANNEL", id=box.id,
                  generation=box.generation, error=E[code], detail=detail)

    def cut(self, box):
        if box.sock is not None:
            try:
                box.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    # ---- the process ----

    def status(self):
        with open("/proc/%d/status" % self.pid) as f:
            return dict(line.rstrip("\n").split(":\t", 1) if ":\t" in line
                        else (line.split(":")[0], line.split(":")[1].strip())
                        for line in f if ":" in line)

    def rss_kib(self):
        return int(self.status()["VmRSS"].split()[0])

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def cpu_s(self):
        with open("/proc/%d/stat" % self.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def alive(self):
        return os.path.exists("/proc/%d/status" % self.pid) and \
            self.status()["State"][0] not in "ZX"
