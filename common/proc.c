/* SPDX-License-Identifier: ISC */
#include "proc.h"

const char *
proc_name(enum proc_id p)
{
	static const char	*const names[PROC_COUNT] = {
		"parent", "front", "vmm", "netd"
	};

	return p < PROC_COUNT ? names[p] : "?";
}
