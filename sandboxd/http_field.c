/* SPDX-License-Identifier: ISC */
/*
 * Reading the fields of a request's head that front acts on.  The head's form
 * has been checked (http.c); what is in the fields has not.  Section numbers
 * are RFC 9110's unless another RFC is named.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http.h"
#include "http_lex.h"

int
http_field_once(const struct http_request *req, const char *name,
    const char **value)
{
	const char	*found = NULL;
	unsigned int	 i;

	for (i = 0; i < req->nfields; i++) {
		if (strcasecmp(req->fields[i].name, name) != 0)
			continue;
		if (found != NULL)
			return -E_BAD_HEADER;
		found = req->fields[i].value;
	}
	*value = found;
	return 0;
}

const char *
http_field(const struct http_request *req, const char *name)
{
	unsigned int	 i;

	for (i = 0; i < req->nfields; i++)
		if (strcasecmp(req->fields[i].name, name) == 0)
			return req->fields[i].value;
	return NULL;
}

static int
request_id_valid(const char *s)
{
	size_t	 n;

	n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789._-");
	return n >= 1 && n <= HTTP_REQUEST_ID_MAX && s[n] == '\0';
}

void
http_get_request_id(const struct http_request *req, char *id)
{
	static const char	 digits[] = "0123456789abcdef";
	const char		*value = NULL;
	uint8_t			 r[16];
	size_t			 i;

	if (req != NULL && http_field_once(req, "X-Request-Id", &value) == 0 &&
	    value != NULL && request_id_valid(value)) {
		memcpy(id, value, strlen(value) + 1);
		return;
	}
	arc4random_buf(r, sizeof(r));
	for (i = 0; i < sizeof(r); i++) {
		id[2 * i] = digits[r[i] >> 4];
		id[2 * i + 1] = digits[r[i] & 15];
	}
	id[2 * sizeof(r)] = '\0';
}

int
http_get_key(const struct http_request *req, char *key)
{
	const char	*s;
	size_t		 n = 0;
	int		 quoted;

	key[0] = '\0';
	if (http_field_once(req, "Idempotency-Key", &s) != 0)
		return -E_BAD_HEADER;
	if (s == NULL)
		return 0;
	/* RFC 8941, 3.3.3: a string, without parameters. */
	quoted = *s == '"';
	if (quoted)
		s++;
	for (; *s != '\0' && !(quoted && *s == '"'); s++) {
		if (quoted && *s == '\\' && *++s != '"' && *s != '\\')
			goto bad;
		if (*s < 0x20 || *s > 0x7e || n == SBX_KEY_MAX)
			goto bad;
		key[n++] = *s;
	}
	key[n] = '\0';
	if (n == 0 || (quoted && (s[0] != '"' || s[1] != '\0')))
		goto bad;
	return 0;
bad:
	key[0] = '\0';
	return -E_BAD_HEADER;
}

/*
 * Parameters, in Content-Type and Accept: OWS ";" OWS [ name "=" value ]
 * (5.6.6). 1 and one of them, 0 when none follows, -1 malformed.  A quoted
 * value comes with its quotes.
 */
struct param {
	const char	*name, *value;
	size_t		 name_len, value_len;
};

static int
param_next(const char **pp, struct param *pa)
{
	const char	*p = *pp;

	memset(pa, 0, sizeof(*pa));
	p += strspn(p, " \t");
	if (*p != ';')
		return 0;
	p++;
	p += strspn(p, " \t");
	pa->name = p;
	pa->name_len = lex_token(p);
	p += pa->name_len;
	if (pa->name_len > 0) {
		if (*p++ != '=')
			return -1;
		pa->value = p;
		if (*p == '"') {
			for (p++; *p != '"'; p++)
				if (*p == '\0' || (*p == '\\' && *++p == '\0'))
					return -1;
			p++;
		} else {
			p += lex_token(p);
			if (p == pa->value)
				return -1;
		}
		pa->value_len = (size_t)(p - pa->value);
	}
	*pp = p;
	return 1;
}

static int
param_is(const struct param *pa, const char *name)
{
	return pa->name_len == strlen(name) &&
	    strncasecmp(pa->name, name, pa->name_len) == 0;
}

/* type "/" subtype (8.3.1); its length, 0 if there is none. */
static size_t
media_type(const char *s)
{
	size_t	 a, b;

	a = lex_token(s);
	if (a == 0 || s[a] != '/')
		return 0;
	b = lex_token(s + a + 1);
	return b == 0 ? 0 : a + 1 + b;
}

static int
type_is(const char *s, size_t len, const char *want)
{
	return len == strlen(want) && strncasecmp(s, want, len) == 0;
}

/* RFC 8259, 8.1: JSON is UTF-8; the parameter is not even defined. */
static int
charset_is_utf8(const struct param *pa)
{
	const char	*s = pa->value;
	size_t		 len = pa->value_len;

	if (len >= 2 && *s == '"') {
		s++;
		len -= 2;
	}
	return len == 5 && strncasecmp(s, "utf-8", 5) == 0;
}

int
http_check_json_type(const struct http_request *req)
{
	struct param	 pa;
	const char	*s;
	size_t		 len;
	int		 more;

	if (http_field_once(req, "Content-Type", &s) != 0)
		return -E_BAD_HEADER;
	if (s == NULL)
		return 0;
	len = media_type(s);
	if (!type_is(s, len, "application/json") &&
	    !type_is(s, len, "application/x-www-form-urlencoded"))
		return -E_MEDIA_TYPE;
	s += len;
	while ((more = param_next(&s, &pa)) == 1)
		if (param_is(&pa, "charset") && !charset_is_utf8(&pa))
			return -E_MEDIA_TYPE;
	s += strspn(s, " \t");
	return more == 0 && *s == '\0' ? 0 : -E_MEDIA_TYPE;
}

/* qvalue (12.4.2) in thousandths, -1 malformed. */
static int
weight(const struct param *pa)
{
	const char	*s = pa->value;
	size_t		 i;
	int		 w, unit = 100;

	if (pa->value_len == 0 || pa->value_len > 5 ||
	    (s[0] != '0' && s[0] != '1') ||
	    (pa->value_len > 1 && s[1] != '.'))
		return -1;
	w = (s[0] - '0') * 1000;
	for (i = 2; i < pa->value_len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		w += (s[i] - '0') * unit;
		unit /= 10;
	}
	return w <= 1000 ? w : -1;
}

/* How well a media range names a type: 0 not, 1 any, 2 its kind, 3 itself. */
static int
range_match(const char *range, size_t len, const char *type)
{
	size_t	 kind;

	if (type_is(range, len, type))
		return 3;
	if (type_is(range, len, "*/*"))
		return 1;
	kind = strcspn(type, "/") + 1;
	return len == kind + 1 && range[kind] == '*' &&
	    strncasecmp(range, type, kind) == 0 ? 2 : 0;
}

/* One range of Accept: 1, 0 at the end, -1 malformed. */
static int
range_next(const char **pp, const char **range, size_t *len, int *w)
{
	struct param	 pa;
	const char	*p = *pp;
	int		 more;

	p += strspn(p, ", \t");
	if (*p == '\0')
		return 0;
	*range = p;
	*len = media_type(p);
	if (*len == 0)
		return -1;
	p += *len;
	*w = 1000;
	while ((more = param_next(&p, &pa)) == 1)
		if (param_is(&pa, "q") && (*w = weight(&pa)) == -1)
			return -1;
	p += strspn(p, " \t");
	if (more == -1 || (*p != ',' && *p != '\0'))
		return -1;
	*pp = p;
	return 1;
}

/*
 * The weight that all the Accept fields together give a type: that of the most
 * specific range that names it.  -1: malformed, -2: no range at all.
 */
static int
type_weight(const struct http_request *req, const char *type)
{
	const char	*p, *range;
	size_t		 len;
	unsigned int	 i;
	int		 m, w, more, best = 0, result = 0, any = 0;

	for (i = 0; i < req->nfields; i++) {
		if (strcasecmp(req->fields[i].name, "Accept") != 0)
			continue;
		p = req->fields[i].value;
		while ((more = range_next(&p, &range, &len, &w)) == 1) {
			any = 1;
			m = range_match(range, len, type);
			if (m > best) {
				best = m;
				result = w;
			}
		}
		if (more == -1)
			return -1;
	}
	return any ? result : -2;
}

int
http_choose_type(const struct http_request *req, const char *const *types,
    unsigned int n, unsigned int *chosen)
{
	unsigned int	 i, best = 0;
	int		 w, best_w = 0;

	for (i = 0; i < n; i++) {
		w = type_weight(req, types[i]);
		if (w == -1)
			return -E_BAD_HEADER;
		if (w == -2) {
			*chosen = 0;
			return 0;
		}
		if (w > best_w) {
			best_w = w;
			best = i;
		}
	}
	if (best_w == 0)
		return -E_NOT_ACCEPTABLE;
	*chosen = best;
	return 0;
}

int
http_get_ws_offer(const struct http_request *req, struct ws_offer *offer)
{
	struct ws_offer	 o;
	const char	*upgrade;
	unsigned int	 i;
	int		 asks = 0;

	if (http_field_once(req, "Upgrade", &upgrade) != 0)
		return -E_BAD_HEADER;
	for (i = 0; i < req->nfields; i++)
		if (strcasecmp(req->fields[i].name, "Connection") == 0 &&
		    lex_list_has(req->fields[i].value, "upgrade"))
			asks = 1;
	/* 7.8: ignored from HTTP/1.0; RFC 6455, 4.1: always GET. */
	if (!asks || upgrade == NULL || req->minor == 0 ||
	    req->method != HTTP_M_GET || !lex_list_has(upgrade, "websocket"))
		return -E_UPGRADE;
	if (http_field_once(req, "Sec-WebSocket-Version", &o.version) != 0 ||
	    http_field_once(req, "Sec-WebSocket-Key", &o.key) != 0 ||
	    http_field_once(req, "Sec-WebSocket-Protocol", &o.protocols) != 0)
		return -E_BAD_HEADER;
	if (req->framing == HTTP_BODY_CHUNKED || req->length > 0)
		return -E_BAD_HEADER;
	*offer = o;
	return 0;
}
