#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Each program links its own libraries and no other, and is built hardened."""
import os
import re
import subprocess
import sys

B = os.environ.get("B", "build")
SAN = os.environ.get("SAN") == "1"
# What a process may have in it; a sandbox's bytes reach all that it links.
ALLOWED = {
    "sandboxd": {"event_core-2.1", "json-c", "bsd", "md", "cap"},
    "libexec/front": {"event_core-2.1", "json-c", "bsd", "md", "cap"},
    "libexec/vmm": {"event_core-2.1", "json-c", "bsd", "md", "cap"},
    "libexec/netd": {"event_core-2.1", "nftnl", "mnl", "bsd", "md", "cap"},
    "sandboxctl": {"json-c", "bsd", "md", "mnl"},   # doctor asks the kernel
    "guestd": set(),
}
NEEDED = {
    "sandboxd": {"event_core-2.1", "json-c"},
    "libexec/front": {"event_core-2.1", "json-c"},
    "libexec/vmm": {"event_core-2.1"},
    "libexec/netd": {"event_core-2.1", "mnl", "nftnl"},
    "sandboxctl": set(),
    "guestd": set(),
}
C_LIBRARY = {"c", "m", "ld-linux-x86-64", "asan", "ubsan", "gcc_s", "dl",
             "pthread", "rt", "stdc++"} if SAN else {"c", "ld-linux-x86-64"}
count = failed = 0


def ok(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {count} - {name}")
    if not good:
        print("\n".join("# " + x for x in str(detail).split("\n")))


def tool(*argv):
    return subprocess.run(argv, capture_output=True, text=True).stdout


def libraries(path):
    """All that the loader maps, by short name: libjson-c.so.5 -> json-c."""
    out = tool("ldd", path)
    names = re.findall(r"^\s*(?:/\S*/)?(\S+?)\.so[.\d]*\s", out, re.M)
    return {re.sub("^lib", "", n) for n in names} - {"linux-vdso"}


def check_links(program):
    have = libraries(f"{B}/{program}") - C_LIBRARY
    ok(have <= ALLOWED[program], f"links: {program} -> nothing but its own",
       sorted(have - ALLOWED[program]))
    ok(NEEDED[program] <= have, f"links: {program} -> what it is made of",
       sorted(NEEDED[program] - have))


def check_hardening(program):
    path = f"{B}/{program}"
    head = tool("readelf", "-hW", path)
    segments = tool("readelf", "-lW", path)
    dynamic = tool("readelf", "-dW", path)
    ok("Type:                              DYN" in head,
       f"hardening: {program} is position independent", head)
    stack = re.search(r"GNU_STACK.* (R\w*) ", segments)
    ok(stack is not None and "E" not in stack.group(1),
       f"hardening: {program} has no executable stack", segments)
    ok("GNU_RELRO" in segments, f"hardening: {program} has RELRO", segments)
    if program != "guestd":
        ok("BIND_NOW" in dynamic or re.search(r"FLAGS_1.*NOW", dynamic),
           f"hardening: {program} binds at its start", dynamic)
    ok(not re.search(r"LOAD .* RWE ", segments),
       f"hardening: {program} has no segment to write and execute", segments)
    ok(not re.search(r"RPATH|RUNPATH|TEXTREL", dynamic),
       f"hardening: {program} has no library path of its own", dynamic)
    # The canary's place, x86-64 psABI: also seen in a stripped program.
    ok("%fs:0x28" in tool("objdump", "-d", path),
       f"hardening: {program} has stack protectors")


for p in ALLOWED:
    if not os.path.exists(f"{B}/{p}"):
        ok(False, f"links: {p} is built")
        continue
    check_links(p)
    check_hardening(p)
size = os.path.getsize(f"{B}/guestd") if os.path.exists(f"{B}/guestd") else 0
ok(0 < size < 200 * 1024, f"guestd: under 200 KiB", size)
print(f"1..{count}")
sys.exit(failed != 0)
