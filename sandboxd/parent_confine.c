/* SPDX-License-Identifier: ISC */
/*
 * What the parent keeps, and so what everything that it starts can have.
 */
#include <sys/capability.h>

#include "confine.h"
#include "sandboxd.h"

/*
 * Root, with what starting the three children and their children needs and a
 * list of calls that none of them may make.  Everything here is inherited: no
 * Landlock, no allow list (DESIGN 2).
 */
void
parent_confine(void)
{
	struct confine	 c = { .caps =
	    CONFINE_CAP(CAP_CHOWN) | CONFINE_CAP(CAP_DAC_OVERRIDE) |
	    CONFINE_CAP(CAP_FOWNER) | CONFINE_CAP(CAP_KILL) |
	    CONFINE_CAP(CAP_SETGID) | CONFINE_CAP(CAP_SETUID) |
	    CONFINE_CAP(CAP_SETPCAP) | CONFINE_CAP(CAP_NET_ADMIN) |
	    CONFINE_CAP(CAP_SYS_CHROOT) | CONFINE_CAP(CAP_SYS_ADMIN) |
	    CONFINE_CAP(CAP_MKNOD) | CONFINE_CAP(CAP_SYS_RESOURCE),
	    .keep_bounding = 1, .mode = CONFINE_DENY,
	    .calls = confine_deny_calls, .ncalls = confine_deny_ncalls };

	confine_apply(&c);
}
