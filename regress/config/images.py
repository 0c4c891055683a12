#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The images: what is in them, that two builds are alike, and that the kernel
extractor refuses what is no kernel.  Needs no root and no daemon."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

B = os.environ.get("B", "build")
KERNEL = "build/kernel"
EPOCH = "1704067200"
count = failed = 0


def ok(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {count} - {name}")
    if not good and detail:
        print("\n".join("# " + x for x in str(detail).split("\n")))


def run(*argv, **kw):
    env = dict(os.environ, SOURCE_DATE_EPOCH=EPOCH)
    return subprocess.run(argv, capture_output=True, env=env, **kw)


def read(path):
    with open(path, "rb") as f:
        return f.read()


# ---- the extractor

def extract(data, tmp):
    """(status, stderr, ELF or None) of the extractor on these bytes."""
    src, out = tmp + "/bz", tmp + "/elf"
    with open(src, "wb") as f:
        f.write(data)
    r = run(f"{B}/images/vmlinux_extract", src, out)
    elf = read(out) if r.returncode == 0 else None
    return r.returncode, r.stderr.decode(), elf


def patched(data, *changes):
    b = bytearray(data)
    for offset, value in changes:
        b[offset:offset + len(value)] = value
    return bytes(b)


def test_extract(tmp):
    bz = read(KERNEL + "/vmlinuz")
    setup = bz[0x1f1] or 4
    offset, length = struct.unpack("<II", bz[0x248:0x250])
    start = (setup + 1) * 512 + offset
    size = struct.unpack("<I", bz[start + length - 4:start + length])[0]
    status, err, elf = extract(bz, tmp)
    ok(status == 0 and len(elf) == size and elf[:4] == b"\x7fELF",
       "extract: Debian's kernel -> ELF of the size that it promises", err)
    ok(elf == read(B + "/images/vmlinux"),
       "extract: the same as the one that make left")
    u32 = lambda n: struct.pack("<I", n)
    cases = [
        ("an empty file", b"", "too short"),
        ("text", b"hello\n" * 200, "no Linux boot header"),
        ("no boot flag", patched(bz, (0x1fe, b"\0\0")), "no Linux boot"),
        ("protocol 2.07", patched(bz, (0x206, b"\x07\x02")), "2.08"),
        ("payload offset past the end", patched(bz, (0x248, u32(0xfffffff0))),
         "not inside"),
        ("payload length past the end", patched(bz, (0x24c, u32(0xffffffff))),
         "not inside"),
        ("payload of 4 bytes", patched(bz, (0x24c, u32(4))), "not inside"),
        ("file cut in the middle", bz[:len(bz) // 2], "not inside"),
        ("gzip", patched(bz, (start, b"\x1f\x8b\x08\0")), "gzip"),
        ("xz", patched(bz, (start, b"\xfd7zXZ\0")), "xz"),
        ("zstd", patched(bz, (start, b"\x28\xb5\x2f\xfd")), "zstd"),
        ("unknown compression", patched(bz, (start, b"ABCD")), "unknown"),
        ("block longer than the frame",
         patched(bz, (start + 4, u32(0x7fffffff))), "longer than"),
        ("block of no bytes", patched(bz, (start + 4, u32(0))), "damaged"),
        ("damaged block", patched(bz, (start + 8, b"\xff" * 64)), None),
        ("size of 4 GB", patched(bz, (start + length - 4, u32(0xffffffff))),
         "says that its kernel"),
        ("size one byte less", patched(bz, (start + length - 4,
                                            u32(size - 1))), None),
        ("size one byte more", patched(bz, (start + length - 4,
                                            u32(size + 1))), "unpacked"),
    ]
    for name, data, text in cases:
        status, err, elf = extract(data, tmp)
        ok(status == 1 and elf is None and "bz" in err and
           (text is None or text in err),
           f"extract: {name} -> refused, saying {text or 'why'}",
           f"status {status}: {err}")


# ---- the initramfs

def newc(data):
    """{name: (mode, uid, gid, mtime, content)} of an archive; own reading."""
    files, at = {}, 0
    while True:
        assert data[at:at + 6] == b"070701", at
        f = [int(data[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
        mode, uid, gid, mtime, size, namesize = (f[1], f[2], f[3], f[5], f[6],
                                                 f[11])
        name = data[at + 110:at + 110 + namesize - 1].decode()
        at = (at + 110 + namesize + 3) & ~3
        if name == "TRAILER!!!":
            return files
        files[name] = (mode, uid, gid, mtime, data[at:at + size])
        at = (at + size + 3) & ~3


def modinfo(ko, key):
    return [v[len(key):].decode() for v in ko.split(b"\0")
            if v.startswith(key)]


def test_initramfs(tmp):
    data = read(B + "/images/initramfs.cpio")
    files = newc(data)
    ok(files["init"][0] == 0o100755 and files["init"][4] == read(B + "/guestd"),
       "initramfs: /init is guestd, 0755")
    ok({f[1:3] for f in files.values()} == {(0, 0)}, "initramfs: root's own")
    ok({f[3] for f in files.values()} == {int(EPOCH)}, "initramfs: one date")
    order = files["lib/modules/order"][4].decode().split("\n")[:-1]
    words = [line.split(" ") for line in order]
    ok(all(len(w) == 2 and w[1] in ("always", "late", "squashfs",
                                           "vsock")
           for w in words), "initramfs: order has a name and a known word",
       order)
    present = {n[12:] for n in files if n.endswith(".ko")}
    ok(present == {w[0] for w in words},
       "initramfs: the modules are those in order", present)
    loaded, missing = set(), []
    for name, _ in words:
        ko = files["lib/modules/" + name][4]
        needs = modinfo(ko, b"depends=")[0].split(",")
        missing += [(name, n) for n in needs if n and n not in loaded]
        loaded.add(modinfo(ko, b"name=")[0])
    ok(not missing, "initramfs: each module comes after what it needs",
       missing)
    unwanted = {w[0] for w in words if w[1] == "always"} & {
        "squashfs.ko", "vsock.ko"}
    ok(not unwanted, "initramfs: no squashfs or vsock unless asked for")
    r = run("images/mkinitramfs", B + "/guestd", KERNEL, tmp + "/i")
    ok(r.returncode == 0 and read(tmp + "/i") == data,
       "initramfs: made again -> the same bytes", r.stderr)


# ---- the seed template

def debugfs(image, command):
    r = run("debugfs", "-R", command, image)
    return r.stdout.decode()


def test_seed(tmp):
    image = B + "/templates/seed/rootfs.ext4"
    data = read(image)
    r = run("images/mkseed", tmp + "/s")
    ok(r.returncode == 0 and read(tmp + "/s") == data,
       "seed: made again -> the same bytes", r.stderr)
    if os.geteuid() == 0:
        os.chmod(tmp, 0o777)
        shutil.copy("images/mkseed", tmp)   # nobody may not get to the tree
        r = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                tmp + "/mkseed", tmp + "/n", cwd=tmp)
        ok(r.returncode == 0 and read(tmp + "/n") == data,
           "seed: made by nobody -> the same bytes", r.stderr)
    ok(len(data) <= 8 << 20, "seed: at most 8 MiB")
    ok(run("e2fsck", "-f", "-n", image).returncode == 0, "seed: e2fsck")
    for path, want in (("/bin/busybox", "0755"), ("/tmp", "01777"),
                       ("/root", "0700"), ("/home/user", "0700"),
                       ("/etc/passwd", "0644")):
        stat = debugfs(image, "stat " + path)
        ok(f"Mode:  {want}" in stat, f"seed: {path} has mode {want}", stat)
    stat = debugfs(image, "stat /home/user")
    ok("User:  1000   Group:  1000" in stat, "seed: /home/user is user's")
    stat = debugfs(image, "stat /bin/busybox")
    ok("User:     0   Group:     0" in stat, "seed: busybox is root's")
    stat = debugfs(image, "stat /bin/sh")
    ok("Type: symlink" in stat and '"busybox"' in stat,
       "seed: /bin/sh is a link to busybox")
    passwd = debugfs(image, "cat /etc/passwd")
    ok("user:x:1000:1000:" in passwd, "seed: the account user", passwd)


if not os.path.exists(B + "/images/initramfs.cpio"):
    sys.exit("images.py: no images: make")
os.environ["PATH"] += ":/usr/sbin:/sbin"
with tempfile.TemporaryDirectory() as d:
    test_extract(d)
    test_initramfs(d)
    test_seed(d)
print(f"1..{count}")
sys.exit(failed != 0)
