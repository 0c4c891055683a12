/* SPDX-License-Identifier: ISC */
/* libs: -lmd options: -max_len=8192 */
/*
 * Fuzzes the WebSocket reader in both roles.  The first byte says the role and
 * how the rest is cut; the messages, and the end, must not depend on the cut.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"
#include "ws.h"

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define TEXT_MAX	300
#define BINARY_MAX	3000

struct result {
	uint64_t	 hash;
	unsigned int	 events;
	unsigned int	 failed;	/* close code */
};

static void
must(int cond)
{
	if (!cond)
		abort();
}

static void
mix_bytes(struct result *res, const void *data, size_t len)
{
	const uint8_t	*p = data;
	size_t		 i;

	for (i = 0; i < len; i++)
		res->hash = (res->hash ^ p[i]) * 1099511628211u;
}

static void
mix(struct result *res, uint8_t kind, const void *data, size_t len)
{
	mix_bytes(res, &kind, 1);
	mix_bytes(res, data, len);
}

static void
use_event(enum ws_event ev, const struct ws_piece *p, struct result *res,
    size_t *message)
{
	uint8_t	 out[WS_CONTROL_MAX];

	switch (ev) {
	case WS_NEED_MORE:
		return;
	case WS_TEXT:
		must(p->len <= TEXT_MAX && p->data[p->len] == '\0');
		must(utf8_valid(p->data, p->len));
		break;
	case WS_BINARY:
		if (p->first)
			*message = 0;
		*message += p->len;
		must(*message <= BINARY_MAX);
		/* Its pieces may be any, its bytes and its end not. */
		mix_bytes(res, p->data, p->len);
		if (!p->last)
			return;
		res->events++;
		mix(res, 'b', NULL, 0);
		return;
	case WS_PING:
	case WS_PONG:
		must(p->len <= WS_CONTROL_MAX);
		break;
	case WS_CLOSE:
		must(p->code == WS_CODE_NONE || ws_code_valid(p->code));
		must(utf8_valid(p->data, p->len) && p->len <= WS_REASON_MAX);
		mix(res, 'c', &p->code, sizeof(p->code));
		break;
	case WS_FAIL:
		must(ws_code_valid(p->code));
		must(ws_put_close(out, p->code, p->why) ==
		    2 + strlen(p->why));
		res->failed = p->code;
		return;
	}
	res->events++;
	mix(res, (uint8_t)ev, p->data, p->len);
}

static void
run(const uint8_t *data, size_t len, enum ws_role role, size_t step,
    struct result *res)
{
	struct ws_reader	 r;
	struct ws_piece		 p;
	enum ws_event		 ev;
	uint8_t			*copy;
	size_t			 pos = 0, n, message = 0;

	memset(res, 0, sizeof(*res));
	ws_reader_init(&r, role, TEXT_MAX, BINARY_MAX);
	do {
		n = len - pos < step ? len - pos : step;
		copy = malloc(n > 0 ? n : 1);
		memcpy(copy, data + pos, n);
		ev = ws_read(&r, copy, n, &p);
		must(p.used <= n && (ev != WS_NEED_MORE || p.used == n));
		pos += p.used;
		use_event(ev, &p, res, &message);
		free(copy);
	} while (ev != WS_FAIL && (ev != WS_NEED_MORE || pos < len));
	ws_reader_clear(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const known[] = { "a", "sandbox.v1", NULL };
	struct result	 whole, pieces;
	struct ws_offer	 offer;
	enum ws_role	 role;
	const char	*protocol = NULL;
	char		 accept[WS_ACCEPT_LEN + 1], *text;

	if (len == 0)
		return 0;
	role = data[0] & 0x80 ? WS_CLIENT : WS_SERVER;
	run(data + 1, len - 1, role, len, &whole);
	run(data + 1, len - 1, role, 1u + (data[0] & 0x7f), &pieces);
	/*
	 * A text that fails in a later byte has already given nothing; a binary
	 * may have given pieces, the same in both.
	 */
	must(whole.failed == pieces.failed && whole.events == pieces.events);
	must(whole.failed != 0 || whole.hash == pieces.hash);

	text = strndup((const char *)data + 1, len - 1);
	must(text != NULL);
	offer = (struct ws_offer){ "13", "dGhlIHNhbXBsZSBub25jZQ==", text };
	if (ws_check_offer(&offer, known, &protocol, accept) == 0)
		must(protocol == known[0] || protocol == known[1]);
	offer.key = text;
	offer.protocols = NULL;
	if (ws_check_offer(&offer, known, &protocol, accept) == 0)
		must(protocol == NULL && strlen(accept) == WS_ACCEPT_LEN);
	free(text);
	return 0;
}
