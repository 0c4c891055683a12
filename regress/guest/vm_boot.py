#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: alone timeout=200
"""Any root file system does: empty ones, hostile ones, squashfs, no writable
layer; and what a guest says that cannot boot."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _guest
import gproto
import tap
import vmhost

BUSYBOX = "/bin/busybox"


def make_ext4(folder, out, mib=8):
    with open(out, "wb") as f:
        f.truncate(mib << 20)
    subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal",
        "-d", folder, "-F", out], check=True)


def scratch(folder):
    """FROM scratch with one binary: no folder that anything expects."""
    shutil.copy(BUSYBOX, os.path.join(folder, "busybox"))


def hostile(folder):
    """Links and files in the places of everything that guestd touches."""
    os.mkdir(os.path.join(folder, "bin"))
    shutil.copy(BUSYBOX, os.path.join(folder, "bin/busybox"))
    os.symlink("busybox", os.path.join(folder, "bin/sh"))
    for name, to in (("proc", "/layer"), ("sys", "../../../base"),
            ("dev", "/nowhere"), ("run", "/var/run"), ("tmp", "/var/tmp"),
            ("sbin", "/gone")):
        os.symlink(to, os.path.join(folder, name))
    os.makedirs(os.path.join(folder, "var/tmp"))
    os.makedirs(os.path.join(folder, "real-etc"))
    os.symlink("real-etc", os.path.join(folder, "etc"))
    os.symlink("../run/systemd/resolve/stub-resolv.conf",
        os.path.join(folder, "real-etc/resolv.conf"))
    os.symlink("/../../../init", os.path.join(folder, "real-etc/hosts"))
    os.symlink("/dev/zero", os.path.join(folder, "real-etc/machine-id"))
    os.symlink("/etc/hostname", os.path.join(folder, "real-etc/hostname"))


def run(vm, argv, **kw):
    return vm.host.run(argv, timeout=30, **kw)


def booted(vm):
    vm.host = vm.connect()
    return vm.host.connect(hostname="box", dns=["10.1.2.3"],
        machine_id="ab" * 16, entropy=os.urandom(64))


def t_scratch(t, d):
    root, image = os.path.join(d, "scratch"), os.path.join(d, "scratch.img")
    os.mkdir(root)
    scratch(root)
    make_ext4(root, image)
    with vmhost.VM(base=image) as vm:
        t.equal(booted(vm), (0, ""), "one binary and nothing else: boots")
        r = run(vm, ["/busybox", "cat", "/etc/resolv.conf", "/etc/hosts"])
        t.ok(r.code == 0 and b"nameserver 10.1.2.3\n" in r.stdout,
            "its binary runs, resolv.conf is there", r)
        r = run(vm, ["/busybox", "ls", "/"])
        t.equal(sorted(r.stdout.decode().split()), sorted(["busybox", "dev",
            "etc", "lost+found", "proc", "run", "sys", "tmp"]), "its root")
        try:
            run(vm, ["sh"])
            t.ok(False, "no shell in it")
        except gproto.Refused as e:
            t.equal((e.stage, e.errno), (gproto.STAGE_EXEC, 2),
                "no shell in it: ENOENT")
        r = run(vm, ["/busybox", "id"], user="1000")
        t.equal(r.stdout, b"uid=1000 gid=1000 groups=1000\n",
            "a user without /etc/passwd")
        s = vm.host.exec(["/busybox", "tty"], tty=True)
        t.equal(s.wait().stdout, b"/dev/pts/0\r\n", "a pty in it")


def t_hostile(t, d):
    root, image = os.path.join(d, "hostile"), os.path.join(d, "hostile.img")
    os.mkdir(root)
    hostile(root)
    make_ext4(root, image)
    with vmhost.VM(base=image) as vm:
        t.equal(booted(vm), (0, ""), "links everywhere: boots")
        r = run(vm, ["/bin/busybox", "cat", "/etc/resolv.conf", "/etc/hostname",
            "/etc/machine-id"])
        t.equal(r.stdout, b"nameserver 10.1.2.3\nbox\n" + b"ab" * 16 + b"\n",
            "files over dangling links")
        r = run(vm, ["/bin/busybox", "cat", "/proc/mounts"])
        where = [line.split()[1] for line in r.stdout.decode().splitlines()]
        t.equal(sorted(where), sorted(["/", "/proc", "/sys", "/dev",
            "/dev/pts", "/dev/shm", "/run", "/var/tmp", "/sys/fs/cgroup"]),
            "every mount is inside, where its name leads")
        r = run(vm, ["/bin/sh", "-c", "echo ok > /tmp/x; "
            "/bin/busybox cat /var/tmp/x"])
        t.equal(r.stdout, b"ok\n", "/tmp is where its link says")


def t_squashfs(t, d):
    if shutil.which("mksquashfs") is None:
        t.skip("squashfs", "no mksquashfs")
        return
    root, image = os.path.join(d, "sq"), os.path.join(d, "sq.img")
    os.mkdir(root)
    scratch(root)
    subprocess.run(["mksquashfs", root, image, "-quiet", "-no-progress",
        "-comp", "zstd"], check=True, stdout=subprocess.DEVNULL)
    with vmhost.VM(base=image, layer_mib=0) as vm:
        t.equal(booted(vm), (0, ""), "squashfs without a layer: boots")
        r = run(vm, ["/busybox", "sh", "-c",
            "echo x > /y; read l < /y; echo $l"])
        t.equal(r.stdout, b"x\n", "its root is writable (tmpfs)")


def t_unbootable(t, d):
    bad = os.path.join(d, "bad.img")
    with open(bad, "wb") as f:
        f.write(os.urandom(1 << 20))
    empty = os.path.join(d, "empty.img")
    with open(empty, "wb") as f:
        f.write(b"x" * 512)
    for image, text in ((bad, "base disk is neither ext4 nor squashfs"),
            (empty, "base disk is too short for a file system")):
        with vmhost.VM(base=image) as vm:
            try:
                vm.proc.wait(30)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            said = vm.console_text()
            t.ok(ended and "guestd: " + text in said,
                "%s: said on the console, the VMM ends" % text, said[-500:])


def t_memory(t, d):
    """The least in which the distribution's kernel boots."""
    with vmhost.VM(memory=80) as vm:
        t.equal(booted(vm), (0, ""), "80 MiB: boots")
        r = run(vm, ["sh", "-c", "free -k; tail /dev/zero; echo $?"])
        t.ok(b"137" in r.stdout and r.oom_killed, "80 MiB: out of memory", r)
        t.equal(run(vm, ["echo", "on"]).stdout, b"on\n", "80 MiB: and goes on")


def t_reboot(t, d):
    with vmhost.VM() as vm:
        booted(vm)
        vm.host.exec(["reboot"])
        start = time.monotonic()
        try:
            vm.proc.wait(15)
        except subprocess.TimeoutExpired:
            pass
        t.equal(vm.proc.poll(), 0, "reboot(8) ends the VMM (%.1f s)"
            % (time.monotonic() - start))


def main():
    t = tap.Tap()
    why = vmhost.missing()
    if why or not os.path.exists(BUSYBOX):
        t.skip("vm boot", why or "no static busybox")
        sys.exit(t.done())
    with tempfile.TemporaryDirectory() as d:
        t.run(*[lambda t, f=f: f(t, d) for f in (t_scratch, t_hostile,
            t_squashfs, t_unbootable, t_memory, t_reboot)])
    sys.exit(t.done())


main()
