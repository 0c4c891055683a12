/* SPDX-License-Identifier: ISC */
/*
 * Giving up privilege, for every process of the daemon.  The order is fixed:
 * rlimits, root directory, bounding set, groups and ids, capabilities,
 * no_new_privs, seccomp last.  Any step that fails ends the process: half
 * confined is worse than not started.
 */
#ifndef SBX_CONFINE_H
#define SBX_CONFINE_H

#include <stddef.h>
#include <stdint.h>

struct sock_filter;

/* One row of a system call list. */
struct confine_call {
	int		 nr;		/* SYS_... */
	int		 arg;		/* argument looked at, -1: none */
	uint32_t	 values[8];	/* allowed values (low 32 bits) */
	unsigned int	 nvalues;
};
#define CALL(name)		{ SYS_##name, -1, { 0 }, 0 }
#define CALL_IF(name, n, ...)	{ SYS_##name, n, { __VA_ARGS__ },	\
	sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t) }

enum confine_mode {
	CONFINE_ALLOW,	/* what is not in the list kills the process */
	CONFINE_DENY	/* what is in the list fails with EPERM */
};

struct confine {
	const char			*root;		/* chroot; NULL: none */
	uint32_t			 uid;		/* 0: stay root */
	uint32_t			 gid;
	uint64_t			 caps;		/* kept, bit mask */
	int				 keep_bounding;	/* caps can be passed on */
	uint64_t			 nofile;	/* RLIMIT_NOFILE, 0: as is */
	int				 no_files;	/* RLIMIT_NPROC, FSIZE 0 */
	enum confine_mode		 mode;
	const struct confine_call	*calls;
	size_t				 ncalls;	/* 0: no filter */
};

#define CONFINE_CAP(c)	(1ULL << (c))

/* Applies it all to the calling process, or fatal(). */
void	confine_apply(const struct confine *);

/*
 * The filter alone, for tests: fills a program of at most `max` instructions
 * and returns their number, 0 if it does not fit.
 */
size_t	confine_filter(const struct confine *, struct sock_filter *, size_t);

/*
 * Calls that a process which starts others must never need, as a CONFINE_DENY
 * list: modules, kexec, swap, clocks, ptrace, keyrings, bpf, ports ...
 */
extern const struct confine_call confine_deny_calls[];
extern const size_t confine_deny_ncalls;

#endif
