/* SPDX-License-Identifier: ISC */
/*
 * Users and groups of the root file system, from its passwd(5) and group(5).
 * Own code: libc's would ask a socket that the sandbox's user could have made.
 * Runs in the child, before it has given up root: a file that never answers
 * holds up that command only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guestd.h"

/* Cuts the next field off a line; NULL when there is none. */
static char *
field(char **line)
{
	char	*f = *line;

	if (f != NULL) {
		*line = strchr(f, ':');
		if (*line != NULL)
			*(*line)++ = '\0';
	}
	return f;
}

static int
number(const char *s, uint32_t *value)
{
	uint64_t	 v = 0;
	const char	*p;

	for (p = s; *p >= '0' && *p <= '9'; p++) {
		v = v * 10 + (uint64_t)(*p - '0');
		if (v >= UINT32_MAX)	/* the last one means "no change" */
			return -1;
	}
	if (p == s || *p != '\0')
		return -1;
	*value = (uint32_t)v;
	return 0;
}

static char *
file_lines(const char *path)
{
	char	*buf;

	buf = malloc(GUEST_FILE_MAX);
	if (buf != NULL && file_read(AT_FDCWD, path, buf, GUEST_FILE_MAX) < 0)
		buf[0] = '\0';
	return buf;
}

/* By name, or by uid when name is NULL; returns 0, ENOENT or ENOMEM. */
static int
passwd_find(const char *name, struct user *u)
{
	char		*buf, *next, *line, *f[6];
	uint32_t	 uid, gid;
	int		 i, error = ENOENT;

	buf = file_lines("/etc/passwd");
	if (buf == NULL)
		return ENOMEM;
	next = buf;
	while (error != 0 && (line = strsep(&next, "\n")) != NULL) {
		for (i = 0; i < 6; i++)
			f[i] = field(&line);
		if (f[5] == NULL || number(f[2], &uid) == -1 ||
		    number(f[3], &gid) == -1)
			continue;
		if (name != NULL ? strcmp(f[0], name) != 0 : uid != u->uid)
			continue;
		u->uid = uid;
		u->gid = gid;
		(void)snprintf(u->name, sizeof(u->name), "%s", f[0]);
		if (f[5][0] == '/')
			(void)snprintf(u->home, sizeof(u->home), "%s", f[5]);
		error = 0;
	}
	free(buf);
	return error;
}

static int
is_member(char *list, const char *name)
{
	char	*one;

	while ((one = strsep(&list, ",")) != NULL)
		if (strcmp(one, name) == 0)
			return 1;
	return 0;
}

static void
groups_find(struct user *u)
{
	char		*buf, *next, *line, *f[4];
	uint32_t	 gid;
	int		 i;

	buf = file_lines("/etc/group");
	if (buf == NULL)
		return;
	next = buf;
	while ((line = strsep(&next, "\n")) != NULL &&
	    u->group_count < GUEST_GROUPS_MAX) {
		for (i = 0; i < 4; i++)
			f[i] = field(&line);
		if (f[3] == NULL || number(f[2], &gid) == -1 || gid == u->gid)
			continue;
		if (is_member(f[3], u->name))
			u->groups[u->group_count++] = gid;
	}
	free(buf);
}

int
user_find(const char *spec, struct user *u)
{
	char		 text[256], *gid;
	uint32_t	 id;
	int		 error;

	memset(u, 0, sizeof(*u));
	memcpy(u->home, "/", 2);
	if (spec == NULL)
		spec = "0";
	if (strlen(spec) >= sizeof(text))
		return EINVAL;
	memcpy(text, spec, strlen(spec) + 1);
	gid = strchr(text, ':');
	if (gid != NULL)
		*gid++ = '\0';
	if (number(text, &id) == 0) {
		u->uid = u->gid = id;
		(void)snprintf(u->name, sizeof(u->name), "%s",
		    id == 0 ? "root" : text);
		error = passwd_find(NULL, u);
		if (error == ENOENT)
			error = 0;
	} else if (gid != NULL)
		return EINVAL;
	else
		error = passwd_find(text, u);
	if (error != 0)
		return error;
	u->groups[u->group_count++] = u->gid;
	if (gid == NULL)
		groups_find(u);
	else if (number(gid, &id) == -1)
		return EINVAL;
	else
		u->gid = u->groups[0] = id;
	return 0;
}
