/* SPDX-License-Identifier: ISC */
/*
 * cgroup v2: one leaf for each VM, sandboxd-<tag>/<id>, for tracking and
 * killing even where no controller is enabled, with limits where there are.
 */
#ifndef SBX_CGROUP_H
#define SBX_CGROUP_H

#include <stdint.h>

#include "vmm.h"

struct cgroup_limits {
	uint64_t	 memory_bytes;
	uint32_t	 vcpu;
	uint32_t	 pids;
};

struct cgroup_have {
	int	 tracking;
	int	 memory;
	int	 cpu;
	int	 pids;
};

/* Start-up: finds or makes sandboxd-<tag>; what is in force is told. */
void	cgroup_probe(const char *tag, struct cgroup_have *);
/* Shutdown: removes sandboxd-<tag> if no VM is left in it. */
void	cgroup_finish(void);
/*
 * Makes the leaf and sets its limits, each read back.  Returns its directory's
 * descriptor, -1 with the fault filled, or -2 where the host has no cgroup2.
 */
int	cgroup_create(const char *id, const struct cgroup_limits *,
	    struct fault *);
/* Opens an existing leaf; -1 if there is none. */
int	cgroup_open(const char *id);
/* Is this pid in the leaf? 1, 0; -1 when it cannot be told. */
int	cgroup_contains(int fd, pid_t);
/* Has the leaf had an out-of-memory kill? */
int	cgroup_oom_killed(int fd);
/* SIGKILL to everything in the leaf; no leaf: nothing. */
void	cgroup_kill(const char *id);
/* 1: no such leaf any more; 0: still busy. */
int	cgroup_remove(const char *id);
/* Calls back for the name of each leaf. */
void	cgroup_each(void (*)(const char *id, void *), void *);
/* The path of the mount in a mountinfo text, for tests: 0, or -1. */
int	cgroup_find_mount(const char *mountinfo, char *, size_t);

#endif
