/* SPDX-License-Identifier: ISC */
/*
 * cgroup v2 by its files.  Runs in vmm; what the kernel says is trusted, what
 * another manager of the host's cgroups did is not: limits are read back.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "cgroup.h"
#include "id.h"
#include "log.h"

static struct {
	int			 root;	/* the mount, -1: no cgroup2 here */
	int			 top;	/* sandboxd-<tag> in it */
	char			 name[SBX_TAG_LEN + 10];
	struct cgroup_have	 have;
} cg = { .root = -1, .top = -1 };

static int
write_at(int dir, const char *name, const char *text)
{
	ssize_t	 n;
	int	 fd, saved;

	fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = write(fd, text, strlen(text));
	saved = errno;
	(void)close(fd);
	errno = saved;
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* The text without its last line end. */
static int
read_at(int dir, const char *name, char *buf, size_t size)
{
	ssize_t	 n;
	int	 fd;

	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = read(fd, buf, size - 1);
	(void)close(fd);
	if (n == -1)
		return -1;
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return 0;
}

int
cgroup_find_mount(const char *text, char *out, size_t size)
{
	const char	*line, *end, *sep, *p;
	size_t		 len;
	int		 field;

	/* proc(5): "36 35 98:0 ROOT POINT OPTIONS [OPTIONAL] - TYPE ..." */
	for (line = text; *line != '\0'; line = *end == '\0' ? end : end + 1) {
		end = strchrnul(line, '\n');
		sep = memmem(line, (size_t)(end - line), " - cgroup2 ", 11);
		if (sep == NULL)
			continue;
		p = line;
		for (field = 1; field < 5 && p != NULL && p < sep; field++) {
			p = memchr(p, ' ', (size_t)(sep - p));
			p = p == NULL ? NULL : p + 1;
		}
		if (field != 5 || p == NULL || *p != '/')
			continue;
		len = strcspn(p, " \n");
		/*
		 * An escaped blank (\040) in a mount point is not ours to
		 * solve.
		 */
		if (len >= size || memchr(p, '\\', len) != NULL)
			continue;
		memcpy(out, p, len);
		out[len] = '\0';
		return 0;
	}
	return -1;
}

static int
find_mount(char *path, size_t size)
{
	char	*text;
	ssize_t	 n;
	size_t	 have = 0, max = 1 << 20;
	int	 fd, r;

	fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	text = malloc(max + 1);
	if (fd == -1 || text == NULL)
		goto fail;
	while (have < max && (n = read(fd, text + have, max - have)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	r = cgroup_find_mount(text, path, size);
	(void)close(fd);
	free(text);
	return r;
fail:
	if (fd != -1)
		(void)close(fd);
	free(text);
	return -1;
}

static int
has_word(const char *list, const char *word)
{
	size_t		 n = strlen(word);
	const char	*p;

	for (p = list; (p = strstr(p, word)) != NULL; p += n)
		if ((p == list || p[-1] == ' ') &&
		    (p[n] == ' ' || p[n] == '\0'))
			return 1;
	return 0;
}

/* Turns a controller on for the leaves; 1 when it is then on. */
static int
enable(const char *name)
{
	char	 plus[32], list[512];

	(void)snprintf(plus, sizeof(plus), "+%s", name);
	if (read_at(cg.root, "cgroup.controllers", list, sizeof(list)) == -1 ||
	    !has_word(list, name))
		return 0;
	/* The root's may be on already, or not ours to turn on. */
	(void)write_at(cg.root, "cgroup.subtree_control", plus);
	if (write_at(cg.top, "cgroup.subtree_control", plus) == -1) {
		log_warn("cgroup: controller %s cannot be enabled", name);
		return 0;
	}
	return read_at(cg.top, "cgroup.subtree_control", list,
	    sizeof(list)) == 0 && has_word(list, name);
}

void
cgroup_probe(const char *tag, struct cgroup_have *have)
{
	char	 path[SBX_PATH_MAX + 1];

	memset(have, 0, sizeof(*have));
	if (find_mount(path, sizeof(path)) == -1) {
		log_info("cgroup none reason=\"no cgroup2 mount\"");
		return;
	}
	cg.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(cg.name, sizeof(cg.name), "sandboxd-%s", tag);
	if (cg.root == -1 ||
	    (mkdirat(cg.root, cg.name, 0755) == -1 && errno != EEXIST)) {
		log_warn("cgroup: %s/%s cannot be made: VMs have no cgroup",
		    path, cg.name);
		return;
	}
	cg.top = openat(cg.root, cg.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cg.top == -1) {
		log_warn("cgroup: %s/%s", path, cg.name);
		return;
	}
	have->tracking = 1;
	have->memory = enable("memory");
	have->cpu = enable("cpu");
	have->pids = enable("pids");
	cg.have = *have;
	log_info("cgroup ready path=%s/%s memory=%d cpu=%d pids=%d", path,
	    cg.name, have->memory, have->cpu, have->pids);
}

void
cgroup_finish(void)
{
	/* Busy when VMs live on: the next vmm finds it. */
	if (cg.top != -1)
		(void)unlinkat(cg.root, cg.name, AT_REMOVEDIR);
}

/* Written and read back: a limit that is not in force is a fault. */
static int
set_limit(int leaf, const char *name, const char *value, struct fault *f)
{
	char	 back[64];

	if (write_at(leaf, name, value) == -1)
		return fault_errno(f, E_START_FAILED, "cgroup %s = %s", name,
		    value);
	if (read_at(leaf, name, back, sizeof(back)) == -1)
		return fault_errno(f, E_START_FAILED, "cgroup %s", name);
	if (strcmp(back, value) != 0)
		return fault_set(f, E_START_FAILED,
		    "cgroup %s is %s, not %s: limit not in force", name, back,
		    value);
	return 0;
}

static int
set_limits(int leaf, const struct cgroup_limits *l, struct fault *f)
{
	char	 text[64];
	uint64_t page;

	if (cg.have.memory) {
		page = (uint64_t)sysconf(_SC_PAGESIZE);
		(void)snprintf(text, sizeof(text), "%" PRIu64,
		    l->memory_bytes / page * page);
		if (set_limit(leaf, "memory.max", text, f) == -1)
			return -1;
		/* Absent when the host's kernel has no swap accounting. */
		if (faccessat(leaf, "memory.swap.max", F_OK, 0) == 0 &&
		    set_limit(leaf, "memory.swap.max", "0", f) == -1)
			return -1;
	}
	if (cg.have.cpu) {
		(void)snprintf(text, sizeof(text), "%u 100000",
		    l->vcpu * 100000U);
		if (set_limit(leaf, "cpu.max", text, f) == -1)
			return -1;
	}
	if (cg.have.pids) {
		(void)snprintf(text, sizeof(text), "%u", l->pids);
		if (set_limit(leaf, "pids.max", text, f) == -1)
			return -1;
	}
	return 0;
}

int
cgroup_open(const char *id)
{
	if (cg.top == -1 || !id_valid(id))
		return -1;
	return openat(cg.top, id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int
cgroup_create(const char *id, const struct cgroup_limits *l, struct fault *f)
{
	int	 leaf;

	if (cg.top == -1)
		return -2;
	if (mkdirat(cg.top, id, 0755) == -1)
		return fault_errno(f, E_START_FAILED, "cgroup of %s", id);
	leaf = cgroup_open(id);
	if (leaf == -1) {
		(void)fault_errno(f, E_START_FAILED, "cgroup of %s", id);
		goto fail;
	}
	if (set_limits(leaf, l, f) == -1)
		goto fail;
	return leaf;
fail:
	if (leaf != -1)
		(void)close(leaf);
	(void)cgroup_remove(id);
	return -1;
}

int
cgroup_contains(int leaf, pid_t pid)
{
	FILE	*fp;
	int	 fd, one, found = 0;

	fd = openat(leaf, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	fp = fdopen(fd, "r");
	if (fp == NULL) {
		(void)close(fd);
		return -1;
	}
	while (!found && fscanf(fp, "%d", &one) == 1)
		found = one == pid;
	(void)fclose(fp);
	return found;
}

int
cgroup_oom_killed(int leaf)
{
	char		 text[512];
	const char	*p;

	if (leaf < 0 || !cg.have.memory ||
	    read_at(leaf, "memory.events", text, sizeof(text)) == -1)
		return 0;
	p = strstr(text, "oom_kill ");
	return p != NULL && strtoul(p + 9, NULL, 10) > 0;
}

void
cgroup_kill(const char *id)
{
	int	 leaf;

	leaf = cgroup_open(id);
	if (leaf == -1)
		return;
	/* Kernels before 5.14 lack it; the pidfd and the uid are left. */
	if (write_at(leaf, "cgroup.kill", "1") == -1 && errno != ENOENT)
		log_warn("cgroup of %s: kill", id);
	(void)close(leaf);
}

int
cgroup_remove(const char *id)
{
	if (cg.top == -1 || unlinkat(cg.top, id, AT_REMOVEDIR) == 0)
		return 1;
	return errno == ENOENT;
}

void
cgroup_each(void (*cb)(const char *, void *), void *arg)
{
	struct dirent	*e;
	DIR		*d;
	int		 fd;

	if (cg.top == -1)
		return;
	fd = openat(cg.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return;
	d = fdopendir(fd);
	if (d == NULL) {
		(void)close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (id_valid(e->d_name))
			cb(e->d_name, arg);
	(void)closedir(d);
}
