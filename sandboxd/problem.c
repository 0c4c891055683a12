/* SPDX-License-Identifier: ISC */
/*
 * Bodies of error replies (RFC 9457, 3.1).  Runs in front; every text may hold
 * a client's or a guest's bytes, so each is cut to its limit and written as a
 * JSON string in which nothing can end the string.
 */
#include <stdio.h>
#include <string.h>

#include "problem.h"
#include "utf8.h"

struct out {
	char	*buf;
	size_t	 len;
};

static void
put(struct out *o, const char *s)
{
	size_t	 n = strlen(s);

	memcpy(o->buf + o->len, s, n);
	o->len += n;
}

/* A JSON string of at most `max` bytes of the text: six for each at worst. */
static void
put_string(struct out *o, const char *s, size_t max)
{
	char	 esc[7];
	size_t	 len, n;

	len = strnlen(s, max + 1);
	len = utf8_cut(s, len, max);
	put(o, "\"");
	while (len > 0) {
		n = utf8_char(s, len);
		if (n == 0) {
			put(o, "\\ufffd");
			n = 1;
		} else if (n == 1 && ((unsigned char)*s < 0x20 || *s == '"' ||
		    *s == '\\' || *s == 0x7f)) {
			(void)snprintf(esc, sizeof(esc), "\\u%04x",
			    (unsigned int)(unsigned char)*s);
			put(o, esc);
		} else {
			memcpy(o->buf + o->len, s, n);
			o->len += n;
		}
		s += n;
		len -= n;
	}
	put(o, "\"");
}

static void
put_member(struct out *o, const char *name, const char *value, size_t max)
{
	if (value == NULL || *value == '\0')
		return;
	put(o, ",\"");
	put(o, name);
	put(o, "\":");
	put_string(o, value, max);
}

size_t
problem_write(char *buf, const struct problem *p)
{
	struct out	 o = { buf, 0 };
	char		 number[16];

	put(&o, "{\"type\":\"urn:sandboxd:error:");
	put(&o, error_code(p->error));
	put(&o, "\",\"title\":");
	put_string(&o, error_title(p->error), SBX_DETAIL_MAX);
	put(&o, ",\"status\":");
	(void)snprintf(number, sizeof(number), "%d", error_status(p->error));
	put(&o, number);
	put_member(&o, "code", error_code(p->error), SBX_NAME_MAX);
	put_member(&o, "detail", p->detail, SBX_DETAIL_MAX);
	put_member(&o, "instance", p->instance, HTTP_REQUEST_ID_MAX);
	put_member(&o, "sandbox_id", p->sandbox_id, SBX_ID_LEN);
	if (p->retry_after_s != 0) {
		put(&o, ",\"retry_after_s\":");
		(void)snprintf(number, sizeof(number), "%u", p->retry_after_s);
		put(&o, number);
	}
	put(&o, "}");
	return o.len;
}
