/* SPDX-License-Identifier: ISC */
/*
 * Sandbox ids: "sb-" and 80 random bits as 16 lower-case base32 characters
 * (RFC 4648 alphabet).  Fits jailer's rule for ids ([A-Za-z0-9-], at most 64).
 */
#ifndef SBX_ID_H
#define SBX_ID_H

#include "limits.h"

/* Fills a buffer of SBX_ID_LEN + 1 bytes with a fresh id. */
void	id_new(char *);
/* Is this text exactly such an id? */
int	id_valid(const char *);
/*
 * Names given by users (sandbox names, templates): 1 to SBX_NAME_MAX of
 * [A-Za-z0-9._-], first a letter or digit, so that they are safe as one path
 * component and as a host name's start.
 */
int	name_valid(const char *);
/* An instance tag: SBX_TAG_LEN of [a-z2-7]. */
int	tag_valid(const char *);
/* The tag that belongs to a state directory's (absolute, resolved) path. */
void	tag_from_path(const char *, char *);

#endif
