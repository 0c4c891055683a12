/* SPDX-License-Identifier: ISC */
/*
 * What this host is like, looked up once at start-up.
 */
#ifndef SBX_HOST_H
#define SBX_HOST_H

#include <stddef.h>
#include <stdint.h>

/* Frequency of the time stamp counter in kHz; takes 50 ms. */
uint64_t	host_tsc_khz(void);
/* Is there a /dev/kvm that opens?  (Whether guests run is another matter.) */
int		host_has_kvm(void);
/* The release in a kernel's image ("6.1.0-..."); "" if none is found. */
void		host_kernel_version(const char *path, char *, size_t);

#endif
