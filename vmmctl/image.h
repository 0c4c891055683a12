/* SPDX-License-Identifier: ISC */
/*
 * A VM's private writable layer: a sparse ext4 image copied from a blank of
 * its size.
 */
#ifndef SBX_IMAGE_H
#define SBX_IMAGE_H

#include <stdint.h>

#include "vmm.h"

/* Start-up: removes half-made blanks of an earlier life. */
void	image_init(void);
/*
 * Finds the blank of a size, making it if there is none yet (mke2fs, in a
 * process of its own).  Calls back at once or later, with a descriptor that
 * the callback owns, or -1 and the fault.
 */
typedef void	(*image_blank_cb)(int fd, const struct fault *, void *arg);
void	image_get_blank(uint32_t mib, image_blank_cb, void *arg);
/* The callback for this arg is not wanted any more. */
void	image_forget(void *arg);

/*
 * Copies a blank's data (not its holes) to a new file of a directory.  Slow on
 * a busy disk: runs in a child process.  The caller owns both descriptors.
 */
int	image_copy_layer(int blank, int dir, const char *name, int *rdwr,
	    int *rdonly, struct fault *);

#endif
