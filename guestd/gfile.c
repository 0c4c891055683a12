/* SPDX-License-Identifier: ISC */
/* Small files of the kernel's and of the root file system, in one call. */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "guestd.h"

int
file_write(int dir, const char *path, const char *text)
{
	size_t	 len = strlen(text);
	ssize_t	 n;
	int	 fd, error;

	fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd == -1)
		return -1;
	n = write(fd, text, len);
	error = n == -1 ? errno : EIO;
	(void)close(fd);
	if (n == (ssize_t)len)
		return 0;
	errno = error;
	return -1;
}

/* Gives a string; what does not fit is cut.  A fifo does not hold us up. */
ssize_t
file_read(int dir, const char *path, char *buf, size_t size)
{
	struct stat	 st;
	size_t		 have = 0;
	ssize_t		 n = -1;
	int		 fd, error;

	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd == -1)
		return -1;
	error = EINVAL;
	if (fstat(fd, &st) == -1)
		error = errno;
	else if (S_ISREG(st.st_mode)) {
		do {
			n = read(fd, buf + have, size - 1 - have);
			error = errno;
			if (n > 0)
				have += (size_t)n;
		} while (n > 0 && have < size - 1);
	}
	(void)close(fd);
	if (n == -1) {
		errno = error;
		return -1;
	}
	buf[have] = '\0';
	return (ssize_t)have;
}
