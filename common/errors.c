/* SPDX-License-Identifier: ISC */
/*
 * Look-ups in the error table.  Linked into every process; trusts nothing.
 */
#include <stddef.h>
#include <string.h>

#include "errors.h"

static const struct {
	const char	*code;
	int		 status;
	const char	*title;
} errors[E_COUNT] = {
	[E_OK] = { "ok", 200, "OK" },
#define SBX_ERROR(sym, code, status, title)	[sym] = { code, status, title },
#include "errors.def"
#undef SBX_ERROR
};

static const char *const causes[CAUSE_COUNT] = {
	[CAUSE_NONE] = "none",
	[CAUSE_GUEST_PANIC] = "guest_panic",
	[CAUSE_GUEST_STOPPED] = "guest_stopped",
	[CAUSE_HOST_OOM] = "host_out_of_memory",
	[CAUSE_KILLED] = "vmm_killed",
	[CAUSE_VMM_ERROR] = "vmm_error",
	[CAUSE_GUEST_LOST] = "guest_lost",
	[CAUSE_BOOT_TIMEOUT] = "boot_timeout",
	[CAUSE_HOST_REBOOT] = "host_reboot",
	[CAUSE_VMM_GONE] = "vmm_gone",
};

const char *
error_code(unsigned int e)
{
	return e < E_COUNT ? errors[e].code : errors[E_INTERNAL].code;
}

const char *
error_title(unsigned int e)
{
	return e < E_COUNT ? errors[e].title : errors[E_INTERNAL].title;
}

int
error_status(unsigned int e)
{
	return e < E_COUNT ? errors[e].status : errors[E_INTERNAL].status;
}

enum sbx_error
error_by_code(const char *code)
{
	unsigned int	 i;

	for (i = 0; i < E_COUNT; i++)
		if (strcmp(errors[i].code, code) == 0)
			return (enum sbx_error)i;
	return E_INTERNAL;
}

const char *
cause_name(unsigned int c)
{
	return c < CAUSE_COUNT ? causes[c] : "unknown";
}
