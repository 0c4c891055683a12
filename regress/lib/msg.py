# SPDX-License-Identifier: ISC
"""Internal messages (msg(5)) for tests: reads common/msg.def itself, packs and
unpacks without any code of the daemon, and plays the parent of a real child
executable or a child of a real parent.

    child = Child("build/libexec/netd")
    child.send("PARENT_SETUP_NETD", uid=..., ...)
    child.expect("NETD_READY")
    answer = child.request("PARENT_CREATE_TAP", fd=tun, slot=1, ...)
    answer.name, answer["ifindex"], answer.fd
"""
import array
import os
import select
import signal
import socket
import struct
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DEF = os.path.join(HERE, "..", "..", "common", "msg.def")

CHILD_FD = 3
MAX_BYTES = 16384
HEADER = struct.Struct("<HHIQ")		# type, flags, length, request
ANSWER = 1
MORE = 2
INTS = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q"}


class Error(Exception):
    """Bytes that are not a message, or not the one that was expected."""


class Type:
    """One message of msg.def."""

    def __init__(self, number, words):
        (self.name, self.sender, self.receiver, self.phase, fd,
         answers) = words
        self.number = number
        self.fd = fd == "fd"
        self.answers = [] if answers == "-" else answers.split(",")
        self.fields = []		# (name, kind, max)


def load(path=DEF):
    types = []
    with open(path, encoding="ascii") as f:
        for line in f:
            words = line.split()
            if not words or line.startswith("#"):
                continue
            if words[0] == "message":
                types.append(Type(len(types) + 1, words[1:]))
            else:
                kind, name = words[:2]
                bound = int(words[2]) if len(words) > 2 else \
                    19 if kind == "id" else 0
                types[-1].fields.append((name, kind, bound))
    return {t.name: t for t in types}


TYPES = load()
BY_NUMBER = {t.number: t for t in TYPES.values()}


class Message:
    """A message that was received; fields by [name]."""

    def __init__(self, mtype, flags, request, fields, fd=None):
        self.type = mtype
        self.name = mtype.name
        self.flags = flags
        self.more = bool(flags & MORE)
        self.request = request
        self.fields = fields
        self.fd = fd

    def __getitem__(self, name):
        return self.fields[name]

    def __repr__(self):
        return "%s(request=%d%s%s)" % (
            self.name, self.request,
            "".join(", %s=%r" % i for i in self.fields.items()),
            "" if self.fd is None else ", fd=%d" % self.fd)


def _blob(value, kind):
    if isinstance(value, str):
        return value.encode("utf-8")
    return bytes(value or b"")


def pack(name, /, request_id=0, msg_flags=None, **fields):
    """Fields that are not given are 0 or empty.  Bounds are not enforced:
    a test may want to break them."""
    flags, request = msg_flags, request_id
    t = TYPES[name]
    if flags is None:
        flags = ANSWER if t.phase == "answer" else 0
    body = b""
    for fname, kind, _ in t.fields:
        value = fields.pop(fname, None)
        if kind in INTS:
            body += struct.pack(INTS[kind], value or 0)
        else:
            blob = _blob(value, kind)
            body += struct.pack("<H", len(blob)) + blob
    if fields:
        raise Error("%s has no %s" % (name, ", ".join(fields)))
    return HEADER.pack(t.number, flags, HEADER.size + len(body),
                       request) + body


def unpack(data):
    if len(data) < HEADER.size:
        raise Error("short header")
    number, flags, length, request = HEADER.unpack_from(data)
    if length != len(data):
        raise Error("length %d in a datagram of %d" % (length, len(data)))
    if number not in BY_NUMBER:
        raise Error("type %d" % number)
    t = BY_NUMBER[number]
    at, fields = HEADER.size, {}
    for fname, kind, bound in t.fields:
        if kind in INTS:
            (fields[fname],) = struct.unpack_from(INTS[kind], data, at)
            at += struct.calcsize(INTS[kind])
            continue
        (size,) = struct.unpack_from("<H", data, at)
        at += 2
        blob = data[at:at + size]
        if len(blob) != size or size > bound:
            raise Error("%s.%s: %d bytes" % (t.name, fname, size))
        at += size
        fields[fname] = blob if kind == "bytes" else blob.decode("utf-8")
    if at != len(data):
        raise Error("%s: %d bytes too many" % (t.name, len(data) - at))
    return Message(t, flags, request, fields)


class Peer:
    """One end of a channel.  With log=True everything is printed."""

    def __init__(self, sock, log=False):
        self.sock = sock
        self.log = log
        self.last_request = 0
        self.inbox = []		# received while waiting for something else

    def send_raw(self, data, fds=()):
        control = []
        if fds:
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                        array.array("i", fds))]
        self.sock.sendmsg([data], control)

    def send(self, name, /, fd=None, request_id=0, msg_flags=None, **fields):
        if self.log:
            print("# > %s %r" % (name, fields), flush=True)
        self.send_raw(pack(name, request_id, msg_flags, **fields),
                      [] if fd is None else [fd])

    def answer(self, message, name, /, fd=None, more_follow=False, **fields):
        self.send(name, fd, message.request, ANSWER | (MORE if more_follow else 0),
                  **fields)

    def recv(self, timeout=10.0):
        """The next message; None when the peer has closed."""
        if self.inbox:
            return self.inbox.pop(0)
        return self._recv(timeout)

    def _recv(self, timeout):
        ready, _, _ = select.select([self.sock], [], [], max(timeout, 0))
        if not ready:
            raise TimeoutError("nothing received in time")
        try:
            data, control, _, _ = self.sock.recvmsg(
                MAX_BYTES + 1, socket.CMSG_SPACE(16), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return None
        fds = array.array("i")
        for level, kind, blob in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(blob[:len(blob) - len(blob) % fds.itemsize])
        if not data:
            return None
        m = unpack(data)
        if len(fds) != int(m.type.fd):
            raise Error("%s with %d descriptors" % (m.name, len(fds)))
        m.fd = fds[0] if fds else None
        if self.log:
            print("# < %r" % m, flush=True)
        return m

    def expect(self, name, timeout=10.0):
        m = self.recv(timeout)
        if m is None:
            raise Error("closed instead of %s" % name)
        if m.name != name:
            raise Error("%r instead of %s" % (m, name))
        return m

    def start(self, name, /, fd=None, **fields):
        """Sends a request and returns its id."""
        self.last_request += 1
        self.send(name, fd, self.last_request, **fields)
        return self.last_request

    def wait_answer(self, request, timeout=10.0):
        """The answer to a request; what else arrives stays for recv()."""
        def wanted(m):
            return bool(m.flags & ANSWER) and m.request == request
        for i, m in enumerate(self.inbox):
            if wanted(m):
                return self.inbox.pop(i)
        end = time.monotonic() + timeout
        while True:
            m = self._recv(end - time.monotonic())
            if m is None:
                raise Error("closed before the answer")
            if wanted(m):
                return m
            self.inbox.append(m)

    def request(self, name, /, fd=None, timeout=10.0, **fields):
        m = self.wait_answer(self.start(name, fd, **fields), timeout)
        if m.name not in TYPES[name].answers:
            raise Error("%s answered with %s" % (name, m.name))
        return m

    def close(self):
        self.sock.close()


def pair():
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Child(Peer):
    """A real child executable with CHILD_FD; this process is its parent.
    env replaces the environment (default: none, no PATH); before_exec runs in
    the child when its first four descriptors are in place."""

    def __init__(self, exe, args=(), env=None, log=False, before_exec=None):
        ours, theirs = pair()
        super().__init__(ours, log)
        self.status = None
        self.stderr = tempfile.TemporaryFile()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._exec(exe, args, env or {}, theirs, before_exec)
            finally:
                os._exit(127)
        theirs.close()

    def _exec(self, exe, args, env, theirs, before_exec):
        channel = os.dup(theirs.fileno())
        err = os.dup(self.stderr.fileno())
        null = os.open("/dev/null", os.O_RDWR)
        while min(channel, err, null) <= CHILD_FD:
            channel, err, null = (os.dup(x) for x in (channel, err, null))
        for fd, at in ((null, 0), (err, 1), (err, 2), (channel, CHILD_FD)):
            os.dup2(fd, at)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        if before_exec is not None:
            before_exec()
        os.closerange(CHILD_FD + 1, 4096)
        os.execve(exe, [exe, *args], env)

    def text(self):
        """What it has written to stderr."""
        return os.pread(self.stderr.fileno(), 1 << 20, 0).decode(
            "utf-8", "replace")

    def wait(self, timeout=10.0):
        """Exit status, or minus the signal; TimeoutError if it lives on."""
        end = time.monotonic() + timeout
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise TimeoutError("pid %d is still there" % self.pid)
            else:
                time.sleep(0.01)
        return self.status

    def kill(self, sig=signal.SIGKILL):
        if self.status is None:
            os.kill(self.pid, sig)
        return self.wait()

    def stop(self):
        """As if the parent had gone."""
        self.close()
        return self.wait()
