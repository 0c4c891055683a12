# SPDX-License-Identifier: ISC
"""For script tests that need a whole daemon: runs the test again under
regress/with-daemon, and small facts about its processes."""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))


def need(*conf):
    """Call it first: comes back only beside a private daemon."""
    if "SANDBOXD_SOCKET" in os.environ:
        return
    argv = [os.path.join(ROOT, "regress", "with-daemon")]
    for line in conf:
        argv += ["-c", line]
    argv.append(os.path.abspath(sys.argv[0]))
    sys.stdout.flush()
    os.execv(argv[0], argv + sys.argv[1:])


def parent_pid():
    with open(os.environ["SANDBOXD_PIDFILE"]) as f:
        return int(f.read())


def status(pid):
    """/proc/PID/status as a dict of its first words; None when it is gone."""
    try:
        with open("/proc/%d/status" % pid) as f:
            return {k: v.split() for k, v in
                    (line.split(":", 1) for line in f)}
    except (FileNotFoundError, ProcessLookupError):
        return None


def children():
    """{name: pid} of the daemon's three children, and the parent."""
    me = parent_pid()
    found = {"parent": me}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        s = status(int(entry))
        if s is not None and s["PPid"] == [str(me)] and \
                s["Name"][0] in ("front", "vmm", "netd"):
            found[s["Name"][0]] = int(entry)
    return found


def vmm_pid(sandbox):
    """Process of a sandbox's VMM, as the ledger has it."""
    state = os.environ["SANDBOXD_STATE"]
    with open(os.path.join(state, "state.json")) as f:
        body = json.load(f)["body"]
    entries = body["entries"]
    with open(os.path.join(state, body["log"]), "rb") as f:
        for line in f.read().split(b"\0")[0].splitlines():
            change = json.loads(line[17:].decode("latin-1"))
            if "put" in change:
                entries[change["put"]] = change["value"]
            elif "mark" in change:
                entries[change["mark"]].update(change["value"])
            else:
                entries.pop(change["drop"], None)
    return entries["sandbox/" + sandbox]["pid"]


def rss_kib(pid):
    return int(status(pid)["VmRSS"][0])
