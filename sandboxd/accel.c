/* SPDX-License-Identifier: ISC */
/*
 * Does KVM work here?  There are hosts where /dev/kvm opens, small vCPU tests
 * pass and every real guest hangs, so only a boot of the real guest kernel that
 * answers within its deadline is believed.  That boot is a sandbox like any
 * other, without an owner; its verdict is remembered for this boot of the host,
 * this kernel image and this QEMU.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "id.h"
#include "log.h"
#include "record.h"
#include "sandboxd.h"

static void
accel_set(int kvm, const char *reason)
{
	sandboxd->kvm = kvm;
	(void)strlcpy(sandboxd->accel_reason, reason,
	    sizeof(sandboxd->accel_reason));
	log_info("accelerator %s: %s", kvm ? "kvm" : "tcg", reason);
}

/* The verdict holds for exactly this. */
static void
accel_circumstances(char *out, size_t size)
{
	struct stat	 st = { 0 };

	(void)stat(sandboxd->conf.kernel, &st);
	(void)snprintf(out, size, "boot %s, kernel %lld bytes of %lld, %s",
	    record_boot_id(), (long long)st.st_size, (long long)st.st_mtime,
	    sandboxd->host.qemu_version);
}

/* 1: a verdict was found and set. */
static int
accel_recall(void)
{
	struct json_object	*o, *v;
	struct stat		 st;
	char			 now[256], reason[200];
	int			 found = 0;

	/* Root's own file only: it decides how guests are run. */
	if (lstat(sandboxd->conf.verdict_file, &st) == -1 ||
	    !S_ISREG(st.st_mode) || st.st_uid != 0 ||
	    (st.st_mode & 022) != 0)
		return 0;
	o = json_object_from_file(sandboxd->conf.verdict_file);
	accel_circumstances(now, sizeof(now));
	if (o != NULL && json_object_object_get_ex(o, "for", &v) &&
	    strcmp(json_object_get_string(v), now) == 0 &&
	    json_object_object_get_ex(o, "reason", &v)) {
		(void)snprintf(reason, sizeof(reason), "%s",
		    json_object_get_string(v));
		found = json_object_object_get_ex(o, "kvm", &v);
		if (found)
			accel_set(json_object_get_boolean(v), reason);
	}
	json_object_put(o);
	return found;
}

static void
accel_remember(int kvm, const char *reason)
{
	struct json_object	*o;
	char			 now[256], tmp[SBX_PATH_MAX + 8], *slash;
	const char		*path = sandboxd->conf.verdict_file;
	int			 fd;

	accel_circumstances(now, sizeof(now));
	(void)strlcpy(tmp, path, sizeof(tmp));
	slash = strrchr(tmp, '/');
	if (slash != NULL && slash != tmp) {
		*slash = '\0';
		(void)mkdir(tmp, 0755);
	}
	(void)snprintf(tmp, sizeof(tmp), "%s.new", path);
	o = json_object_new_object();
	json_object_object_add(o, "for", json_object_new_string(now));
	json_object_object_add(o, "kvm", json_object_new_boolean(kvm));
	json_object_object_add(o, "reason", json_object_new_string(reason));
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
	    0644);
	if (fd == -1 || json_object_to_fd(fd, o, JSON_C_TO_STRING_PLAIN) == -1 ||
	    rename(tmp, path) == -1)
		log_warn("accelerator: %s: the verdict is not remembered", path);
	if (fd != -1)
		(void)close(fd);
	json_object_put(o);
}

/* Any template does; "seed" if there is one. */
static int
accel_template(char *out, size_t size)
{
	struct dirent	*d;
	DIR		*dir;
	int		 found = 0;

	dir = opendir(sandboxd->conf.template_dir);
	if (dir == NULL)
		return 0;
	while ((d = readdir(dir)) != NULL) {
		if (!name_valid(d->d_name))
			continue;
		if (!found || strcmp(d->d_name, "seed") == 0)
			(void)strlcpy(out, d->d_name, size);
		found = 1;
	}
	(void)closedir(dir);
	return found;
}

static int
accel_probe(void)
{
	const struct resources	*r = &sandboxd->conf.defaults;
	struct sandbox		*sb;

	sb = table_new();
	if (sb == NULL || !accel_template(sb->template, sizeof(sb->template)) ||
	    slot_take(&sb->slot) == -1) {
		table_free_unused(sb);
		accel_set(0, "no template or slot to try KVM with");
		return 0;
	}
	id_new(sb->id);
	sb->probe = 1;
	sb->kvm = 1;
	sb->generation = ++sandboxd->generation;
	sb->res = *r;
	sb->created = walltime_now();
	sb->on_disconnect = ON_DISCONNECT_DELETE;
	(void)strlcpy(sb->owner, "sandboxd", sizeof(sb->owner));
	table_add(sb);
	log_info("accelerator: trying KVM with a real guest boot");
	life_create(sb);
	return 1;
}

static int
accel_probe_runs(void)
{
	const struct sandbox	*sb;

	TAILQ_FOREACH(sb, &sandboxd->ages, by_age)
		if (sb->probe)
			return 1;
	return 0;
}

int
accel_decide(void)
{
	if (sandboxd->accel_reason[0] != '\0')
		return 0;
	if (accel_probe_runs())
		return 1;
	if (sandboxd->conf.accel == ACCEL_TCG)
		accel_set(0, "the configuration says so");
	else if (!sandboxd->host.kvm_node && sandboxd->conf.accel == ACCEL_KVM)
		fatalx("accel kvm: this host has no /dev/kvm");
	else if (!sandboxd->host.kvm_node)
		accel_set(0, "this host has no /dev/kvm");
	else if (!accel_recall())
		return accel_probe();
	if (sandboxd->conf.accel == ACCEL_KVM && !sandboxd->kvm)
		fatalx("accel kvm: %s (remembered in %s)",
		    sandboxd->accel_reason, sandboxd->conf.verdict_file);
	return 0;
}

void
accel_probe_done(int works, int remember, const char *reason)
{
	char	 text[256];

	if (sandboxd->accel_reason[0] != '\0')
		return;
	if (works)
		(void)snprintf(text, sizeof(text), "%s", reason);
	else
		(void)snprintf(text, sizeof(text),
		    "/dev/kvm is there, but a guest did not boot under it: %s",
		    reason);
	if (remember)
		accel_remember(works, text);
	if (!works && sandboxd->conf.accel == ACCEL_KVM)
		fatalx("accel kvm: %s", text);
	accel_set(works, text);
	daemon_open_api();
}
