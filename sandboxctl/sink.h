/* SPDX-License-Identifier: ISC */
/*
 * Where a guest's output goes: our stdout and stderr, written to without ever
 * blocking, so that signals and pings are answered while a reader is slow.
 */
#ifndef SBX_SINK_H
#define SBX_SINK_H

#include <stddef.h>
#include <sys/types.h>

struct sink {
	int	 fd;		/* poll this one for POLLOUT */
	int	 own;		/* a description of our own, not shared */
	int	 is_socket;
	size_t	 max;		/* bytes that one write may have */
};

void	sink_open(struct sink *, int fd);
void	sink_close(struct sink *);
/* Bytes written; 0: would block; -1: errno. */
ssize_t	sink_write(struct sink *, const void *, size_t);

#endif
