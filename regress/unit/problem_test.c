/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/problem.o libs: -ljson-c -lbsd */
/*
 * Bodies of errors (RFC 9457): read back with the strict JSON parser, for every
 * row of the error table and for texts that try to break out.
 */
#include <json-c/json.h>

#include "json.h"
#include "problem.h"
#include "test.h"

TEST_PLAN_AUTO;

static struct json_error	 err;

static struct json_object *
written(const struct problem *p)
{
	struct json_object	*v = NULL;
	char			*buf;
	size_t			 n;

	/* Exactly as much memory as is promised to be enough. */
	buf = malloc(PROBLEM_MAX);
	n = problem_write(buf, p);
	if (json_parse(buf, n, 100, &v, &err) != 0)
		ok(0, "problem: RFC 8259: %s: %.*s", err.detail, (int)n, buf);
	free(buf);
	return v;
}

/* RFC 9457, 3.1: the members. */
static void
check_rows(void)
{
	struct json_reader	 r;
	struct json_object	*v;
	const char		*type = "", *title = "", *code = "";
	char			 want[128];
	uint32_t		 status = 0;
	unsigned int		 e;

	for (e = 1; e < E_COUNT; e++) {
		v = written(&(struct problem){ .error = (enum sbx_error)e });
		json_open(&r, v, &err);
		(void)json_take_text(&r, "type", JSON_REQUIRED, 1, 99, &type,
		    NULL);
		(void)json_take_text(&r, "title", JSON_REQUIRED, 1, 99, &title,
		    NULL);
		(void)json_take_text(&r, "code", JSON_REQUIRED, 1, 99, &code,
		    NULL);
		(void)json_take_u32(&r, "status", JSON_REQUIRED, 400, 599,
		    &status);
		is_int(json_end(&r), 0, "problem: %s %s", error_code(e),
		    err.detail);
		(void)snprintf(want, sizeof(want), "urn:sandboxd:error:%s",
		    code);
		is_str(type, want, "problem: RFC 9457 3.1.1 its type");
		is_int(status, error_status(e), "problem: 3.1.2 its status");
		is_int(error_by_code(code), e, "problem: its code");
		json_object_put(v);
	}
}

static void
check_texts(void)
{
	static char		 high[3000], quotes[3000];
	struct json_reader	 r;
	struct json_object	*v;
	const char		*detail = "", *instance = "", *id = "";
	size_t			 len = 0;
	uint32_t		 after = 0, n = 0;

	v = written(&(struct problem){ .error = E_NO_SANDBOX,
	    .detail = "a\"b\\c\n\x01\x7f\xc3\xa4\xff", .instance = "req-1",
	    .sandbox_id = "sb-aaaaaaaaaaaaaaaa",
	    .retry_after_s = 4294967295u });
	json_open(&r, v, &err);
	(void)json_take_text(&r, "detail", JSON_REQUIRED, 0, 99, &detail, NULL);
	(void)json_take_text(&r, "instance", JSON_REQUIRED, 0, 99, &instance,
	    NULL);
	(void)json_take_text(&r, "sandbox_id", JSON_REQUIRED, 0, 99, &id, NULL);
	(void)json_take_u32(&r, "retry_after_s", JSON_REQUIRED, 0, UINT32_MAX,
	    &after);
	(void)json_take_u32(&r, "status", JSON_REQUIRED, 404, 404, &n);
	is_str(detail, "a\"b\\c\n\x01\x7f\xc3\xa4\xef\xbf\xbd",
	    "problem: RFC 8259 7 a text that tries to break out");
	is_str(instance, "req-1", "problem: 3.1.5 instance");
	is_str(id, "sb-aaaaaaaaaaaaaaaa", "problem: sandbox id");
	is_int(after, 4294967295u, "problem: longest wait");
	json_object_put(v);

	memset(high, 0xff, sizeof(high) - 1);
	memset(quotes, '\x01', sizeof(quotes) - 1);
	v = written(&(struct problem){ .error = E_INTERNAL, .detail = quotes,
	    .instance = quotes, .sandbox_id = quotes,
	    .retry_after_s = 4294967295u });
	json_open(&r, v, &err);
	(void)json_take_text(&r, "detail", JSON_REQUIRED, SBX_DETAIL_MAX,
	    SBX_DETAIL_MAX, &detail, &len);
	is_int(len, SBX_DETAIL_MAX, "problem: texts are cut to their bounds");
	json_object_put(v);
	v = written(&(struct problem){ .error = E_INTERNAL, .detail = high });
	ok(v != NULL, "problem: a text of nothing but bad bytes");
	json_object_put(v);
	memset(high, 0, sizeof(high));
	for (n = 0; n < 1000; n++)
		memcpy(high + 1 + 2 * n, "\xc3\xa4", 2);
	high[0] = 'a';
	v = written(&(struct problem){ .error = E_INTERNAL, .detail = high });
	json_open(&r, v, &err);
	(void)json_take_text(&r, "detail", JSON_REQUIRED, 0, 999, &detail,
	    &len);
	is_int(len, SBX_DETAIL_MAX - 1, "problem: no character is cut");
	json_object_put(v);
	v = written(&(struct problem){ .error = E_INTERNAL, .detail = "",
	    .sandbox_id = "" });
	json_open(&r, v, &err);
	ok(!json_has(&r, "detail") && !json_has(&r, "sandbox_id") &&
	    !json_has(&r, "retry_after_s") && !json_has(&r, "instance"),
	    "problem: what is empty is left out");
	json_object_put(v);
}

int
main(void)
{
	check_rows();
	check_texts();
	return done_testing();
}
