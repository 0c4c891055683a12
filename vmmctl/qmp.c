/* SPDX-License-Identifier: ISC */
/*
 * Reads QEMU's monitor protocol.  See qmp.h.
 */
#include <stdint.h>
#include <string.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "qmp.h"

/* A member that is a string, copied as far as it fits; "" if there is none. */
static void
get_text(struct json_object *o, const char *name, char *out, size_t size)
{
	struct json_object	*v;

	out[0] = '\0';
	if (json_object_get_type(o) == json_type_object &&
	    json_object_object_get_ex(o, name, &v) &&
	    json_object_get_type(v) == json_type_string)
		(void)strlcpy(out, json_object_get_string(v), size);
}

static int
parse_event(struct json_object *o, struct qmp_msg *m)
{
	struct json_object	*data;

	get_text(o, "event", m->text, sizeof(m->text));
	if (m->text[0] == '\0')
		return -1;
	m->kind = QMP_OTHER;
	if (strcmp(m->text, "GUEST_PANICKED") == 0) {
		m->kind = QMP_PANICKED;
	} else if (strcmp(m->text, "SHUTDOWN") == 0) {
		m->kind = QMP_SHUTDOWN;
		if (json_object_object_get_ex(o, "data", &data))
			get_text(data, "reason", m->text, sizeof(m->text));
		else
			m->text[0] = '\0';
	}
	return 0;
}

static int
parse_object(struct json_object *o, struct qmp_msg *m)
{
	struct json_object	*v;

	if (json_object_object_get_ex(o, "QMP", &v)) {
		m->kind = QMP_GREETING;
		return 0;
	}
	if (json_object_object_get_ex(o, "return", &v)) {
		m->kind = QMP_RETURN;
		get_text(v, "status", m->status, sizeof(m->status));
		return 0;
	}
	if (json_object_object_get_ex(o, "error", &v)) {
		m->kind = QMP_ERROR;
		get_text(v, "desc", m->text, sizeof(m->text));
		return 0;
	}
	if (json_object_object_get_ex(o, "event", &v))
		return parse_event(o, m);
	return -1;
}

int
qmp_parse(const char *line, size_t len, struct qmp_msg *m)
{
	struct json_tokener	*tok;
	struct json_object	*o;
	int			 r = -1;

	memset(m, 0, sizeof(*m));
	if (len > QMP_LINE_MAX)
		return -1;
	tok = json_tokener_new_ex(QMP_DEPTH_MAX);
	if (tok == NULL)
		return -1;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT |
	    JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(tok, line, (int)len);
	if (o != NULL && json_tokener_get_error(tok) == json_tokener_success &&
	    json_tokener_get_parse_end(tok) == len &&
	    json_object_get_type(o) == json_type_object)
		r = parse_object(o, m);
	(void)json_object_put(o);
	json_tokener_free(tok);
	return r;
}

int
qmp_feed(struct qmp_reader *r, const char *data, size_t len, qmp_cb cb,
    void *arg)
{
	struct qmp_msg	 m;
	size_t		 i, n;
	int		 stop;

	for (i = 0; i < len; i++) {
		if (data[i] != '\n') {
			if (r->have == sizeof(r->line))
				return -1;
			r->line[r->have++] = data[i];
			continue;
		}
		n = r->have;
		r->have = 0;
		if (n > 0 && r->line[n - 1] == '\r')
			n--;
		if (n == 0)
			continue;
		if (qmp_parse(r->line, n, &m) == -1)
			return -1;
		stop = cb(&m, arg);
		if (stop != 0)
			return stop;
	}
	return 0;
}
