/* SPDX-License-Identifier: ISC */
/*
 * Releases what a VM leaves, until nothing is left: processes (by cgroup and
 * by the slot's uid, never anything else), the cgroup leaf, the directory.
 * Idempotent; works for a VM that this process has never seen.
 */
#ifndef SBX_REAP_H
#define SBX_REAP_H

#include <sys/types.h>

#include "vmm.h"

/* fault is NULL when nothing is left. */
typedef void	(*reap_cb)(const struct fault *, void *arg);
/*
 * id "" : no cgroup and no directory; uid 0: no search by uid.  The
 * callback comes later, never from within.
 */
int	reap_start(const char *id, uid_t, reap_cb, void *arg);
/* Unlinks the files of a VM's directory (not the directory). */
void	reap_unlink_files(int dir);

/* Calls back for each process whose uid is a slot's (of our range). */
void	reap_each_process(void (*)(pid_t, uid_t, void *), void *);

#endif
