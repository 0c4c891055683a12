#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""What a guest sends goes nowhere, and nothing reaches a guest: raw frames into
the tap's descriptor, listeners behind it.  Each path is tried without the
table first, so that a frame which would not arrive anyway proves nothing."""
import os
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import netns	# noqa: E402
import tap	# noqa: E402

GUEST, HOST = "10.231.0.22", "10.231.0.21"	# of slot 5
GUEST_MAC, HOST_MAC = netns.mac("02:53:0a:e7:00:16"), netns.mac(
    "02:53:0a:e7:00:15")
LAN_HOST, LAN_PEER = "192.0.2.1", "192.0.2.2"
LAN_MAC = netns.mac("02:00:00:00:00:99")
ETH_ARP, ETH_IPV6 = b"\x08\x06", b"\x86\xdd"
PORT = 7777


class World:
    """netd with one tap, a lan behind the host, listeners on the host."""

    def __init__(self):
        self.netd = netns.Netd()
        self.tun, _ = self.netd.create(5)
        os.set_blocking(self.tun, False)
        self.lan = netns.foreign_tap("lan0")
        os.set_blocking(self.lan, False)
        netns.run("ip", "addr", "add", LAN_HOST + "/24", "dev", "lan0")
        netns.run("ip", "link", "set", "lan0", "up")
        netns.run("ip", "neigh", "add", LAN_PEER, "lladdr",
                  "02:00:00:00:00:99", "dev", "lan0", "nud", "permanent")
        netns.run("ip", "neigh", "add", GUEST, "lladdr", "02:53:0a:e7:00:16",
                  "dev", "sbabcd-5", "nud", "permanent")
        with open("/proc/sys/net/ipv4/ip_forward", "w",
                  encoding="ascii") as f:
            f.write("1")
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("0.0.0.0", PORT))
        self.udp.setblocking(False)

    def shut(self):
        """The table as netd makes it, counters at 0."""
        self.netd.stop()
        self.netd = netns.Netd()

    def open(self):
        netns.run("nft", "delete", "table", "inet", self.netd.table)

    def close(self):
        self.udp.close()
        os.close(self.tun)
        os.close(self.lan)
        self.netd.stop()


def frames(fd, wanted, timeout=0.4):
    """Does a frame with these bytes come out of the tap?"""
    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return False
        if wanted in os.read(fd, 4096):
            return True


def heard(sock, wanted, timeout=0.4):
    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([sock], [], [], left)[0]:
            return False
        if sock.recv(2048) == wanted:
            return True


def from_guest(w, dst, text, src=GUEST):
    os.write(w.tun, netns.udp_frame(HOST_MAC, GUEST_MAC, src, dst, PORT,
                                    text))


def both_ways(t, w, name, send, arrives, counter):
    """send() reaches its goal without the table, and not with it."""
    w.open()
    send(b"open")
    t.ok(arrives(b"open"), name + ": arrives without the table")
    w.shut()
    send(b"shut")
    t.ok(not arrives(b"shut"), name + ": does not with it")
    chain, rule = counter
    got = netns.counters(w.netd.table)[chain][rule]
    t.ok(got >= 1, "%s: counted in %s" % (name, chain),
         netns.counters(w.netd.table))


def test_paths(t):
    w = World()
    both_ways(t, w, "guest to its gateway",
              lambda x: from_guest(w, HOST, x), lambda x: heard(w.udp, x),
              ("from-tap", 0))
    both_ways(t, w, "guest to another address of the host",
              lambda x: from_guest(w, LAN_HOST, x),
              lambda x: heard(w.udp, x), ("from-tap", 0))
    both_ways(t, w, "guest to the host by broadcast",
              lambda x: from_guest(w, "255.255.255.255", x),
              lambda x: heard(w.udp, x), ("from-tap", 0))
    both_ways(t, w, "guest through the host",
              lambda x: from_guest(w, LAN_PEER, x),
              lambda x: frames(w.lan, x), ("from-tap", 0))
    both_ways(t, w, "host to the guest",
              lambda x: send_udp(w, GUEST, x),
              lambda x: frames(w.tun, x), ("to-tap", 0))
    host = netns.mac(netns.links()["lan0"]["address"])
    both_ways(t, w, "lan to the guest",
              lambda x: os.write(w.lan, netns.udp_frame(
                  host, LAN_MAC, LAN_PEER, GUEST, PORT, x)[10:]),
              lambda x: frames(w.tun, x), ("to-tap", 0))
    w.close()


def send_udp(w, dst, text):
    try:
        w.udp.sendto(text, (dst, PORT))
    except PermissionError:
        pass			# the drop, as the sender sees it


def test_neighbours(t):
    w = World()
    other, _ = w.netd.create(6)
    os.set_blocking(other, False)
    netns.run("ip", "neigh", "add", "10.231.0.26", "lladdr",
              "02:53:0a:e7:00:1a", "dev", "sbabcd-6", "nud", "permanent")
    both_ways(t, w, "guest to another guest",
              lambda x: from_guest(w, "10.231.0.26", x),
              lambda x: frames(other, x), ("from-tap", 0))
    os.close(other)
    w.close()


def test_unknown(t):
    """A tap that the set does not know is shut, too."""
    w = World()
    w.shut()
    netns.run("nft", "delete", "element", "inet", w.netd.table, "taps",
              "{ sbabcd-5 }")
    from_guest(w, HOST, b"unknown")
    t.ok(not heard(w.udp, b"unknown"), "unknown tap: nothing gets in")
    send_udp(w, GUEST, b"unknown")
    t.ok(not frames(w.tun, b"unknown"), "unknown tap: nothing gets out")
    c = netns.counters(w.netd.table)
    t.equal((c["from-tap"], c["to-tap"][0] == 0 and c["to-tap"][1] >= 1),
            ([0, 1], True), "unknown tap: counted apart")
    w.close()


def test_others(t):
    """Traffic that is none of ours passes."""
    w = World()
    w.shut()
    host = netns.mac(netns.links()["lan0"]["address"])
    os.write(w.lan, netns.udp_frame(host, LAN_MAC, LAN_PEER, LAN_HOST, PORT,
                                    b"lan")[10:])
    t.ok(heard(w.udp, b"lan"), "others: the lan reaches the host")
    send_udp(w, LAN_PEER, b"host")
    t.ok(frames(w.lan, b"host"), "others: the host reaches the lan")
    w.close()


def arp(target):
    return (bytes(10) + b"\xff" * 6 + GUEST_MAC + ETH_ARP +
            struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + GUEST_MAC +
            socket.inet_aton(GUEST) + bytes(6) + socket.inet_aton(target))


def test_arp(t):
    w = World()
    os.write(w.tun, arp(HOST))
    t.ok(frames(w.tun, ETH_ARP + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) +
                HOST_MAC + socket.inet_aton(HOST)),
         "arp: the gateway answers with the slot's MAC")
    os.write(w.tun, arp(LAN_HOST))
    t.ok(not frames(w.tun, ETH_ARP + struct.pack("!HHBBH", 1, 0x0800, 6, 4,
                                                 2)),
         "arp: another address of the host does not answer")
    w.close()


def ipv6_frame(src, dst, text):
    udp = struct.pack("!HHHH", 4321, PORT, 8 + len(text), 0) + text
    pseudo = (socket.inet_pton(socket.AF_INET6, src) +
              socket.inet_pton(socket.AF_INET6, dst) +
              struct.pack("!II", len(udp), 17))
    total = netns.checksum(pseudo + udp)
    udp = udp[:6] + struct.pack("!H", total) + udp[8:]
    return (bytes(10) + HOST_MAC + GUEST_MAC + ETH_IPV6 +
            struct.pack("!IHBB", 0x60000000, len(udp), 17, 64) +
            pseudo[:32] + udp)


def test_ipv6(t):
    if not os.path.exists("/proc/sys/net/ipv6"):
        t.skip("ipv6: guest to the host", "no IPv6 in this kernel")
        return
    w = World()
    netns.run("ip", "addr", "add", "2001:db8::1/128", "dev", "lo")
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind(("::", PORT))
        s.setblocking(False)
        both_ways(t, w, "ipv6: guest to the host",
                  lambda x: os.write(w.tun, ipv6_frame(
                      "2001:db8::99", "2001:db8::1", x)),
                  lambda x: heard(s, x), ("from-tap", 0))
    w.close()


def main():
    netns.need()
    t = tap.Tap()
    t.run(test_paths, test_neighbours, test_unknown, test_others, test_arp,
          test_ipv6)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
