/* SPDX-License-Identifier: ISC */
/*
 * Logging for all daemon processes.  Text reaches it already vetted: what came
 * from outside goes through log_vis().
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bsd/vis.h>

#include "log.h"

enum { PRIO_ERR = 3, PRIO_WARNING = 4, PRIO_INFO = 6, PRIO_DEBUG = 7 };

static struct {
	const char	*name;
	int		 verbose;
	int		 journal;
	unsigned long	 lost;
} logger = { "sandboxd", 0, 0, 0 };

void
log_init(const char *name, int verbose)
{
	logger.name = name;
	logger.verbose = verbose;
	logger.journal = getenv("JOURNAL_STREAM") != NULL && !isatty(STDERR_FILENO);
	/* gmtime_r(3) reads a file at its first use: not in a confined process. */
	tzset();
}

void
log_setverbose(int verbose)
{
	logger.verbose = verbose;
}

int
log_getverbose(void)
{
	return logger.verbose;
}

static void
log_line(int prio, int err, const char *fmt, va_list ap)
{
	static const char	*word[] = { [PRIO_ERR] = "error: ",
				    [PRIO_WARNING] = "warning: ",
				    [PRIO_INFO] = "", [PRIO_DEBUG] = "debug: " };
	char			 line[1024], head[64];
	struct timespec		 ts;
	struct tm		 tm;
	size_t			 n;
	int			 len, saved = errno;

	if (logger.journal) {
		len = snprintf(line, sizeof(line), "<%d>%s: ", prio, logger.name);
	} else {
		(void)clock_gettime(CLOCK_REALTIME, &ts);
		(void)gmtime_r(&ts.tv_sec, &tm);
		(void)strftime(head, sizeof(head), "%Y-%m-%dT%H:%M:%S", &tm);
		len = snprintf(line, sizeof(line), "%s.%03ldZ %s: %s", head,
		    ts.tv_nsec / 1000000, logger.name, word[prio]);
	}
	n = (size_t)len;
	len = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	if (len > 0)
		n += (size_t)len < sizeof(line) - n - 1 ? (size_t)len :
		    sizeof(line) - n - 2;
	if (err != 0 && n < sizeof(line) - 2) {
		len = snprintf(line + n, sizeof(line) - n - 1, ": %s",
		    strerror(err));
		n += (size_t)len < sizeof(line) - n - 1 ? (size_t)len :
		    sizeof(line) - n - 2;
	}
	line[n++] = '\n';
	/* One write for one line; a full or closed stderr must not stop us. */
	if (write(STDERR_FILENO, line, n) == -1)
		logger.lost++;
	errno = saved;
}

#define LOG_BODY(prio, err) do {					\
	va_list	ap;							\
									\
	va_start(ap, fmt);						\
	log_line(prio, err, fmt, ap);					\
	va_end(ap);							\
} while (0)

void
log_warn(const char *fmt, ...)
{
	LOG_BODY(PRIO_WARNING, errno);
}

void
log_warnx(const char *fmt, ...)
{
	LOG_BODY(PRIO_WARNING, 0);
}

void
log_info(const char *fmt, ...)
{
	LOG_BODY(PRIO_INFO, 0);
}

void
log_debug(const char *fmt, ...)
{
	if (logger.verbose > 0)
		LOG_BODY(PRIO_DEBUG, 0);
}

void
fatal(const char *fmt, ...)
{
	LOG_BODY(PRIO_ERR, errno);
	exit(1);
}

void
fatalx(const char *fmt, ...)
{
	LOG_BODY(PRIO_ERR, 0);
	exit(1);
}

const char *
log_vis(const char *text, size_t len)
{
	static char	 ring[4][128 * 4 + 1];
	static unsigned	 turn;
	char		*out = ring[turn++ % 4];

	if (len > 128)
		len = 128;
	(void)strvisx(out, text, len, VIS_SAFE | VIS_CSTYLE | VIS_NL | VIS_TAB);
	return out;
}
