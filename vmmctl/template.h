/* SPDX-License-Identifier: ISC */
/*
 * Templates: <template_dir>/<name>/template.json and the root image beside it.
 */
#ifndef SBX_TEMPLATE_H
#define SBX_TEMPLATE_H

#include <stddef.h>

#include "vmm.h"

/*
 * Opens the root image of a template, read-only; -1 with the fault filled.
 * May block as long as one small file takes.
 */
int	template_open_root(const char *name, struct fault *);
/* Reads a template.json's text: 0 and the root image's name, or -1. */
int	template_parse(const char *, size_t, const char *name, char *root,
	    size_t, struct fault *);

#endif
