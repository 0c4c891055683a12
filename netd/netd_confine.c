/* SPDX-License-Identifier: ISC */
/*
 * What netd may do after its set-up: talk over the sockets it has, make and
 * name a tap from a descriptor it was handed.  It opens nothing and makes no
 * socket.  A table of its own so that a test holds it against every call.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <linux/capability.h>
#include <linux/if_tun.h>

#include "confine.h"
#include "netd.h"

static const struct confine_call	 calls[] = {
	/* The channel to the parent, netlink, the log. */
	CALL(recvmsg), CALL(sendmsg), CALL(recvfrom), CALL(sendto),
	CALL(read), CALL(write), CALL(close), CALL(poll),
	/* The event loop; time, where the vDSO has to ask the kernel. */
	CALL(epoll_wait), CALL(epoll_ctl), CALL(clock_gettime),
	CALL(gettimeofday),
	/* A tap: the descriptor's kind (fstat(3) is one of the two). */
	CALL(newfstatat), CALL(fstat),
	CALL_IF(ioctl, 1, (uint32_t)TUNSETIFF, (uint32_t)TUNSETOWNER,
	    (uint32_t)TUNSETGROUP),
	/* Memory; nothing becomes executable. */
	CALL(brk), CALL(munmap), CALL(mremap),
	CALL_IF(mmap, 2, PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE),
	/* Signals and the end. */
	CALL(rt_sigreturn), CALL(restart_syscall), CALL(exit_group),
#ifdef SBX_SANITIZER
	CALL(sigaltstack), CALL(gettid), CALL(openat), CALL(readlink),
	CALL(sched_yield), CALL(getrandom), CALL(rt_sigaction), CALL(tgkill),
	CALL(sched_getaffinity), CALL(futex), CALL(madvise), CALL(getpid),
	CALL(rt_sigprocmask),
	CALL_IF(mprotect, 2, PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE),
#endif
};

void
netd_confine(struct confine *c, uint32_t uid, uint32_t gid, const char *root)
{
	*c = (struct confine){
		.root = root,
		.uid = uid,
		.gid = gid,
		.caps = CONFINE_CAP(CAP_NET_ADMIN),
		.keep_bounding = 1,
		.nofile = NETD_NOFILE,
		.no_files = 1,
		.mode = CONFINE_ALLOW,
		.calls = calls,
		.ncalls = sizeof(calls) / sizeof(calls[0])
	};
}
