#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""msgseeds.py DIR: fuzz seeds from common/msg.def: DIR/msg/NAME, each message
packed, and DIR/imsg/NAME, the same as a datagram for imsg_fuzz."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import msg	# noqa: E402

PEERS = {"front": 0, "vmm": 1, "netd": 2}
SETUP, WAITING = 4, 8


def values(mtype):
    out = {}
    for i, (name, kind, bound) in enumerate(mtype.fields):
        if kind == "id":
            out[name] = "sb-abcdefghij234567"
        elif kind in ("str", "bytes"):
            out[name] = "abcdefghijklmnop"[:min(bound, 3 + i)]
        else:
            out[name] = i + 1
    return out


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def main(out):
    for t in msg.TYPES.values():
        data = msg.pack(t.name, request_id=1, **values(t))
        write(os.path.join(out, "msg", t.name), data)
        if t.receiver != "parent":
            continue
        head = PEERS[t.sender] | WAITING | (SETUP if t.phase == "setup" else 0)
        record = struct.pack("<BH", 0x80 | int(t.fd), len(data)) + data
        write(os.path.join(out, "imsg", t.name),
              bytes([head]) + record + record)


if __name__ == "__main__":
    main(sys.argv[1])
