# SPDX-License-Identifier: ISC
"""A network namespace for a test, and a real netd in it.  Nothing leaves the
namespace: it has no interface to the world."""
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile

import msg

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454ca
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
BUILD = os.environ.get("B", os.path.join(TOP, "build"))
NETD = os.path.join(BUILD, "libexec", "netd")
SANITIZED = "build-san" in os.path.abspath(BUILD)

POOL = (10 << 24) | (231 << 16)		# 10.231.0.0/16
NETD_UID = 1900000001
SLOT_UID = 1900000016


def skip_all(why):
    print("1..0 # SKIP " + why)
    sys.exit(0)


def need():
    """Skips the whole test where it cannot run; enters a fresh namespace."""
    if os.geteuid() != 0:
        skip_all("needs root")
    if not os.path.exists("/dev/net/tun"):
        skip_all("no /dev/net/tun")
    if not os.access(NETD, os.X_OK):
        print("Bail out! %s is not built" % NETD)
        sys.exit(1)
    enter()
    run("ip", "link", "set", "lo", "up")


def enter():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def run(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, check=False)
    if r.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(argv), r.stderr))
    return r.stdout


def links():
    """name -> what ip(8) says, link details and addresses."""
    out = run("ip", "-j", "-d", "addr", "show")
    return {i["ifname"]: i for i in json.loads(out) if "ifname" in i}


def ruleset(table=None):
    """nft's JSON objects, of one table or of all."""
    argv = ["nft", "-j", "list"]
    argv += ["table", "inet", table] if table else ["ruleset"]
    return [o for o in json.loads(run(*argv))["nftables"]
            if "metainfo" not in o]


def elements(table, name="taps"):
    for o in ruleset(table):
        if "set" in o and o["set"]["name"] == name:
            return sorted(o["set"].get("elem", []))
    return None


def counters(table):
    """chain -> packets of its counters, in the order of the rules."""
    out = {}
    for o in ruleset(table):
        if "rule" not in o:
            continue
        for e in o["rule"]["expr"]:
            if "counter" in e:
                out.setdefault(o["rule"]["chain"], []).append(
                    e["counter"]["packets"])
    return out


def tables():
    return sorted(o["table"]["name"] for o in ruleset() if "table" in o)


class Netd(msg.Child):
    """netd, set up and ready; this process is its parent."""

    def __init__(self, tag="abcd", pool=POOL, prefix=16, ready=True,
                 uid=NETD_UID, **kw):
        self.root = tempfile.mkdtemp(prefix="netd-root-")
        os.chmod(self.root, 0o755)
        super().__init__(NETD, **kw)
        self.tag = tag
        self.table = "sandboxd-" + tag
        if ready:
            self.send("PARENT_SETUP_NETD", uid=uid, gid=uid,
                      root=self.root, tag=tag, pool=pool, pool_prefix=prefix)
            self.send("PARENT_START_NETD")
            self.expect("NETD_READY", timeout=30 if SANITIZED else 10)

    def name(self, slot):
        return "sb%s-%x" % (self.tag, slot)

    def create(self, slot, generation=1, uid=None, fd=None):
        """(descriptor, answer); the descriptor is None after a failure."""
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC) \
            if fd is None else fd
        m = self.request("PARENT_CREATE_TAP", fd=tun, slot=slot,
                         generation=generation,
                         uid=SLOT_UID + slot if uid is None else uid)
        if m.name != "NETD_CREATE_TAP_OK" and fd is None:
            os.close(tun)
            tun = None
        return tun, m

    def remove(self, slot, generation=1):
        return self.request("PARENT_REMOVE_TAP", slot=slot,
                            generation=generation)

    def stop(self):
        status = super().stop()
        self.forget_root()
        return status

    def forget_root(self):
        if os.path.isdir(self.root):
            os.rmdir(self.root)


def foreign_tap(name):
    """A tap that is none of netd's; closes with its descriptor."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack(
        "16sH22x", name.encode(), 0x0002 | 0x1000))	# IFF_TAP | IFF_NO_PI
    return fd


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff


def udp_frame(dst_mac, src_mac, src, dst, port, payload):
    """With the virtio header that IFF_VNET_HDR puts before a frame."""
    udp = struct.pack("!HHHH", 4321, port, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17,
                       0, socket.inet_aton(src), socket.inet_aton(dst))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return bytes(10) + dst_mac + src_mac + b"\x08\x00" + head + udp


def mac(text):
    return bytes.fromhex(text.replace(":", ""))
