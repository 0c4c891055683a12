#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=120
"""sandboxctl doctor: an instance that this test makes up, with one artefact of
each kind, owned by a record or by none.  root-: needs root, like doctor."""
import ctypes
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import fake_api
import tap

TUNSETIFF = 0x400454ca
IFF_TAP_NO_PI = 0x1002
UIDS = 1950000000               # nobody's, not the daemons' of other tests
BOX = "sb-aaaabbbbccccdddd"
SLOT = 5


def make_tag():
    import random
    return "".join(random.choice(fake_api.BASE32) for _ in range(4))


class Instance:
    """A state directory as sandboxd(8) writes it, without a daemon."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="doctor")
        self.state = self.dir + "/state"
        self.tag = make_tag()
        self.lock = None
        self.undo = []
        os.mkdir(self.state)
        os.mkdir(self.state + "/vm")
        with open(self.state + "/instance.json", "w") as f:
            json.dump({"tag": self.tag, "pid": 1, "uid_first": UIDS,
                       "uid_count": 64, "socket": self.dir + "/api.sock",
                       "pool": "10.9.0.0/16"}, f)
        self.ledger({})

    def ledger(self, entries, log=b""):
        body = json.dumps({"log": "log.1", "seq": 7, "entries": entries},
                          separators=(",", ":"))
        total = hashlib.sha256(body.encode()).hexdigest()[:16]
        with open(self.state + "/state.json", "w") as f:
            f.write('{"version":1,"sum":"%s","body":%s}\n' % (total, body))
        with open(self.state + "/log.1", "wb") as f:
            f.write(log + bytes(4096))

    def change(self, n, **what):
        text = json.dumps(dict({"n": n}, **what),
                          separators=(",", ":")).encode()
        return hashlib.sha256(text).hexdigest()[:16].encode() + b" " + \
            text + b"\n"

    def run(self):
        """As if a daemon ran: its lock is held."""
        self.lock = open(self.state + "/lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def stop(self):
        self.lock.close()

    def doctor(self, *args):
        env = dict(os.environ)
        env.pop("SANDBOXD_STATE", None)
        return subprocess.run([fake_api.CTL, "doctor", "-S", self.state,
                               *args], env=env, capture_output=True,
                              check=False, timeout=60)

    def left(self):
        r = self.doctor("--json")
        report = json.loads(r.stdout)
        found = [(f["kind"], f["text"]) for f in report["findings"]
                 if f["level"] == "left"]
        if (r.returncode == 0) != (report["ready"] and not found) or \
                report["left_over"] != len(found):
            raise AssertionError("status %d, %r" % (r.returncode, report))
        return found

    # artefacts

    def process(self, uid):
        pid = os.fork()
        if pid == 0:
            os.setgid(uid)
            os.setuid(uid)
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # setuid clears it
            time.sleep(300)
            os._exit(0)
        self.undo.append(lambda: (os.kill(pid, signal.SIGKILL),
                                  os.waitpid(pid, 0)))
        end = time.monotonic() + 5
        while os.stat("/proc/%d" % pid).st_uid != uid and \
                time.monotonic() < end:
            time.sleep(0.01)
        return pid

    def tap(self, name):
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(),
                                               IFF_TAP_NO_PI))
        self.undo.append(lambda: os.close(fd))

    def cgroup(self, name):
        with open("/proc/self/mountinfo") as f:
            mounts = [line.split()[4] for line in f if " - cgroup2 " in line]
        if not mounts:
            return False
        top = "%s/sandboxd-%s" % (mounts[0], self.tag)
        if not os.path.isdir(top):
            os.mkdir(top)
            self.undo.append(lambda: os.rmdir(top))
        os.mkdir(top + "/" + name)
        self.undo.append(lambda: os.rmdir(top + "/" + name))
        return True

    def table(self, *names):
        if shutil.which("nft") is None:
            return False
        t = "sandboxd-" + self.tag
        subprocess.run(["nft", "-f", "-"], check=True, text=True, input=(
            "table inet %s {\n set taps {\n type ifname\n elements = { %s }\n"
            "}\n}\n" % (t, ", ".join('"%s"' % n for n in names))))
        self.undo.append(lambda: subprocess.run(
            ["nft", "delete", "table", "inet", t], check=True))
        return True

    def clean(self):
        while self.undo:
            try:
                self.undo.pop()()
            except (OSError, subprocess.SubprocessError) as e:
                print("# clean-up: %s" % e)
        shutil.rmtree(self.dir)


def record(**members):
    return dict({"state": "running", "slot": SLOT, "pid": 1, "released": 0,
                 "generation": 3}, **members)


def kinds(found):
    return sorted({k for k, _ in found})


def check_artefacts(t):
    i = Instance()
    try:
        t.equal(i.left(), [], "doctor: an empty instance -> nothing left")
        tap_name = "sb%s-%x" % (i.tag, SLOT)
        i.tap(tap_name)
        pid = i.process(UIDS + 16 + SLOT)
        os.mkdir(i.state + "/vm/" + BOX)
        want = ["directory", "process", "tap"]
        want += ["cgroup"] if i.cgroup(BOX) else []
        want += ["nftables"] if i.table(tap_name) else []
        found = i.left()
        t.equal(kinds(found), sorted(want),
                "doctor: one artefact of each kind, no record -> all told")
        for kind, name in (("tap", tap_name), ("directory", BOX),
                           ("process", str(pid)), ("process", str(UIDS + 21)),
                           ("cgroup", BOX), ("nftables", tap_name)):
            if kind in want:
                t.ok(any(k == kind and name in text for k, text in found),
                     "doctor: %s is named" % kind, found)
        r = i.doctor("-q")
        t.ok(r.returncode == 1 and len(r.stdout.splitlines()) == len(found)
             and all(line.startswith(b"LEFT") for line in
                     r.stdout.splitlines()),
             "doctor: -q -> a line for each, 1", r.stdout)
        i.ledger({"sandbox/" + BOX: record(), "host": {"boot_id": "x"}})
        t.equal(i.left(), [], "doctor: a record owns all of it -> nothing")
        i.ledger({}, i.change(8, put="sandbox/" + BOX, value=record()))
        t.equal(i.left(), [], "doctor: the record is only in the log -> "
                "nothing")
        i.ledger({"sandbox/" + BOX: record()},
                 i.change(8, mark="sandbox/" + BOX, value={"released": 1}))
        t.equal(kinds(i.left()), sorted(want),
                "doctor: the record has released it -> all told")
        i.ledger({"sandbox/" + BOX: record()},
                 i.change(8, drop="sandbox/" + BOX))
        t.equal(kinds(i.left()), sorted(want),
                "doctor: the record was dropped in the log -> all told")
        i.ledger({"sandbox/" + BOX: record(slot=SLOT + 1)})
        t.ok("tap" in kinds(i.left()) and "directory" not in kinds(i.left()),
             "doctor: the record is of another slot -> its tap is told")
    finally:
        i.clean()


def check_running(t):
    i = Instance()
    try:
        front = i.process(UIDS)
        t.equal(i.left(), [("process", "%d (python3) of uid %d" % (front,
                                                                  UIDS))],
                "doctor: front without a parent -> told")
        s = socket.socket(socket.AF_UNIX)
        s.bind(i.dir + "/api.sock")
        t.equal(kinds(i.left()), ["process", "socket"],
                "doctor: socket without a daemon -> told")
        i.run()
        t.equal(i.left(), [], "doctor: a daemon runs -> both are its own")
        t.equal(json.loads(i.doctor("--json").stdout)["running"], True,
                "doctor: sees that it runs")
        i.tap("sb%s-1" % i.tag)
        t.equal(kinds(i.left()), ["tap"],
                "doctor: beside a running daemon, too")
        i.stop()
        s.close()
    finally:
        i.clean()


def check_brief(t):
    """What is there only for a moment is a daemon's work, not residue."""
    i = Instance()
    try:
        i.run()
        os.mkdir(i.state + "/vm/" + BOX)
        p = subprocess.Popen([fake_api.CTL, "doctor", "--json", "-S", i.state],
                             stdout=subprocess.PIPE)
        time.sleep(0.6)
        os.rmdir(i.state + "/vm/" + BOX)
        out = p.communicate(timeout=30)[0]
        t.ok(json.loads(out)["left_over"] == 0,
             "doctor: gone at the second look -> nothing", out)
        i.stop()
    finally:
        i.clean()


def check_others(t):
    i, other = Instance(), Instance()
    try:
        other.tap("sb%s-2" % other.tag)
        t.equal(i.left(), [], "doctor: -S -> only that instance")
        r = i.doctor("-a", "--json")
        mine = [f for f in json.loads(r.stdout)["findings"]
                if other.tag in f["text"]]
        t.ok(r.returncode == 1 and len(mine) == 1 and
             mine[0]["kind"] == "tap", "doctor: -a -> a tag whose daemon does "
             "not run is told", r.stdout)
    finally:
        other.clean()
        i.clean()


def check_faults(t):
    i = Instance()
    try:
        with open(i.state + "/state.json", "r+") as f:
            f.truncate(40)
        r = i.doctor()
        t.ok(r.returncode == 1 and b"state.json" in r.stderr,
             "doctor: ledger cut short -> 1 and which file", r.stderr)
        i.ledger({})
        with open(i.state + "/instance.json", "w") as f:
            f.write('{"tag":"../x"}')
        r = i.doctor()
        t.ok(r.returncode == 1 and b"instance.json" in r.stderr,
             "doctor: instance.json damaged -> 1 and which file", r.stderr)
        r = i.doctor("x")
        t.equal(r.returncode, 2, "doctor: argument -> 2")
        r = subprocess.run([fake_api.CTL, "doctor", "-S", i.dir + "/none"],
                           capture_output=True, check=False)
        t.ok(b"0 left over" in r.stdout, "doctor: no such state -> nothing",
             r)
        r = subprocess.run([fake_api.CTL, "doctor", "-S", "relative"],
                           capture_output=True, check=False)
        t.equal(r.returncode, 2, "doctor: -S relative -> 2")
        os.chmod(i.dir, 0o755)
        r = subprocess.run([fake_api.CTL, "doctor", "-S", i.state],
                           capture_output=True, check=False, user=65534,
                           group=65534)
        t.ok(r.returncode == 1 and b"root" in r.stderr,
             "doctor: not root -> 1 and says so", r)
    finally:
        i.clean()


def check_host(t):
    i = Instance()
    try:
        out = i.doctor().stdout.decode()
        for kind in ("kernel", "tun", "kvm", "qemu", "mke2fs", "guest kernel",
                     "initramfs", "templates", "cgroup", "disk", "memory",
                     "network"):
            t.ok("  %s: " % kind in out, "doctor: looks at %s" % kind, out)
        t.ok(os.uname().release in out, "doctor: the kernel's release", out)
    finally:
        i.clean()


def main():
    t = tap.Tap()
    if os.geteuid() != 0:
        t.skip("doctor", "needs root")
    else:
        t.run(check_artefacts, check_running, check_brief, check_others,
              check_faults, check_host)
    return t.done()


sys.exit(main())
