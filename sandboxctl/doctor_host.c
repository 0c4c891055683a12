/* SPDX-License-Identifier: ISC */
/*
 * Is this host ready?  Everything that starting a sandbox needs, looked at
 * where the daemon will look.
 */
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "../sandboxd/config.h"
#include "doctor.h"
#include "id.h"

#define KERNEL_MAJOR	5	/* clone3 into a cgroup, openat2, close_range */
#define KERNEL_MINOR	9
#define DISK_LOW_MIB	1024	/* a few writable layers */
#define MEMORY_LOW_MIB	256	/* one sandbox and its VMM */

static void
check_kernel(struct report *r)
{
	struct utsname	 u;
	int		 maj = 0, min = 0, good;

	if (uname(&u) == -1)
		return;
	good = sscanf(u.release, "%d.%d", &maj, &min) == 2 &&
	    (maj > KERNEL_MAJOR ||
	    (maj == KERNEL_MAJOR && min >= KERNEL_MINOR));
	report_add(r, good ? LEVEL_OK : LEVEL_BAD, "kernel", "%s%s", u.release,
	    good ? "" : ": 5.9 or later is needed");
	if (strcmp(u.machine, "x86_64") != 0)
		report_add(r, LEVEL_BAD, "machine", "%s: only x86_64 is known",
		    u.machine);
}

static void
check_tun(struct report *r)
{
	int	 fd;

	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd == -1)
		report_add(r, LEVEL_BAD, "tun", "/dev/net/tun: %s: load the "
		    "module tun (modprobe tun)", strerror(errno));
	else
		report_add(r, LEVEL_OK, "tun", "/dev/net/tun opens");
	if (fd != -1)
		(void)close(fd);
}

static void
check_kvm(struct report *r)
{
	int	 fd;

	fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (fd == -1)
		report_add(r, LEVEL_NOTE, "kvm", "/dev/kvm: %s: sandboxes run "
		    "by software emulation, some ten times slower",
		    strerror(errno));
	else
		report_add(r, LEVEL_NOTE, "kvm", "/dev/kvm opens; whether it "
		    "works only a guest's boot can tell: the daemon tries it, "
		    "see sandboxctl health");
	if (fd != -1)
		(void)close(fd);
}

static void
check_file(struct report *r, const char *kind, const char *path, int exec,
    const char *advice)
{
	if (access(path, exec ? X_OK : R_OK) == -1)
		report_add(r, LEVEL_BAD, kind, "%s: %s: %s", path,
		    strerror(errno), advice);
	else
		report_add(r, LEVEL_OK, kind, "%s", path);
}

/* First line of "PROGRAM --version"; "" when it does not run. */
static void
first_line(const char *program, char *out, size_t size)
{
	posix_spawn_file_actions_t	 fa;
	char				*argv[] = { NULL, NULL, NULL };
	char				 name[SBX_PATH_MAX + 1], opt[] =
					    "--version";
	char				*env[] = { NULL };
	ssize_t				 n;
	pid_t				 pid;
	int				 p[2];

	out[0] = '\0';
	(void)strlcpy(name, program, sizeof(name));
	argv[0] = name;
	argv[1] = opt;
	if (pipe2(p, O_CLOEXEC) == -1)
		return;
	(void)posix_spawn_file_actions_init(&fa);
	(void)posix_spawn_file_actions_adddup2(&fa, p[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&fa, p[1], STDERR_FILENO);
	if (posix_spawn(&pid, program, &fa, NULL, argv, env) == 0) {
		(void)close(p[1]);
		p[1] = -1;
		n = read(p[0], out, size - 1);
		out[n > 0 ? n : 0] = '\0';
		out[strcspn(out, "\n")] = '\0';
		(void)close(p[0]);
		p[0] = -1;
		(void)waitpid(pid, NULL, 0);
	}
	(void)posix_spawn_file_actions_destroy(&fa);
	if (p[0] != -1)
		(void)close(p[0]);
	if (p[1] != -1)
		(void)close(p[1]);
}

static void
check_qemu(const struct config *c, struct report *r)
{
	char	 line[256];

	if (access(c->qemu, X_OK) == -1) {
		report_add(r, LEVEL_BAD, "qemu", "%s: %s: install "
		    "qemu-system-x86", c->qemu, strerror(errno));
		return;
	}
	first_line(c->qemu, line, sizeof(line));
	if (strncmp(line, "QEMU", 4) != 0)
		report_add(r, LEVEL_BAD, "qemu", "%s: does not run: %s",
		    c->qemu, line);
	else
		report_add(r, LEVEL_OK, "qemu", "%s: %s", c->qemu, line);
}

static void
check_templates(const struct config *c, struct report *r)
{
	char		 path[2 * SBX_PATH_MAX + 32], names[256] = "";
	struct dirent	*e;
	DIR		*d;

	d = opendir(c->template_dir);
	while (d != NULL && (e = readdir(d)) != NULL) {
		(void)snprintf(path, sizeof(path), "%s/%s/template.json",
		    c->template_dir, e->d_name);
		if (!name_valid(e->d_name) || access(path, R_OK) == -1)
			continue;
		(void)strlcat(names, " ", sizeof(names));
		(void)strlcat(names, e->d_name, sizeof(names));
	}
	if (d != NULL)
		(void)closedir(d);
	if (names[0] == '\0')
		report_add(r, LEVEL_BAD, "templates", "%s: none there: \"make\""
		    " makes the template seed", c->template_dir);
	else
		report_add(r, LEVEL_OK, "templates", "%s:%s", c->template_dir,
		    names);
}

void
host_cgroup(char *out, size_t size)
{
	char	 line[4096], at[SBX_PATH_MAX + 1], *sep;
	FILE	*f;

	out[0] = '\0';
	f = fopen("/proc/self/mountinfo", "re");
	if (f == NULL)
		return;
	while (out[0] == '\0' && fgets(line, sizeof(line), f) != NULL) {
		sep = strstr(line, " - cgroup2 ");
		if (sep != NULL && sscanf(line, "%*s %*s %*s %*s %255s",
		    at) == 1)
			(void)strlcpy(out, at, size);
	}
	(void)fclose(f);
}

static void
check_cgroup(struct report *r)
{
	static const char *const wanted[] = { "memory", "cpu", "pids" };
	char	 mount[SBX_PATH_MAX + 1], path[SBX_PATH_MAX + 32];
	char	 text[512] = "", missing[64] = "";
	size_t	 i;
	FILE	*f;

	host_cgroup(mount, sizeof(mount));
	if (mount[0] == '\0') {
		report_add(r, LEVEL_NOTE, "cgroup", "no cgroup v2 is mounted: "
		    "sandboxes have no limits but their own size");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", mount);
	f = fopen(path, "re");
	if (f != NULL) {
		if (fgets(text, sizeof(text), f) == NULL)
			text[0] = '\0';
		(void)fclose(f);
	}
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (strstr(text, wanted[i]) == NULL) {
			(void)strlcat(missing, " ", sizeof(missing));
			(void)strlcat(missing, wanted[i], sizeof(missing));
		}
	if (missing[0] != '\0')
		report_add(r, LEVEL_NOTE, "cgroup", "%s: without%s: processes "
		    "are tracked, not limited (boot with "
		    "systemd.unified_cgroup_hierarchy=1)", mount, missing);
	else
		report_add(r, LEVEL_OK, "cgroup", "%s: memory cpu pids",
		    mount);
}

static void
check_space(const struct config *c, struct report *r)
{
	char			 dir[SBX_PATH_MAX + 1], line[128], *slash;
	struct statvfs		 st;
	unsigned long long	 mib, kib;
	FILE			*f;

	(void)strlcpy(dir, c->state_dir, sizeof(dir));
	/* Before the first start its parent tells. */
	while (statvfs(dir, &st) == -1 && (slash = strrchr(dir, '/')) != NULL)
		slash[slash == dir] = '\0';
	mib = (unsigned long long)st.f_bavail * st.f_frsize >> 20;
	report_add(r, mib < DISK_LOW_MIB ? LEVEL_NOTE : LEVEL_OK, "disk",
	    "%llu MiB free below %s", mib, dir);
	f = fopen("/proc/meminfo", "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			report_add(r, kib >> 10 < MEMORY_LOW_MIB ? LEVEL_NOTE :
			    LEVEL_OK, "memory", "%llu MiB available",
			    kib >> 10);
	(void)fclose(f);
}

static void
check_forward(struct report *r)
{
	char	 c = '?';
	FILE	*f;

	f = fopen("/proc/sys/net/ipv4/ip_forward", "re");
	if (f == NULL)
		return;
	if (fread(&c, 1, 1, f) == 1 && c != '1')
		report_add(r, LEVEL_NOTE, "network", "ip_forward is off: "
		    "it makes no difference yet, nothing passes from a guest");
	else
		report_add(r, LEVEL_OK, "network", "ip_forward is on");
	(void)fclose(f);
}

void
host_check(const struct config *c, struct report *r)
{
	check_kernel(r);
	check_tun(r);
	check_kvm(r);
	check_qemu(c, r);
	check_file(r, "mke2fs", c->mke2fs, 1, "install e2fsprogs");
	check_file(r, "guest kernel", c->kernel, 0, "\"make\" fetches it");
	check_file(r, "initramfs", c->initramfs, 0, "\"make\" makes it");
	check_templates(c, r);
	check_cgroup(r);
	check_space(c, r);
	check_forward(r);
}
