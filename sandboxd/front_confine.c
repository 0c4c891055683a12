/* SPDX-License-Identifier: ISC */
/*
 * What the front process keeps: its descriptors, memory, time and randomness.
 * No file can be opened, no socket made, nothing started, nobody signalled.  In a
 * file of its own so that a test can try the very table.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <stdio.h>

#include "confine.h"
#include "front.h"

static const struct confine_call calls[] = {
	/* Descriptors that we have: clients, guests, the parent, stderr. */
	CALL(read), CALL(readv), CALL(write), CALL(writev), CALL(close),
	CALL(recvmsg), CALL(sendmsg), CALL(accept4), CALL(shutdown),
	CALL(poll), CALL(epoll_ctl), CALL(epoll_wait),
	CALL_IF(fcntl, 1, F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC),
	/* Memory; nothing becomes executable. */
	CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise), CALL(futex),
	CALL_IF(mmap, 2, PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE),
	/* Time, where the vDSO has to ask the kernel; randomness. */
	CALL(clock_gettime), CALL(gettimeofday), CALL(getrandom),
	/* SIGTERM, and the end. */
	CALL(rt_sigreturn), CALL(rt_sigprocmask), CALL(restart_syscall),
	CALL(getpid), CALL(gettid), CALL(tgkill), CALL(exit_group),
#ifdef SBX_SANITIZER
	/* AddressSanitizer's own: its map, its stacks, its report. */
	CALL(sigaltstack), CALL(mprotect), CALL(sched_yield), CALL(getuid),
	CALL(readlink), CALL(openat), CALL(open), CALL(ioctl), CALL(lseek),
	CALL(fstat), CALL(newfstatat), CALL(prctl), CALL(clone), CALL(wait4),
	CALL(rt_sigaction), CALL(ptrace), CALL(getrlimit), CALL(prlimit64),
	CALL(exit), CALL(nanosleep), CALL(clock_nanosleep), CALL(getppid),
	CALL(stat), CALL(fsync), CALL(access), CALL(readlinkat),
	CALL(getdents64), CALL(set_robust_list), CALL(arch_prctl),
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
