/* SPDX-License-Identifier: ISC */
/*
 * Kernel modules from the initramfs, in the order that its maker wrote down: a
 * file name in each line and a word that says when it is needed: "always",
 * "squashfs" (the base is one), "late" (when the guest is idle for the first
 * time).  Other words are for other carriers.
 */
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guestd.h"

#define MODULES	"/lib/modules"

static int	modules_fd = -1;
static char	order[8192];

void
modules_open(void)
{
	modules_fd = open(MODULES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (modules_fd == -1 ||
	    file_read(modules_fd, "order", order, sizeof(order)) < 0) {
		/* A kernel that has all of it built in needs none. */
		if (errno != ENOENT)
			guest_die("read " MODULES "/order: %s",
			    strerror(errno));
		order[0] = '\0';
	}
}

static void
module_load(const char *name)
{
	int	 fd;

	fd = openat(modules_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd == -1) {
		guest_log("module %s: %s", name, strerror(errno));
		return;
	}
	/* What is missed is told by whatever needs it. */
	if (syscall(SYS_finit_module, fd, "", 0) == -1 && errno != EEXIST)
		guest_log("module %s does not load: %s", name,
		    strerror(errno));
	(void)close(fd);
}

void
modules_load(const char *word)
{
	char		 line[256], name[128], when[32];
	const char	*p = order;
	size_t		 len;

	while (*p != '\0') {
		len = strcspn(p, "\n");
		(void)snprintf(line, sizeof(line), "%.*s", (int)len, p);
		p += len + (p[len] == '\n');
		memcpy(when, "always", 7);
		if (sscanf(line, "%127s %31s", name, when) >= 1 &&
		    name[0] != '#' && strcmp(when, word) == 0)
			module_load(name);
	}
}

/* Frees what the files took of the guest's memory. */
void
modules_close(void)
{
	char		 name[128];
	const char	*p = order;
	size_t		 len;

	if (modules_fd == -1)
		return;
	while (*p != '\0') {
		len = strcspn(p, " \n");
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, p);
		(void)unlinkat(modules_fd, name, 0);
		p += strcspn(p, "\n");
		p += *p == '\n';
	}
	(void)close(modules_fd);
	modules_fd = -1;
}
