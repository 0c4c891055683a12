/* SPDX-License-Identifier: ISC */
/*
 * TAP for unit tests: each check prints one line, done_testing() the plan, and
 * main() returns what done_testing() returns.  Test programs only.
 *
 *	TEST_PLAN_AUTO;
 *	int main(void) { ok(1, "part: works"); return done_testing(); }
 */
#ifndef SBX_TEST_H
#define SBX_TEST_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_PLAN_AUTO	static unsigned int test_count, test_failed

#define ok(cond, ...)							\
	test_line(&test_count, &test_failed, (cond) ? 1 : 0, __FILE__,	\
	    __LINE__, __VA_ARGS__)
#define is_int(got, want, ...)						\
	test_int(&test_count, &test_failed, (intmax_t)(got),		\
	    (intmax_t)(want), __FILE__, __LINE__, __VA_ARGS__)
#define is_str(got, want, ...)						\
	test_str(&test_count, &test_failed, (got), (want), __FILE__,	\
	    __LINE__, __VA_ARGS__)
#define is_mem(got, want, len, ...)					\
	test_mem(&test_count, &test_failed, (got), (want), (len),	\
	    __FILE__, __LINE__, __VA_ARGS__)
#define skip(why, ...)							\
	test_skip(&test_count, (why), __VA_ARGS__)
#define done_testing()	test_done(test_count, test_failed)

static inline void
test_vline(unsigned int *count, unsigned int *failed, int good,
    const char *file, int line, const char *fmt, va_list ap)
{
	if (!good)
		(*failed)++;
	printf("%sok %u - ", good ? "" : "not ", ++*count);
	vprintf(fmt, ap);
	printf("\n");
	if (!good)
		printf("# at %s:%d\n", file, line);
	fflush(stdout);
}

static inline int __attribute__((format(printf, 6, 7)))
test_line(unsigned int *count, unsigned int *failed, int good,
    const char *file, int line, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	test_vline(count, failed, good, file, line, fmt, ap);
	va_end(ap);
	return good;
}

static inline int __attribute__((format(printf, 7, 8)))
test_int(unsigned int *count, unsigned int *failed, intmax_t got,
    intmax_t want, const char *file, int line, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	test_vline(count, failed, got == want, file, line, fmt, ap);
	va_end(ap);
	if (got != want)
		printf("# got %" PRIdMAX ", want %" PRIdMAX "\n", got, want);
	return got == want;
}

static inline int __attribute__((format(printf, 7, 8)))
test_str(unsigned int *count, unsigned int *failed, const char *got,
    const char *want, const char *file, int line, const char *fmt, ...)
{
	va_list	 ap;
	int	 good;

	good = got == want ||
	    (got != NULL && want != NULL && strcmp(got, want) == 0);
	va_start(ap, fmt);
	test_vline(count, failed, good, file, line, fmt, ap);
	va_end(ap);
	if (!good)
		printf("# got  \"%s\"\n# want \"%s\"\n",
		    got == NULL ? "(null)" : got,
		    want == NULL ? "(null)" : want);
	return good;
}

static inline int __attribute__((format(printf, 8, 9)))
test_mem(unsigned int *count, unsigned int *failed, const void *got,
    const void *want, size_t len, const char *file, int line,
    const char *fmt, ...)
{
	const unsigned char	*a = got, *b = want;
	va_list			 ap;
	size_t			 i;

	for (i = 0; i < len && a[i] == b[i]; i++)
		;
	va_start(ap, fmt);
	test_vline(count, failed, i == len, file, line, fmt, ap);
	va_end(ap);
	if (i < len)
		printf("# byte %zu of %zu: got 0x%02x, want 0x%02x\n", i, len,
		    a[i], b[i]);
	return i == len;
}

static inline void __attribute__((format(printf, 3, 4)))
test_skip(unsigned int *count, const char *why, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	printf("ok %u - ", ++*count);
	vprintf(fmt, ap);
	va_end(ap);
	printf(" # SKIP %s\n", why);
}

static inline int
test_done(unsigned int count, unsigned int failed)
{
	printf("1..%u\n", count);
	if (failed != 0)
		printf("# %u of %u failed\n", failed, count);
	return failed == 0 && count != 0 ? 0 : 1;
}

#endif
