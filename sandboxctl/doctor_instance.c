/* SPDX-License-Identifier: ISC */
/*
 * Daemon instances on this host: what instance.json says, whether a daemon runs
 * (it holds a lock on "lock"), and what its ledger owns.  Nothing is locked
 * here: a daemon that starts at this moment must not meet a lock of ours.
 */
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "../sandboxd/ledger.h"
#include "api.h"
#include "doctor.h"
#include "id.h"
#include "json.h"

#define INSTANCE_MAX	4096

static int
read_small(const char *dir, const char *name, char *buf, size_t size)
{
	char	 path[SBX_PATH_MAX + 64];
	ssize_t	 n;
	int	 fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return -1;
	n = read(fd, buf, size - 1);
	(void)close(fd);
	if (n == -1)
		return -1;
	buf[n] = '\0';
	return 0;
}

/* The pid that holds a flock(2) on the file, 0 if none does. */
static pid_t
lock_holder(const char *dir)
{
	char		 path[SBX_PATH_MAX + 16], line[256];
	struct stat	 st;
	unsigned int	 maj, min;
	unsigned long	 inode;
	pid_t		 pid, found = 0;
	FILE		*f;

	(void)snprintf(path, sizeof(path), "%s/lock", dir);
	if (lstat(path, &st) == -1)
		return 0;
	f = fopen("/proc/locks", "re");
	if (f == NULL)
		return 0;
	while (found == 0 && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &maj,
		    &min, &inode) == 4 && inode == st.st_ino &&
		    maj == major(st.st_dev) && min == minor(st.st_dev))
			found = pid;
	(void)fclose(f);
	return found;
}

static int
parse_instance(const char *text, struct instance *in)
{
	struct json_object	*o = NULL;
	struct json_reader	 r;
	struct json_error	 err;

	if (json_parse(text, strlen(text), JSON_VALUES_MAX, &o, &err) != 0)
		return -1;
	json_open(&r, o, &err);
	(void)json_take_string(&r, "tag", JSON_REQUIRED, SBX_TAG_LEN, in->tag,
	    sizeof(in->tag));
	(void)json_take_u32(&r, "uid_first", JSON_REQUIRED, 1, UINT32_MAX - 1,
	    &in->uid_first);
	(void)json_take_u32(&r, "uid_count", JSON_REQUIRED, 1,
	    CONF_UID_COUNT_MAX, &in->uid_count);
	(void)json_take_string(&r, "socket", JSON_REQUIRED, 1, in->socket,
	    sizeof(in->socket));
	json_object_put(o);
	return err.code == E_OK && tag_valid(in->tag) ? 0 : -1;
}

int
instance_read(struct instance *in, const char *dir, struct fault *f)
{
	char	 text[INSTANCE_MAX];

	memset(in, 0, sizeof(*in));
	(void)strlcpy(in->state_dir, dir, sizeof(in->state_dir));
	if (read_small(dir, "instance.json", text, sizeof(text)) == -1) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		return fault_set(f, CTL_ERROR, "%s/instance.json: %s", dir,
		    strerror(errno));
	}
	if (parse_instance(text, in) == -1)
		return fault_set(f, CTL_ERROR, "%s/instance.json: damaged, or "
		    "of another version; the daemon writes it anew when it "
		    "starts", dir);
	in->pid = lock_holder(dir);
	return 0;
}

/* Is this a parent of ours?  Then the directory of the lock that it holds. */
static int
daemon_state(const char *pid, char *dir, size_t size)
{
	char		 path[300], link[SBX_PATH_MAX + 32], name[32];
	struct dirent	*e;
	DIR		*d;
	ssize_t		 n;
	int		 found = 0;

	(void)snprintf(path, sizeof(path), "/proc/%s", pid);
	if (read_small(path, "comm", name, sizeof(name)) == -1 ||
	    strcmp(name, "sandboxd\n") != 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	d = opendir(path);
	while (d != NULL && !found && (e = readdir(d)) != NULL) {
		n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
		if (n < 6 || memcmp(link + n - 5, "/lock", 5) != 0)
			continue;
		link[n - 5] = '\0';
		found = strlcpy(dir, link, size) < size;
	}
	if (d != NULL)
		(void)closedir(d);
	return found;
}

size_t
instance_running_tags(char (*tags)[SBX_TAG_LEN + 1], size_t max)
{
	struct instance	 in;
	struct dirent	*e;
	struct fault	 f;
	DIR		*d;
	char		 dir[SBX_PATH_MAX + 1];
	size_t		 n = 0;

	d = opendir("/proc");
	while (d != NULL && n < max && (e = readdir(d)) != NULL)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		    daemon_state(e->d_name, dir, sizeof(dir)) &&
		    instance_read(&in, dir, &f) == 0 && in.pid != 0)
			(void)strlcpy(tags[n++], in.tag, sizeof(tags[0]));
	if (d != NULL)
		(void)closedir(d);
	return n;
}

/* ---- the ledger ---- */

int
owned_read(struct owned *o, const char *dir, struct fault *f)
{
	struct json_object	*entries;
	struct owned_one	*more;
	char			 err[256] = "";

	entries = ledger_read(dir, NULL, err, sizeof(err));
	if (entries == NULL)
		return fault_set(f, CTL_ERROR, "ledger in %s: %s", dir, err);
	json_object_object_foreach(entries, name, v) {
		if (strncmp(name, "sandbox/", 8) != 0 || !id_valid(name + 8) ||
		    api_number(v, "released") != 0)
			continue;
		more = reallocarray(o->v, o->n + 1, sizeof(*more));
		if (more == NULL)
			break;
		o->v = more;
		(void)strlcpy(more[o->n].id, name + 8, sizeof(more[0].id));
		more[o->n++].slot = (uint32_t)api_number(v, "slot");
	}
	json_object_put(entries);
	return 0;
}

int
owned_id(const struct owned *o, const char *id)
{
	size_t	 i;

	for (i = 0; i < o->n; i++)
		if (strcmp(o->v[i].id, id) == 0)
			return 1;
	return 0;
}

int
owned_slot(const struct owned *o, uint32_t slot)
{
	size_t	 i;

	for (i = 0; i < o->n; i++)
		if (o->v[i].slot == slot)
			return 1;
	return 0;
}

void
owned_free(struct owned *o)
{
	free(o->v);
	o->v = NULL;
	o->n = 0;
}
