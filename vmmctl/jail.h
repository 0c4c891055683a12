/* SPDX-License-Identifier: ISC */
/*
 * A jail of ours for a VMM that brings none: own pid, mount, network, IPC and
 * UTS namespaces, a root of its own made of read-only bind mounts on a tmpfs,
 * the slot's uid and gid, no capability, resource limits, no descriptor but
 * those named.  All mounts live in the child's mount namespace and go with it.
 */
#ifndef SBX_JAIL_H
#define SBX_JAIL_H

#include <sys/types.h>

#include <stdint.h>

#include "vmm.h"

#define JAIL_FDS_MAX	16
#define JAIL_BINDS_MAX	16

struct jail_bind {
	const char	*from;		/* on the host; file or directory */
	const char	*to;		/* in the jail, absolute */
	int		 dev;		/* a device node: no MS_NODEV */
	int		 optional;	/* skipped when the host has none */
};

struct jail_fd {
	int	 fd;
	int	 as;			/* number in the VMM, from 3 up */
};

struct jail_spec {
	const char	*id;
	uid_t		 uid;
	gid_t		 gid;
	int		 cgroup_fd;	/* -1: none */
	const char	*root;		/* an empty directory to mount on */
	int		 kvm;		/* make /dev/kvm in the jail */
	uint64_t	 max_file;	/* RLIMIT_FSIZE, bytes */
	uint64_t	 max_procs;	/* RLIMIT_NPROC */
	uint64_t	 max_fds;	/* RLIMIT_NOFILE */
	int		 err_fd;	/* becomes stdout and stderr */
	struct jail_bind binds[JAIL_BINDS_MAX];
	unsigned int	 nbinds;
	struct jail_fd	 fds[JAIL_FDS_MAX];
	unsigned int	 nfds;
	char *const	*argv;		/* argv[0]: path in the jail */
	/*
	 * Slow work that belongs to the child (it has its own copy of this
	 * struct and may fill in descriptors): runs as root, before the root
	 * directory changes.
	 */
	int		 (*prepare)(struct jail_spec *, void *, struct fault *);
	void		*prepare_arg;
};

/*
 * Starts it.  *report becomes readable with end of file when the VMM was
 * executed, or with the reason it was not (jail_read_report).  0, or -1 with
 * the fault filled.  The caller owns pidfd and report.
 */
int	jail_spawn(struct jail_spec *, pid_t *, int *pidfd, int *report,
	    struct fault *);
/* 0: executed; -1: not, the fault says why; 1: not yet known. */
int	jail_read_report(int, struct fault *);

#endif
