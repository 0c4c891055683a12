#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Every route of the native API and what it refuses, against a real front whose
parent is played by the test."""
import hashlib
import json
import os
import re
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import api
import front
import tap

GONE_ID = "sb-aaaaaaaaaaaaaaaa"
PROBLEM = "application/problem+json"


def problem(t, r, status, code, name, member=None):
    """Is this reply a whole problem of that kind?"""
    try:
        body = r.json()
    except ValueError:
        body = {}
    good = (r.status == status and r.header("content-type") == PROBLEM and
            body.get("code") == code and body.get("status") == status and
            body.get("type") == "urn:sandboxd:error:" + code and
            body.get("instance") == r.header("x-request-id") and
            r.header("cache-control") == "no-store" and
            (member is None or member in body.get("detail", "")))
    t.ok(good, "%s -> %d %s" % (name, status, code),
         "%d %r %r" % (r.status, r.fields, r.body[:400]))


def health(t):
    with front.Front() as f:
        for target in ("/healthz", "/v1/healthz"):
            r = f.api.request("GET", target)
            h = r.json()
            t.ok(r.status == 200 and h["status"] == "ok" and
                 h["version"] == "9.9.9" and h["uptime_s"] == 12 and
                 h["driver"] == "qemu" and
                 h["accelerator"] == {"name": "tcg", "reason": "no /dev/kvm"}
                 and h["notes"] == ["one note", "another"] and
                 set(h["sandboxes"]) == {"creating", "running", "deleting",
                                         "failed"},
                 "GET %s -> state of the daemon" % target, r.body)
        r = f.api.request("HEAD", "/healthz")
        t.ok(r.status == 200 and r.body == b"" and
             int(r.header("content-length")) > 50,
             "HEAD /healthz -> head of the same reply, no body", r.fields)
        with api.Conn(f.path) as c:
            c.send_request("HEAD", "/healthz")
            c.read_response("HEAD")
            t.equal(c.request("GET", "/healthz").status, 200,
                    "after a HEAD the connection goes on")
            t.ok(re.fullmatch(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} "
                              r"\d{4} \d\d:\d\d:\d\d GMT",
                              r.header("date") or ""), "a reply has its Date",
                 r.fields)
        with api.Conn(f.path) as c:
            c.send_request("HEAD", "/healthz")
            c.read_response("HEAD")
            c.send(b"nonsense\r\n\r\n")
            r = c.read_response()
            t.ok(r.status == 400 and r.json()["code"] == "bad_http",
                 "nonsense after a HEAD -> a problem with its body", r.body)
        f.on["FRONT_GET_HEALTH"] = lambda m: f.answer(
            m, "PARENT_GIVE_HEALTH", driver="qemu")
        t.equal(f.api.request("GET", "/healthz").json()["notes"], [],
                "no notes -> an empty list")


def create(t):
    with front.Front() as f:
        full = {"template": "seed", "vcpu": 2, "memory_mib": 256,
                "disk_mib": 128, "timeout_s": 60, "name": "a.b-c",
                "metadata": {"k": "v", "\u00e9": ""},
                "env": {"A": "1", "B": "x=y\nz"}, "on_disconnect": "keep"}
        r = f.api.request("POST", "/sandboxes", data=full)
        b = r.json()
        t.equal(r.status, 201, "POST /sandboxes -> 201")
        t.equal(r.header("location"), "/v1/sandboxes/" + b["sandbox_id"],
                "201 names the sandbox's own place")
        m = f.seen("FRONT_CREATE_SANDBOX")[0]
        t.equal((m["template"], m["vcpu"], m["memory_mib"], m["disk_mib"],
                 m["timeout_s"], m["name"], m["on_disconnect"], m["key"],
                 m["owner"]),
                ("seed", 2, 256, 128, 60, "a.b-c", 2, "", os.getuid() + 7000),
                "members reach the parent")
        t.equal(m["metadata"], b"k\0v\0\xc3\xa9\0\0", "metadata packed")
        t.equal(m["env"], b"A=1\0B=x=y\nz\0", "env packed")
        t.equal({k: b[k] for k in ("state", "template", "name", "vcpu",
                                   "memory_mib", "disk_mib", "timeout_s",
                                   "on_disconnect", "created_at",
                                   "expires_at", "boot_ms", "address",
                                   "metadata")},
                {"state": "running", "template": "seed", "name": "a.b-c",
                 "vcpu": 2, "memory_mib": 256, "disk_mib": 128,
                 "timeout_s": 60, "on_disconnect": "keep",
                 "created_at": "2026-12-01T00:00:00.123Z",
                 "expires_at": "2026-12-01T00:05:00.123Z", "boot_ms": 321,
                 "address": "10.9.0.2", "metadata": {"k": "v", "\u00e9": ""}},
                "the sandbox as JSON")
        t.ok("cause" not in b and "detail" not in b,
             "no cause while nothing has failed")
        r = f.api.request("POST", "/v1/sandboxes", data={"template": "seed"})
        m = f.seen("FRONT_CREATE_SANDBOX", 2)[1]
        t.ok(r.status == 201 and (m["vcpu"], m["memory_mib"], m["disk_mib"],
             m["timeout_s"], m["on_disconnect"], m["name"], m["env"]) ==
             (0, 0, 0, 0, 0, "", b""), "only template -> the rest by default")
        r = f.api.request("POST", "/sandboxes", body=b'{"template":"seed"}',
                          headers={"Content-Type":
                                   "application/x-www-form-urlencoded"})
        t.equal(r.status, 201, "what curl -d calls its body is taken as JSON")
        with api.Conn(f.path) as c:
            c.send(b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:"
                   b" chunked\r\n\r\n8\r\n{\"templa\r\nb\r\nte\":\"seed\"}\r\n"
                   b"0\r\n\r\n")
            t.equal(c.read_response().status, 201, "a chunked body -> 201")


def refused_bodies(t):
    big = {"k%02d" % i: "v" for i in range(17)}
    bad = [
        (b"", "bad_json", None), (b"{", "bad_json", None),
        (b"null", "bad_member", None), (b"[]", "bad_member", None),
        (b'{"template":"seed"} x', "bad_json", None),
        (b'{"template":"seed","template":"x"}', "bad_json", None),
        (b'{"template":"\xff"}', "bad_json", None),
        (b'{"template":"se\\u0000ed"}', "bad_json", None),
        ({}, "bad_member", "template"),
        ({"template": 1}, "bad_member", "template"),
        ({"template": ""}, "bad_member", "template"),
        ({"template": "../x"}, "bad_member", "template"),
        ({"template": "a/b"}, "bad_member", "template"),
        ({"template": "x" * 64}, "bad_member", "template"),
        ({"template": None}, "bad_member", "template"),
        ({"template": "seed", "memory": 1}, "unknown_member", "memory"),
        ({"template": "seed", "memory_mb": 1}, "unknown_member", "memory_mb"),
        ({"template": "seed", "memory_mib": "128"}, "bad_member",
         "memory_mib"),
        ({"template": "seed", "memory_mib": 63}, "out_of_range", "memory_mib"),
        ({"template": "seed", "memory_mib": 1e99}, "bad_member",
         "memory_mib"),
        ({"template": "seed", "memory_mib": 128.5}, "bad_member",
         "memory_mib"),
        ({"template": "seed", "vcpu": 0}, "out_of_range", "vcpu"),
        ({"template": "seed", "vcpu": -1}, "out_of_range", "vcpu"),
        ({"template": "seed", "vcpu": 33}, "out_of_range", "vcpu"),
        ({"template": "seed", "vcpu": 4294967297}, "out_of_range", "vcpu"),
        ({"template": "seed", "vcpu": True}, "bad_member", "vcpu"),
        ({"template": "seed", "timeout_s": 0}, "out_of_range", "timeout_s"),
        ({"template": "seed", "timeout_s": -1}, "out_of_range", "timeout_s"),
        ({"template": "seed", "timeout_s": "60"}, "bad_member", "timeout_s"),
        ({"template": "seed", "timeout_s": 2592001}, "out_of_range",
         "timeout_s"),
        ({"template": "seed", "disk_mib": 1}, "out_of_range", "disk_mib"),
        ({"template": "seed", "name": ".x"}, "bad_member", "name"),
        ({"template": "seed", "name": "a b"}, "bad_member", "name"),
        ({"template": "seed", "on_disconnect": "no"}, "bad_member",
         "on_disconnect"),
        ({"template": "seed", "on_disconnect": True}, "bad_member",
         "on_disconnect"),
        ({"template": "seed", "metadata": []}, "bad_member", "metadata"),
        ({"template": "seed", "metadata": {"a": 1}}, "bad_member",
         "metadata"),
        ({"template": "seed", "metadata": {"": "x"}}, "bad_member",
         "metadata"),
        ({"template": "seed", "metadata": big}, "bad_member", "metadata"),
        ({"template": "seed", "metadata": {"a": "x" * 4096}}, "bad_member",
         "metadata"),
        ({"template": "seed", "env": {"": "x"}}, "bad_member", "env"),
        ({"template": "seed", "env": {"A=B": "x"}}, "bad_member", "env"),
        ({"template": "seed", "env": {"A": None}}, "bad_member", "env"),
        ({"template": "seed", "env": {"A": "x" * 6144}}, "bad_member", "env"),
        (b"[" * 5000, "bad_json", None),
    ]
    with front.Front() as f:
        for body, code, member in bad:
            if not isinstance(body, bytes):
                body = json.dumps(body).encode()
            problem(t, f.api.request("POST", "/sandboxes", body=body), 400,
                    code, "create with %s" % body[:60], member)
        f.api.health()
        t.equal(len(f.seen("FRONT_CREATE_SANDBOX", 0, 0)), 0,
                "nothing was asked of the parent for any of them")


def refused_requests(t):
    with front.Front() as f:
        box = f.add_box()
        a = f.api.request
        problem(t, a("GET", "/"), 404, "no_route", "GET /")
        problem(t, a("GET", "/v2/sandboxes"), 404, "no_route", "another version")
        problem(t, a("GET", "/sandboxes/"), 404, "no_route", "trailing slash")
        problem(t, a("GET", "/v1/v1/sandboxes"), 404, "no_route", "v1 twice")
        r = a("PUT", "/sandboxes", body=b"")
        problem(t, r, 405, "method_not_allowed", "PUT /sandboxes")
        t.ok({"GET", "POST"} <= set(re.split(", *", r.header("allow") or "")),
             "405 says what is allowed", r.fields)
        problem(t, a("DELETE", "/healthz"), 405, "method_not_allowed",
                "DELETE /healthz")
        problem(t, a("BREW", "/healthz"), 501, "not_implemented",
                "a method that nobody knows")
        for bad in ("sb-x", "sb-AAAAAAAAAAAAAAAA", "sb-aaaaaaaaaaaaaaaaa",
                    "..", "sb-aaaaaaaaaaaaaaa1", "sb-%00aaaaaaaaaaaaaaa"):
            r = a("GET", "/sandboxes/" + bad)
            t.ok(r.status in (400, 404) and
                 r.header("content-type") == PROBLEM,
                 "GET /sandboxes/%s -> 4xx" % bad, (r.status, r.body))
        problem(t, a("GET", "/sandboxes/" + GONE_ID), 404, "no_sandbox",
                "an id that nobody has")
        t.equal(a("GET", "/sandboxes/" + GONE_ID).json()["sandbox_id"],
                GONE_ID, "the problem names the sandbox")
        problem(t, a("GET", "/sandboxes/%s?x=1" % box.id), 400,
                "bad_parameter", "unknown query parameter")
        problem(t, a("DELETE", "/sandboxes/%s?force=1" % box.id), 400,
                "bad_parameter", "unknown query parameter of DELETE")
        problem(t, a("POST", "/sandboxes?x", data={"template": "seed"}), 400,
                "bad_parameter", "unknown query parameter of create")
        problem(t, a("POST", "/sandboxes"), 411, "length_required",
                "POST without a length")
        problem(t, a("POST", "/sandboxes", body=b"{}",
                     headers={"Content-Type": "text/xml"}), 415,
                "unsupported_media_type", "a body that is no JSON")
        problem(t, a("POST", "/sandboxes", body=b"{}" + b" " * 12288), 413,
                "body_too_large", "a body over the route's limit")
        problem(t, a("GET", "/healthz", headers={"X": "y" * 9000}), 431,
                "header_too_large", "a header over its limit")
        problem(t, a("GET", "/" + "x" * 3000), 414, "uri_too_long",
                "a target over its limit")
        problem(t, a("POST", "/sandboxes", data={"template": "seed"},
                     headers={"Idempotency-Key": "x" * 129}), 400,
                "bad_header", "a key over its limit")
        problem(t, a("POST", "/sandboxes", data={"template": "seed"},
                     headers={"Idempotency-Key": ""}), 400, "bad_header",
                "an empty key")
        problem(t, a("POST", "/sandboxes", data={"template": "seed"},
                     headers={"Expect": "200-ok"}), 417, "expectation_failed",
                "an unknown expectation")
        r = a("GET", "/sandboxes/%s/command" % box.id)
        problem(t, r, 426, "upgrade_required", "command without an upgrade")
        t.ok(r.header("upgrade") == "websocket", "426 says to what", r.fields)
        with api.Conn(f.path) as c:
            c.send(b"GET /healthz HTTP/1.1\r\n\r\n")
            problem(t, c.read_response(), 400, "bad_http", "no Host")
            t.ok(c.at_eof(), "and the connection is closed")
        with api.Conn(f.path) as c:
            c.send(b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n")
            problem(t, c.read_response(), 505, "http_version", "HTTP/2.0")
        with api.Conn(f.path) as c:
            c.send(b"GET /healthz HTTP/1.0\r\n\r\n")
            r = c.read_response()
            t.ok(r.status == 200 and c.at_eof(),
                 "HTTP/1.0 -> answered and closed", r.fields)


def failures(t):
    with front.Front() as f:
        f.on["FRONT_CREATE_SANDBOX"] = lambda m: f.fail(
            m, "no_capacity", retry_after_s=7, detail="5 of 5 run",
            sandbox=GONE_ID)
        r = f.api.request("POST", "/sandboxes", data={"template": "seed"})
        problem(t, r, 503, "no_capacity", "the parent refuses a create",
                "5 of 5 run")
        t.ok(r.header("retry-after") == "7" and
             r.json()["retry_after_s"] == 7 and
             r.json()["sandbox_id"] == GONE_ID,
             "Retry-After, retry_after_s and the sandbox", (r.fields, r.body))
        f.on["FRONT_SHOW_SANDBOX"] = lambda m: f.fail(m, "no_template")
        problem(t, f.api.request("GET", "/sandboxes/" + GONE_ID), 404,
                "no_template", "any error row is passed on")
        f.on["FRONT_SHOW_SANDBOX"] = lambda m: f.answer(
            m, "PARENT_FAIL", error=60000)
        problem(t, f.api.request("GET", "/sandboxes/" + GONE_ID), 500,
                "internal", "an error that no row has")
        f.on["FRONT_DELETE_SANDBOX"] = lambda m: f.answer(
            m, "PARENT_DELETE_OK", done=0)
        t.equal(f.api.delete(GONE_ID), 202, "release goes on -> 202")
        f.on["FRONT_SHOW_SANDBOX"] = lambda m: f.answer(
            m, "PARENT_GIVE_SANDBOX", id=m["id"], state=front.FAILED, cause=1,
            detail="Kernel panic\x1b[31m \u00e9", template="seed")
        b = f.api.show(GONE_ID)
        t.ok(b["state"] == "failed" and b["cause"] == "guest_panic" and
             b["detail"] == "Kernel panic\x1b[31m \u00e9" and
             b["created_at"] is None, "a failed sandbox says why", b)
        f.on["FRONT_IDENTIFY_CLIENT"] = lambda m: f.fail(m, "unauthorized")
        problem(t, f.api.request("GET", "/healthz"), 401, "unauthorized",
                "the parent knows no owner for a client")


def deletes(t):
    with front.Front() as f:
        box = f.add_box()
        r = f.api.request("DELETE", "/sandboxes/" + box.id)
        t.ok(r.status == 204 and r.body == b"" and
             r.header("content-length") is None, "DELETE -> 204, no body",
             r.fields)
        t.equal(f.api.delete(box.id), 204, "DELETE of what is gone -> 204")
        t.equal(f.seen("FRONT_DELETE_SANDBOX")[0]["owner"],
                os.getuid() + 7000, "DELETE goes up with the owner's handle")


def lists(t):
    with front.Front() as f:
        t.equal(f.api.list(), {"sandboxes": [], "next": None}, "empty list")
        ids = [f.add_box(guest=False).id for _ in range(7)]
        page = f.api.list(limit=3)
        t.ok([b["sandbox_id"] for b in page["sandboxes"]] == ids[:3] and
             page["next"] == ids[2], "limit=3 -> the first three and a cursor",
             page)
        page = f.api.list(limit=3, after=ids[2])
        t.equal([b["sandbox_id"] for b in page["sandboxes"]], ids[3:6],
                "after=CURSOR -> the following three")
        t.equal([b["sandbox_id"] for b in f.api.list_all()], ids,
                "all pages -> all sandboxes, oldest first")
        t.equal(f.seen("FRONT_LIST_SANDBOXES")[0]["limit"], 100,
                "no limit -> 100")
        for q in ("limit=0", "limit=1001", "limit=x", "limit=1&limit=2",
                  "limit=-1", "limit=", "after=x", "state=running",
                  "after=%00", "after=" + GONE_ID + "x"):
            problem(t, f.api.request("GET", "/sandboxes?" + q), 400,
                    "bad_parameter", "?" + q)
        t.equal(f.api.request("GET", "/sandboxes?after=" + GONE_ID).status,
                200, "a cursor whose sandbox is gone is no error")
        f.on["FRONT_LIST_SANDBOXES"] = lambda m: f.fail(m, "restarting")
        problem(t, f.api.request("GET", "/sandboxes"), 503, "restarting",
                "the parent cannot list")


def keys(t):
    with front.Front() as f:
        one = f.api.create(key="k1", vcpu=1, env={"A": "1", "B": "2"})
        body = b' { "env" : {"B":"2", "A":"1"},"vcpu":1, "template":"seed"}'
        r = f.api.request("POST", "/sandboxes", body=body,
                          headers={"Idempotency-Key": '"k1"'})
        t.ok(r.status == 200 and r.json()["sandbox_id"] == one["sandbox_id"],
             "the same key, quoted, and the same content in another order "
             "-> 200 and the same sandbox", (r.status, r.body))
        prints = [m["fingerprint"] for m in f.seen("FRONT_CREATE_SANDBOX", 2)]
        text = b'{"env":{"A":"1","B":"2"},"template":"seed","vcpu":1}'
        t.equal(prints, [hashlib.sha256(text).digest()] * 2,
                "fingerprint is the SHA-256 of the sorted body")
        r = f.api.request("POST", "/sandboxes", data={
            "template": "seed", "vcpu": 2},
            headers={"Idempotency-Key": "k1"})
        problem(t, r, 422, "key_reused", "the same key, other content")


def request_ids(t):
    with front.Front() as f:
        r = f.api.request("GET", "/healthz", headers={"X-Request-Id": "a.B-9"})
        t.equal(r.header("x-request-id"), "a.B-9", "X-Request-Id is kept")
        seen = set()
        for bad in (None, "a b", "x" * 65, "\xe9"):
            r = f.api.request("GET", "/nowhere", headers={"X-Request-Id": bad})
            seen.add(r.header("x-request-id"))
        t.ok(len(seen) == 4 and all(re.fullmatch("[A-Za-z0-9._-]{1,64}", x)
             for x in seen), "X-Request-Id is made where none fits", seen)


def cancel(t):
    with front.Front() as f:
        f.on["FRONT_CREATE_SANDBOX"] = lambda m: None
        for headers, wanted in (({}, 1), ({"Idempotency-Key": "k"}, 0)):
            f.forget()
            c = api.Conn(f.path)
            c.send_request("POST", "/sandboxes", data={"template": "seed"},
                           headers=headers)
            m = f.seen("FRONT_CREATE_SANDBOX")[0]
            c.close()
            got = f.seen("FRONT_CANCEL_CREATE", 1, 1.0)
            t.equal([x["request"] for x in got], [m.request] * wanted,
                    "client gone while it creates, %s key -> %s" % (
                        ("without a", "cancelled") if wanted else
                        ("with a", "goes on")))
        f.forget()
        c = api.Conn(f.path)
        c.send_request("POST", "/sandboxes", data={"template": "seed"})
        m = f.seen("FRONT_CREATE_SANDBOX")[0]
        c.sock.shutdown(socket.SHUT_WR)
        time.sleep(0.7)
        t.equal(f.seen("FRONT_CANCEL_CREATE", 0, 0), [],
                "half-closed while it creates -> not cancelled")
        f.give(m, f.add_box(guest=False))
        t.equal(c.read_response().status, 201, "and it gets its answer")
        c.close()


def main():
    t = tap.Tap()
    t.run(health, create, refused_bodies, refused_requests, failures, deletes,
          lists, keys, request_ids, cancel)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
