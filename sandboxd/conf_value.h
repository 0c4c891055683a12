/* SPDX-License-Identifier: ISC */
/*
 * Between the grammar (parse.y) and the values of its statements
 * (conf_value.c); nobody else needs it.  Every function reports what is wrong
 * with conf_fault() and then leaves the member as it was.
 */
#ifndef SBX_CONF_VALUE_H
#define SBX_CONF_VALUE_H

#include <stddef.h>
#include <stdint.h>

struct config;
struct resources;

enum resource {
	RESOURCE_VCPU,
	RESOURCE_MEMORY,
	RESOURCE_DISK,
	RESOURCE_TIMEOUT
};

/* Counts a fault and prints "file:line: message". */
void	conf_fault(const char *, ...) __attribute__((format(printf, 1, 2)));

/* Text, the statement's two words (the second may be NULL), bounds. */
void	value_number(uint32_t *, const char *, const char *, const char *,
	    long long, long long);
void	value_resource(struct resources *, const char *, enum resource,
	    const char *);
void	value_path(char *, size_t, const char *, const char *);
void	value_user(uint32_t *, uint32_t *, const char *, const char *);
void	value_tag(struct config *, const char *);
void	value_group(struct config *, const char *);
void	value_mode(struct config *, const char *);
void	value_memory_limit(struct config *, const char *);
void	value_pool(struct config *, const char *);
void	value_dns(struct config *, const char *);

#endif
