/* SPDX-License-Identifier: ISC */
/*
 * What went wrong, as a row of the error table and a text for people.  Lower
 * layers fill it; only the dispatch and vm.c log or send it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vmm.h"

int
fault_set(struct fault *f, enum sbx_error error, const char *fmt, ...)
{
	va_list	 ap;

	f->error = error;
	va_start(ap, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	return -1;
}

int
fault_errno(struct fault *f, enum sbx_error error, const char *fmt, ...)
{
	va_list	 ap;
	size_t	 n;
	int	 saved = errno;

	/* A full disk has its own row wherever it is met. */
	f->error = saved == ENOSPC || saved == EDQUOT ? E_HOST_DISK : error;
	va_start(ap, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	n = strlen(f->text);
	(void)snprintf(f->text + n, sizeof(f->text) - n, ": %s",
	    strerror(saved));
	return -1;
}
