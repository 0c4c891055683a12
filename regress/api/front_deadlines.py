#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Slow and silent clients of a real front, side by side: each meets its deadline,
and nobody else notices."""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import api
import front
import gproto
import tap


def deadlines(t):
    """Slow and silent clients, side by side."""
    results = {}
    with front.Front() as f:
        def drip(name, first, every, limit):
            c = api.Conn(f.path, limit)
            began = time.monotonic()
            c.send(first)
            c.sock.settimeout(0.02)
            while time.monotonic() - began < limit:
                try:
                    if every:
                        c.send(b"x")
                    if not c.fill():
                        break
                    break
                except TimeoutError:
                    time.sleep(every or 0.2)
                except OSError:
                    break
            results[name] = (time.monotonic() - began, c.buf[:12])
            c.close()
        jobs = [
            ("header", b"GET /healthz HTTP/1.1\r\nX: ", 0.5, 20),
            ("silent header", b"GET /healthz HTTP/1.1\r\nX: ", 0, 20),
            ("body", b"POST /sandboxes HTTP/1.1\r\nHost: x\r\n"
             b"Content-Length: 1000\r\n\r\n{", 1, 40),
            ("start", None, 0, 40),
            ("idle", b"", 0, 70)]

        def start(limit):
            box = f.add_box()
            ws = f.api.websocket(box.id)
            began = time.monotonic()
            r = ws.collect()
            results["start"] = (time.monotonic() - began,
                                (r.error or {}).get("code"), r.close)
            ws.close()
        class Silent(gproto.Guest):
            """Runs commands, and then answers nothing more."""
            def _frame(self, frame):
                if frame.type != gproto.PING:
                    super()._frame(frame)

        def silent_guest():
            box = f.add_box(guest=False)
            box.guest = Silent(box.sock)
            box.guest.serve_thread()
            front.eventually(lambda: f.of(box, "FRONT_GUEST_READY_EVENT"))
            ws = f.api.command(box.id, ["sleep", "300"])
            ws.wait_for("process_started")
            began = time.monotonic()
            r = ws.collect()
            results["silent guest"] = (time.monotonic() - began,
                                       (r.error or {}).get("code"), r.close)
            ws.close()

        def silent_client():
            box = f.add_box()
            ws = f.api.command(box.id, ["sleep", "300"])
            ws.wait_for("process_started")
            ws.auto_pong = False
            began = time.monotonic()
            r = ws.collect()
            took = time.monotonic() - began
            front.eventually(lambda: "CLOSE" in box.guest.log)
            results["silent client"] = (took, r.close, ws.pings,
                                        box.guest.log.count("CLOSE"))
            ws.close()
        threads = [threading.Thread(target=silent_guest),
                   threading.Thread(target=silent_client)]
        threads += [threading.Thread(
            target=start if j[1] is None else drip,
            args=(j[3],) if j[1] is None else j) for j in jobs]
        for x in threads:
            x.start()
        worst = 0
        while any(x.is_alive() for x in threads):
            began = time.monotonic()
            f.api.health()
            worst = max(worst, time.monotonic() - began)
            time.sleep(0.2)
        got = results["header"]
        t.ok(9.5 < got[0] < 11.5 and got[1] == b"HTTP/1.1 408",
             "a header of 2 bytes a second -> 408 after 10 s", got)
        got = results["silent header"]
        t.ok(9.5 < got[0] < 11.5 and got[1] == b"HTTP/1.1 408",
             "a header that stops -> the same", got)
        got = results["body"]
        t.ok(29.5 < got[0] < 33 and got[1] == b"HTTP/1.1 408",
             "a body of 1 byte a second -> 408 after 30 s", got)
        got = results["start"]
        t.ok(29.5 < got[0] < 33 and got[1:] == ("request_timeout", 1008),
             "a WebSocket without a start message -> closed after 30 s", got)
        got = results["idle"]
        t.ok(59 < got[0] < 63 and got[1] == b"",
             "a connection without a request -> closed after 60 s", got)
        got = results["silent guest"]
        t.ok(74 < got[0] < 81 and got[1:] == ("guest_lost", 4002),
             "a guest that answers no ping for 60 s -> guest_lost", got)
        got = results["silent client"]
        t.ok(59 < got[0] < 78 and (got[1], got[3]) == (None, 1),
             "a client that answers no ping for 60 s -> it has vanished", got)
        t.ok(worst < 0.5, "meanwhile others are answered at once", worst)


def main():
    t = tap.Tap()
    t.run(deadlines)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
