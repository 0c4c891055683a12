/* SPDX-License-Identifier: ISC */
/*
 * From the initramfs to the sandbox's root: the read-only base that all
 * sandboxes of a template share, the private writable layer, an overlay of the
 * two.  Whatever is missing here ends the guest with a reason.
 */
#include <sys/mount.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guestd.h"

#define EXT_MAGIC_AT	1080
#define LAYER		"/layer"
#define NEW_ROOT	"/new"

static void
mount_or_die(const char *what, const char *where, const char *type,
    unsigned long flags, const char *options)
{
	if (mkdir(where, 0755) == -1 && errno != EEXIST)
		guest_die("mkdir %s: %s", where, strerror(errno));
	if (mount(what, where, type, flags, options) == -1)
		guest_die("mount %s (%s) on %s: %s", what, type, where,
		    strerror(errno));
}

void
boot_mount_early(void)
{
	mount_or_die("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, NULL);
	mount_or_die("proc", "/proc", "proc", 0, NULL);
	mount_or_die("sysfs", "/sys", "sysfs", 0, NULL);
}

/*
 * The block device that the VMM gave this serial; 0 when there is none.  Tries
 * names: reading the directory costs a cold guest more.
 */
static int
disk_find(const char *serial, char *path, size_t size)
{
	char	 name[64], text[64];
	char	 c;

	for (c = 'a'; c <= 'z'; c++) {
		(void)snprintf(name, sizeof(name), "/sys/block/vd%c/serial", c);
		if (file_read(AT_FDCWD, name, text, sizeof(text)) < 0)
			return 0;
		text[strcspn(text, "\n")] = '\0';
		if (strcmp(text, serial) != 0)
			continue;
		(void)snprintf(path, size, "/dev/vd%c", c);
		return 1;
	}
	return 0;
}

static void
disk_wait(const char *serial, char *path, size_t size)
{
	struct timespec	 ms = { 0, 2000000 };
	uint64_t	 end = now_us() + GUEST_DEVICE_MS * 1000ULL;

	while (!disk_find(serial, path, size)) {
		if (now_us() >= end)
			guest_die("no virtio disk with serial %s", serial);
		(void)nanosleep(&ms, NULL);
	}
}

static void
mount_base(const char *disk)
{
	uint8_t	 head[EXT_MAGIC_AT + 2];
	ssize_t	 n;
	int	 fd;

	fd = open(disk, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		guest_die("open %s: %s", disk, strerror(errno));
	n = pread(fd, head, sizeof(head), 0);
	(void)close(fd);
	if (n != (ssize_t)sizeof(head))
		guest_die("base disk is too short for a file system");
	if (memcmp(head, "hsqs", 4) == 0) {
		modules_load("squashfs");
		mount_or_die(disk, "/base", "squashfs", MS_RDONLY, NULL);
	} else if (head[EXT_MAGIC_AT] == 0x53 && head[EXT_MAGIC_AT + 1] == 0xef)
		/* noload: a journal cannot be replayed on a shared disk. */
		mount_or_die(disk, "/base", "ext4", MS_RDONLY, "noload");
	else
		guest_die("base disk is neither ext4 nor squashfs");
}

static void
mount_layer(void)
{
	char	 disk[256];

	if (disk_find("layer", disk, sizeof(disk)))
		mount_or_die(disk, LAYER, "ext4", MS_NOATIME,
		    "noinit_itable");
	else
		mount_or_die("tmpfs", LAYER, "tmpfs", 0, "mode=755,size=75%");
	if ((mkdir(LAYER "/upper", 0755) == -1 && errno != EEXIST) ||
	    (mkdir(LAYER "/work", 0755) == -1 && errno != EEXIST))
		guest_die("mkdir in the writable layer: %s", strerror(errno));
}

void
boot_switch_root(void)
{
	char	 disk[256];

	disk_wait("base", disk, sizeof(disk));
	mount_base(disk);
	mount_layer();
	mount_or_die("overlay", NEW_ROOT, "overlay", 0,
	    "lowerdir=/base,upperdir=" LAYER "/upper,workdir=" LAYER "/work");
	(void)unlink("/init");
	/*
	 * From here on every path is inside the new root: no link of the
	 * template leads out of it.
	 */
	if (chdir(NEW_ROOT) == -1 ||
	    mount(".", "/", NULL, MS_MOVE, NULL) == -1 ||
	    chroot(".") == -1 || chdir("/") == -1)
		guest_die("switch to the new root: %s", strerror(errno));
}
