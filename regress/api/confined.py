#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=200
"""The running daemon as /proc shows it: ids, capabilities, no_new_privs, seccomp,
roots, namespaces and descriptors of the four processes and of a VMM.  What each
may not do is tried in regress/unit/confine*_test.c and regress/net/confine.py."""
import os
import stat
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import daemon
daemon.need()
import api
import tap

A = api.Api()
# linux/capability.h
NET_ADMIN = 1 << 12
ALLOWED = {
    "parent": {0, 1, 3, 5, 6, 7, 8, 12, 18, 21, 24, 27},
    "vmm": {0, 1, 3, 5, 6, 7, 8, 12, 18, 21, 24, 27},
}
# What neither may hold whatever else changes: ptrace, modules, raw I/O, time,
# boot, raw sockets, audit, MAC, bpf, perfmon, checkpoint.
NEVER = {13, 16, 17, 19, 22, 25, 29, 30, 32, 33, 37, 38, 39, 40}


def caps(s, name):
    return int(s[name][0], 16)


def bits(mask):
    return {i for i in range(64) if mask >> i & 1}


def ns(pid, kind):
    return os.readlink("/proc/%d/ns/%s" % (pid, kind))


def inode(path):
    s = os.stat(path)
    return s.st_dev, s.st_ino


def common(t, name, s):
    t.equal(s["NoNewPrivs"], ["1"], "%s: no_new_privs" % name)
    t.equal(s["Seccomp"], ["2"], "%s: a seccomp filter" % name)
    t.equal(caps(s, "CapAmb"), 0, "%s: no ambient capability" % name)
    t.equal(caps(s, "CapInh"), 0, "%s: no inheritable capability" % name)
    t.equal(s["Groups"], [], "%s: no further group" % name) \
        if name not in ("parent", "vmm") else None


def unprivileged(t, name, pid, uid, mask, state):
    s = daemon.status(pid)
    t.equal(set(s["Uid"] + s["Gid"]), {str(uid)},
            "%s: its own uid and gid, in all four places" % name)
    for c in ("CapEff", "CapPrm"):
        t.equal(caps(s, c), mask, "%s: %s is %x" % (name, c, mask))
    t.equal(caps(s, "CapBnd"), mask, "%s: CapBnd is %x" % (name, mask))
    common(t, name, s)
    t.equal(inode("/proc/%d/root" % pid), inode(state + "/empty"),
            "%s: its root is the empty directory" % name)
    t.equal(os.listdir("/proc/%d/root/" % pid), [], "%s: which is empty" % name)


def privileged(t, name, pid):
    s = daemon.status(pid)
    t.equal(set(s["Uid"]), {"0"}, "%s: root" % name)
    common(t, name, s)
    for c in ("CapEff", "CapPrm", "CapBnd"):
        have = bits(caps(s, c))
        t.ok(have <= ALLOWED[name] and not have & NEVER,
             "%s: %s only what its children need" % (name, c), have)


def descriptors(t, name, pid):
    """Nothing that was open in another process leaks into this one."""
    odd = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        link = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        if not link.startswith(("socket:", "anon_inode:", "pipe:",
                                "/dev/null")) and int(fd) > 2:
            odd.append((fd, link))
    t.equal(odd, [], "%s: no file is open" % name)


def front_and_netd(t):
    state = os.environ["SANDBOXD_STATE"]
    first = int(os.environ["SANDBOXD_UIDS"].split()[0])
    p = daemon.children()
    unprivileged(t, "front", p["front"], first, 0, state)
    unprivileged(t, "netd", p["netd"], first + 1, NET_ADMIN, state)
    for name in ("front", "netd"):
        descriptors(t, name, p[name])
    t.ok(ns(p["front"], "net") != ns(os.getpid(), "net"),
         "front: a network namespace of its own")
    with open("/proc/%d/net/dev" % p["front"]) as f:
        names = [line.split(":")[0].strip() for line in f if ":" in line]
    t.equal(names, ["lo"], "front: with nothing in it but lo")


def parent_and_vmm(t):
    p = daemon.children()
    privileged(t, "parent", p["parent"])
    privileged(t, "vmm", p["vmm"])
    for link in ("exe",):
        paths = {n: os.path.basename(os.readlink("/proc/%d/%s" % (q, link)))
                 for n, q in p.items()}
    t.equal(paths, {"parent": "sandboxd", "front": "front", "vmm": "vmm",
                    "netd": "netd"}, "four executables")


def create():
    """A vmm that was just restarted says "come again" for a moment."""
    while True:
        try:
            return A.create()["sandbox_id"]
        except api.ApiError as e:
            if e.problem.get("code") != "restarting":
                raise
            time.sleep(0.05)


def the_vmm(t):
    first, count = map(int, os.environ["SANDBOXD_UIDS"].split())
    box = create()
    pid = daemon.vmm_pid(box)
    s = daemon.status(pid)
    ids = set(s["Uid"] + s["Gid"])
    t.ok(len(ids) == 1 and first + 16 <= int(ids.copy().pop()) < first + count,
         "VMM: uid and gid of its slot", ids)
    for c in ("CapEff", "CapPrm", "CapBnd"):
        t.equal(caps(s, c), 0, "VMM: %s is 0" % c)
    common(t, "VMM", s)
    for kind in ("mnt", "pid", "net", "ipc", "uts"):
        t.ok(ns(pid, kind) != ns(os.getpid(), kind),
             "VMM: its own %s namespace" % kind)
    root = "/proc/%d/root" % pid
    t.ok(not os.path.exists(root + "/etc/passwd") and
         not os.path.exists(root + "/root") and
         not os.path.exists(root + "/home"),
         "VMM: nothing of the host in its root but what QEMU needs",
         os.listdir(root))
    t.ok(not os.path.exists(root + "/dev/kvm"), "VMM under TCG: no /dev/kvm")
    writable = []
    for d, dirs, files in os.walk(root + "/"):
        if d.startswith(root + "/proc"):
            dirs[:] = []
            continue
        for f in [d] + [os.path.join(d, x) for x in files]:
            m = os.lstat(f)
            if m.st_uid == int(s["Uid"][0]) or (
                    m.st_mode & stat.S_IWOTH and
                    not stat.S_ISLNK(m.st_mode) and
                    not stat.S_ISCHR(m.st_mode)):
                writable.append(f[len(root):])
    t.equal(writable, [], "VMM: nothing in its root is its own or writable")
    state = os.environ["SANDBOXD_STATE"]
    mode = os.stat(os.path.join(state, "vm")).st_mode
    t.equal(stat.S_IMODE(mode), 0o700, "VMM directories: root's alone")
    A.delete(box)
    t.ok(daemon.status(pid) is None, "VMM: gone after the delete")


def state_files(t):
    state = os.environ["SANDBOXD_STATE"]
    for name in ("state.json", "lock"):
        s = os.stat(os.path.join(state, name))
        t.equal((s.st_uid, stat.S_IMODE(s.st_mode)), (0, 0o600),
                "%s: root's alone" % name)
    s = os.stat(os.environ["SANDBOXD_SOCKET"])
    t.equal(stat.S_IMODE(s.st_mode), 0o660, "API socket: mode 0660")


def main():
    t = tap.Tap()
    t.run(front_and_netd, parent_and_vmm, the_vmm, state_files)
    # Every child was started by the confined parent: once more, restarted.
    for name in ("front", "netd", "vmm"):
        os.kill(daemon.children()[name], 9)
    A.wait_healthy()
    while len(daemon.children()) < 4:
        pass
    A.wait_healthy()
    t.run(front_and_netd, parent_and_vmm, the_vmm)
    return t.done()


sys.exit(main())
