/* SPDX-License-Identifier: ISC */
/*
 * Creating a sandbox, for create and run.
 */
#ifndef SBX_SANDBOX_H
#define SBX_SANDBOX_H

#include "ctl.h"

struct json_object;

/* Pairs that options collected, in their order; borrowed from argv. */
struct pairs {
	const char	**v;
	size_t		  n;
};
/*
 * Adds "key=value"; "key" alone takes our own environment's value if
 * `from_env`.  What is neither is a usage error.
 */
void	pairs_add(struct pairs *, const char *option, const char *,
	    int from_env);

struct create_spec {
	const char	*template;
	const char	*name;
	const char	*key;
	const char	*on_disconnect;
	uint32_t	 vcpu, memory_mib, disk_mib, timeout_s;	/* 0: default */
	struct pairs	 env, metadata;
};
/* The new sandbox, owned by the caller.  0 or -1. */
int	sandbox_create(const struct create_spec *, unsigned int signals_max,
	    struct json_object **, struct fault *);

#endif
