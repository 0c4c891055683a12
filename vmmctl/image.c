/* SPDX-License-Identifier: ISC */
/*
 * Writable layers and the blanks they are copied from.  Runs in vmm, the
 * copying in a VM's own child, mke2fs in a helper.  Sizes come from clients.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <bsd/sys/queue.h>

#include "helper.h"
#include "image.h"
#include "log.h"

/* Somebody who waits for a blank that mke2fs is making. */
struct waiter {
	TAILQ_ENTRY(waiter)	 entry;
	uint32_t		 mib;
	image_blank_cb		 cb;	/* NULL: forgotten */
	void			*arg;
};

/* A size that is being made; or the memory of when one was last used. */
struct blank {
	TAILQ_ENTRY(blank)	 entry;	/* least recently used first */
	uint32_t		 mib;
	int			 making;
	char			 temp[32];
};

static struct {
	TAILQ_HEAD(, waiter)	 waiters;
	TAILQ_HEAD(, blank)	 blanks;
	unsigned int		 count;
} images = {
	TAILQ_HEAD_INITIALIZER(images.waiters),
	TAILQ_HEAD_INITIALIZER(images.blanks), 0
};

/* ---- blanks ---- */

static void
blank_name(uint32_t mib, char *out, size_t size)
{
	(void)snprintf(out, size, "%u.ext4", mib);
}

static struct blank *
blank_find(uint32_t mib)
{
	struct blank	*b;

	TAILQ_FOREACH(b, &images.blanks, entry)
		if (b->mib == mib)
			return b;
	return NULL;
}

static void
blank_forget(struct blank *b)
{
	TAILQ_REMOVE(&images.blanks, b, entry);
	images.count--;
	free(b);
}

/* Sizes come from clients: the file of the one longest unused goes. */
static void
blanks_trim(void)
{
	struct blank	*b, *next;
	char		 name[32];

	for (b = TAILQ_FIRST(&images.blanks);
	    b != NULL && images.count > VMM_BLANKS_MAX; b = next) {
		next = TAILQ_NEXT(b, entry);
		if (b->making)
			continue;
		blank_name(b->mib, name, sizeof(name));
		(void)unlinkat(vmm.layer_dir, name, 0);
		blank_forget(b);
	}
}

static struct blank *
blank_use(uint32_t mib)
{
	struct blank	*b;

	b = blank_find(mib);
	if (b == NULL) {
		b = calloc(1, sizeof(*b));
		if (b == NULL)
			return NULL;
		b->mib = mib;
		images.count++;
	} else {
		TAILQ_REMOVE(&images.blanks, b, entry);
	}
	TAILQ_INSERT_TAIL(&images.blanks, b, entry);
	blanks_trim();
	return b;
}

void
image_init(void)
{
	struct dirent	*e;
	char		 name[32];
	uint32_t	 mib;
	DIR		*d;
	int		 fd;

	fd = openat(vmm.layer_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return;
	d = fdopendir(fd);
	if (d == NULL) {
		(void)close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		mib = (uint32_t)strtoul(e->d_name, NULL, 10);
		blank_name(mib, name, sizeof(name));
		if (strcmp(name, e->d_name) == 0)
			(void)blank_use(mib);
		else
			(void)unlinkat(vmm.layer_dir, e->d_name, 0);
	}
	(void)closedir(d);
}

/*
 * In the helper: an ext4 that costs little to copy: no journal (a layer does
 * not outlive its VM), no reserved inode tables written out, no room to grow.
 */
static int
make_blank(void *arg)
{
	const struct blank	*b = arg;
	char			 size[32], path[64];
	char			*env[] = { NULL };
	/* mke2fs wants char *const; none of them is written to. */
	const char		*argv[] = { "mke2fs", "-q", "-F", "-t", "ext4",
	    "-O", "^has_journal,^resize_inode", "-m", "0", "-E",
	    "lazy_itable_init=1,nodiscard,root_owner=0:0", "-L", "layer",
	    path, size, NULL };
	int			 fd;

	(void)snprintf(size, sizeof(size), "%uM", b->mib);
	fd = openat(vmm.layer_dir, b->temp,
	    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1) {
		dprintf(STDERR_FILENO, "%s: %s\n", b->temp, strerror(errno));
		return errno == ENOSPC ? 28 : 1;
	}
	/* Its size first: mke2fs then writes into a file of holes. */
	if (ftruncate(fd, (off_t)b->mib << 20) == -1 ||
	    fchdir(vmm.layer_dir) == -1) {
		dprintf(STDERR_FILENO, "%s: %s\n", b->temp, strerror(errno));
		return 1;
	}
	(void)strlcpy(path, b->temp, sizeof(path));
	execve(vmm.cfg.mke2fs, (char **)(uintptr_t)argv, env);
	dprintf(STDERR_FILENO, "%s: %s\n", vmm.cfg.mke2fs, strerror(errno));
	return 1;
}

static void
waiters_answer(uint32_t mib, const struct fault *f)
{
	struct waiter	*w, *next;
	struct fault	 own;
	char		 name[32];
	int		 fd;

	blank_name(mib, name, sizeof(name));
	for (w = TAILQ_FIRST(&images.waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->mib != mib)
			continue;
		TAILQ_REMOVE(&images.waiters, w, entry);
		if (w->cb != NULL && f != NULL) {
			w->cb(-1, f, w->arg);
		} else if (w->cb != NULL) {
			fd = openat(vmm.layer_dir, name, O_RDONLY | O_CLOEXEC);
			if (fd == -1)
				(void)fault_errno(&own, E_START_FAILED,
				    "layers/%s", name);
			w->cb(fd, &own, w->arg);
		}
		free(w);
		/* The callback may have changed the list. */
		next = TAILQ_FIRST(&images.waiters);
	}
}

static void
blank_made(int status, const char *text, void *arg)
{
	struct blank	*b = arg;
	struct fault	 f;
	char		 name[32];
	uint32_t	 mib = b->mib;
	int		 bad = 0;

	b->making = 0;
	blank_name(mib, name, sizeof(name));
	if (status != 0) {
		bad = fault_set(&f, strstr(text, "No space left") != NULL ||
		    strstr(text, "no space") != NULL || status == 28 ?
		    E_HOST_DISK : E_START_FAILED,
		    "empty layer of %u MiB: mke2fs failed: %s", mib, text);
	} else if (renameat(vmm.layer_dir, b->temp, vmm.layer_dir,
	    name) == -1) {
		bad = fault_errno(&f, E_START_FAILED, "layers/%s", name);
	} else {
		log_info("layer made mib=%u", mib);
	}
	if (bad) {
		(void)unlinkat(vmm.layer_dir, b->temp, 0);
		blank_forget(b);
		log_warnx("%s", f.text);
	}
	waiters_answer(mib, bad ? &f : NULL);
}

void
image_get_blank(uint32_t mib, image_blank_cb cb, void *arg)
{
	struct blank	*b;
	struct waiter	*w;
	struct fault	 f;
	char		 name[32];
	int		 fd;

	blank_name(mib, name, sizeof(name));
	b = blank_use(mib);
	w = calloc(1, sizeof(*w));
	if (b == NULL || w == NULL) {
		free(w);
		(void)fault_set(&f, E_HOST_MEMORY, "out of memory");
		cb(-1, &f, arg);
		return;
	}
	if (!b->making) {
		fd = openat(vmm.layer_dir, name,
		    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd != -1) {
			free(w);
			cb(fd, NULL, arg);
			return;
		}
		(void)snprintf(b->temp, sizeof(b->temp), "%u.%u.new", mib,
		    arc4random());
		if (helper_run(make_blank, b, blank_made, b) == -1) {
			free(w);
			blank_forget(b);
			(void)fault_set(&f, E_HOST_MEMORY,
			    "no process for mke2fs");
			cb(-1, &f, arg);
			return;
		}
		b->making = 1;
	}
	*w = (struct waiter){ .mib = mib, .cb = cb, .arg = arg };
	TAILQ_INSERT_TAIL(&images.waiters, w, entry);
}

void
image_forget(void *arg)
{
	struct waiter	*w;

	TAILQ_FOREACH(w, &images.waiters, entry)
		if (w->arg == arg)
			w->cb = NULL;
}

/* ---- layers ---- */

/* Data extents only; the rest of the file stays a hole. */
static int
copy_extents(int from, int to, off_t size)
{
	off_t	 data, hole, out;
	ssize_t	 n;

	for (data = 0; data < size; data = hole) {
		data = lseek(from, data, SEEK_DATA);
		if (data == -1)
			return errno == ENXIO ? 0 : -1;
		hole = lseek(from, data, SEEK_HOLE);
		if (hole == -1)
			return -1;
		for (out = data; out < hole; ) {
			off_t	 in = out;

			n = copy_file_range(from, &in, to, &out,
			    (size_t)(hole - out), 0);
			if (n == -1)
				return -1;
			if (n == 0)
				return 0;
		}
	}
	return 0;
}

int
image_copy_layer(int blank, int dir, const char *name, int *rdwr, int *rdonly,
    struct fault *f)
{
	struct stat	 st;
	int		 fd, ro;

	fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1)
		return fault_errno(f, E_START_FAILED, "%s", name);
	if (fstat(blank, &st) == -1)
		goto fail;
	/* Shares all blocks where the file system can (btrfs, xfs). */
	if (ioctl(fd, FICLONE, blank) == -1 &&
	    (ftruncate(fd, st.st_size) == -1 ||
	    copy_extents(blank, fd, st.st_size) == -1))
		goto fail;
	ro = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (ro == -1)
		goto fail;
	*rdwr = fd;
	*rdonly = ro;
	return 0;
fail:
	(void)fault_errno(f, E_START_FAILED, "%s", name);
	(void)close(fd);
	return -1;
}
