/* SPDX-License-Identifier: ISC */
/* objs: sandboxd/http.o sandboxd/http_lex.o sandboxd/http_field.o
   sandboxd/http_reply.o sandboxd/route.o options: -max_len=12000 */
/*
 * Fuzzes the HTTP reader and all that reads its fields.  The first byte says
 * how the rest is cut into pieces; whatever the pieces are, the same requests,
 * the same bodies and the same end must come out as from one piece.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "route.h"

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define BODY_MAX	4096

/* What came out, as a hash that does not depend on how bodies were cut. */
struct result {
	uint64_t	 hash;
	unsigned int	 requests;
	int		 error;
	int		 busy;
};

static void
must(int cond)
{
	if (!cond)
		abort();
}

static void
mix(struct result *res, const void *data, size_t len)
{
	const uint8_t	*p = data;
	size_t		 i;

	for (i = 0; i < len; i++)
		res->hash = (res->hash ^ p[i]) * 1099511628211u;
}

static void
mix_string(struct result *res, const char *s)
{
	mix(res, s, strlen(s) + 1);
}

/* No byte that could end a line or a string got in. */
static void
check_text(const char *s)
{
	for (; *s != '\0'; s++)
		must(((unsigned char)*s >= 0x20 || *s == '\t') && *s != 0x7f);
}

static void
use_route(const struct http_request *req)
{
	struct route_match	 m;
	struct query_param	 p[2] = { { .name = "limit" },
				    { .name = "after" } };
	char			 detail[SBX_DETAIL_MAX];
	uint32_t		 v = 1;
	int			 ret;

	ret = route_find(req, &m);
	must((ret == 0) == (m.route != NULL));
	must((ret == -E_METHOD) == (m.allow[0] != '\0'));
	if (query_read(req->query, p, 2, detail) == 0)
		(void)query_u32(&p[0], 1, 1000, &v, detail);
	must(v >= 1 && v <= 1000);
}

static void
use_fields(const struct http_request *req)
{
	static const char *const types[] =
	    { "application/json", "application/x-ndjson" };
	static const char *const known[] = { "sandbox.v1", NULL };
	struct http_reply	 rep;
	struct ws_offer		 offer;
	const char		*protocol;
	char			 id[HTTP_REQUEST_ID_MAX + 1],
				 key[SBX_KEY_MAX + 1],
				 accept[WS_ACCEPT_LEN + 1],
				 head[HTTP_REPLY_HEAD_MAX];
	unsigned int		 chosen = 0;

	http_get_request_id(req, id);
	must(strlen(id) >= 1 && strlen(id) <= HTTP_REQUEST_ID_MAX);
	must(http_get_key(req, key) == 0 || key[0] == '\0');
	check_text(key);
	(void)http_check_json_type(req);
	if (http_choose_type(req, types, 2, &chosen) == 0)
		must(chosen < 2);
	memset(&rep, 0, sizeof(rep));
	rep.status = 200;
	rep.request_id = id;
	if (http_get_ws_offer(req, &offer) == 0 &&
	    ws_check_offer(&offer, known, &protocol, accept) == 0) {
		rep.status = 101;
		rep.ws_accept = accept;
		rep.ws_protocol = protocol;
	}
	must(http_put_reply(head, sizeof(head), &rep) > 0);
}

static void
use_head(struct http_reader *r, struct result *res)
{
	const struct http_request	*req = r->request;
	unsigned int			 i;

	must(req->nfields <= HTTP_FIELDS_MAX);
	must(req->path[0] == '/' || strcmp(req->path, "*") == 0);
	check_text(req->path);
	mix_string(res, http_method_name(req->method));
	mix_string(res, req->path);
	if (req->query != NULL)
		mix_string(res, req->query);
	for (i = 0; i < req->nfields; i++) {
		check_text(req->fields[i].name);
		check_text(req->fields[i].value);
		must(req->fields[i].name[0] != '\0');
		mix_string(res, req->fields[i].name);
		mix_string(res, req->fields[i].value);
	}
	use_route(req);
	use_fields(req);
	(void)http_reader_accept(r, BODY_MAX);
}

static void
run(const uint8_t *data, size_t len, size_t step, struct result *res)
{
	struct http_reader	 r;
	struct http_piece	 piece;
	enum http_event		 ev;
	uint8_t			*copy;
	size_t			 pos = 0, n, body = 0;

	memset(res, 0, sizeof(*res));
	http_reader_init(&r);
	do {
		n = len - pos < step ? len - pos : step;
		copy = malloc(n > 0 ? n : 1);
		memcpy(copy, data + pos, n);
		ev = http_read(&r, copy, n, &piece);
		must(piece.used <= n);
		pos += piece.used;
		switch (ev) {
		case HTTP_NEED_MORE:
			must(piece.used == n);
			break;
		case HTTP_HEAD:
			use_head(&r, res);
			body = 0;
			break;
		case HTTP_BODY:
			must(piece.len > 0 && piece.data >= copy &&
			    piece.data + piece.len <= copy + n);
			body += piece.len;
			must(body <= BODY_MAX);
			mix(res, piece.data, piece.len);
			break;
		case HTTP_END:
			must(r.request->framing != HTTP_BODY_LENGTH ||
			    r.request->length == body);
			res->requests++;
			http_reader_next(&r);
			break;
		case HTTP_ERROR:
			must(piece.error != E_OK && piece.detail != NULL);
			res->error = (int)piece.error;
			break;
		}
		free(copy);
	} while (ev != HTTP_ERROR && (ev != HTTP_NEED_MORE || pos < len));
	res->busy = http_reader_busy(&r);
	http_reader_clear(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct result	 whole, pieces;

	if (len == 0)
		return 0;
	run(data + 1, len - 1, len, &whole);
	run(data + 1, len - 1, 1u + data[0] % 64, &pieces);
	must(whole.requests == pieces.requests && whole.hash == pieces.hash &&
	    whole.error == pieces.error && whole.busy == pieces.busy);
	return 0;
}
