#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""netd's nftables table: what it holds, that other tables stay as they are,
restarts, and two instances beside each other."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import netns	# noqa: E402
import tap	# noqa: E402

FOREIGN = """
table inet filter {
	set taps { type ifname; elements = { "eth0" } }
	chain forward {
		type filter hook forward priority 0; policy drop;
		iifname @taps counter accept
	}
}
table ip sandboxd-abcd {
	chain from-tap { counter; }
}
table inet sandboxd-abce {
	chain forward { counter; }
}
"""


def foreign(own="sandboxd-abcd"):
    """The rule set without our table."""
    def mine(o):
        (body,) = o.values()
        table = body["name"] if "table" in o else body["table"]
        return body["family"] == "inet" and table == own
    return [o for o in netns.ruleset() if not mine(o)]


def test_shape(t):
    n = netns.Netd()
    rules = netns.ruleset(n.table)
    base = {o["chain"]["name"]: (o["chain"]["type"], o["chain"]["hook"],
                                 o["chain"]["prio"], o["chain"]["policy"])
            for o in rules if "chain" in o and "hook" in o["chain"]}
    t.equal(base, {h: ("filter", h, 0, "accept")
                   for h in ("forward", "input", "output")},
            "table: base chains, others' traffic is accepted")
    sets = [(o["set"]["name"], o["set"]["type"]) for o in rules if "set" in o]
    t.equal(sets, [("taps", "ifname")], "table: one set of interfaces")
    text = netns.run("nft", "list", "table", "inet", n.table)
    for line in ('iifname "sbabcd-*" jump from-tap',
                 'oifname "sbabcd-*" jump to-tap'):
        t.equal(text.count(line), 2, "table: two rules say '%s'" % line)
    fixed = len([o for o in rules if "rule" in o])
    tuns = [n.create(i)[0] for i in range(20)]
    t.equal(len([o for o in netns.ruleset(n.table) if "rule" in o]), fixed,
            "table: 20 taps later the rules are the same in number")
    t.equal(netns.elements(n.table), sorted(n.name(i) for i in range(20)),
            "table: 20 elements")
    for fd in tuns:
        os.close(fd)
    for i in range(20):
        n.remove(i)
    n.stop()
    t.ok(n.table not in netns.tables(), "table: goes with the last netd")


def test_foreign(t):
    netns.run("nft", "-f", write("foreign.nft", FOREIGN))
    before = foreign()
    t.equal(len([o for o in before if "table" in o]), 3,
            "foreign: three tables, two with names like ours")
    n = netns.Netd()
    t.equal(foreign(), before, "foreign: unchanged by the start")
    tun, _ = n.create(1)
    t.equal(foreign(), before, "foreign: unchanged by a create")
    n.remove(1)
    os.close(tun)
    t.equal(foreign(), before, "foreign: unchanged by a removal")
    n.stop()
    t.equal(foreign(), before, "foreign: unchanged by the stop")
    netns.run("nft", "flush", "ruleset")


def write(name, text):
    path = "/tmp/%s.%d" % (name, os.getpid())
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    CLEAN.append(path)
    return path


CLEAN = []


def test_restart(t):
    a = netns.Netd()
    keep, _ = a.create(1, generation=5)
    lose, _ = a.create(2)
    a.kill(signal.SIGKILL)
    a.forget_root()
    t.ok("sbabcd-1" in netns.links(), "restart: taps outlive netd")
    t.equal(netns.elements(a.table), ["sbabcd-1", "sbabcd-2"],
            "restart: so does the table")
    os.close(lose)
    time.sleep(0.05)
    netns.run("nft", "add", "rule", "inet", a.table, "from-tap", "accept")
    netns.run("nft", "add", "element", "inet", a.table, "taps", "{ junk }")
    b = netns.Netd()
    t.equal(netns.elements(b.table), ["sbabcd-1"],
            "restart: the set holds the taps that are there")
    t.ok("accept" not in str(netns.ruleset(b.table)).replace(
        "'policy': 'accept'", ""), "restart: strange rules are gone")
    _, m = b.create(1)
    t.equal(m.name, "NETD_FAIL", "restart: the slot is still taken")
    t.equal(b.remove(1, generation=4).name, "NETD_FAIL",
            "restart: the generation is still known")
    b.kill(signal.SIGTERM)
    b.forget_root()
    t.equal(b.status, 0, "stop: SIGTERM ends netd with 0")
    t.ok(b.table in netns.tables(), "stop: the table stays while a tap lives")
    c = netns.Netd()
    t.equal(c.remove(1, generation=5).name, "NETD_REMOVE_TAP_OK",
            "restart: the third netd removes what the first made")
    os.close(keep)
    c.stop()
    t.ok(c.table not in netns.tables(), "stop: the table goes with the taps")


def test_successor(t):
    """A netd that ends late must not take its successor's table."""
    a = netns.Netd()
    b = netns.Netd()
    a.stop()
    t.ok(b.table in netns.tables(), "successor: its table stays")
    tun, m = b.create(1)
    t.equal(m.name, "NETD_CREATE_TAP_OK", "successor: works")
    os.close(tun)
    b.remove(1)
    b.stop()
    t.ok(b.table not in netns.tables(), "successor: removes its own")


def test_flushed(t):
    n = netns.Netd()
    first, _ = n.create(1)
    netns.run("nft", "flush", "ruleset")
    second, m = n.create(2)
    t.equal(m.name, "NETD_CREATE_TAP_OK", "flushed: the next create works")
    t.equal(netns.elements(n.table), ["sbabcd-1", "sbabcd-2"],
            "flushed: the table is back with every tap")
    netns.run("nft", "flush", "ruleset")
    t.equal(n.remove(2).name, "NETD_REMOVE_TAP_OK",
            "flushed: a removal works without the table")
    os.close(first)
    os.close(second)
    t.equal(n.stop(), 0, "flushed: the stop works without the table")


def test_two(t):
    a = netns.Netd(tag="aaaa")
    b = netns.Netd(tag="bbbb", pool=netns.POOL + (1 << 16))
    x, _ = a.create(1)
    y, _ = b.create(1)
    t.equal((netns.elements(a.table), netns.elements(b.table)),
            (["sbaaaa-1"], ["sbbbbb-1"]), "two: each has its own tap")
    b.remove(1)
    t.ok("sbaaaa-1" in netns.links() and "sbbbbb-1" not in netns.links(),
         "two: a removal takes only one's own")
    os.close(y)
    b.stop()
    t.equal(netns.tables(), [a.table], "two: a stop takes only one's own")
    t.equal(netns.elements(a.table), ["sbaaaa-1"], "two: the other goes on")
    os.close(x)
    a.remove(1)
    a.stop()


def test_hundreds(t):
    """A table for 300 taps is built in one batch."""
    a = netns.Netd()
    tuns = []
    for i in range(300):
        fd, m = a.create(i)
        tuns.append(fd)
    t.equal(m.name, "NETD_CREATE_TAP_OK", "300: made")
    start = time.monotonic()
    m = a.remove(299)
    last = time.monotonic() - start
    a.kill(signal.SIGKILL)
    a.forget_root()
    start = time.monotonic()
    b = netns.Netd()
    took = time.monotonic() - start
    print("# removal among 300: %.1f ms; restart over 299: %.0f ms"
          % (last * 1000, took * 1000))
    t.equal(len(netns.elements(b.table)), 299, "300: a restart knows them")
    for fd in tuns:
        os.close(fd)
    b.stop()
    t.ok(took < 5, "300: the restart takes less than 5 s", took)


def main():
    netns.need()
    t = tap.Tap()
    t.run(test_shape, test_foreign, test_restart, test_successor,
          test_flushed, test_two, test_hundreds)
    for path in CLEAN:
        os.unlink(path)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
