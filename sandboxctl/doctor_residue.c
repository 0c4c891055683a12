/* SPDX-License-Identifier: ISC */
/*
 * What is left over: everything on this host that carries an instance's tag,
 * uids or directory is looked up, and what no record of its ledger owns is
 * told.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "doctor.h"
#include "id.h"
#include "slot.h"

#define TAGS_MAX	256
#define CGROUP_PREFIX	"sandboxd-"

struct scan {
	const struct instance	*in;
	const struct owned	*owned;
	struct report		*report;
};

/* Names in a directory; not there: none. */
static void
each_name(const char *path, void (*f)(const char *, void *), void *arg)
{
	struct dirent	*e;
	DIR		*d;

	d = opendir(path);
	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			f(e->d_name, arg);
	(void)closedir(d);
}

/* Nothing of this instance may exist at all. */
static int
all_gone(const struct scan *s)
{
	return s->in->pid == 0 && s->owned->n == 0;
}

/* ---- processes ---- */

/* Name, state, real uid from /proc/PID/status.  0 or -1: it has gone. */
static int
process_status(const char *pid, char *name, size_t size, char *state,
    uint32_t *uid)
{
	char	 path[300], line[256];
	FILE	*f;
	int	 have = 0;

	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "Name:\t", 6) == 0) {
			(void)strlcpy(name, line + 6, size);
			have |= 1;
		} else if (sscanf(line, "State: %c", state) == 1) {
			have |= 2;
		} else if (sscanf(line, "Uid: %u", uid) == 1) {
			have |= 4;
		}
	}
	(void)fclose(f);
	return have == 7 ? 0 : -1;
}

static void
on_process(const char *pid, void *arg)
{
	struct scan	*s = arg;
	char		 name[64], state;
	uint32_t	 uid, at;

	if (pid[0] < '1' || pid[0] > '9' ||
	    process_status(pid, name, sizeof(name), &state, &uid) == -1)
		return;
	if (state == 'Z' || uid < s->in->uid_first ||
	    uid - s->in->uid_first >= s->in->uid_count)
		return;
	at = uid - s->in->uid_first;
	/* front and netd live as long as their parent. */
	if (at < SLOT_UIDS_RESERVED ? s->in->pid != 0 :
	    owned_slot(s->owned, at - SLOT_UIDS_RESERVED))
		return;
	report_add(s->report, LEVEL_LEFT, "process", "%s (%s) of uid %u", pid,
	    name, uid);
}

/* ---- files, mounts, sockets ---- */

static void
on_vm_directory(const char *name, void *arg)
{
	struct scan	*s = arg;

	if (!owned_id(s->owned, name))
		report_add(s->report, LEVEL_LEFT, "directory", "%s/vm/%s",
		    s->in->state_dir, name);
}

static void
scan_mounts(struct scan *s)
{
	char	 line[4096], at[1024], prefix[SBX_PATH_MAX + 8];
	char	 id[SBX_ID_LEN + 1];
	FILE	*f;

	(void)snprintf(prefix, sizeof(prefix), "%s/vm/", s->in->state_dir);
	f = fopen("/proc/self/mountinfo", "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%*s %*s %*s %*s %1023s", at) != 1 ||
		    strncmp(at, prefix, strlen(prefix)) != 0)
			continue;
		(void)strlcpy(id, at + strlen(prefix), sizeof(id));
		if (!owned_id(s->owned, id))
			report_add(s->report, LEVEL_LEFT, "mount", "%s", at);
	}
	(void)fclose(f);
}

static void
scan_socket(struct scan *s)
{
	struct stat	 st;

	if (s->in->pid == 0 && lstat(s->in->socket, &st) == 0 &&
	    S_ISSOCK(st.st_mode))
		report_add(s->report, LEVEL_LEFT, "socket", "%s",
		    s->in->socket);
}

/* ---- cgroups, taps, firewall ---- */

static void
on_leaf(const char *name, void *arg)
{
	struct scan	*s = arg;

	/* Other names in it are the kernel's control files. */
	if (id_valid(name) && !owned_id(s->owned, name))
		report_add(s->report, LEVEL_LEFT, "cgroup",
		    CGROUP_PREFIX "%s/%s", s->in->tag, name);
}

static void
scan_cgroups(struct scan *s)
{
	char		 mount[SBX_PATH_MAX + 1], path[2 * SBX_PATH_MAX];
	struct stat	 st;

	host_cgroup(mount, sizeof(mount));
	(void)snprintf(path, sizeof(path), "%s/" CGROUP_PREFIX "%s", mount,
	    s->in->tag);
	if (mount[0] == '\0' || stat(path, &st) == -1)
		return;
	if (all_gone(s))
		report_add(s->report, LEVEL_LEFT, "cgroup", "%s", path);
	each_name(path, on_leaf, s);
}

static void
on_interface(const char *name, void *arg)
{
	struct scan	*s = arg;
	int64_t		 slot;

	slot = slot_from_tap(s->in->tag, name);
	if (slot != -1 && !owned_slot(s->owned, (uint32_t)slot))
		report_add(s->report, LEVEL_LEFT, "tap", "%s", name);
}

static void
on_table(const char *tag, void *arg)
{
	struct scan	*s = arg;

	if (strcmp(tag, s->in->tag) == 0 && all_gone(s))
		report_add(s->report, LEVEL_LEFT, "nftables",
		    "table " CGROUP_PREFIX "%s", tag);
}

static void
on_element(const char *tag, const char *name, void *arg)
{
	struct scan	*s = arg;
	int64_t		 slot;

	if (strcmp(tag, s->in->tag) != 0)
		return;
	slot = slot_from_tap(tag, name);
	if (slot == -1 || !owned_slot(s->owned, (uint32_t)slot))
		report_add(s->report, LEVEL_LEFT, "nftables",
		    "element %s of table " CGROUP_PREFIX "%s", name, tag);
}

int
residue_find(const struct instance *in, struct report *r, struct fault *f)
{
	static const struct nft_events	 ev = { on_table, on_element };
	struct owned			 owned = { NULL, 0 };
	struct scan			 s = { in, &owned, r };
	char				 path[SBX_PATH_MAX + 8];

	if (owned_read(&owned, in->state_dir, f) == -1)
		return -1;
	each_name("/proc", on_process, &s);
	(void)snprintf(path, sizeof(path), "%s/vm", in->state_dir);
	each_name(path, on_vm_directory, &s);
	scan_mounts(&s);
	scan_socket(&s);
	scan_cgroups(&s);
	each_name("/sys/class/net", on_interface, &s);
	if (nft_each(&ev, &s) == -1)
		report_add(r, LEVEL_NOTE, "nftables", "cannot be asked");
	owned_free(&owned);
	return 0;
}

/* ---- instances whose daemon does not run ---- */

struct others {
	const struct instance	*in;
	struct report		*report;
	char			 tags[TAGS_MAX][SBX_TAG_LEN + 1];
	size_t			 n;
};

/* The tag in a name like "sandboxd-abcd" or "sbabcd-1f", else 0. */
static int
stray_tag(const struct others *o, const char *name, const char *prefix,
    char *tag)
{
	size_t	 i;

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return 0;
	(void)strlcpy(tag, name + strlen(prefix), SBX_TAG_LEN + 1);
	if (!tag_valid(tag) || strcmp(tag, o->in->tag) == 0)
		return 0;
	for (i = 0; i < o->n; i++)
		if (strcmp(o->tags[i], tag) == 0)
			return 0;
	return 1;
}

static void
other_interface(const char *name, void *arg)
{
	struct others	*o = arg;
	char		 tag[SBX_TAG_LEN + 1];

	if (stray_tag(o, name, "sb", tag) && slot_from_tap(tag, name) != -1)
		report_add(o->report, LEVEL_LEFT, "tap",
		    "%s: no daemon of tag %s runs", name, tag);
}

static void
other_cgroup(const char *name, void *arg)
{
	struct others	*o = arg;
	char		 tag[SBX_TAG_LEN + 1];

	if (stray_tag(o, name, CGROUP_PREFIX, tag) &&
	    strlen(name) == strlen(CGROUP_PREFIX) + SBX_TAG_LEN)
		report_add(o->report, LEVEL_LEFT, "cgroup",
		    "%s: no daemon of tag %s runs", name, tag);
}

static void
other_table(const char *tag, void *arg)
{
	struct others	*o = arg;
	char		 same[SBX_TAG_LEN + 1];

	if (stray_tag(o, tag, "", same))
		report_add(o->report, LEVEL_LEFT, "nftables",
		    "table " CGROUP_PREFIX "%s: no daemon of tag %s runs", tag,
		    tag);
}

void
residue_others(const struct instance *in, struct report *r)
{
	static const struct nft_events	 ev = { other_table, NULL };
	struct others			*o;
	char				 mount[SBX_PATH_MAX + 1];

	o = calloc(1, sizeof(*o));
	if (o == NULL)
		return;
	o->in = in;
	o->report = r;
	o->n = instance_running_tags(o->tags, TAGS_MAX);
	each_name("/sys/class/net", other_interface, o);
	host_cgroup(mount, sizeof(mount));
	if (mount[0] != '\0')
		each_name(mount, other_cgroup, o);
	(void)nft_each(&ev, o);
	free(o);
}
