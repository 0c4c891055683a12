/* SPDX-License-Identifier: ISC */
/*
 * What a unit test needs: checks that print TAP lines, and the plan at the end.
 * A test is one program:
 *
 *	#include "test.h"
 *	int
 *	main(void)
 *	{
 *		TEST_PLAN_AUTO;
 *		ok(x > 0, "part: condition -> result");
 *		is_int(part_count(p), 3, "part: after %d adds -> %d", 3, 3);
 *		return done_testing();
 *	}
 *
 * Every check returns whether it held, so that what follows can depend on it.
 */
#ifndef REGRESS_TEST_H
#define REGRESS_TEST_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int	test_count, test_failed;

/* Lines appear as they are written, also when the program then crashes. */
#define TEST_PLAN_AUTO	((void)setvbuf(stdout, NULL, _IOLBF, 0))

#define ok(cond, ...)							\
	test_result((cond) ? 1 : 0, __FILE__, __LINE__, #cond, __VA_ARGS__)
#define is_int(got, want, ...)						\
	test_int((int64_t)(got), (int64_t)(want), __FILE__, __LINE__,	\
	    __VA_ARGS__)
#define is_str(got, want, ...)						\
	test_str((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define is_mem(got, want, len, ...)					\
	test_mem((got), (want), (len), __FILE__, __LINE__, __VA_ARGS__)
#define pass(...)	test_result(1, __FILE__, __LINE__, "", __VA_ARGS__)
#define fail(...)	test_result(0, __FILE__, __LINE__, "", __VA_ARGS__)
#define skip(why, ...)	test_skip((why), __VA_ARGS__)
#define diag(...)							\
	((void)(printf("# "), printf(__VA_ARGS__), printf("\n")))

__attribute__((format(printf, 2, 0)))
static inline int
test_vline(int good, const char *fmt, va_list ap)
{
	test_count++;
	if (!good)
		test_failed++;
	(void)printf("%sok %d - ", good ? "" : "not ", test_count);
	(void)vprintf(fmt, ap);
	return good;
}

__attribute__((format(printf, 5, 6)))
static inline int
test_result(int good, const char *file, int line, const char *cond,
    const char *fmt, ...)
{
	va_list		 ap;

	va_start(ap, fmt);
	(void)test_vline(good, fmt, ap);
	va_end(ap);
	(void)printf("\n");
	if (!good)
		(void)printf("#   %s:%d: %s\n", file, line, cond);
	return good;
}

__attribute__((format(printf, 2, 3)))
static inline void
test_skip(const char *why, const char *fmt, ...)
{
	va_list		 ap;

	va_start(ap, fmt);
	(void)test_vline(1, fmt, ap);
	va_end(ap);
	(void)printf(" # SKIP %s\n", why);
}

__attribute__((format(printf, 5, 6)))
static inline int
test_int(int64_t got, int64_t want, const char *file, int line,
    const char *fmt, ...)
{
	va_list		 ap;

	va_start(ap, fmt);
	(void)test_vline(got == want, fmt, ap);
	va_end(ap);
	(void)printf("\n");
	if (got != want)
		(void)printf("#   %s:%d: got %" PRId64 " (%#" PRIx64
		    "), want %" PRId64 " (%#" PRIx64 ")\n", file, line,
		    got, (uint64_t)got, want, (uint64_t)want);
	return got == want;
}

/* NULL equals NULL only. */
__attribute__((format(printf, 5, 6)))
static inline int
test_str(const char *got, const char *want, const char *file, int line,
    const char *fmt, ...)
{
	va_list		 ap;
	int		 same;

	same = got == NULL || want == NULL ? got == want :
	    strcmp(got, want) == 0;
	va_start(ap, fmt);
	(void)test_vline(same, fmt, ap);
	va_end(ap);
	(void)printf("\n");
	if (!same)
		(void)printf("#   %s:%d: got \"%s\", want \"%s\"\n", file,
		    line, got == NULL ? "(null)" : got,
		    want == NULL ? "(null)" : want);
	return same;
}

__attribute__((format(printf, 6, 7)))
static inline int
test_mem(const void *got, const void *want, size_t len, const char *file,
    int line, const char *fmt, ...)
{
	const unsigned char	*a = got, *b = want;
	va_list			 ap;
	size_t			 i;

	for (i = 0; i < len && a[i] == b[i]; i++)
		;
	va_start(ap, fmt);
	(void)test_vline(i == len, fmt, ap);
	va_end(ap);
	(void)printf("\n");
	if (i < len)
		(void)printf("#   %s:%d: byte %zu of %zu: got 0x%02x, want "
		    "0x%02x\n", file, line, i, len, a[i], b[i]);
	return i == len;
}

/* Prints the plan; main's return value. */
__attribute__((warn_unused_result))
static inline int
done_testing(void)
{
	(void)printf("1..%d\n", test_count);
	(void)fflush(stdout);
	return test_failed != 0 || test_count == 0;
}

#endif
