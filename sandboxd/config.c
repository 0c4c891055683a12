/* SPDX-License-Identifier: ISC */
/*
 * The configuration beside its grammar: defaults, what no single line can tell,
 * and printing back.  Runs in the parent and in sandboxd -n.  It reads passwd,
 * group and the subordinate id files of the host, which root keeps.
 */
#include <sys/stat.h>

#include <bsd/string.h>

#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "id.h"
#include "slot.h"

/* The longest socket path that is made below the state directory. */
#define LONGEST_SOCKET	"/vm/sb-xxxxxxxxxxxxxxxx/monitor.sock"

#define ADDRESS(a, b, c, d)						\
	((uint32_t)(a) << 24 | (uint32_t)(b) << 16 |			\
	(uint32_t)(c) << 8 | (uint32_t)(d))

static int	complain(const char *, const char *, ...)
		    __attribute__((format(printf, 2, 3)));

/* Paths that are too long for a default are left empty and found later. */
static void
join_path(char *out, size_t size, const char *dir, const char *name)
{
	int	 n;

	n = snprintf(out, size, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= size)
		out[0] = '\0';
}

static int
is_directory(const char *path)
{
	struct stat	 st;

	return path[0] != '\0' && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void
default_paths(struct config *c, const char *exe_dir)
{
	const char	*lib = "/usr/lib/sandboxd";

	(void)strlcpy(c->state_dir, "/var/lib/sandboxd", sizeof(c->state_dir));
	(void)strlcpy(c->socket_path, "/run/sandboxd/api.sock",
	    sizeof(c->socket_path));
	(void)strlcpy(c->verdict_file, "/run/sandboxd/accel",
	    sizeof(c->verdict_file));
	(void)strlcpy(c->qemu, "/usr/bin/qemu-system-x86_64", sizeof(c->qemu));
	(void)strlcpy(c->mke2fs, "/sbin/mke2fs", sizeof(c->mke2fs));
	join_path(c->libexec_dir, sizeof(c->libexec_dir), exe_dir, "libexec");
	if (is_directory(c->libexec_dir)) {
		join_path(c->kernel, sizeof(c->kernel), exe_dir,
		    "images/vmlinux");
		join_path(c->initramfs, sizeof(c->initramfs), exe_dir,
		    "images/initramfs.cpio");
		join_path(c->template_dir, sizeof(c->template_dir), exe_dir,
		    "templates");
		return;
	}
	(void)strlcpy(c->libexec_dir, "/usr/libexec/sandboxd",
	    sizeof(c->libexec_dir));
	join_path(c->kernel, sizeof(c->kernel), lib, "vmlinux");
	join_path(c->initramfs, sizeof(c->initramfs), lib, "initramfs.cpio");
	/* Templates follow the state directory: config_finish(). */
}

void
config_defaults(struct config *c, const char *exe_dir)
{
	memset(c, 0, sizeof(*c));
	default_paths(c, exe_dir);
	c->socket_mode = 0660;
	c->uid_first = 1900000000;
	c->uid_count = 4096;
	c->driver = DRIVER_QEMU;
	c->accel = ACCEL_AUTO;
	c->pool = ADDRESS(10, 231, 0, 0);
	c->pool_prefix = 16;
	c->dns[0] = ADDRESS(1, 1, 1, 1);
	c->dns[1] = ADDRESS(9, 9, 9, 9);
	c->dns_count = 2;
	c->defaults = (struct resources){ 1, 128, 1024, 300 };
	c->maximum = (struct resources){ 4, 4096, 16384, 86400 };
	c->max_sandboxes = 0;	/* as many as there are slots, or 1000 */
	c->max_per_owner = 100;
	c->keep_failed_s = 300;
	c->keep_keys_s = 86400;
	c->reconnect_s = 30;
}

/* ---- checks of the whole ---- */

static int
complain(const char *path, const char *fmt, ...)
{
	va_list	 ap;

	(void)fprintf(stderr, "%s: ", path);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	return 1;
}

/* A part that is "", "." or ".." makes two spellings of one directory. */
static int
is_plain_path(const char *path)
{
	const char	*part;
	size_t		 len;

	for (part = path; *part == '/'; part += len) {
		part++;
		len = strcspn(part, "/");
		if (len == 0 || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return 0;
	}
	return 1;
}

/*
 * The tag belongs to the directory and not to one of its names, and it is
 * the same before the directory has been made: what exists is resolved, the
 * rest is put behind it.
 */
static void
tag_for_state(struct config *c)
{
	char	 head[SBX_PATH_MAX + 1], *real = NULL, *whole = NULL, *cut;

	(void)strlcpy(head, c->state_dir, sizeof(head));
	while ((real = realpath(head, NULL)) == NULL &&
	    (cut = strrchr(head, '/')) != NULL && cut != head)
		*cut = '\0';
	if (real == NULL || asprintf(&whole, "%s%s",
	    strcmp(real, "/") == 0 ? "" : real,
	    c->state_dir + strlen(head)) == -1)
		whole = NULL;
	tag_from_path(whole == NULL ? c->state_dir : whole, c->tag);
	free(whole);
	free(real);
}

static int
finish_paths(struct config *c, const char *path)
{
	int	 faults = 0;
	size_t	 room;

	room = SUN_PATH_MAX - (sizeof(LONGEST_SOCKET) - 1);
	if (!is_plain_path(c->state_dir))
		faults += complain(path, "state \"%s\" has an empty, \".\" or "
		    "\"..\" part", c->state_dir);
	if (strlen(c->state_dir) > room)
		faults += complain(path, "state path is %zu bytes long; with "
		    "more than %zu its sockets cannot be named",
		    strlen(c->state_dir), room);
	if (c->template_dir[0] == '\0')
		join_path(c->template_dir, sizeof(c->template_dir),
		    c->state_dir, "templates");
	if (c->kernel[0] == '\0' || c->initramfs[0] == '\0' ||
	    c->template_dir[0] == '\0')
		faults += complain(path, "kernel, initramfs and templates have "
		    "to be set: the path of this program is too long for "
		    "their defaults");
	if (c->tag[0] == '\0')
		tag_for_state(c);
	return faults;
}

static int
in_range(const struct config *c, uint64_t id, uint32_t skip)
{
	return id >= (uint64_t)c->uid_first + skip &&
	    id < (uint64_t)c->uid_first + c->uid_count;
}

/* Ranges "name:first:count" that others were promised: subuid(5), subgid(5). */
static int
check_subids(const struct config *c, const char *path, const char *file)
{
	char			 line[512], name[64];
	unsigned long long	 first, count;
	FILE			*f;
	int			 faults = 0;

	f = fopen(file, "re");
	if (f == NULL)
		return 0;	/* nobody was promised any */
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%63[^:]:%llu:%llu", name, &first,
		    &count) != 3 || count == 0)
			continue;
		if (first < (uint64_t)c->uid_first + c->uid_count &&
		    c->uid_first < first + count)
			faults += complain(path, "uids %u count %u meet the "
			    "range of \"%s\" in %s", c->uid_first,
			    c->uid_count, name, file);
	}
	(void)fclose(f);
	return faults;
}

static int
check_accounts(const struct config *c, const char *path)
{
	const struct passwd	*pw;
	const struct group	*gr;
	int			 faults = 0;

	setpwent();
	while ((pw = getpwent()) != NULL)
		if (in_range(c, pw->pw_uid, 0))
			faults += complain(path, "uids %u count %u hold the "
			    "user \"%s\" (%u)", c->uid_first, c->uid_count,
			    pw->pw_name, pw->pw_uid);
	endpwent();
	setgrent();
	while ((gr = getgrent()) != NULL)
		if (in_range(c, gr->gr_gid, 0))
			faults += complain(path, "uids %u count %u hold the "
			    "group \"%s\" (%u)", c->uid_first, c->uid_count,
			    gr->gr_name, gr->gr_gid);
	endgrent();
	faults += check_subids(c, path, "/etc/subuid");
	faults += check_subids(c, path, "/etc/subgid");
	return faults;
}

static int
finish_uids(struct config *c, const char *path)
{
	int	 faults = 0;

	if ((uint64_t)c->uid_first + c->uid_count - 1 > CONF_UID_MAX)
		return complain(path, "uids %u count %u end beyond %llu",
		    c->uid_first, c->uid_count,
		    (unsigned long long)CONF_UID_MAX);
	if (c->front_uid == 0)
		c->front_uid = c->front_gid = c->uid_first + SLOT_UID_FRONT;
	if (c->netd_uid == 0)
		c->netd_uid = c->netd_gid = c->uid_first + SLOT_UID_NETD;
	if (c->front_uid == c->netd_uid)
		faults += complain(path, "front and netd have the same uid %u",
		    c->front_uid);
	if (c->front_gid == c->netd_gid)
		faults += complain(path, "front and netd have the same gid %u",
		    c->front_gid);
	if (in_range(c, c->front_uid, SLOT_UIDS_RESERVED) ||
	    in_range(c, c->front_gid, SLOT_UIDS_RESERVED))
		faults += complain(path, "front user %u:%u belongs to a "
		    "sandbox (uids %u count %u)", c->front_uid, c->front_gid,
		    c->uid_first, c->uid_count);
	if (in_range(c, c->netd_uid, SLOT_UIDS_RESERVED) ||
	    in_range(c, c->netd_gid, SLOT_UIDS_RESERVED))
		faults += complain(path, "netd user %u:%u belongs to a "
		    "sandbox (uids %u count %u)", c->netd_uid, c->netd_gid,
		    c->uid_first, c->uid_count);
	return faults + check_accounts(c, path);
}

static int
check_resource(const char *path, const char *name, uint32_t def, uint32_t max)
{
	if (def <= max)
		return 0;
	return complain(path, "default %s %u is more than maximum %s %u", name,
	    def, name, max);
}

static int
finish_bounds(struct config *c, const char *path)
{
	const struct resources	*d = &c->defaults, *m = &c->maximum;
	uint32_t		 slots;
	int			 faults = 0;

	faults += check_resource(path, "vcpu", d->vcpu, m->vcpu);
	faults += check_resource(path, "memory", d->memory_mib, m->memory_mib);
	faults += check_resource(path, "disk", d->disk_mib, m->disk_mib);
	faults += check_resource(path, "timeout", d->timeout_s, m->timeout_s);
	if (c->max_memory_mib != 0 && c->max_memory_mib < d->memory_mib)
		faults += complain(path, "limit memory %llu does not hold one "
		    "sandbox of default memory %u",
		    (unsigned long long)c->max_memory_mib, d->memory_mib);
	slots = slot_count(c->pool_prefix, c->uid_count);
	if (c->max_sandboxes == 0)
		c->max_sandboxes = slots < 1000 ? slots : 1000;
	if (slots < c->max_sandboxes || slots == 0)
		faults += complain(path, "limit sandboxes %u is more than the "
		    "%u that pool /%u (one /%d each) and uids count %u (%d of "
		    "them reserved) have room for", c->max_sandboxes, slots,
		    c->pool_prefix, SLOT_PREFIX, c->uid_count,
		    SLOT_UIDS_RESERVED);
	return faults;
}

int
config_finish(struct config *c, const char *path)
{
	int	 faults;

	faults = finish_paths(c, path);
	faults += finish_uids(c, path);
	faults += finish_bounds(c, path);
	return faults == 0 ? 0 : -1;
}

/* ---- printing back ---- */

static void
print_quoted(FILE *f, const char *text)
{
	(void)fputc('"', f);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			(void)fputc('\\', f);
		(void)fputc(*text, f);
	}
	(void)fputc('"', f);
}

static void
print_string(FILE *f, const char *keyword, const char *text)
{
	if (text[0] == '\0')
		return;
	(void)fprintf(f, "%s ", keyword);
	print_quoted(f, text);
	(void)fputc('\n', f);
}

static void
print_socket(FILE *f, const struct config *c)
{
	const struct group	*gr, *again = NULL;

	(void)fputs("socket ", f);
	print_quoted(f, c->socket_path);
	gr = getgrgid(c->socket_gid);
	if (gr != NULL)
		again = getgrnam(gr->gr_name);
	/* A name is printed only if it leads back to the same group. */
	if (again != NULL && again->gr_gid == c->socket_gid &&
	    (again->gr_name[0] < '0' || again->gr_name[0] > '9')) {
		(void)fputs(" group ", f);
		print_quoted(f, again->gr_name);
	} else {
		(void)fprintf(f, " group %u", c->socket_gid);
	}
	(void)fprintf(f, " mode %04o\n", c->socket_mode);
}

static void
print_address(FILE *f, uint32_t address)
{
	char	 text[16];

	slot_format_address(address, text);
	(void)fputs(text, f);
}

static void
print_network(FILE *f, const struct config *c)
{
	uint32_t	 i;

	(void)fputs("pool ", f);
	print_address(f, c->pool);
	(void)fprintf(f, "/%u\ndns {", c->pool_prefix);
	for (i = 0; i < c->dns_count; i++) {
		(void)fputs(i == 0 ? " " : ", ", f);
		print_address(f, c->dns[i]);
	}
	(void)fputs(" }\n", f);
}

static void
print_resources(FILE *f, const char *set, const struct resources *r)
{
	(void)fprintf(f, "%s vcpu %u\n", set, r->vcpu);
	(void)fprintf(f, "%s memory %u\n", set, r->memory_mib);
	(void)fprintf(f, "%s disk %u\n", set, r->disk_mib);
	(void)fprintf(f, "%s timeout %u\n", set, r->timeout_s);
}

void
config_print(const struct config *c, FILE *f)
{
	static const char	*const drivers[] = { [DRIVER_QEMU] = "qemu" };
	static const char	*const accels[] = {
		[ACCEL_AUTO] = "auto", [ACCEL_KVM] = "kvm", [ACCEL_TCG] = "tcg"
	};

	print_string(f, "state", c->state_dir);
	print_socket(f, c);
	print_string(f, "tag", c->tag);
	(void)fprintf(f, "uids %u count %u\n", c->uid_first, c->uid_count);
	if (c->front_uid != 0)
		(void)fprintf(f, "front user %u:%u\n", c->front_uid,
		    c->front_gid);
	if (c->netd_uid != 0)
		(void)fprintf(f, "netd user %u:%u\n", c->netd_uid,
		    c->netd_gid);
	(void)fprintf(f, "driver %s\n", drivers[c->driver]);
	(void)fprintf(f, "accel %s\n", accels[c->accel]);
	print_string(f, "verdict", c->verdict_file);
	print_string(f, "qemu", c->qemu);
	print_string(f, "mke2fs", c->mke2fs);
	print_string(f, "kernel", c->kernel);
	print_string(f, "initramfs", c->initramfs);
	print_string(f, "templates", c->template_dir);
	print_string(f, "libexec", c->libexec_dir);
	if (c->boot_deadline_ms != 0)
		(void)fprintf(f, "boot deadline %u\n",
		    c->boot_deadline_ms / 1000);
	print_network(f, c);
	print_resources(f, "default", &c->defaults);
	print_resources(f, "maximum", &c->maximum);
	if (c->max_sandboxes != 0)
		(void)fprintf(f, "limit sandboxes %u\n", c->max_sandboxes);
	(void)fprintf(f, "limit owner %u\nlimit memory %llu\n",
	    c->max_per_owner, (unsigned long long)c->max_memory_mib);
	(void)fprintf(f, "keep failed %u\nkeep keys %u\nreconnect %u\n",
	    c->keep_failed_s, c->keep_keys_s, c->reconnect_s);
}
