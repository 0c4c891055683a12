# SPDX-License-Identifier: ISC
"""A real vmm process with the test as its parent, and what is needed to tell
that it leaves nothing: taps, processes of the uid range, cgroup leaves.

    v = vmm.Vmm()                   # own tag, state directory and uid range
    vm = v.start()                  # a VM: .pid, .fd, .id, .slot ...
    host = v.host(vm)               # gproto.Host, connected
    v.destroy(vm)
    v.close()                       # kills what is left, removes the state
"""
import fcntl
import os
import secrets
import shutil
import signal
import socket
import struct
import tempfile
import time

import gproto
import msg

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.realpath(os.environ.get("B") or os.path.join(ROOT, "build"))
EXE = os.path.join(BUILD, "libexec", "vmm")
SAN = os.environ.get("SAN") == "1" or BUILD.endswith("-san")
RESERVED = 16                       # common/slot.h: uids of front and netd
UIDS = RESERVED + 256
BASE32 = "abcdefghijklmnopqrstuvwxyz234567"

TUNSETIFF = 0x400454ca              # linux/if_tun.h
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x2, 0x1000, 0x4000

CAUSE = dict(enumerate(["none", "guest_panic", "guest_stopped", "host_oom",
    "killed", "vmm_error", "guest_lost", "boot_timeout"]))


def missing():
    """Why no VM can be started here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun"
    for name in ("libexec/vmm", "images/vmlinux", "images/initramfs.cpio",
                 "templates/seed/template.json"):
        if not os.path.exists(os.path.join(BUILD, name)):
            return "%s has not been built" % name
    return None


def new_id():
    return "sb-" + "".join(secrets.choice(BASE32) for _ in range(16))


def new_tag():
    return "".join(secrets.choice(BASE32) for _ in range(4))


def errors():
    """Names of errors.def by number."""
    names = [None]
    with open(os.path.join(ROOT, "common/errors.def"), encoding="ascii") as f:
        for line in f:
            if line.startswith("SBX_ERROR("):
                names.append(line[10:].split(",")[0])
    return names


ERRORS = errors()


def make_tap(tag, slot, flags=IFF_TAP | IFF_NO_PI | IFF_VNET_HDR, name=None):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    name = name or "sb%s-%x" % (tag, slot)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    return fd


def cgroup_mount():
    with open("/proc/self/mountinfo", encoding="ascii") as f:
        for line in f:
            if " - cgroup2 " in line:
                return line.split()[4]
    return None


def stat_fields(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        text = f.read()
    return text[text.rindex(")") + 2:].split()


def start_time(pid):
    return int(stat_fields(pid)[19])


def status(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f
                    if ":\t" in line)


def alive(pid):
    try:
        return stat_fields(pid)[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Failed(Exception):
    def __init__(self, m):
        self.error = ERRORS[m["error"]]
        self.detail = m["detail"]
        super().__init__("%s: %s" % (self.error, self.detail))


class VM:
    def __init__(self, vmid, slot, uid, generation):
        self.id, self.slot, self.uid = vmid, slot, uid
        self.generation = generation
        self.pid = self.start_time = self.fd = self.request = None


class Vmm:
    """env: B, the build folder.  Every argument of the set-up can be given."""

    def __init__(self, state_dir=None, log=False, **setup):
        self.own_state = state_dir is None
        self.state = state_dir or tempfile.mkdtemp(prefix="vmm-", dir="/tmp")
        self.log = log
        self.child = None
        self.generation = 0
        # Chosen here and never a test's: close() kills by it.
        self.uid_first = 1700000000 + secrets.randbelow(100000) * 1000
        self.setup = dict(
            tag=new_tag(), state_dir=self.state,
            template_dir=os.path.join(BUILD, "templates"),
            kernel=os.path.join(BUILD, "images/vmlinux"),
            initramfs=os.path.join(BUILD, "images/initramfs.cpio"),
            mke2fs="/usr/sbin/mke2fs", qemu="/usr/bin/qemu-system-x86_64",
            driver="qemu", uid_count=UIDS,
            uid_first=self.uid_first, verbose=1)
        self.setup.update(setup)
        self.tag = self.setup["tag"]
        try:
            self.run()
        except (msg.Error, TimeoutError):
            # Refused: nothing was started, nothing has to be killed.
            self.child.close()
            self.child.kill()
            if self.own_state:
                shutil.rmtree(self.state, ignore_errors=True)
            raise

    def run(self):
        """Starts the process (again)."""
        self.child = msg.Child(EXE, log=self.log)
        self.child.send("PARENT_SETUP_VMM", **self.setup)
        self.child.send("PARENT_START_VMM")
        try:
            self.ready = self.child.expect("VMM_READY", 20)
        except msg.Error as e:
            raise msg.Error("%s: %s" % (e, self.child.text())) from None

    def uid(self, slot):
        return self.setup["uid_first"] + RESERVED + slot

    def begin(self, slot=0, tap=None, **fields):
        """Sends a start and returns its VM, not yet answered."""
        self.generation += 1
        vm = VM(fields.pop("id", None) or new_id(), slot, self.uid(slot),
                self.generation)
        f = dict(id=vm.id, generation=vm.generation, slot=slot, uid=vm.uid,
                 gid=vm.uid, vcpu=1, memory_mib=128, disk_mib=256, kvm=0,
                 template="seed", mac="02:53:0a:00:%02x:02" % (slot & 255))
        f.update(fields)
        fd = make_tap(self.tag, slot) if tap is None else tap
        vm.request = self.child.start("PARENT_START_VM", fd=fd, **f)
        os.close(fd)
        return vm

    def started(self, vm, timeout=20):
        m = self.child.wait_answer(vm.request, timeout)
        if m.name == "VMM_FAIL":
            raise Failed(m)
        assert m["id"] == vm.id and m["generation"] == vm.generation
        vm.pid, vm.start_time, vm.fd = m["pid"], m["start_time"], m.fd
        return vm

    def start(self, slot=0, timeout=20, **fields):
        return self.started(self.begin(slot, **fields), timeout)

    def refusal(self, slot=0, **fields):
        """The Failed of a start that must fail; None if it worked."""
        try:
            self.start(slot, **fields)
        except Failed as e:
            return e
        return None

    def ask(self, name, vm, timeout=20, **fields):
        m = self.child.request(name, timeout=timeout, id=vm.id,
                               generation=fields.pop("generation",
                                                     vm.generation), **fields)
        if m.name == "VMM_FAIL":
            raise Failed(m)
        return m

    def destroy(self, vm, **fields):
        if vm.fd is not None:
            os.close(vm.fd)
            vm.fd = None
        return self.ask("PARENT_DESTROY_VM", vm, slot=fields.pop(
            "slot", vm.slot), uid=fields.pop("uid", vm.uid), **fields)

    def adopt(self, vm, **fields):
        f = dict(slot=vm.slot, uid=vm.uid, pid=vm.pid,
                 start_time=vm.start_time)
        f.update(fields)
        return self.ask("PARENT_ADOPT_VM", vm, **f)

    def reconnect(self, vm):
        if vm.fd is not None:
            os.close(vm.fd)
        vm.fd = self.ask("PARENT_CONNECT_VM", vm).fd

    def sweep(self):
        return self.child.request("PARENT_SWEEP_VMS", timeout=20)["removed"]

    def host(self, vm, timeout=60.0):
        """Speaks to the guest's agent; the VM's descriptor is lent."""
        sock = socket.socket(fileno=os.dup(vm.fd))
        sock.setblocking(True)
        host = gproto.Host(sock, timeout)
        host.connect(timeout=timeout)
        return host

    def died(self, timeout=10):
        return self.child.expect("VMM_VM_DIED_EVENT", timeout)

    # What is left.

    def processes(self):
        first, found = self.uid_first, []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                s = status(int(name))
                uid = int(s["Uid"].split()[0])
            except (OSError, KeyError):
                continue
            # Of an orphan's zombie only init can free us.
            if s["State"].startswith("Z"):
                continue
            if first <= uid < first + UIDS:
                found.append(int(name))
        return found

    def leaves(self):
        mount = cgroup_mount()
        top = "%s/sandboxd-%s" % (mount, self.tag)
        if mount is None or not os.path.isdir(top):
            return []
        return [n for n in os.listdir(top)
                if os.path.isdir(os.path.join(top, n))]

    def residue(self):
        """What of VMs is there: processes, cgroups, directories."""
        return (["process %d" % p for p in self.processes()] +
                ["cgroup " + n for n in self.leaves()] +
                ["vm/" + n for n in os.listdir(self.state + "/vm")])

    def kill9(self):
        """As after a crash: VMs live on."""
        self.child.kill(signal.SIGKILL)
        self.child.close()

    def remove_cgroup(self, end):
        top = "%s/sandboxd-%s" % (cgroup_mount(), self.tag)
        while os.path.isdir(top):
            try:
                for n in self.leaves():
                    os.rmdir(os.path.join(top, n))
                os.rmdir(top)
            except OSError:         # empties a moment after the exit
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def close(self):
        """The end of a test, however it went."""
        if self.child.status is None:
            try:
                self.child.stop()
            except TimeoutError:
                self.child.kill()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 5
        while self.processes() and time.monotonic() < end:
            time.sleep(0.01)
        self.remove_cgroup(end)
        if self.own_state:
            shutil.rmtree(self.state, ignore_errors=True)
