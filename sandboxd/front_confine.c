/* SPDX-License-Identifier: ISC */
/*
 * What the front process keeps: its descriptors, memory, time and randomness.
 * No file can be opened, no socket made, nothing started, nobody signalled.  In
 * a file of its own so that a test can try the very table.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <fcntl.h>

#include "confine.h"
#include "front.h"

static const struct confine_call calls[] = {
	/* Descriptors that we have: clients, guests, the parent, stderr. */
	CALL(read), CALL(write), CALL(writev), CALL(close), CALL(shutdown),
	CALL(accept4), CALL(recvmsg), CALL(sendmsg), CALL(poll),
	CALL(epoll_ctl), CALL(epoll_wait),
	CALL_IF(fcntl, 1, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC),
	/* Memory, never to be run. */
	CALL(brk), CALL(munmap), CALL(mremap),
	/* Time, where the vDSO has to ask the kernel. */
	CALL(clock_gettime), CALL(gettimeofday),
	/* arc4random(3), which wants to know whether it has forked. */
	CALL(getrandom), CALL(getpid),
	/* SIGTERM, and the end. */
	CALL(rt_sigreturn), CALL(exit_group),
#ifndef SBX_SANITIZER
	CALL_IF(mmap, 2, PROT_READ | PROT_WRITE),
#else
	/* AddressSanitizer's own: its map, its stacks, its report. */
	CALL(mmap), CALL(mprotect), CALL(madvise), CALL(sigaltstack),
	CALL(sched_yield), CALL(futex), CALL(gettid), CALL(tgkill),
	CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(prctl), CALL(clone),
	CALL(wait4), CALL(exit), CALL(openat), CALL(open), CALL(lseek),
	CALL(fstat), CALL(newfstatat), CALL(readlink), CALL(ioctl),
	CALL(getuid), CALL(getppid), CALL(prlimit64), CALL(getdents64),
	CALL(nanosleep), CALL(clock_nanosleep), CALL(ptrace),
#endif
};

void
front_confine(struct confine *c, uint32_t uid, uint32_t gid, const char *root)
{
	*c = (struct confine){
		.root = root,
		.uid = uid,
		.gid = gid,
		.caps = 0,
		.keep_bounding = 0,
		.nofile = FRONT_NOFILE,
		.no_files = 1,
		.mode = CONFINE_ALLOW,
		.calls = calls,
		.ncalls = sizeof(calls) / sizeof(calls[0])
	};
}
