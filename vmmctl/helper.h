/* SPDX-License-Identifier: ISC */
/*
 * Slow work in a process of its own (mke2fs, removal of big files), so that
 * the event loop never waits for a disk.
 */
#ifndef SBX_HELPER_H
#define SBX_HELPER_H

/*
 * Runs fn in a child and calls back with its exit status (-1: killed by a
 * signal) and the last line it wrote to stderr.  0, or -1 when it cannot be
 * started.  fn returns the exit status; it may exec.
 */
typedef void	(*helper_cb)(int status, const char *text, void *arg);
int	helper_run(int (*fn)(void *), void *fnarg, helper_cb, void *arg);

#endif
