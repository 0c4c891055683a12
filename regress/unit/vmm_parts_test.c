/* SPDX-License-Identifier: ISC */
/* objs: vmmctl/qemu_args.o vmmctl/cgroup.o vmmctl/proc_id.o vmmctl/template.o
   vmmctl/vm_check.o vmmctl/fault.o vmmctl/host.o libs: -ljson-c -lbsd */
/*
 * The pure parts of the vmm process: QEMU's command line, /proc and cgroup
 * texts (samples from Debian 12 and proc(5)), template.json, MAC addresses.
 */
#include <unistd.h>

#include "cgroup.h"
#include "driver.h"
#include "host.h"
#include "proc_id.h"
#include "qemu_args.h"
#include "template.h"
#include "test.h"
#include "vm_check.h"

TEST_PLAN_AUTO;

struct vmm	vmm;

static int
has_pair(const struct qemu_args *a, const char *name, const char *value)
{
	unsigned int	 i;

	for (i = 0; i + 1 < a->argc; i++)
		if (strcmp(a->argv[i], name) == 0 &&
		    strcmp(a->argv[i + 1], value) == 0)
			return 1;
	return 0;
}

static int
has_text(const struct qemu_args *a, const char *text)
{
	unsigned int	 i;

	for (i = 0; i < a->argc; i++)
		if (strstr(a->argv[i], text) != NULL)
			return 1;
	return 0;
}

static void
test_args(void)
{
	static struct qemu_args	 a;
	struct vm_spec		 s = { .vcpu = 3, .memory_mib = 512,
				    .mac = "02:53:0a:00:00:02" };
	char			 longest[QEMU_TEXT_MAX];

	is_int(qemu_build_args(&a, "/usr/bin/q", "sb-x", &s, 2300000), 0,
	    "args: software emulation");
	is_str(a.argv[0], "/usr/bin/q", "args: first the program");
	ok(a.argv[a.argc] == NULL, "args: NULL last");
	ok(has_pair(&a, "-smp", "3"), "args: vCPUs");
	ok(has_pair(&a, "-m", "512"), "args: memory");
	ok(has_pair(&a, "-accel", "tcg,tb-size=128"), "args: TCG, bounded");
	ok(has_pair(&a, "-device",
	    "virtio-net-device,netdev=net,mac=02:53:0a:00:00:02"), "args: MAC");
	ok(has_text(&a, "tsc_early_khz=2300000 "), "args: TSC rate");
	ok(!has_text(&a, "mitigations=off") && !has_text(&a, "lsm="),
	    "args: mitigations and security modules stay");
	ok(has_pair(&a, "-netdev", "tap,id=net,fd=6"), "args: tap inherited");
	ok(has_pair(&a, "-sandbox", "on,obsolete=deny,elevateprivileges=deny,"
	    "spawn=deny,resourcecontrol=deny"), "args: QEMU's own filter");
	s.kvm = 1;
	is_int(qemu_build_args(&a, "/usr/bin/q", "sb-x", &s, 1), 0,
	    "args: KVM");
	ok(has_pair(&a, "-accel", "kvm"), "args: KVM when asked for");
	ok(!has_text(&a, "noreplace-smp"), "args: KVM: no help for TCG");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	ok(qemu_build_args(&a, longest, "sb-x", &s, 1) != 0,
	    "args: what does not fit is refused");
}

static void
test_mountinfo(void)
{
	static const char	 hybrid[] =
	    "22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
	    "30 22 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
	    "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	    "40 30 0:36 / /sys/fs/cgroup/unified rw,relatime shared:9 - "
	    "cgroup2 cgroup2 rw\n";
	char			 path[64];

	is_int(cgroup_find_mount(hybrid, path, sizeof(path)), 0,
	    "mountinfo: hybrid host");
	is_str(path, "/sys/fs/cgroup/unified", "mountinfo: its cgroup2");
	is_int(cgroup_find_mount("29 23 0:26 / /sys/fs/cgroup rw - cgroup2 "
	    "cgroup2 rw,nsdelegate\n", path, sizeof(path)), 0,
	    "mountinfo: Debian 12");
	is_str(path, "/sys/fs/cgroup", "mountinfo: the mount");
	is_int(cgroup_find_mount("", path, sizeof(path)), -1,
	    "mountinfo: empty");
	is_int(cgroup_find_mount("1 2 0:1 / /x rw - tmpfs cgroup2 rw\n", path,
	    sizeof(path)), -1, "mountinfo: cgroup2 as a source only");
	is_int(cgroup_find_mount("1 2 0:1 / /a\\040b rw - cgroup2 c rw\n",
	    path, sizeof(path)), -1, "mountinfo: a blank in the path");
	is_int(cgroup_find_mount(" - cgroup2 c rw", path, sizeof(path)), -1,
	    "mountinfo: too few fields");
	is_int(cgroup_find_mount("1 2 0:1 / /long/path rw - cgroup2 c rw\n",
	    path, 5), -1, "mountinfo: too long");
}

static void
test_proc(void)
{
	/* proc(5): field 22 is starttime; field 2 may hold anything. */
	is_int(proc_parse_start_time("7 (a) b) (c) S 1 5 6 7 8 9 10 11 12 13 "
	    "14 15 16 17 18 19 20 21 4711 23 24"), 4711,
	    "stat: name with brackets");
	is_int(proc_parse_start_time("7 (a) S 1"), 0, "stat: cut short");
	is_int(proc_parse_start_time("7 a S"), 0, "stat: no name");
	is_int(proc_parse_foreign("4:pids:/sandboxd-aaaa/x\n"
	    "0::/sandboxd-bbbb/sb-1\n", "bbbb"), 0, "cgroup: our own");
	is_int(proc_parse_foreign("4:pids:/\n0::/a/sandboxd-bbbb/sb-1\n",
	    "cccc"), 1, "cgroup: another instance's");
	is_int(proc_parse_foreign("0::/system.slice/sandboxd-x.service\n",
	    "cccc"), 0, "cgroup: a service that is called so is none");
	is_int(proc_parse_foreign("0::/\n", "cccc"), 0, "cgroup: the root");
	is_int(proc_parse_foreign("4:pids:/sandboxd-aaaa/x\n", "cccc"), 0,
	    "cgroup: none of version 2");
	ok(proc_start_time(getpid()) > 0, "stat: of a live process");
	is_int(proc_start_time(0x7fffffff), 0, "stat: of none");
	is_int(proc_uid(getpid()), getuid(), "status: our own uid");
	is_int(proc_uid(0x7fffffff), (uid_t)-1, "status: of none");
}

static void
test_mac(void)
{
	static const char *const bad[] = { "", "02:53:0a:00:00",
	    "02:53:0A:00:00:02", "02:53:0a:00:00:02:", "02:53:0a:00:00:0g",
	    "03:53:0a:00:00:02", "0253:0a:00:00:02", "02 53:0a:00:00:02",
	    "02:53:0a:00:00,id" };
	size_t			 i;

	is_int(vm_check_mac("02:53:0a:00:00:02"), 0, "mac: good");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_int(vm_check_mac(bad[i]), -1, "mac: refused: \"%s\"",
		    bad[i]);
}

static int
template(const char *text, char *root, size_t size)
{
	struct fault	 f;

	return template_parse(text, strlen(text), "t", root, size, &f);
}

static void
test_template(void)
{
	static const char *const bad[] = { "", "{}", "[]", "{\"version\":1}",
	    "{\"version\":2,\"root\":\"r\"}",
	    "{\"version\":1.0,\"root\":\"r\"}",
	    "{\"version\":true,\"root\":\"r\"}",
	    "{\"version\":1,\"root\":\"\"}", "{\"version\":1,\"root\":\"..\"}",
	    "{\"version\":1,\"root\":\"a/b\"}",
	    "{\"version\":1,\"root\":\"a\\u0000b\"}",
	    "{\"version\":1,\"root\":7}", "{\"version\":1,\"root\":\"r\"" };
	char			 root[SBX_NAME_MAX + 1];
	size_t			 i;

	is_int(template("{\"version\":1,\"name\":\"seed\","
	    "\"root\":\"rootfs.ext4\"}", root, sizeof(root)), 0,
	    "template: good");
	is_str(root, "rootfs.ext4", "template: its root");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_int(template(bad[i], root, sizeof(root)), -1,
		    "template: refused: %s", bad[i]);
}

static void
test_slots(void)
{
	struct fault	 f;

	vmm.cfg.uid_first = 1900000000;
	vmm.cfg.uid_count = 32;
	is_int(vm_check_slot(0, 1900000016, &f), 0, "slot: the first");
	is_int(vm_check_slot(15, 1900000031, &f), 0, "slot: the last");
	is_int(vm_check_slot(16, 1900000032, &f), -1, "slot: beyond");
	is_int(vm_check_slot(0, 1900000017, &f), -1, "slot: another's uid");
	is_int(vm_check_slot(0, 0, &f), -1, "slot: root");
	is_int(vm_check_slot(0xffffffff, 1900000015, &f), -1, "slot: wraps");
}

static void
test_host(void)
{
	uint64_t	 a, b, diff;

	a = host_tsc_khz();
	b = host_tsc_khz();
	diff = a > b ? a - b : b - a;
	ok(a > 100000 && a < 20000000, "tsc: a plausible rate: %" PRIu64, a);
	/* The kernel refines its own to some 10 ppm; 500 is ntpd's limit. */
	ok(diff * 1000000 / a < 500, "tsc: twice the same: %" PRIu64 " kHz off",
	    diff);
}

int
main(void)
{
	test_args();
	test_mountinfo();
	test_proc();
	test_mac();
	test_template();
	test_slots();
	test_host();
	return done_testing();
}
