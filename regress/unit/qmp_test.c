/* SPDX-License-Identifier: ISC */
/* objs: vmmctl/qmp.o libs: -ljson-c -lbsd */
/*
 * The reader of QEMU's monitor.  The good lines were taken from a session with
 * QEMU 7.2 (greeting, panic with pvpanic, reboot with -no-reboot).
 */
#include "qmp.h"
#include "test.h"

TEST_PLAN_AUTO;

static const char	greeting[] =
    "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, "
    "\"major\": 7}, \"package\": \"Debian 1:7.2+dfsg-7+deb12u18+b3\"}, "
    "\"capabilities\": [\"oob\"]}}";
static const char	status[] =
    "{\"return\": {\"status\": \"guest-panicked\", \"singlestep\": false, "
    "\"running\": false}}";
static const char	panicked[] =
    "{\"timestamp\": {\"seconds\": 1796086000, \"microseconds\": 1}, "
    "\"event\": \"GUEST_PANICKED\", \"data\": {\"action\": \"pause\"}}";
static const char	stopped[] =
    "{\"timestamp\": {\"seconds\": 1796086000, \"microseconds\": 1}, "
    "\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, "
    "\"reason\": \"guest-reset\"}}";
static const char	error[] =
    "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"no such\"}}";

static int
parse(const char *line, struct qmp_msg *m)
{
	return qmp_parse(line, strlen(line), m);
}

static void
test_good(void)
{
	struct qmp_msg	 m;

	is_int(parse(greeting, &m), 0, "greeting: read");
	is_int(m.kind, QMP_GREETING, "greeting: its kind");
	is_int(parse("{\"return\": {}}", &m), 0, "empty return: read");
	is_int(m.kind, QMP_RETURN, "empty return: its kind");
	is_str(m.status, "", "empty return: no status");
	is_int(parse(status, &m), 0, "status: read");
	is_str(m.status, "guest-panicked", "status: its value");
	is_int(parse(panicked, &m), 0, "panic: read");
	is_int(m.kind, QMP_PANICKED, "panic: its kind");
	is_int(parse(stopped, &m), 0, "shutdown: read");
	is_int(m.kind, QMP_SHUTDOWN, "shutdown: its kind");
	is_str(m.text, "guest-reset", "shutdown: its reason");
	is_int(parse(error, &m), 0, "error: read");
	is_int(m.kind, QMP_ERROR, "error: its kind");
	is_str(m.text, "no such", "error: its description");
	is_int(parse("{\"event\": \"STOP\"}", &m), 0, "other event: read");
	is_int(m.kind, QMP_OTHER, "other event: its kind");
}

static void
test_bad(void)
{
	static const char *const bad[] = {
		"", " ", "x", "[]", "null", "1", "\"QMP\"", "{", "{}",
		"{\"QMP\": 1", "{\"event\": 1}", "{\"event\": null}",
		"{\"event\": \"\"}", "{\"event\": {}}", "{\"QMP\": {}} x",
		"{\"QMP\": {}}{}", "{'event': 'STOP'}", "{\"event\": \"\xff\"}",
		"{\"a\":[[[[[[[[[[[[1]]]]]]]]]]]]}", "{\"return\": {}} \x01"
	};
	struct qmp_msg	 m;
	char		 line[QMP_LINE_MAX + 2];
	size_t		 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_int(parse(bad[i], &m), -1, "refused: line %zu", i);
	is_int(qmp_parse("{\"event\": \"A\0B\"}", 17, &m), -1,
	    "refused: NUL in a string");
	memset(line, ' ', sizeof(line));
	memcpy(line, "{\"QMP\": 1}", 10);
	is_int(qmp_parse(line, sizeof(line), &m), -1, "refused: too long");
	/* Where text is wanted and something else stands: nothing is copied. */
	is_int(parse("{\"event\": \"SHUTDOWN\", \"data\": [1]}", &m), 0,
	    "odd data: read");
	is_str(m.text, "", "odd data: no reason");
	is_int(parse("{\"return\": {\"status\": {\"a\": 1}}}", &m), 0,
	    "odd status: read");
	is_str(m.status, "", "odd status: none");
}

struct seen {
	unsigned int	 n;
	enum qmp_kind	 kind[8];
	int		 stop_at;
};

static int
see(const struct qmp_msg *m, void *arg)
{
	struct seen	*s = arg;

	if (s->n < 8)
		s->kind[s->n] = m->kind;
	s->n++;
	return s->n == (unsigned int)s->stop_at ? 42 : 0;
}

static void
test_feed(void)
{
	static struct qmp_reader	 r;
	char				 text[1024];
	struct seen			 s;
	size_t				 i, len;
	int				 bad = 0;

	(void)snprintf(text, sizeof(text), "%s\r\n%s\n\r\n\n%s\r\n", greeting,
	    status, stopped);
	len = strlen(text);
	memset(&s, 0, sizeof(s));
	is_int(qmp_feed(&r, text, len, see, &s), 0, "feed: all at once");
	is_int(s.n, 3, "feed: three messages, empty lines are none");
	is_int(r.have, 0, "feed: nothing is kept after a line's end");
	memset(&s, 0, sizeof(s));
	for (i = 0; i < len; i++)
		bad |= qmp_feed(&r, text + i, 1, see, &s);
	is_int(bad, 0, "feed: byte by byte");
	is_int(s.n, 3, "feed: the same messages");
	is_int(s.kind[2], QMP_SHUTDOWN, "feed: in order");
	memset(&s, 0, sizeof(s));
	s.stop_at = 2;
	is_int(qmp_feed(&r, text, len, see, &s), 42, "feed: callback stops it");
	is_int(s.n, 2, "feed: and is not called again");
}

static void
test_flood(void)
{
	static struct qmp_reader	 r;
	static char			 block[4096];
	struct seen			 s;
	size_t				 fed = 0;
	int				 v = 0;

	memset(&s, 0, sizeof(s));
	memset(block, '{', sizeof(block));
	while (v == 0 && fed < 1 << 20) {
		v = qmp_feed(&r, block, sizeof(block), see, &s);
		fed += sizeof(block);
	}
	is_int(v, -1, "a line without an end is refused");
	ok(fed <= QMP_LINE_MAX + sizeof(block), "soon: after %zu bytes", fed);
	is_int(s.n, 0, "and is no message");
}

int
main(void)
{
	test_good();
	test_bad();
	test_feed();
	test_flood();
	return done_testing();
}
