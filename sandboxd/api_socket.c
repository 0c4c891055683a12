/* SPDX-License-Identifier: ISC */
/*
 * The API's listening socket.  The parent binds it, as root, and hands it to
 * front.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <stdio.h>
#include <unistd.h>

#include <bsd/string.h>

#include "log.h"
#include "sandboxd.h"

static int
socket_in_use(const struct sockaddr_un *sun)
{
	int	 fd, r = -1, tries;

	/* A front whose parent was just killed listens for a moment more. */
	for (tries = 0; tries < 20; tries++) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd == -1)
			return 0;
		r = connect(fd, (const struct sockaddr *)sun, sizeof(*sun));
		(void)close(fd);
		if (r == -1)
			return 0;
		(void)usleep(100000);
	}
	return 1;
}

/*
 * Bound under another name with nobody's rights, then given its mode and group
 * and renamed into place: no client ever meets it half made.
 */
int
api_socket_listen(const struct config *c)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };
	char			 final[SUN_PATH_MAX + 1];
	mode_t			 old;
	int			 fd;

	(void)strlcpy(final, c->socket_path, sizeof(final));
	(void)strlcpy(sun.sun_path, final, sizeof(sun.sun_path));
	if (socket_in_use(&sun)) {
		log_warnx("%s: another daemon answers there", final);
		return -1;
	}
	if (strlcat(sun.sun_path, "~", sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path)) {
		log_warnx("%s: path is too long by one byte", final);
		return -1;
	}
	(void)unlink(sun.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	old = umask(0777);
	if (fd == -1 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		log_warn("%s", sun.sun_path);
		(void)umask(old);
		if (fd != -1)
			(void)close(fd);
		return -1;
	}
	(void)umask(old);
	if (chown(sun.sun_path, 0, c->socket_gid) == -1 ||
	    chmod(sun.sun_path, (mode_t)c->socket_mode) == -1 ||
	    listen(fd, 512) == -1 || rename(sun.sun_path, final) == -1) {
		log_warn("%s", final);
		(void)unlink(sun.sun_path);
		(void)close(fd);
		return -1;
	}
	return fd;
}
