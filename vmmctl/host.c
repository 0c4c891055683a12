/* SPDX-License-Identifier: ISC */
/*
 * Facts about the host.  Runs in vmm at start-up.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <x86intrin.h>

#include "host.h"
#include "log.h"

#define TSC_SAMPLE_NS	50000000

static uint64_t
now_ns(void)
{
	struct timespec	 ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The counter at a time: of some tries the one least disturbed. */
static void
read_both(uint64_t *tsc, uint64_t *ns)
{
	uint64_t	 a, b, t, best = UINT64_MAX;
	int		 i;

	for (i = 0; i < 16; i++) {
		a = __rdtsc();
		t = now_ns();
		b = __rdtsc();
		if (b - a >= best)
			continue;
		best = b - a;
		*tsc = a + (b - a) / 2;
		*ns = t;
	}
}

/*
 * A guest's rdtsc shows the host's counter: KVM passes it through, and QEMU's
 * software emulation without -icount executes rdtsc itself (less an offset).
 * Neither /proc/cpuinfo nor /sys says its frequency on every host, dmesg
 * forgets, so it is measured against the host's clock.
 */
uint64_t
host_tsc_khz(void)
{
	struct timespec	 ts = { 0, TSC_SAMPLE_NS };
	uint64_t	 tsc0, ns0, tsc1, ns1;

	read_both(&tsc0, &ns0);
	while (nanosleep(&ts, &ts) == -1 && errno == EINTR)
		continue;
	read_both(&tsc1, &ns1);
	return ((tsc1 - tsc0) * 1000000 + (ns1 - ns0) / 2) / (ns1 - ns0);
}

int
host_has_kvm(void)
{
	int	 fd;

	fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (fd == -1)
		return 0;
	(void)close(fd);
	return 1;
}

void
host_kernel_version(const char *path, char *out, size_t size)
{
	static const char	 mark[] = "Linux version ";
	struct stat		 st;
	const char		*p;
	void			*map = MAP_FAILED;
	size_t			 n, left;
	int			 fd;

	out[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1 || st.st_size == 0)
		goto done;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		goto done;
	p = map;
	left = (size_t)st.st_size;
	/* The format string "Linux version %s" may stand there, too. */
	while ((p = memmem(p, left, mark, sizeof(mark) - 1)) != NULL) {
		p += sizeof(mark) - 1;
		left = (size_t)st.st_size - (size_t)(p - (const char *)map);
		if (left > 0 && *p >= '0' && *p <= '9')
			break;
	}
	for (n = 0; p != NULL && n < size - 1 && n < left && p[n] > ' ' &&
	    p[n] <= '~'; n++)
		out[n] = p[n];
	out[n] = '\0';
done:
	if (out[0] == '\0')
		log_warnx("guest kernel %s: not there, or no kernel", path);
	if (map != MAP_FAILED)
		(void)munmap(map, (size_t)st.st_size);
	if (fd != -1)
		(void)close(fd);
}
