/* SPDX-License-Identifier: ISC */
/*
 * Time.  Deadlines are measured on CLOCK_BOOTTIME: no date(1) moves it, and a
 * suspended host's time counts.  Wall time is for people only; the two are
 * different types so that they cannot be mixed.
 */
#ifndef SBX_CLOCK_H
#define SBX_CLOCK_H

#include <stdint.h>
#include <time.h>

struct boottime { uint64_t ms; };	/* since the host's boot */
struct walltime { uint64_t ms; };	/* since 1970, UTC */

static inline uint64_t
clock_read_ms(clockid_t id)
{
	struct timespec	 ts = { 0, 0 };

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline struct boottime
boottime_now(void)
{
	return (struct boottime){ clock_read_ms(CLOCK_BOOTTIME) };
}

static inline struct walltime
walltime_now(void)
{
	return (struct walltime){ clock_read_ms(CLOCK_REALTIME) };
}

#endif
