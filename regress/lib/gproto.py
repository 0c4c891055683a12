# SPDX-License-Identifier: ISC
"""The guest protocol (guest-protocol(7)), both sides, for tests.

Written from the manual and common/gproto.h, not generated from the C codec, so
that the two check each other.

Host: a client over any connected stream socket.

    host = gproto.Host(sock)
    host.connect(hostname="box")            # sync, hello, config
    r = host.run(["sh", "-c", "cat; exit 7"], stdin=b"hello")
    r.code, r.stdout                        # 7, b"hello"
    s = host.exec(["cat"], stdin=True)      # a Stream, driven by hand
    s.write(b"x"); s.close_stdin(); s.wait()

Guest: the other side, scriptable, with deliberate misbehaviour.

    guest = gproto.Guest(sock)
    guest.serve()                           # small built-in commands
    guest.serve(misbehave="oversized")      # see MISBEHAVIOURS
"""
import collections
import os
import select
import socket
import struct
import threading
import time

MAGIC = b"\x93sandboxd-sync\r\n"
FRAME_MAGIC = 0xa5
HEADER = struct.Struct("<BBHII")
PAYLOAD_MAX = 32768
WINDOW = 262144
FRAME_COST = 16
STREAMS_MAX = 256
ARGS_MAX = 2097152
STRING_MAX = 131071

HELLO, CONFIG, CONFIG_DONE, PING, PONG = 1, 2, 3, 4, 5
(OPEN, ARGS, START, STARTED, REFUSED, DATA, EOF, CREDIT, SIGNAL, RESIZE, CLOSE,
    EXITED) = range(0x10, 0x1c)
NAMES = {1: "HELLO", 2: "CONFIG", 3: "CONFIG_DONE", 4: "PING", 5: "PONG",
    0x10: "OPEN", 0x11: "ARGS", 0x12: "START", 0x13: "STARTED",
    0x14: "REFUSED", 0x15: "DATA", 0x16: "EOF", 0x17: "CREDIT",
    0x18: "SIGNAL", 0x19: "RESIZE", 0x1a: "CLOSE", 0x1b: "EXITED"}
STDIN, STDOUT, STDERR = 0, 1, 2
KIND_EXEC = 1
STAGE_RECORDS, STAGE_USER, STAGE_CWD, STAGE_EXEC, STAGE_RESOURCES = range(1, 6)
FLAG_STDIN, FLAG_TTY = 1, 2
HELLO_S = struct.Struct("<HH16sQ")
EXITED_S = struct.Struct("<BBBIQQQ")

Frame = collections.namedtuple("Frame", "type flags stream payload")


class ProtocolError(Exception):
    pass


class Refused(Exception):
    def __init__(self, stage, errno):
        super().__init__("refused: stage %d, %s" % (stage, os.strerror(errno)))
        self.stage, self.errno = stage, errno


def header(ftype, stream=0, flags=0, length=0):
    return HEADER.pack(FRAME_MAGIC, ftype, flags, stream, length)


def frame(ftype, stream=0, payload=b"", flags=0):
    return header(ftype, stream, flags, len(payload)) + payload


def record(tag, data):
    if isinstance(tag, str):
        tag = ord(tag)
    return struct.pack("<BI", tag, len(data)) + data


def records(data):
    """Splits packed records; raises ProtocolError when malformed."""
    out, at = [], 0
    while at < len(data):
        if len(data) - at < 5:
            raise ProtocolError("record head cut short")
        tag, length = struct.unpack_from("<BI", data, at)
        at += 5
        if length > len(data) - at:
            raise ProtocolError("record longer than its payload")
        out.append((chr(tag), data[at:at + length]))
        at += length
    return out


def _bytes(v):
    return v.encode("utf-8", "surrogateescape") if isinstance(v, str) else v


def exec_records(argv, env=None, cwd=None, user=None, timeout_ms=None,
    flags=0):
    """env: a dict, or a list of "KEY=value" where order and repeats matter."""
    out = [record("a", _bytes(a)) for a in argv]
    if isinstance(env, dict):
        env = [_bytes(k) + b"=" + _bytes(v) for k, v in env.items()]
    out += [record("e", _bytes(e)) for e in env or []]
    if cwd is not None:
        out.append(record("d", _bytes(cwd)))
    if user is not None:
        out.append(record("u", _bytes(user)))
    if timeout_ms is not None:
        out.append(record("t", struct.pack("<Q", timeout_ms)))
    if flags:
        out.append(record("f", struct.pack("<I", flags)))
    return b"".join(out)


def config_records(hostname=None, address=None, gateway=None, mac=None,
    mtu=None, dns=(), time_ns=None, entropy=None, machine_id=None):
    out = []
    for tag, value in (("h", hostname), ("a", address), ("g", gateway),
            ("m", mac), ("i", machine_id)):
        if value is not None:
            out.append(record(tag, _bytes(value)))
    if mtu is not None:
        out.append(record("M", struct.pack("<H", mtu)))
    out += [record("d", _bytes(d)) for d in dns]
    if time_ns is not None:
        out.append(record("t", struct.pack("<Q", time_ns)))
    if entropy is not None:
        out.append(record("r", entropy))
    return b"".join(out)


def frame_room(data, at=0):
    """How many bytes from `at` one frame may carry: never a whole MAGIC."""
    n = min(len(data) - at, PAYLOAD_MAX)
    hit = data.find(MAGIC, at, at + n)
    return n if hit < 0 else hit - at + len(MAGIC) // 2


class Wire:
    """Bytes in, frames out, with deadlines; common to both sides."""

    def __init__(self, sock, timeout=10.0):
        self.sock = sock
        self.timeout = timeout
        self.buf = bytearray()
        self.at = 0             # start of what is unread in buf
        self.scan_from = 0      # start of what may hold a sync record
        self.bytes_in = 0
        sock.setblocking(False)

    def fileno(self):
        return self.sock.fileno()

    def read_some(self, timeout):
        """True when bytes came, False on a timeout, EOFError at the end."""
        if not select.select([self.sock], [], [], max(timeout, 0))[0]:
            return False
        try:
            data = self.sock.recv(262144)
        except BlockingIOError:
            return False
        if not data:
            raise EOFError("the other side has closed the channel")
        if self.at > 1 << 20 or (self.at > 32 and self.at == len(self.buf)):
            cut = self.at - 32
            del self.buf[:cut]
            self.at -= cut
            self.scan_from = max(self.scan_from - cut, 0)
        self.buf += data
        self.bytes_in += len(data)
        return True

    def write_all(self, data, while_waiting=None):
        """Never waits to write without reading: see both sides' rule."""
        view = memoryview(data)
        end = time.monotonic() + self.timeout
        while view:
            try:
                view = view[self.sock.send(view[:262144]):]
                continue
            except BlockingIOError:
                pass
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("channel does not take our bytes")
            want_read = [self.sock] if while_waiting else []
            r, w, _ = select.select(want_read, [self.sock], [], left)
            if r:
                while_waiting()

    def next_frame(self):
        """A frame from the buffer, or None when none is whole."""
        have = len(self.buf) - self.at
        if have >= 1 and self.buf[self.at] != FRAME_MAGIC:
            raise ProtocolError("frame starts with 0x%02x" % self.buf[self.at])
        if have < HEADER.size:
            return None
        _, ftype, flags, stream, length = HEADER.unpack_from(self.buf, self.at)
        if length > PAYLOAD_MAX:
            raise ProtocolError("frame of %d bytes" % length)
        if ftype not in NAMES:
            raise ProtocolError("frame type 0x%02x" % ftype)
        if have < HEADER.size + length:
            return None
        start = self.at + HEADER.size
        self.at = start + length
        return Frame(ftype, flags, stream, bytes(self.buf[start:self.at]))

    def find_sync(self):
        """The nonce of the next sync record in the buffer, else None.

        A host that died within its record leaves a short one: the next one's
        magic is then inside of what looks like the nonce, so the search goes
        on there while reading goes on behind it.
        """
        hit = self.buf.find(MAGIC, self.scan_from)
        if hit < 0:
            self.scan_from = max(self.scan_from,
                len(self.buf) - len(MAGIC) + 1)
            self.at = max(self.at, self.scan_from)
            return None
        if len(self.buf) - hit < 32:
            self.at = max(self.at, hit)
            return None
        self.scan_from = hit + 1
        self.at = hit + 32
        return bytes(self.buf[hit + 16:hit + 32])


class Result:
    """What EXITED said, and the output."""

    def __init__(self, stream, payload):
        (signaled, timed_out, oom, code, self.duration_us, self.stdout_bytes,
            self.stderr_bytes) = EXITED_S.unpack(payload)
        self.signaled, self.timed_out = bool(signaled), bool(timed_out)
        self.oom_killed = bool(oom)
        self.signal = code if signaled else None
        self.code = None if signaled else code
        self.stdout, self.stderr = bytes(stream.stdout), bytes(stream.stderr)
        self.pid = stream.pid

    def __repr__(self):
        return "<exit code=%r signal=%r timed_out=%r oom=%r out=%r err=%r>" % (
            self.code, self.signal, self.timed_out, self.oom_killed,
            self.stdout[:200], self.stderr[:200])


class Stream:
    """One exec stream of a Host.  auto_credit False: grant() by hand."""

    def __init__(self, host, sid, auto_credit=True, keep=True):
        self.host, self.id = host, sid
        self.auto_credit, self.keep = auto_credit, keep
        self.send_credit = WINDOW       # what we may send
        self.recv_credit = WINDOW       # what the guest may send
        self.owed = 0
        self.stdout, self.stderr = bytearray(), bytearray()
        self.received = {STDOUT: 0, STDERR: 0}
        self.eof = set()
        self.events = []                # names, in order
        self.pid = self.refused = self.result = None
        self.on_data = None             # f(channel, bytes)

    @property
    def done(self):
        return self.result is not None or self.refused is not None

    def _send_counted(self, ftype, data, flags=0):
        at = 0
        while at < len(data):
            n = frame_room(data, at)
            while self.send_credit < min(n, 1) + FRAME_COST and not self.done:
                self.host.pump()
            if self.done:
                return at
            n = min(n, self.send_credit - FRAME_COST)
            self.send_credit -= n + FRAME_COST
            self.host.send(ftype, self.id, data[at:at + n], flags)
            at += n
        return at

    def args(self, data):
        return self._send_counted(ARGS, data)

    def start(self):
        self.host.send(START, self.id)

    def write(self, data):
        """Returns how much went out: less when the stream has ended."""
        return self._send_counted(DATA, bytes(data), STDIN)

    def close_stdin(self):
        self.host.send(EOF, self.id, flags=STDIN)

    def signal(self, number, tree=False):
        self.host.send(SIGNAL, self.id, bytes([number, 1 if tree else 0]))

    def resize(self, columns, rows):
        self.host.send(RESIZE, self.id, struct.pack("<HH", columns, rows))

    def close(self):
        self.host.send(CLOSE, self.id)

    def grant(self, n):
        self.recv_credit += n
        self.host.send(CREDIT, self.id, struct.pack("<I", n))

    def wait_started(self, timeout=None):
        self.host.pump_until(lambda: self.pid is not None or self.done,
            timeout)
        if self.refused:
            raise Refused(*self.refused)
        return self.pid

    def wait(self, timeout=None):
        self.host.pump_until(lambda: self.done, timeout)
        if self.refused:
            raise Refused(*self.refused)
        return self.result

    def _data(self, f):
        cost = len(f.payload) + FRAME_COST
        if f.flags not in (STDOUT, STDERR):
            raise ProtocolError("DATA on channel %d" % f.flags)
        if f.flags in self.eof:
            raise ProtocolError("DATA after EOF")
        if cost > self.recv_credit:
            raise ProtocolError("guest has overdrawn its credit: %d of %d"
                % (cost, self.recv_credit))
        self.recv_credit -= cost
        self.received[f.flags] += len(f.payload)
        if self.keep:
            out = self.stdout if f.flags == STDOUT else self.stderr
            out += f.payload
        if self.on_data:
            self.on_data(f.flags, f.payload)
        self.owed += cost
        if self.auto_credit and self.owed >= WINDOW // 4:
            n, self.owed = self.owed, 0
            self.grant(n)

    def handle(self, f):
        if self.done:
            raise ProtocolError("%s after the stream's end" % NAMES[f.type])
        if f.type != DATA or not self.events or self.events[-1] != "DATA":
            self.events.append(NAMES[f.type])
        if f.type == STARTED:
            if self.pid is not None:
                raise ProtocolError("STARTED twice")
            self.pid, = struct.unpack("<I", f.payload)
        elif f.type == REFUSED:
            self.refused = struct.unpack("<BI", f.payload)
        elif f.type == CREDIT:
            self.send_credit += struct.unpack("<I", f.payload)[0]
        elif self.pid is None:
            raise ProtocolError("%s before STARTED" % NAMES[f.type])
        elif f.type == DATA:
            self._data(f)
        elif f.type == EOF:
            self.eof.add(f.flags)
        elif f.type == EXITED:
            self.result = Result(self, f.payload)
        else:
            raise ProtocolError("%s for a host" % NAMES[f.type])


class Host:
    def __init__(self, sock, timeout=10.0):
        self.wire = Wire(sock, timeout)
        self.timeout = timeout
        self.streams = {}
        self.next_id = 1
        self.version = self.boot_id = self.uptime_ms = None
        self.config_done = None         # (errno, text)
        self.pongs = []

    def send_raw(self, data):
        self.wire.write_all(data, lambda: self.wire.read_some(0))

    def send(self, ftype, stream=0, payload=b"", flags=0):
        self.send_raw(frame(ftype, stream, payload, flags))

    def sync(self, timeout=None, nonce=None, resend_s=None):
        """Sends a sync record, drops everything until its answer."""
        nonce = nonce or os.urandom(16)
        end = time.monotonic() + (timeout or self.timeout)
        again = time.monotonic() + (resend_s or 1e9)
        self.streams = {}
        self.send_raw(MAGIC + nonce)
        while True:
            found = self.wire.find_sync()
            if found == nonce:
                return nonce
            if found is not None:
                continue
            now = time.monotonic()
            if now >= end:
                raise TimeoutError("guest does not answer the sync record")
            if now >= again:
                again = now + resend_s
                self.send_raw(MAGIC + nonce)
            self.wire.read_some(min(end, again) - now)

    def hello(self, version_min=1, version_max=1, timeout=None):
        self.send(HELLO, 0, HELLO_S.pack(version_min, version_max, bytes(16),
            0))
        self.pump_until(lambda: self.version is not None, timeout)

    def config(self, timeout=None, **what):
        """Returns (errno, text).  what: see config_records()."""
        self.config_done = None
        self.send(CONFIG, 0, config_records(**what))
        self.pump_until(lambda: self.config_done is not None, timeout)
        return self.config_done

    def connect(self, timeout=None, **what):
        self.sync(timeout)
        self.version = None
        self.next_id = 1
        self.hello(timeout=timeout)
        return self.config(timeout, **what)

    def ping(self, data=None, timeout=None):
        data = data or os.urandom(8)
        t = time.monotonic()
        self.send(PING, 0, data)
        self.pump_until(lambda: data in self.pongs, timeout)
        self.pongs.remove(data)
        return time.monotonic() - t

    def open(self, auto_credit=True, keep=True):
        s = Stream(self, self.next_id, auto_credit, keep)
        self.next_id += 1
        self.streams[s.id] = s
        self.send(OPEN, s.id, bytes([KIND_EXEC]))
        return s

    def exec(self, argv, env=None, cwd=None, user=None, timeout_ms=None,
            stdin=False, tty=False, auto_credit=True, keep=True):
        s = self.open(auto_credit, keep)
        flags = (FLAG_STDIN if stdin else 0) | (FLAG_TTY if tty else 0)
        s.args(exec_records(argv, env, cwd, user, timeout_ms, flags))
        s.start()
        return s

    def run(self, argv, stdin=None, timeout=None, **kw):
        s = self.exec(argv, stdin=stdin is not None, **kw)
        if stdin is not None:
            s.write(stdin)
            if not s.done:
                s.close_stdin()
        return s.wait(timeout)

    def pump(self, timeout=None):
        """Handles what has come; waits for something when nothing has."""
        if self._dispatch():
            return
        if not self.wire.read_some(self.timeout if timeout is None
                else timeout):
            if timeout is None:
                raise TimeoutError("guest is silent")
            return
        self._dispatch()

    def pump_until(self, condition, timeout=None):
        end = time.monotonic() + (timeout or self.timeout)
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("guest has not answered in time")
            self.pump(left)

    def pump_for(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.pump(left)

    def _dispatch(self):
        any_ = False
        while (f := self.wire.next_frame()) is not None:
            any_ = True
            self._frame(f)
        return any_

    def _frame(self, f):
        if f.stream:
            s = self.streams.get(f.stream)
            if s is None:
                raise ProtocolError("%s for stream %d, which is not open"
                    % (NAMES[f.type], f.stream))
            s.handle(f)
        elif f.type == HELLO:
            lo, hi, self.boot_id, self.uptime_ms = HELLO_S.unpack(f.payload)
            if lo != hi:
                raise ProtocolError("guest has not chosen a version")
            self.version = lo
        elif f.type == CONFIG_DONE:
            self.config_done = (struct.unpack_from("<I", f.payload)[0],
                f.payload[4:].decode("utf-8", "replace"))
        elif f.type == PONG:
            self.pongs.append(f.payload)
        elif f.type == PING:
            self.send(PONG, 0, f.payload)
        else:
            raise ProtocolError("%s for a host" % NAMES[f.type])



# What Guest.serve(misbehave=NAME) does.  "when" is the moment it happens.
MISBEHAVIOURS = {
    "never": "answers nothing at all",
    "late": "answers the sync record after guest.late_s",
    "wrong-nonce": "answers the sync record with another nonce",
    "no-hello": "answers the sync record and is silent from then on",
    "version": "chooses a version that was not offered",
    "config-fails": "CONFIG_DONE with errno 5",
    "no-config-done": "never answers CONFIG",
    "close-hello": "closes the channel instead of saying HELLO",
    "malformed": "after START: bytes that are no frame",
    "type": "after START: a frame of an unknown type",
    "direction": "after START: a frame that only a host may send",
    "oversized": "after START: a header with a length of 2 GiB",
    "short-exited": "after STARTED: EXITED with 3 bytes",
    "bad-exited": "after STARTED: EXITED with fields out of range",
    "stream": "after START: DATA for a stream that nobody opened",
    "before-started": "DATA before STARTED",
    "channel": "after STARTED: DATA on channel 7",
    "credit": "after STARTED: output without end, credit ignored",
    "endless": "after STARTED: output without end, credit kept, no EXITED",
    "empty": "after STARTED: empty DATA frames without end, credit ignored",
    "grant": "after STARTED: CREDIT of 0xffffffff, again and again",
    "twice": "EXITED twice",
    "after-exit": "DATA after EXITED",
    "pings": "after START: PING without end",
    "garbage": "random bytes without end instead of an answer to the sync",
    "hang": "after STARTED: nothing more",
    "close": "after STARTED: closes the channel",
}


class GuestStream:
    def __init__(self, guest, sid):
        self.guest, self.id = guest, sid
        self.argbytes = bytearray()
        self.argv, self.env, self.flags = [], [], 0
        self.cwd = self.user = self.timeout_ms = None
        self.credit = WINDOW            # what we may send
        self.stdin = bytearray()
        self.stdin_eof = self.started = self.finished = False
        self.signals, self.sizes, self.closed = [], [], False
        self.sent = {STDOUT: 0, STDERR: 0}
        self.cond = threading.Condition()

    def parse(self):
        for tag, data in records(bytes(self.argbytes)):
            if tag == "a":
                self.argv.append(data)
            elif tag == "e":
                self.env.append(data)
            elif tag == "d":
                self.cwd = data
            elif tag == "u":
                self.user = data
            elif tag == "t":
                self.timeout_ms, = struct.unpack("<Q", data)
            elif tag == "f":
                self.flags, = struct.unpack("<I", data)
            else:
                raise ProtocolError("exec record %r" % tag)

    def begin(self, pid=4321):
        self.started = True
        self.guest.send(STARTED, self.id, struct.pack("<I", pid))

    def refuse(self, stage, errno):
        self.finished = True
        self.guest.send(REFUSED, self.id, struct.pack("<BI", stage, errno))

    def output(self, data, channel=STDOUT):
        """Sends with credit; False when the stream was closed under us."""
        at = 0
        while at < len(data):
            with self.cond:
                while self.credit <= FRAME_COST and not self.closed and \
                        not self.guest.gone:
                    self.cond.wait(1)
                if self.closed or self.guest.gone:
                    return False
                n = min(len(data) - at, PAYLOAD_MAX, self.credit - FRAME_COST)
                self.credit -= n + FRAME_COST
            self.guest.send(DATA, self.id, data[at:at + n], channel)
            self.sent[channel] += n
            at += n
        return True

    def exit(self, code=0, signaled=0, timed_out=0, oom=0, duration_us=1000):
        self.finished = True
        self.guest.send(EXITED, self.id, EXITED_S.pack(signaled, timed_out,
            oom, code, duration_us, self.sent[STDOUT], self.sent[STDERR]))

    def wait_for(self, condition, timeout=None):
        with self.cond:
            return self.cond.wait_for(lambda: condition() or self.guest.gone,
                timeout)


def builtin(s):
    """Commands of the scriptable guest; argv[0] says which:
    echo WORD..., cat, err WORD, exit N, kill N, zero BYTES, sleep SECONDS,
    env; anything else is refused with ENOENT."""
    argv = [a.decode("utf-8", "surrogateescape") for a in s.argv]
    name = argv[0] if argv else ""
    if name not in ("echo", "cat", "err", "exit", "kill", "zero", "sleep",
            "env"):
        return s.refuse(STAGE_EXEC, 2)
    s.begin()
    code = 0
    if name == "echo":
        s.output(b" ".join(s.argv[1:]) + b"\n")
    elif name == "err":
        s.output(b" ".join(s.argv[1:]) + b"\n", STDERR)
    elif name == "env":
        s.output(b"".join(e + b"\n" for e in s.env))
    elif name == "zero":
        left = int(argv[1])
        while left > 0 and s.output(bytes(min(left, PAYLOAD_MAX))):
            left -= PAYLOAD_MAX
    elif name == "cat":
        while s.flags & FLAG_STDIN:
            s.wait_for(lambda: s.stdin or s.stdin_eof or s.closed)
            if s.closed or s.guest.gone:
                break
            data, s.stdin = bytes(s.stdin), bytearray()
            if not data:
                break
            s.output(data)
            s.guest.send(CREDIT, s.id, struct.pack("<I",
                len(data) + FRAME_COST))
    elif name == "sleep":
        s.wait_for(lambda: s.closed or s.signals, float(argv[1]))
        if s.signals and not s.closed:
            return s.exit(s.signals[0][0], signaled=1)
    elif name == "exit":
        code = int(argv[1])
    elif name == "kill":
        return s.exit(int(argv[1]), signaled=1)
    if s.closed:
        return s.exit(9, signaled=1)
    s.exit(code)


class Guest:
    """The guest's side.  serve() runs until the host is gone."""

    def __init__(self, sock, command=builtin, timeout=30.0):
        self.wire = Wire(sock, timeout)
        self.sock = sock
        self.command = command          # f(GuestStream), in its own thread
        self.lock = threading.Lock()
        self.streams = {}
        self.gone = False
        self.late_s = 3.0
        self.boot_id = os.urandom(16)
        self.configs = []               # [(tag, bytes)...] of each CONFIG
        self.syncs = 0
        self.log = []                   # frame names that came, in order

    def send_raw(self, data):
        try:
            with self.lock:
                self.wire.write_all(data)
        except (OSError, TimeoutError):
            self.gone = True

    def send(self, ftype, stream=0, payload=b"", flags=0):
        self.send_raw(frame(ftype, stream, payload, flags))

    def serve_thread(self, **kw):
        t = threading.Thread(target=self.serve, kwargs=kw, daemon=True)
        t.start()
        return t

    def serve(self, misbehave=None):
        if misbehave is not None and misbehave not in MISBEHAVIOURS:
            raise ValueError("no misbehaviour named %r" % misbehave)
        self.misbehave = misbehave
        try:
            self._serve()
        except (EOFError, OSError):
            pass
        finally:
            self._end_streams()
            self.gone = True

    def _end_streams(self):
        for s in self.streams.values():
            with s.cond:
                s.closed = True
                s.cond.notify_all()
        self.streams = {}

    def _sync(self):
        while True:
            nonce = self.wire.find_sync()
            if nonce is not None:
                break
            self.wire.read_some(3600)
        self._synced(nonce)

    def _synced(self, nonce):
        self.syncs += 1
        self._end_streams()
        self.answer_sync(nonce)

    def answer_sync(self, nonce):
        if self.misbehave == "never":
            return
        if self.misbehave == "late":
            time.sleep(self.late_s)
        if self.misbehave == "garbage":
            while not self.gone:
                self.send_raw(os.urandom(65536))
            return
        if self.misbehave == "wrong-nonce":
            nonce = os.urandom(16)
        self.send_raw(MAGIC + nonce)

    def _serve(self):
        self._sync()
        while not self.gone:
            hit = self.wire.buf.find(MAGIC, self.wire.scan_from)
            if hit >= 0 and len(self.wire.buf) - hit >= 32:
                self._synced(self.wire.find_sync())
                continue
            f = self.wire.next_frame() if hit < 0 else None
            if f is not None:
                self.wire.scan_from = self.wire.at
            if f is None:
                self.wire.read_some(3600)
                continue
            self.log.append(NAMES[f.type])
            self._frame(f)

    def _frame(self, f):
        if self.misbehave in ("never", "no-hello"):
            return
        if f.type == HELLO:
            self._hello(f)
        elif f.type == CONFIG:
            self.configs.append(records(f.payload))
            if self.misbehave != "no-config-done":
                errno = 5 if self.misbehave == "config-fails" else 0
                self.send(CONFIG_DONE, 0, struct.pack("<I", errno) +
                    (b"told to fail" if errno else b""))
        elif f.type == PING:
            self.send(PONG, 0, f.payload)
        elif f.type == OPEN:
            self.streams[f.stream] = GuestStream(self, f.stream)
        elif f.stream in self.streams:
            self._stream_frame(self.streams[f.stream], f)

    def _hello(self, f):
        if self.misbehave == "close-hello":
            self.gone = True
            self.sock.close()
            return
        lo, hi, _, _ = HELLO_S.unpack(f.payload)
        if self.misbehave == "version":
            hi += 7
        self.send(HELLO, 0, HELLO_S.pack(hi, hi, self.boot_id, 1234))

    def _stream_frame(self, s, f):
        with s.cond:
            if f.type == ARGS:
                s.argbytes += f.payload
                self.send(CREDIT, s.id, struct.pack("<I",
                    len(f.payload) + FRAME_COST))
            elif f.type == DATA:
                s.stdin += f.payload
            elif f.type == EOF:
                s.stdin_eof = True
            elif f.type == CREDIT:
                s.credit += struct.unpack("<I", f.payload)[0]
            elif f.type == SIGNAL:
                s.signals.append((f.payload[0], f.payload[1]))
            elif f.type == RESIZE:
                s.sizes.append(struct.unpack("<HH", f.payload))
            elif f.type == CLOSE:
                s.closed = True
            s.cond.notify_all()
        if f.type == START:
            s.parse()
            threading.Thread(target=self._run, args=(s,), daemon=True).start()

    def _run(self, s):
        act = getattr(self, "_mis_" + (self.misbehave or "").replace("-",
            "_"), None)
        (act or self.command)(s)

    # Misbehaviours after START, one method each.

    def _mis_malformed(self, s):
        self.send_raw(b"HTTP/1.1 200 OK\r\n\r\n" * 10)

    def _mis_type(self, s):
        self.send_raw(frame(0x7f, s.id))

    def _mis_direction(self, s):
        self.send(START, s.id)

    def _mis_oversized(self, s):
        self.send_raw(header(DATA, s.id, STDOUT, 0x7fffffff) + bytes(100000))

    def _mis_stream(self, s):
        self.send(DATA, s.id + 1000, b"x", STDOUT)

    def _mis_before_started(self, s):
        self.send(DATA, s.id, b"x", STDOUT)

    def _mis_channel(self, s):
        s.begin()
        self.send(DATA, s.id, b"x", 7)

    def _mis_short_exited(self, s):
        s.begin()
        self.send(EXITED, s.id, b"abc")

    def _mis_bad_exited(self, s):
        s.begin()
        self.send(EXITED, s.id, EXITED_S.pack(9, 9, 9, 0xffffffff, 0, 0, 0))

    def _mis_credit(self, s):
        s.begin()
        while not self.gone:
            self.send(DATA, s.id, bytes(PAYLOAD_MAX), STDOUT)

    def _mis_empty(self, s):
        s.begin()
        while not self.gone:
            self.send_raw(frame(DATA, s.id, b"", STDOUT) * 1000)

    def _mis_endless(self, s):
        s.begin()
        while not self.gone and s.output(bytes(PAYLOAD_MAX)):
            pass

    def _mis_grant(self, s):
        s.begin()
        for _ in range(100):
            self.send(CREDIT, s.id, b"\xff\xff\xff\xff")
        s.exit(0)

    def _mis_twice(self, s):
        s.begin()
        s.exit(0)
        s.exit(0)

    def _mis_after_exit(self, s):
        s.begin()
        s.exit(0)
        self.send(DATA, s.id, b"late", STDOUT)

    def _mis_pings(self, s):
        while not self.gone:
            self.send_raw(frame(PING, 0, b"12345678") * 1000)

    def _mis_hang(self, s):
        s.begin()

    def _mis_close(self, s):
        s.begin()
        self.gone = True
        self.sock.shutdown(socket.SHUT_RDWR)


def connect_unix(path, timeout=30.0):
    """Connects to a listening unix socket, waiting until it is there."""
    end = time.monotonic() + timeout
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.connect(path)
            return s
        except (FileNotFoundError, ConnectionRefusedError):
            s.close()
            if time.monotonic() >= end:
                raise
            time.sleep(0.005)
