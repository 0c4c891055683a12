/* SPDX-License-Identifier: ISC */
/* objs: gen/parse.o sandboxd/conf_value.o sandboxd/config.o libs: -lbsd
 * options: -max_len=4096 */
/*
 * The configuration file: any bytes are refused with a message or give a
 * configuration whose printed form reads back to the same.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

int	LLVMFuzzerInitialize(int *, char ***);
int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define PRINTED_MAX	16384

static int	 file;		/* what is parsed, in memory */
static char	 path[64];

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	file = memfd_create("sandboxd.conf", MFD_CLOEXEC);
	if (file == -1 || fchmod(file, 0600) == -1)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	/* Messages are of no interest, sanitizers write to the descriptor. */
	stderr = fopen("/dev/null", "we");
	if (stderr == NULL)
		abort();
	return 0;
}

static int
parse(struct config *c, const void *data, size_t len)
{
	if (ftruncate(file, 0) == -1 || pwrite(file, data, len, 0) !=
	    (ssize_t)len)
		abort();
	config_defaults(c, "/");
	return config_parse(c, path);
}

static size_t
print(const struct config *c, char *out)
{
	FILE	*f;
	long	 n;

	f = fmemopen(out, PRINTED_MAX, "w");
	if (f == NULL)
		abort();
	config_print(c, f);
	n = ftell(f);
	if (n <= 0 || n >= PRINTED_MAX || fclose(f) != 0)
		abort();
	return (size_t)n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct config	 c, again;
	static char		 first[PRINTED_MAX], second[PRINTED_MAX];
	size_t			 n;

	if (parse(&c, data, len) == -1)
		return 0;
	n = print(&c, first);
	/* Its values have been accepted, so they must be again. */
	if (parse(&again, first, n) == -1)
		abort();
	if (print(&again, second) != n || memcmp(first, second, n) != 0)
		abort();
	(void)config_finish(&c, path);
	return 0;
}
