/* SPDX-License-Identifier: ISC */
/*
 * Identity of a process of the host: start time and uid from /proc, which a
 * pid alone does not have.
 */
#ifndef SBX_PROC_ID_H
#define SBX_PROC_ID_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

/* Field 22 of /proc/PID/stat, clock ticks since boot; 0 if there is none. */
uint64_t	proc_start_time(pid_t);
/* Real uid; (uid_t)-1 if there is no such process, or it is a zombie. */
uid_t		proc_uid(pid_t);
/*
 * Is it in a cgroup "sandboxd-TAG/..." of another tag than this?  Then it is
 * another instance's VM, whatever its uid.
 */
int		proc_is_foreign(pid_t, const char *tag);
/* The same for the text of /proc/PID/cgroup, for tests. */
int		proc_parse_foreign(const char *, const char *tag);
/* Field 22 of a stat line, for tests; 0 if malformed. */
uint64_t	proc_parse_start_time(const char *);
int		pidfd_open_cloexec(pid_t);
int		pidfd_kill(int);

#endif
