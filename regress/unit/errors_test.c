/* SPDX-License-Identifier: ISC */
/* objs: libs: -lbsd */
/*
 * The error table: what RFC 9110 and the API's users hold it to.
 */
#include "errors.h"
#include "test.h"

TEST_PLAN_AUTO;

/* The registry (RFC 9110 section 15, RFC 6585, RFC 4918), as far as used. */
static const int	 statuses[] = {
	400, 401, 403, 404, 405, 406, 408, 409, 411, 413, 414, 415, 417, 422,
	426, 429, 431, 500, 501, 502, 503, 504, 505, 507
};

static int
known_status(int s)
{
	size_t	 i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i] == s)
			return 1;
	return 0;
}

static void
test_table(void)
{
	const char	*code, *p;
	unsigned int	 i, j;
	int		 form = 0, twice = 0, status = 0, title = 0, back = 0;

	for (i = E_OK + 1; i < E_COUNT; i++) {
		code = error_code(i);
		form += code[0] == '\0' || strlen(code) > 40;
		for (p = code; *p != '\0'; p++)
			form += !(*p == '_' || (*p >= 'a' && *p <= 'z'));
		for (j = E_OK; j < i; j++)
			twice += strcmp(error_code(j), code) == 0;
		status += !known_status(error_status(i));
		title += error_title(i)[0] < 'A' || error_title(i)[0] > 'Z';
		back += error_by_code(code) != i;
	}
	is_int(form, 0, "table: %d codes of small letters", E_COUNT - 1);
	is_int(twice, 0, "table: no code twice");
	is_int(status, 0, "table: every status is a registered one");
	is_int(title, 0, "table: every row has a title");
	is_int(back, 0, "table: code and back");
}

int
main(void)
{
	unsigned int	 i, bad = 0;

	test_table();
	is_int(error_status(E_OK), 200, "ok: 200");
	is_int(error_status(E_COUNT), 500, "out of range: 500");
	is_str(error_code(E_COUNT), "internal", "out of range: internal");
	is_str(error_code(~0U), "internal", "far out of range: internal");
	is_str(error_title(E_COUNT), error_title(E_INTERNAL),
	    "out of range: title");
	is_int(error_by_code("nonsense"), E_INTERNAL, "no such code: internal");
	is_int(error_by_code(""), E_INTERNAL, "empty code: internal");
	is_int(error_status(E_NO_SANDBOX), 404, "no_sandbox: 404");
	is_int(error_status(E_KEY_REUSED), 422, "key_reused: 422");
	is_int(error_status(E_OWNER_LIMIT), 429, "owner_limit: 429");
	for (i = 0; i < CAUSE_COUNT; i++)
		bad += cause_name(i) == NULL || cause_name(i)[0] == '\0';
	is_int(bad, 0, "causes: %d names", CAUSE_COUNT);
	is_str(cause_name(CAUSE_GUEST_PANIC), "guest_panic", "cause: a name");
	is_str(cause_name(CAUSE_COUNT), "unknown", "cause: out of range");
	return done_testing();
}
