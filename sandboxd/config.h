/* SPDX-License-Identifier: ISC */
/*
 * The daemon's configuration: sandboxd.conf(5) as the parent holds it.  parse.y
 * is the only place that knows keywords; config.c gives defaults, checks what
 * no grammar can, and prints a configuration back.
 */
#ifndef SBX_CONFIG_H
#define SBX_CONFIG_H

#include <stdint.h>
#include <stdio.h>

#include "limits.h"

enum accel { ACCEL_AUTO, ACCEL_KVM, ACCEL_TCG };
enum driver { DRIVER_QEMU };	/* firecracker and auto come with that driver */

struct resources {		/* of one sandbox */
	uint32_t	 vcpu;
	uint32_t	 memory_mib;
	uint32_t	 disk_mib;
	uint32_t	 timeout_s;
};

struct config {
	/* Who we are. */
	char		 tag[SBX_TAG_LEN + 1];	/* from the state path if not set */
	char		 state_dir[SBX_PATH_MAX + 1];
	char		 socket_path[SUN_PATH_MAX + 1];
	uint32_t	 socket_gid;
	uint32_t	 socket_mode;
	/* Identities: 0 stands for "the first uids of the range" (slot.h). */
	uint32_t	 front_uid, front_gid;
	uint32_t	 netd_uid, netd_gid;
	uint32_t	 uid_first, uid_count;
	/* The VMM and what it boots. */
	enum driver	 driver;
	enum accel	 accel;
	char		 qemu[SBX_PATH_MAX + 1];
	char		 mke2fs[SBX_PATH_MAX + 1];
	char		 kernel[SBX_PATH_MAX + 1];
	char		 initramfs[SBX_PATH_MAX + 1];
	char		 template_dir[SBX_PATH_MAX + 1];
	char		 libexec_dir[SBX_PATH_MAX + 1];
	char		 verdict_file[SBX_PATH_MAX + 1];	/* accel auto's memory */
	uint32_t	 boot_deadline_ms;	/* 0: by accelerator (limits.h) */
	/* The network. */
	uint32_t	 pool;			/* host byte order */
	uint32_t	 pool_prefix;
	uint32_t	 dns[SBX_DNS_MAX];	/* host byte order */
	uint32_t	 dns_count;
	/* Bounds. */
	struct resources defaults;
	struct resources maximum;
	uint32_t	 max_sandboxes;
	uint32_t	 max_per_owner;
	uint64_t	 max_memory_mib;	/* of all together, 0: no bound */
	uint32_t	 keep_failed_s;		/* record of a failed sandbox */
	uint32_t	 keep_keys_s;		/* idempotency keys */
	uint32_t	 reconnect_s;		/* after a death of front */
};

/*
 * Defaults.  `exe_dir` is the folder of the running program: a build tree has
 * its libexec/, images/ and templates/ beside it; an installed program uses
 * /usr/libexec/sandboxd, /usr/lib/sandboxd and <state>/templates.
 */
void	config_defaults(struct config *, const char *exe_dir);
/*
 * Reads a file into a configuration that has its defaults.  0, or -1 after
 * printing "file:line: message" to stderr for each fault; the configuration is
 * then of no use.  A file that does not exist is a fault.
 */
int	config_parse(struct config *, const char *path);
/*
 * What no single line can tell: ranges that overlap, paths too long for their
 * sockets (SUN_PATH_MAX with "<state>/vm/<id>/monitor.sock"), default over
 * maximum, a uid range that meets passwd or subuid, too few slots.  Fills in
 * what follows from the rest (tag, uids, templates under state).  0, or -1
 * after printing "file: message".
 */
int	config_finish(struct config *, const char *path);
/* Writes it so that config_parse() reads back the same (sandboxd -n -v). */
void	config_print(const struct config *, FILE *);

#endif
