#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Internal messages: what the C packers write is what another reader of msg.def
reads, and msg(5) lists every type."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import msg	# noqa: E402
import tap	# noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("B", os.path.join(TOP, "build"))
REQUEST = 0x0102030405060708


def expected(field, index, full):
    """As regress/unit/msg_fill.h fills it."""
    _, kind, bound = field
    if kind in msg.INTS:
        size = int(kind[1:]) // 8
        raw = bytes(0xff if full else (index * 37 + i + 1) & 0xff
                    for i in range(size))
        return int.from_bytes(raw, "little")
    if kind == "id":
        return "sb-abcdefgh234567zz"
    size = bound if full else bound // 2
    if kind == "bytes":
        return bytes(i * 7 & 0xff for i in range(size))
    if full:
        return bytes(255 - i % 255 for i in range(size))
    return "".join(chr(97 + i % 26) for i in range(size))


def read(data, full):
    """Fields of a packed message; full text is no UTF-8."""
    if not full:
        return msg.unpack(data).fields
    head = msg.HEADER.unpack_from(data)
    t = msg.BY_NUMBER[head[0]]
    at, out = msg.HEADER.size, {}
    for name, kind, _ in t.fields:
        if kind in msg.INTS:
            size = int(kind[1:]) // 8
            out[name] = int.from_bytes(data[at:at + size], "little")
        else:
            size = int.from_bytes(data[at:at + 2], "little")
            at += 2
            out[name] = data[at:at + size]
            if kind == "id":
                out[name] = out[name].decode("ascii")
        at += size
    return out if at == len(data) == head[2] else None


def test_cross(t):
    out = subprocess.run([os.path.join(BUILD, "regress", "unit", "msg_test"),
                          "dump"], capture_output=True, text=True,
                         check=True).stdout
    seen, wrong = {}, []
    for line in out.splitlines():
        name, text = line.split()
        name = name.removeprefix("M_")
        mtype = msg.TYPES[name]
        full = seen.get(name, 0) == 1
        seen[name] = seen.get(name, 0) + 1
        data = bytes.fromhex(text)
        want = {f[0]: expected(f, i, full)
                for i, f in enumerate(mtype.fields)}
        if read(data, full) != want:
            wrong.append("%s: fields" % name)
        flags = msg.ANSWER if mtype.phase == "answer" else 0
        if msg.HEADER.unpack_from(data) != (mtype.number, flags, len(data),
                                            REQUEST):
            wrong.append("%s: header" % name)
        if msg.pack(name, request_id=REQUEST, **want) != data:
            wrong.append("%s: packed" % name)
    t.equal(sorted(seen), sorted(msg.TYPES), "C and Python know %d types"
            % len(msg.TYPES))
    t.equal(wrong, [], "C and Python agree on every type, half and full")


def test_manual(t):
    path = os.path.join(BUILD, "man", "msg.5")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    names = re.findall(r"(?m)^\.It Dv M_(\S+)$", text)
    t.equal(names, list(msg.TYPES), "msg(5): every type, in its place")
    wrong = []
    for part, mtype in zip(text.split("\n.It Dv M_")[1:], msg.TYPES.values()):
        fields = re.findall(r"(?m)^\.Va (\S+)\n\.Pq (\S+)(?: (\d+))?$", part)
        if [(n, k) for n, k, _ in fields] != [f[:2] for f in mtype.fields]:
            wrong.append(mtype.name)
    t.equal(wrong, [], "msg(5): the fields of each type")
    if shutil.which("mandoc") is None:
        t.skip("msg(5): mandoc has nothing to say", "no mandoc")
        return
    r = subprocess.run(["mandoc", "-Tlint", "-W", "warning", path],
                       capture_output=True, text=True, check=False)
    t.equal(r.stdout, "", "msg(5): mandoc has nothing to say")


def main():
    t = tap.Tap()
    t.run(test_cross, test_manual)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
