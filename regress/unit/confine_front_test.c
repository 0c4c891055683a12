/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/front_confine.o */
/*
 * front's confinement against every system call number, in user space and for
 * real.  The list here is written by hand: a call more in the code is a failure
 * until it is stated here, too.
 */
#include "test.h"
#include "confine_probe.h"
#include "front.h"

TEST_PLAN_AUTO;

static const struct probe front_calls[] = {
	PROBE(read), PROBE(write), PROBE(writev), PROBE(close),
	PROBE(shutdown), PROBE(accept4), PROBE(recvmsg), PROBE(sendmsg),
	PROBE(poll), PROBE(epoll_ctl), PROBE(epoll_wait),
	PROBE_IF(fcntl, 1, 3, 4, 1030),
	PROBE(brk), PROBE_IF(mmap, 2, 3), PROBE(munmap), PROBE(mremap),
	PROBE(clock_gettime), PROBE(gettimeofday), PROBE(getrandom),
	PROBE(getpid), PROBE(rt_sigreturn), PROBE(exit_group)
};
#define FRONT_CALLS	(sizeof(front_calls) / sizeof(front_calls[0]))

int
main(void)
{
	static struct probe_filter	 f;
	struct confine			 c;
	size_t				 i;

	front_confine(&c, 4321, 4321, "/");
	f.n = confine_filter(&c, f.code, PROBE_CODE_MAX);
	ok(f.n > 0, "front: %zu instructions", f.n);
	is_int(c.caps, 0, "front: no capability");
	is_int(c.keep_bounding, 0, "front: no bounding set");
	is_int(c.mode, CONFINE_ALLOW, "front: what is not listed kills");
	if (PROBE_SANITIZER) {
		skip("a sanitizer needs more", "front: the list");
	} else {
		ok(c.ncalls <= 35, "front: %zu calls, at most 35", c.ncalls);
		is_int(c.ncalls, FRONT_CALLS, "front: as many calls as stated");
		is_int(probe_numbers(&f, front_calls, FRONT_CALLS), 0,
		    "front: filter and stated list agree for -1 to %d",
		    PROBE_LAST);
		is_int(probe_kills(&f, front_calls, FRONT_CALLS), 0,
		    "front: every other number kills, for real");
	}
	for (i = 0; i < PROBE_FORBIDDEN; i++)
		if (!PROBE_SANITIZED(probe_forbidden[i].nr) &&
		    probe_forbidden[i].nr != SYS_accept4)
			ok(probe_forbids(&f, i), "front: %s kills",
			    probe_text(i));
	return done_testing();
}
