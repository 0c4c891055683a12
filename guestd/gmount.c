/* SPDX-License-Identifier: ISC */
/*
 * What is mounted in the new root.  A template may have none of the mount
 * points, or files and links in their places.
 */
#include <sys/mount.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "guestd.h"

/*
 * A directory that is one, or becomes one; a link is followed where programs
 * expect to find things behind it (/tmp), and replaced where the kernel's own
 * are (/proc).
 */
static void
make_dir(const char *path, int replace_link)
{
	struct stat	 st;

	if ((replace_link ? lstat(path, &st) : stat(path, &st)) == 0 &&
	    S_ISDIR(st.st_mode))
		return;
	if (mkdir(path, 0755) == 0)
		return;
	if (unlink(path) == -1 || mkdir(path, 0755) == -1)
		guest_log("mkdir %s: %s", path, strerror(errno));
}

static void
mount_on(const char *type, const char *path, unsigned long flags,
    const char *options)
{
	if (mount(type, path, type, flags, options) == -1)
		guest_log("mount %s on %s: %s", type, path, strerror(errno));
}

static int
open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void
mount_dev(void)
{
	make_dir("/dev", 1);
	mount_on("devtmpfs", "/dev", MS_NOSUID, NULL);
	/* What udev(7) would do; failure leaves a program without a name. */
	(void)symlink("/proc/self/fd", "/dev/fd");
	(void)symlink("/proc/self/fd/0", "/dev/stdin");
	(void)symlink("/proc/self/fd/1", "/dev/stdout");
	(void)symlink("/proc/self/fd/2", "/dev/stderr");
	make_dir("/dev/pts", 1);
	mount_on("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC,
	    "gid=5,mode=620,ptmxmode=666");
	guest.pts_fd = open_dir("/dev/pts");
	make_dir("/dev/shm", 1);
	mount_on("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
}

void
mount_all(void)
{
	const unsigned long	 strict = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	int			 fd;

	make_dir("/proc", 1);
	mount_on("proc", "/proc", strict, NULL);
	guest.proc_fd = open_dir("/proc");
	make_dir("/sys", 1);
	mount_on("sysfs", "/sys", strict, NULL);
	mount_dev();
	make_dir("/run", 0);
	mount_on("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755");
	make_dir("/tmp", 0);
	mount_on("tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777");
	make_dir("/etc", 0);
	mount_on("cgroup2", "/sys/fs/cgroup", strict, NULL);
	fd = open_dir("/sys/fs/cgroup");
	if (fd == -1) {
		guest_log("open /sys/fs/cgroup: %s", strerror(errno));
		return;
	}
	cgroup_init(fd);
	(void)close(fd);
}
