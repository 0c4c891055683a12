/* SPDX-License-Identifier: ISC */
/*
 * What a client says about a command, from strict JSON into the guest
 * protocol's records.  Runs in front; the text is a client's.  The same members
 * in a WebSocket's start message and in the body of POST exec, but for stdin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base64.h"
#include "exec.h"
#include "json.h"
#include "utf8.h"

static const char *const disconnect_words[] = { "delete", "keep" };

static int
put_record(struct evbuffer *out, uint8_t tag, const void *data, size_t len)
{
	uint8_t	 head[GP_RECORD_HEAD];

	gp_put_record_head(head, tag, (uint32_t)len);
	return evbuffer_add(out, head, sizeof(head)) == -1 ||
	    evbuffer_add(out, data, len) == -1 ? -1 : 0;
}

/* Keeps the start of a text for messages. */
static void
keep_text(char *out, size_t size, const char *text, size_t len)
{
	len = utf8_cut(text, len, len < size - 1 ? len : size - 1);
	memcpy(out, text, len);
	out[len] = '\0';
}

static int
read_argv(struct json_reader *r, struct exec_request *req)
{
	struct json_list	 list = { NULL, 0 };
	const char		*text;
	size_t			 i, len;

	if (json_take_list(r, "argv", JSON_REQUIRED, 1, EXEC_VALUES_MAX,
	    GP_STRING_MAX, &list) != 0)
		return 0;
	for (i = 0; i < list.n; i++) {
		text = json_list_get(&list, i, &len);
		if (put_record(req->records, GP_EXEC_ARG, text, len) == -1)
			return -1;
		if (i == 0)
			keep_text(req->command, sizeof(req->command), text,
			    len);
	}
	return 0;
}

static int
read_env(struct json_reader *r, struct exec_request *req)
{
	struct json_map	 map = { NULL, 0, NULL };
	const char	*key, *value;
	uint8_t		 head[GP_RECORD_HEAD];
	size_t		 klen, vlen;

	if (json_take_map(r, "env", JSON_OPTIONAL, EXEC_VALUES_MAX,
	    GP_STRING_MAX, GP_STRING_MAX, &map) != 0)
		return 0;
	while (json_map_next(&map, &key, &value)) {
		klen = strlen(key);
		vlen = strlen(value);
		if (klen == 0 || strchr(key, '=') != NULL) {
			(void)json_refuse(r, "env", E_BAD_MEMBER, "a name %s",
			    klen == 0 ? "is empty" : "holds '='");
			return 0;
		}
		if (klen + 1 + vlen > GP_STRING_MAX) {
			(void)json_refuse(r, "env", E_BAD_MEMBER,
			    "a variable is longer than %d bytes",
			    GP_STRING_MAX);
			return 0;
		}
		gp_put_record_head(head, GP_EXEC_ENV,
		    (uint32_t)(klen + 1 + vlen));
		if (evbuffer_add(req->records, head, sizeof(head)) == -1 ||
		    evbuffer_add(req->records, key, klen) == -1 ||
		    evbuffer_add(req->records, "=", 1) == -1 ||
		    evbuffer_add(req->records, value, vlen) == -1)
			return -1;
	}
	return 0;
}

/* cwd or user: one string, one record. */
static int
read_text(struct json_reader *r, struct exec_request *req, const char *name,
    uint8_t tag, size_t max, char *copy, size_t size)
{
	const char	*text = NULL;
	size_t		 len = 0;

	if (json_take_text(r, name, JSON_OPTIONAL, 1, max, &text, &len) != 0 ||
	    text == NULL)
		return 0;
	keep_text(copy, size, text, len);
	return put_record(req->records, tag, text, len);
}

static int
read_timeout(struct json_reader *r, struct exec_request *req)
{
	double	 s = 0;
	uint8_t	 ms[8];

	if (json_take_double(r, "timeout_s", JSON_OPTIONAL, 0.001,
	    SBX_TIMEOUT_MAX_S, &s) != 0 || !json_has(r, "timeout_s"))
		return 0;
	gp_put_u64(ms, (uint64_t)(s * 1000 + 0.5));
	return put_record(req->records, GP_EXEC_TIMEOUT, ms, sizeof(ms));
}

/* A start message's own members. */
static void
read_start(struct json_reader *r, struct exec_request *req)
{
	const char	*type;
	uint32_t	 cols = 80, rows = 24;

	(void)json_take_text(r, "type", JSON_REQUIRED, 1, SBX_NAME_MAX, &type,
	    NULL);
	req->wants_stdin = 1;
	(void)json_take_bool(r, "stdin", JSON_OPTIONAL, &req->wants_stdin);
	(void)json_take_bool(r, "tty", JSON_OPTIONAL, &req->tty);
	(void)json_take_u32(r, "cols", JSON_OPTIONAL, 1, UINT16_MAX, &cols);
	(void)json_take_u32(r, "rows", JSON_OPTIONAL, 1, UINT16_MAX, &rows);
	if (!req->tty && (json_has(r, "cols") || json_has(r, "rows")))
		(void)json_refuse(r, json_has(r, "cols") ? "cols" : "rows",
		    E_BAD_MEMBER, "needs \"tty\": true");
	req->cols = (uint16_t)cols;
	req->rows = (uint16_t)rows;
}

static int
read_input(struct json_reader *r, struct exec_request *req, int base64)
{
	const char	*text = NULL;
	char		*bytes = NULL;
	size_t		 len = 0;
	int		 error = -1;

	if (json_take_text(r, "stdin", JSON_OPTIONAL, 0, HTTP_EXEC_BODY_MAX,
	    &text, &len) != 0)
		return 0;
	if (text == NULL) {
		if (json_has(r, "stdin_encoding"))
			(void)json_refuse(r, "stdin_encoding", E_BAD_MEMBER,
			    "needs \"stdin\"");
		return 0;
	}
	req->wants_stdin = 1;
	req->input = evbuffer_new();
	if (req->input == NULL)
		return -1;
	if (!base64)
		return evbuffer_add(req->input, text, len);
	bytes = malloc(len + 1);
	if (bytes == NULL)
		return -1;
	if (base64_decode(bytes, &len, text, len) == -1) {
		(void)json_refuse(r, "stdin", E_BAD_MEMBER, "is not base64");
		error = 0;
	} else
		error = evbuffer_add(req->input, bytes, len);
	free(bytes);
	return error;
}

/* The members that only POST exec has. */
static int
read_post(struct json_reader *r, struct exec_request *req)
{
	static const char *const words[] = { "utf-8", "base64" };
	unsigned int		 in = 0, out = 0;

	(void)json_take_word(r, "stdin_encoding", JSON_OPTIONAL, words, 2, &in);
	(void)json_take_word(r, "encoding", JSON_OPTIONAL, words, 2, &out);
	req->base64 = out == 1;
	return read_input(r, req, in == 1);
}

static int
read_flags(struct exec_request *req)
{
	uint8_t	 flags[4];

	gp_put_u32(flags, (req->wants_stdin ? GP_EXEC_STDIN : 0U) |
	    (req->tty ? GP_EXEC_TTY : 0U));
	return put_record(req->records, GP_EXEC_FLAGS, flags, sizeof(flags));
}

/* -1: no memory; faults of the client's stay in the reader. */
static int
read_members(struct json_reader *r, enum exec_form form,
    struct exec_request *req)
{
	unsigned int	 od = 0;

	if (read_argv(r, req) == -1 || read_env(r, req) == -1 ||
	    read_text(r, req, "cwd", GP_EXEC_CWD, EXEC_CWD_MAX, req->cwd,
	    sizeof(req->cwd)) == -1 ||
	    read_text(r, req, "user", GP_EXEC_USER, EXEC_USER_MAX, req->user,
	    sizeof(req->user)) == -1 || read_timeout(r, req) == -1)
		return -1;
	if (json_take_word(r, "on_disconnect", JSON_OPTIONAL, disconnect_words,
	    2, &od) == 0 && json_has(r, "on_disconnect"))
		req->on_disconnect = od == 0 ? ON_DISCONNECT_DELETE :
		    ON_DISCONNECT_KEEP;
	if (form == EXEC_FORM_START)
		read_start(r, req);
	else if (read_post(r, req) == -1)
		return -1;
	return read_flags(req);
}

int
exec_request_read(struct exec_request *req, enum exec_form form,
    struct json_object *obj, struct json_error *err)
{
	struct json_reader	 r;
	int			 e;

	memset(req, 0, sizeof(*req));
	json_open(&r, obj, err);
	req->records = evbuffer_new();
	if (req->records == NULL || read_members(&r, form, req) == -1) {
		err->code = E_HOST_MEMORY;
		(void)snprintf(err->detail, sizeof(err->detail),
		    "no memory for the command");
		return -E_HOST_MEMORY;
	}
	e = json_end(&r);
	if (e != 0)
		return e;
	if (evbuffer_get_length(req->records) > GP_ARGS_MAX -
	    SBX_ENV_BYTES * (1 + GP_RECORD_HEAD)) {
		err->code = E_BAD_COMMAND;
		(void)snprintf(err->detail, sizeof(err->detail),
		    "argv and env together are too long");
		return -E_BAD_COMMAND;
	}
	return 0;
}

void
exec_request_clear(struct exec_request *req)
{
	if (req->records != NULL)
		evbuffer_free(req->records);
	if (req->input != NULL)
		evbuffer_free(req->input);
	memset(req, 0, sizeof(*req));
}
