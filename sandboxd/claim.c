/* SPDX-License-Identifier: ISC */
/*
 * One instance for each tag, uid and address of the host.  A daemon kills what
 * runs under its uids and removes what has its tag, so two of them must not have
 * the same.  The claim is a
 * lock on the range's bytes of a file that all instances know (open file
 * description lock, fcntl(2)): it ends with the process, however it ends.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "log.h"
#include "sandboxd.h"

#define CLAIM_DIR	"/run/sandboxd"

/* The descriptor is the claim: it stays open as long as the daemon lives. */
static int
claim_range(const char *name, uint64_t first, uint64_t count)
{
	struct flock	 lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
			    .l_start = (off_t)first, .l_len = (off_t)count };
	char		 path[64];
	int		 fd;

	(void)snprintf(path, sizeof(path), CLAIM_DIR "/%s", name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1) {
		log_warn("%s: other instances cannot be told from us", path);
		return 0;
	}
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	(void)close(fd);
	return errno == EAGAIN || errno == EACCES ? -1 : 0;
}

/* A tag as a number: its letters are digits enough for one byte of the file. */
static uint64_t
tag_number(const char *tag)
{
	uint64_t	 n = 0;

	for (; *tag != '\0'; tag++)
		n = n << 8 | (uint8_t)*tag;
	return n;
}

void
claim_host(const struct config *c)
{
	if (mkdir(CLAIM_DIR, 0755) == -1 && errno != EEXIST)
		log_warn("%s", CLAIM_DIR);
	if (claim_range("tags", tag_number(c->tag), 1) == -1)
		fatalx("tag %s: another sandboxd that runs here has it; give "
		    "each its own (\"tag\" in its configuration)", c->tag);
	if (claim_range("uids", c->uid_first, c->uid_count) == -1)
		fatalx("uids %u count %u: another sandboxd that runs here has "
		    "some of them; give each its own (\"uids\" in its "
		    "configuration)", c->uid_first, c->uid_count);
	if (claim_range("addresses", c->pool,
	    1ULL << (32 - c->pool_prefix)) == -1)
		fatalx("pool of /%u: another sandboxd that runs here has some "
		    "of its addresses; give each its own (\"pool\" in its "
		    "configuration)", c->pool_prefix);
}
