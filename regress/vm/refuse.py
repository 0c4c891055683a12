#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# regress: timeout=240
"""Starts that must fail: bad fields, files that are missing or damaged, a full
disk.  Each fails with its own error that names the thing, leaves nothing, and
the next good start works."""
import ctypes
import os
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import msg	# noqa: E402
import tap	# noqa: E402
import vmm	# noqa: E402

CLONE_NEWNS = 0x20000
MS_REC_PRIVATE = 0x4000 | 0x40000


def refused(t, v, name, error, text="", **fields):
    e = v.refusal(**fields)
    got = None if e is None else (e.error, text in e.detail)
    t.ok(got == (error, True), name, "got %s" % e)
    left = v.residue()
    if left:
        t.ok(False, name + ": nothing is left", left)


def test_fields(t):
    v = vmm.Vmm()
    try:
        uid = v.uid(0)
        refused(t, v, "uid of another slot", "E_INTERNAL", uid=uid + 1,
                gid=uid + 1)
        refused(t, v, "uid 0", "E_INTERNAL", uid=0, gid=0)
        refused(t, v, "gid 0", "E_INTERNAL", gid=0)
        refused(t, v, "slot beyond the range", "E_INTERNAL", slot=256)
        refused(t, v, "generation 0", "E_INTERNAL", generation=0)
        for name, values in (("vcpu", (0, 33, 0xffffffff)),
                             ("memory_mib", (0, 63, 262145, 0xffffffff)),
                             ("disk_mib", (0, 15, 1048577, 0xffffffff))):
            for x in values:
                refused(t, v, "%s %d" % (name, x), "E_OUT_OF_RANGE", name,
                        **{name: x})
        for mac in ("", "02:53:0a:00:00", "02:53:0a:00:00:0g",
                    "02:53:0A:00:00:02", "03:53:0a:00:00:02",
                    "02:53:0a:00:00: 2", "02-53-0a-00-00-02",
                    "0,id=x:0:0:00:002"):
            refused(t, v, "mac %r" % mac, "E_INTERNAL", "MAC", mac=mac)
        null = os.open("/dev/null", os.O_RDWR)
        refused(t, v, "tap that is /dev/null", "E_NETWORK", tap=null)
        refused(t, v, "tap of another slot", "E_NETWORK",
                tap=vmm.make_tap(v.tag, 1))
        refused(t, v, "tap of another name", "E_NETWORK",
                tap=vmm.make_tap(v.tag, 0, name="vmmtest%d" %
                                 (os.getpid() % 1000)))
        refused(t, v, "tap without a header", "E_NETWORK",
                tap=vmm.make_tap(v.tag, 0, vmm.IFF_TAP | vmm.IFF_NO_PI))
        for name in ("", ".", "..", "a/b", "../templates/seed", "/etc",
                     "seed/", ".seed", "-seed", "se ed", "seed\n", "x" * 63,
                     "seed,readonly=off", "none"):
            refused(t, v, "template %r" % name, "E_NO_TEMPLATE",
                    template=name)
        works(t, v, "after all that")
        vm = v.start()
        refused_busy(t, v, vm)
        v.destroy(vm)
    finally:
        v.close()


def refused_busy(t, v, vm):
    e = v.refusal(slot=1, id=vm.id)
    t.equal(e and e.error, "E_CONFLICT", "id that is in use")
    t.ok(vmm.alive(vm.pid), "the VM that is in the way lives on")
    os.kill(vm.pid, signal.SIGKILL)
    v.died()
    e = v.refusal(slot=0)
    t.equal(e and e.error, "E_CONFLICT",
            "slot of a VM that has died and is not yet destroyed")


def works(t, v, when):
    vm = v.start()
    host = v.host(vm)
    t.equal(host.run(["/bin/echo", "a"]).stdout, b"a\n",
            "a good start works %s" % when)
    v.destroy(vm)
    t.equal(v.residue(), [], "and leaves nothing")


def with_setup(t, name, error, text, **setup):
    v = vmm.Vmm(**setup)
    try:
        for i in range(3):
            refused(t, v, "%s, try %d" % (name, i + 1), error, text)
    finally:
        v.close()


def test_files(t):
    d = tempfile.mkdtemp(prefix="vmm-")
    os.chmod(d, 0o755)
    try:
        gone = d + "/gone"
        with_setup(t, "kernel missing", "E_START_FAILED", gone, kernel=gone)
        with_setup(t, "initramfs missing", "E_START_FAILED", gone,
                   initramfs=gone)
        with_setup(t, "QEMU missing", "E_START_FAILED", gone, qemu=gone)
        with_setup(t, "mke2fs missing", "E_START_FAILED", gone, mke2fs=gone)
        with_setup(t, "templates missing", "E_NO_TEMPLATE", gone,
                   template_dir=gone)
        bad = d + "/bad"
        with open(bad, "wb") as f:
            f.write(os.urandom(100000))
        os.chmod(bad, 0o644)
        # QEMU's own words (7.2): "could not load PVH / invalid kernel header"
        with_setup(t, "kernel of random bytes", "E_START_FAILED", "qemu",
                   kernel=bad)
        secret = d + "/secret"
        shutil.copy(bad, secret)
        os.chmod(secret, 0o600)
        with_setup(t, "kernel that the slot's uid may not read",
                   "E_START_FAILED", secret, kernel=secret)
        with_setup(t, "QEMU that is no program", "E_START_FAILED", "execute",
                   qemu=bad)
    finally:
        shutil.rmtree(d)


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def test_templates(t):
    d = tempfile.mkdtemp(prefix="vmm-")
    good = os.path.join(vmm.BUILD, "templates/seed/rootfs.ext4")
    json = b'{"version":1,"name":"x","root":"rootfs.ext4"}'
    cases = (
        ("no template.json", {}, "E_NO_TEMPLATE"),
        ("json: empty", {"template.json": b""}, "E_START_FAILED"),
        ("json: not an object", {"template.json": b"[]"}, "E_START_FAILED"),
        ("json: version 2", {"template.json":
            json.replace(b":1,", b":2,")}, "E_START_FAILED"),
        ("json: version a string", {"template.json":
            json.replace(b":1,", b':"1",')}, "E_START_FAILED"),
        ("json: root beside the folder", {"template.json":
            json.replace(b"rootfs", b"../seed/rootfs")}, "E_START_FAILED"),
        ("json: absolute root", {"template.json":
            json.replace(b"rootfs.ext4", b"/etc/passwd")}, "E_START_FAILED"),
        ("json: 5 KiB", {"template.json": json + b" " * 5000},
            "E_START_FAILED"),
        ("json: deep", {"template.json": b"[" * 2000}, "E_START_FAILED"),
        ("json: 1 MiB of binary", {"template.json": os.urandom(1 << 20)},
            "E_START_FAILED"),
        ("root: missing", {"template.json": json}, "E_START_FAILED"),
        ("root: empty", {"template.json": json, "rootfs.ext4": b""},
            "E_START_FAILED"),
        ("root: 700 bytes", {"template.json": json,
            "rootfs.ext4": bytes(700)}, "E_START_FAILED"))
    try:
        for i, (_, files, _) in enumerate(cases):
            os.mkdir("%s/t%d" % (d, i))
            for name, data in files.items():
                write("%s/t%d/%s" % (d, i, name), data)
        os.symlink(os.path.join(vmm.BUILD, "templates/seed"), d + "/link")
        os.mkdir(d + "/linked-root")
        write(d + "/linked-root/template.json", json)
        os.symlink(good, d + "/linked-root/rootfs.ext4")
        os.mkdir(d + "/fifo")
        os.mkfifo(d + "/fifo/template.json")
        v = vmm.Vmm(template_dir=d)
        try:
            for i, (name, _, error) in enumerate(cases):
                refused(t, v, "template: " + name, error, "template t%d" % i,
                        template="t%d" % i)
            refused(t, v, "template: folder is a link", "E_NO_TEMPLATE",
                    template="link")
            refused(t, v, "template: root is a link", "E_START_FAILED",
                    template="linked-root")
            refused(t, v, "template: template.json is a fifo",
                    "E_START_FAILED", template="fifo")
        finally:
            v.close()
    finally:
        shutil.rmtree(d)


def test_damaged_root(t):
    """Not a file system: QEMU starts, the guest cannot go on."""
    d = tempfile.mkdtemp(prefix="vmm-")
    os.mkdir(d + "/bad")
    write(d + "/bad/template.json",
          b'{"version":1,"name":"bad","root":"r.img"}')
    write(d + "/bad/r.img", os.urandom(1 << 20))
    v = vmm.Vmm(template_dir=d)
    try:
        vm = v.start(template="bad")
        m = v.died(60)
        cause = vmm.CAUSE[m["cause"]]
        t.ok(cause in ("guest_panic", "guest_stopped"),
             "damaged root: the guest ends", cause)
        t.ok(len(m["console"]) > 0, "damaged root: the console tells why",
             m["console"])
        print("# console: %r" % m["console"][-300:])
        v.destroy(vm)
        t.equal(v.residue(), [], "damaged root: nothing is left")
    finally:
        v.close()
        shutil.rmtree(d)


def test_full_disk(t):
    """A state directory on a tmpfs that is (nearly) full."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        t.skip("full disk", "no mount namespace")
        return
    libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None)
    d = tempfile.mkdtemp(prefix="vmm-")
    if libc.mount(b"none", d.encode(), b"tmpfs", 0, b"size=24m") != 0:
        t.skip("full disk", "tmpfs cannot be mounted")
        return
    v = vmm.Vmm(state_dir=d)
    try:
        works(t, v, "on a small disk")
        fill(d + "/ballast")
        refused(t, v, "full disk: a new size of layer", "E_HOST_DISK",
                "No space", disk_mib=300)
        refused(t, v, "full disk: a copied layer", "E_HOST_DISK",
                "layer.img")
        t.equal(sorted(os.listdir(d + "/layers")), ["256.ext4"],
                "full disk: no half-made file is kept")
        os.unlink(d + "/ballast")
        works(t, v, "when there is room again")
        guest_fills(t, v, d)
    finally:
        v.close()
        libc.umount2(d.encode(), 2)
        os.rmdir(d)


def fill(path):
    with open(path, "wb", buffering=0) as f:
        try:
            while True:
                f.write(bytes(4096))
        except OSError:
            pass


def guest_fills(t, v, d):
    """The host's disk fills up under a running guest: its error, not ours."""
    vm = v.start()
    host = v.host(vm)
    r = host.run(["/bin/sh", "-c",
                  "dd if=/dev/urandom of=/root/x bs=1M count=40; sync; "
                  "echo alive"], timeout=100)
    t.ok(b"alive" in r.stdout, "host disk full: the guest goes on", r)
    t.ok(vmm.alive(vm.pid), "host disk full: QEMU goes on")
    v.destroy(vm)
    t.equal(v.residue(), [], "host disk full: nothing is left")


def test_setup(t):
    """Start-up refuses what cannot work, and says what."""
    for name, text, setup in (
            ("relative path", "not absolute", {"kernel": "vmlinux"}),
            ("malformed tag", "tag", {"tag": "A/.."}),
            ("uid range from 0", "uid range", {"uid_first": 0}),
            ("uid range of the system", "uid range", {"uid_first": 60000}),
            ("uid range wraps", "uid range", {"uid_first": 0xfffffff0}),
            ("unknown driver", "driver", {"driver": "bhyve"}),
            ("state path too long", "too long",
             {"state_dir": "/tmp/" + "x" * 80})):
        try:
            v = vmm.Vmm(**setup)
            v.close()
            t.ok(False, "set-up: " + name, "was accepted")
        except msg.Error as e:
            t.ok(text in str(e), "set-up: " + name, e)


def main():
    why = vmm.missing()
    if why is not None:
        print("1..0 # SKIP " + why)
        return 0
    t = tap.Tap()
    began = time.monotonic()
    t.run(test_setup, test_fields, test_files, test_templates,
          test_damaged_root, test_full_disk)
    print("# %.1f s" % (time.monotonic() - began))
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
