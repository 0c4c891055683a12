/* SPDX-License-Identifier: ISC */
/*
 * Owners.  Front hands up each client's socket; the kernel says who is at the
 * other end, and front gets a random handle for that owner.  A front that has
 * been taken over can speak only for owners whose clients it has really seen.
 */
#include <sys/socket.h>

#include <stdio.h>
#include <stdlib.h>

#include "sandboxd.h"

struct owner *
owner_identify(int fd, enum sbx_error *error)
{
	struct ucred	 cred;
	socklen_t	 len = sizeof(cred);
	struct owner	*o;

	*error = E_UNAUTHORIZED;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1 ||
	    len != sizeof(cred) || cred.pid == 0)
		return NULL;
	TAILQ_FOREACH(o, &sandboxd->owners, entry)
		if (o->uid == cred.uid)
			return o;
	o = calloc(1, sizeof(*o));
	if (o == NULL) {
		*error = E_HOST_MEMORY;
		return NULL;
	}
	o->uid = cred.uid;
	(void)snprintf(o->name, sizeof(o->name), "uid:%u", cred.uid);
	do {
		arc4random_buf(&o->handle, sizeof(o->handle));
	} while (o->handle == 0 || owner_by_handle(o->handle) != NULL);
	TAILQ_INSERT_TAIL(&sandboxd->owners, o, entry);
	return o;
}

struct owner *
owner_by_handle(uint64_t handle)
{
	struct owner	*o;

	TAILQ_FOREACH(o, &sandboxd->owners, entry)
		if (o->handle == handle)
			return o;
	return NULL;
}

void
owner_forget_all(void)
{
	struct owner	*o;

	while ((o = TAILQ_FIRST(&sandboxd->owners)) != NULL) {
		TAILQ_REMOVE(&sandboxd->owners, o, entry);
		free(o);
	}
}
