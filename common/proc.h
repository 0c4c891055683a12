/* SPDX-License-Identifier: ISC */
/*
 * The four processes of a daemon instance.
 */
#ifndef SBX_PROC_H
#define SBX_PROC_H

enum proc_id {
	PROC_PARENT,
	PROC_FRONT,
	PROC_VMM,
	PROC_NETD,
	PROC_COUNT
};

/* "parent", "front", "vmm", "netd". */
const char	*proc_name(enum proc_id);

#endif
