# SPDX-License-Identifier: ISC
"""One VM under QEMU with TCG, started by hand, and a host for its agent.

The daemon is not involved: this is what guestd is tested with, and what the
daemon's own speed is measured against.
"""
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time

import gproto

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.join(ROOT, os.environ.get("B") or
    ("build-san" if os.environ.get("SAN") == "1" else "build"))
CMDLINE = ("quiet tsc_early_khz=%d tsc=reliable 8250.nr_uarts=0 "
    "cryptomgr.notests no_timer_check init_on_alloc=0 audit=0 reboot=t "
    "panic=-1 console=hvc0 noreplace-smp")


def tsc_khz():
    """The rate that the host's kernel has measured or assumed."""
    with open("/proc/cpuinfo") as f:
        mhz = re.search(r"^cpu MHz\s*:\s*([0-9.]+)", f.read(), re.M)
    return round(float(mhz.group(1)) * 1000)


def missing():
    """Why no VM can run here, or None."""
    if shutil.which("qemu-system-x86_64") is None:
        return "no qemu-system-x86_64"
    for name in ("images/vmlinux", "images/initramfs.cpio",
            "templates/seed/rootfs.ext4"):
        if not os.path.exists(os.path.join(BUILD, name)):
            return "%s has not been built" % name
    return None


class VM:
    def __init__(self, memory=128, base=None, layer_mib=64, net=True,
            cmdline="", initramfs=None, extra=()):
        self.dir = tempfile.mkdtemp(prefix="vmhost")
        self.agent = os.path.join(self.dir, "agent")
        self.monitor = os.path.join(self.dir, "qmp")
        self.console = os.path.join(self.dir, "console")
        base = base or os.path.join(BUILD, "templates/seed/rootfs.ext4")
        args = ["qemu-system-x86_64", "-M", "microvm,acpi=on,isa-serial=off",
            "-accel", "tcg,tb-size=64", "-cpu", "max", "-m", str(memory),
            "-smp", "1",
            "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot",
            "-kernel", os.path.join(BUILD, "images/vmlinux"),
            "-initrd", initramfs or os.path.join(BUILD,
                "images/initramfs.cpio"),
            "-append", CMDLINE % tsc_khz() + " " + cmdline,
            "-chardev", "socket,id=agent,path=%s,server=on,wait=off"
                % self.agent,
            "-chardev", "file,id=con,path=" + self.console,
            "-device", "virtio-serial-device,max_ports=2",
            "-device", "virtconsole,chardev=con,nr=0",
            "-device", "virtserialport,chardev=agent,nr=1,name="
                "org.sandboxd.agent.0",
            "-drive", "id=base,if=none,format=raw,readonly=on,file=" + base,
            "-device", "virtio-blk-device,drive=base,serial=base",
            "-device", "virtio-rng-device", "-device", "pvpanic",
            "-qmp", "unix:%s,server=on,wait=off" % self.monitor]
        if layer_mib:
            layer = os.path.join(self.dir, "layer")
            with open(layer, "wb") as f:
                f.truncate(layer_mib << 20)
            subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", "-O",
                "^has_journal", "-F", layer], check=True)
            args += ["-drive", "id=layer,if=none,format=raw,cache=unsafe,"
                "file=" + layer,
                "-device", "virtio-blk-device,drive=layer,serial=layer"]
        if net:
            args += ["-netdev", "user,id=n,restrict=on",
                "-device", "virtio-net-device,netdev=n"]
        self.started = time.monotonic()
        self.proc = subprocess.Popen(args + list(extra),
            stdin=subprocess.DEVNULL)
        self.sock = None

    def connect(self, timeout=60.0):
        """A Host on a fresh connection; the one before is closed."""
        if self.sock is not None:
            self.sock.close()
        self.sock = gproto.connect_unix(self.agent, timeout)
        return gproto.Host(self.sock, timeout)

    def qmp_events(self):
        """Connects to the monitor; returns a function f(timeout) -> names."""
        s = gproto.connect_unix(self.monitor)
        s.sendall(b'{"execute":"qmp_capabilities"}\n')
        f = s.makefile("rb")

        def events(timeout):
            names = []
            s.settimeout(timeout)
            try:
                for line in f:
                    names.append(json.loads(line).get("event"))
            except OSError:
                pass
            return [n for n in names if n]
        return events

    def rss_kib(self):
        with open("/proc/%d/status" % self.proc.pid) as f:
            return int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1))

    def console_text(self):
        with open(self.console, errors="replace") as f:
            return f.read()

    def stop(self):
        if self.sock is not None:
            self.sock.close()
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
