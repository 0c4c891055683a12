#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""netd's taps: what they are like, that they go, and what is refused."""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import netns	# noqa: E402
import tap	# noqa: E402

def errors():
    """Numbers of errors.def: rows in their order, from 1."""
    path = os.path.join(netns.TOP, "common", "errors.def")
    with open(path, encoding="ascii") as f:
        rows = [line.split("(")[1].split(",")[0] for line in f
                if line.startswith("SBX_ERROR(")]
    return {name: i + 1 for i, name in enumerate(rows)}


ERRORS = errors()


def sysctl(name, key):
    with open("/proc/sys/net/ipv4/conf/%s/%s" % (name, key),
              encoding="ascii") as f:
        return f.read().strip()


def wait_gone(name):
    for _ in range(200):
        if name not in netns.links():
            return True
        time.sleep(0.01)
    return False


def test_shape(t):
    n = netns.Netd()
    tun, m = n.create(5, generation=7)
    t.equal(m.name, "NETD_CREATE_TAP_OK", "create: answered")
    t.equal((m["slot"], m["generation"], m["name"]), (5, 7, "sbabcd-5"),
            "create: slot, generation and name in the answer")
    link = netns.links()["sbabcd-5"]
    info = link["linkinfo"]["info_data"]
    t.equal(link["ifindex"], m["ifindex"], "create: index in the answer")
    t.equal((info["type"], info["pi"], info["vnet_hdr"], info["persist"]),
            ("tap", False, True, False),
            "tap: no packet information, virtio header, not persistent")
    t.equal((info["user"], info["group"]), (netns.SLOT_UID + 5,) * 2,
            "tap: owned by the slot's uid and gid")
    t.equal([(a["family"], a["local"], a["prefixlen"])
             for a in link["addr_info"]], [("inet", "10.231.0.21", 30)],
            "tap: the slot's address, and none of IPv6")
    t.equal((link["address"], link["mtu"]), ("02:53:0a:e7:00:15", 1500),
            "tap: MAC from the address, MTU")
    t.ok("UP" in link["flags"], "tap: is up")
    t.equal([sysctl("sbabcd-5", k) for k in (
        "arp_ignore", "rp_filter", "accept_redirects", "send_redirects")],
        ["1", "1", "0", "0"], "tap: ARP and redirect rules")
    t.equal(netns.elements(n.table), ["sbabcd-5"], "table: knows the tap")
    held = [os.readlink("/proc/%d/fd/%s" % (n.pid, f))
            for f in os.listdir("/proc/%d/fd" % n.pid)]
    t.ok("/dev/net/tun" not in held, "netd keeps no descriptor of it", held)
    os.close(tun)
    t.ok(wait_gone("sbabcd-5"), "tap: goes with its last descriptor")
    t.equal(n.remove(5, 7).name, "NETD_REMOVE_TAP_OK",
            "remove: works when the tap has gone by itself")
    t.equal(netns.elements(n.table), [], "remove: the element is gone")
    t.equal(n.stop(), 0, "netd ends with its parent")


def test_exists(t):
    n = netns.Netd()
    tun, _ = n.create(1)
    _, m = n.create(1, generation=2)
    t.equal((m.name, m["error"]), ("NETD_FAIL", ERRORS["E_NETWORK"]),
            "create: a second tap of a slot fails")
    t.ok("sbabcd-1 exists" in m["detail"] and "ours" in m["detail"],
         "create: the failure says that it exists", m)
    t.ok("sbabcd-1" in netns.links(), "create: the first one is unharmed")
    t.equal(netns.elements(n.table), ["sbabcd-1"], "create: so is its element")
    m = n.remove(1, generation=2)
    t.equal((m.name, m["error"]), ("NETD_FAIL", ERRORS["E_CONFLICT"]),
            "remove: another generation is refused")
    t.ok("sbabcd-1" in netns.links(), "remove: the tap is still there")
    t.equal(n.remove(1).name, "NETD_REMOVE_TAP_OK", "remove: ours works")
    t.ok("sbabcd-1" not in netns.links(), "remove: the tap is gone")
    try:
        os.write(tun, bytes(60))
        t.ok(False, "remove: the descriptor is dead")
    except OSError:
        t.ok(True, "remove: the descriptor is dead")
    t.equal(n.remove(1).name, "NETD_REMOVE_TAP_OK", "remove: again, works")
    t.equal(n.remove(4000, 9).name, "NETD_REMOVE_TAP_OK",
            "remove: of what never was, works")
    os.close(tun)
    tun, m = n.create(1, generation=3)
    t.equal(m.name, "NETD_CREATE_TAP_OK", "create: the slot can be used again")
    os.close(tun)
    n.stop()


def test_refused(t):
    n = netns.Netd()
    before = set(netns.links())
    for slot in (16384, 16385, 0x7fffffff, 0xffffffff):
        _, m = n.create(slot, uid=netns.SLOT_UID)
        t.equal((m.name, m.fields.get("error")),
                ("NETD_FAIL", ERRORS["E_OUT_OF_RANGE"]),
                "create: slot %d is refused" % slot)
        t.equal(n.remove(slot).name, "NETD_FAIL",
                "remove: slot %d is refused" % slot)
    for uid in (0, 0xffffffff, netns.NETD_UID):
        _, m = n.create(2, uid=uid)
        t.equal((m.name, m.fields.get("error")),
                ("NETD_FAIL", ERRORS["E_OUT_OF_RANGE"]),
                "create: uid %d is refused" % uid)
    a, b = socket.socketpair()
    for what, fd in (("/dev/null", os.open("/dev/null", os.O_RDWR)),
                     ("a file", os.open(__file__, os.O_RDONLY)),
                     ("a socket", os.dup(a.fileno()))):
        _, m = n.create(2, fd=fd)
        t.equal(m.name, "NETD_FAIL", "create: from %s fails" % what)
        os.close(fd)
    a.close()
    b.close()
    other = netns.foreign_tap("other0")
    _, m = n.create(2, fd=other)
    t.equal(m.name, "NETD_FAIL", "create: from an attached tap fails")
    t.ok("other0" in netns.links(), "create: that tap is unharmed")
    os.close(other)
    t.ok(wait_gone("other0"), "create: nothing else holds it")
    t.equal(set(netns.links()), before, "refused: nothing is left")
    t.equal(netns.elements(n.table), [], "refused: no element is left")
    tun, m = n.create(16383)
    t.equal(m.fields.get("name"), "sbabcd-3fff", "create: the last slot works")
    t.equal(netns.links()["sbabcd-3fff"]["addr_info"][0]["local"],
            "10.231.255.253", "create: the last slot's address")
    os.close(tun)
    n.stop()


def test_not_a_tap(t):
    """Somebody else's interface under a name of ours is left alone."""
    n = netns.Netd()
    try:
        netns.run("ip", "link", "add", "sbabcd-9", "type", "dummy")
    except RuntimeError:
        netns.run("ip", "link", "add", "sbabcd-9", "type", "veth", "peer",
                  "name", "peer9")
    _, m = n.create(9)
    t.equal(m.name, "NETD_FAIL", "create: over a foreign interface fails")
    m = n.remove(9)
    t.ok(m.name == "NETD_FAIL" and "not a tap" in m["detail"],
         "remove: a foreign interface is refused", m)
    t.ok("sbabcd-9" in netns.links(), "remove: it is still there")
    netns.run("ip", "link", "del", "sbabcd-9")
    n.stop()


def test_undo(t):
    """The table belongs to another's socket: a step in the middle fails."""
    n = netns.Netd()
    netns.run("nft", "delete", "table", "inet", n.table)
    with subprocess.Popen(["nft", "-i"], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as nft:
        nft.stdin.write(b"add table inet %s { flags owner; }\n"
                        % n.table.encode())
        nft.stdin.flush()
        for _ in range(200):
            # In JSON nft 1.0.6 writes an owned table wrongly.
            if n.table in netns.run("nft", "list", "tables"):
                break
            time.sleep(0.01)
        tun = os.open("/dev/net/tun", os.O_RDWR)
        _, m = n.create(3, fd=tun)
        t.ok(m.name == "NETD_FAIL" and n.table in m["detail"],
             "undo: a table that cannot be changed fails the create", m)
        t.ok("sbabcd-3" not in netns.links(),
             "undo: the tap is gone though its descriptor is open")
        os.close(tun)
        nft.stdin.close()
        nft.wait(10)
    tun, m = n.create(3)
    t.equal(m.name, "NETD_CREATE_TAP_OK", "undo: the next create works")
    t.equal(netns.elements(n.table), ["sbabcd-3"],
            "undo: the table has been made again")
    os.close(tun)
    n.stop()


def test_many(t):
    n = netns.Netd()
    tuns = [os.open("/dev/net/tun", os.O_RDWR) for _ in range(64)]
    start = time.monotonic()
    ids = [n.start("PARENT_CREATE_TAP", fd=fd, slot=i, generation=1,
                   uid=netns.SLOT_UID + i) for i, fd in enumerate(tuns)]
    answers = [n.wait_answer(i, 30) for i in ids]
    print("# 64 creates: %.0f ms" % ((time.monotonic() - start) * 1000))
    t.equal([m.name for m in answers], ["NETD_CREATE_TAP_OK"] * 64,
            "64 creates at once: all answered")
    links = netns.links()
    local = {links[m["name"]]["addr_info"][0]["local"] for m in answers}
    t.equal(len(local), 64, "64 creates: 64 addresses")
    t.equal(len(netns.elements(n.table)), 64, "64 creates: 64 elements")
    ids = [n.start("PARENT_REMOVE_TAP", slot=i, generation=1)
           for i in range(64)]
    names = {n.wait_answer(i, 30).name for i in ids}
    t.equal(names, {"NETD_REMOVE_TAP_OK"}, "64 removals at once: all answered")
    t.equal([x for x in netns.links() if x.startswith("sbabcd")], [],
            "64 removals: no tap is left")
    t.equal(netns.elements(n.table), [], "64 removals: no element is left")
    held = len(os.listdir("/proc/%d/fd" % n.pid))
    t.ok(held <= 12, "netd's descriptors do not add up", held)
    for fd in tuns:
        os.close(fd)
    n.stop()


def main():
    netns.need()
    t = tap.Tap()
    t.run(test_shape, test_exists, test_refused, test_not_a_tap, test_undo,
          test_many)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
