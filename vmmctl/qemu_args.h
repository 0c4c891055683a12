/* SPDX-License-Identifier: ISC */
/*
 * QEMU's command line for one VM: a pure function.
 */
#ifndef SBX_QEMU_ARGS_H
#define SBX_QEMU_ARGS_H

#include <stddef.h>
#include <stdint.h>

struct vm_spec;

/* Numbers that QEMU inherits its descriptors under. */
enum qemu_fd {
	QEMU_FD_MONITOR = 3,	/* listening */
	QEMU_FD_AGENT,		/* listening */
	QEMU_FD_CONSOLE,
	QEMU_FD_TAP,
	QEMU_FD_ROOT,
	QEMU_FD_LAYER_RO,	/* QEMU looks with this one first */
	QEMU_FD_LAYER_RW,
	QEMU_FD_END
};

/* Paths inside the jail. */
#define QEMU_JAIL_KERNEL	"/kernel"
#define QEMU_JAIL_INITRAMFS	"/initramfs"

#define QEMU_ARGS_MAX		96
#define QEMU_TEXT_MAX		8192	/* bytes of all arguments */

struct qemu_args {
	char		*argv[QEMU_ARGS_MAX + 1];
	unsigned int	 argc;
	size_t		 used;
	char		 text[QEMU_TEXT_MAX];
};

/* 0, or -1 when it does not fit. */
int	qemu_build_args(struct qemu_args *, const char *qemu, const char *id,
	    const struct vm_spec *, uint64_t tsc_khz);

#endif
