/* SPDX-License-Identifier: ISC */
/*
 * The text messages of a command's stream: what we say at its start, and what
 * the server's events mean.
 */
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "json.h"
#include "session.h"
#include "signals.h"
#include "tty.h"
#include "utf8.h"
#include "ws.h"

static int
check_text(const struct session_spec *spec, struct fault *f)
{
	size_t	 i;

	for (i = 0; spec->argv[i] != NULL; i++)
		if (!utf8_valid(spec->argv[i], strlen(spec->argv[i])))
			return fault_set(f, CTL_ERROR, "word %zu of the "
			    "command is not UTF-8: the API carries text; send "
			    "bytes through stdin", i + 1);
	for (i = 0; i < spec->nenv; i++)
		if (!utf8_valid(spec->env[i], strlen(spec->env[i])))
			return fault_set(f, CTL_ERROR, "-e %zu is not UTF-8: "
			    "the API carries text", i + 1);
	return 0;
}

static void
put_env(struct json_out *out, const struct session_spec *spec)
{
	const char	*eq;
	char		*key;
	size_t		 i, j, n;

	json_put_key(out, "env");
	json_put_object(out);
	for (i = 0; i < spec->nenv; i++) {
		eq = strchr(spec->env[i], '=');
		n = (size_t)(eq - spec->env[i]);
		/* A key has one value: of two, the later one. */
		for (j = i + 1; j < spec->nenv; j++)
			if (strncmp(spec->env[j], spec->env[i], n + 1) == 0)
				break;
		if (j < spec->nenv)
			continue;
		key = strndup(spec->env[i], n);
		if (key == NULL)
			break;
		json_put_key_string(out, key, eq + 1);
		free(key);
	}
	json_put_object_end(out);
}

static void
put_start(struct json_out *out, const struct session_spec *spec)
{
	uint16_t	 cols, rows;
	size_t		 i;

	json_put_object(out);
	json_put_key_string(out, "type", "start");
	json_put_key(out, "argv");
	json_put_array(out);
	for (i = 0; spec->argv[i] != NULL; i++)
		json_put_string(out, spec->argv[i]);
	json_put_array_end(out);
	if (spec->nenv > 0)
		put_env(out, spec);
	if (spec->cwd != NULL)
		json_put_key_string(out, "cwd", spec->cwd);
	if (spec->user != NULL)
		json_put_key_string(out, "user", spec->user);
	if (spec->timeout_s > 0)
		json_put_key_u64(out, "timeout_s", spec->timeout_s);
	json_put_key_bool(out, "stdin", spec->with_stdin);
	if (spec->tty) {
		tty_size(&cols, &rows);
		json_put_key_bool(out, "tty", 1);
		json_put_key_u64(out, "cols", cols);
		json_put_key_u64(out, "rows", rows);
	}
	json_put_key_string(out, "on_disconnect",
	    on_disconnect_name(spec->on_disconnect));
	json_put_object_end(out);
}

char *
session_start_message(const struct session_spec *spec, size_t *len,
    struct fault *f)
{
	struct json_out	 out = { .max = WS_MESSAGE_MAX };

	if (check_text(spec, f) == -1)
		return NULL;
	put_start(&out, spec);
	if (json_out_end(&out) != 0) {
		(void)fault_set(f, CTL_ERROR, "the command line does not fit "
		    "in a message: with its environment it has at most %d "
		    "bytes", WS_MESSAGE_MAX);
		json_out_free(&out);
		return NULL;
	}
	*len = out.len;
	return out.text;
}

static const char *
text_of(struct json_object *o, const char *name)
{
	struct json_object	*v;

	if (!json_object_object_get_ex(o, name, &v) ||
	    !json_object_is_type(v, json_type_string))
		return "";
	return json_object_get_string(v);
}

/* A number, -1 when it is not there (or no number at all). */
static int64_t
number_of(struct json_object *o, const char *name)
{
	struct json_object	*v;

	if (!json_object_object_get_ex(o, name, &v) ||
	    !json_object_is_type(v, json_type_int))
		return -1;
	return json_object_get_int64(v);
}

static int
true_of(struct json_object *o, const char *name)
{
	struct json_object	*v;

	return json_object_object_get_ex(o, name, &v) &&
	    json_object_is_type(v, json_type_boolean) &&
	    json_object_get_boolean(v);
}

static int
exited(struct json_object *o, const struct session_spec *spec,
    struct session_end *end)
{
	int64_t	 code = number_of(o, "exit_code");
	int64_t	 sig = number_of(o, "signal");

	if (sig == -1)
		sig = signals_number(text_of(o, "signal"));
	if (sig > 0 && sig < 128)
		end->status = CTL_SIGNAL + (int)sig;
	else if (code >= 0 && code <= 255)
		end->status = (int)code;
	else
		return -1;
	end->exited = 1;
	if (true_of(o, "timed_out"))
		say("%s: killed: it ran longer than %u s", spec->argv[0],
		    spec->timeout_s);
	if (true_of(o, "oom_killed"))
		say("%s: killed: the sandbox ran out of memory",
		    spec->argv[0]);
	if (text_of(o, "error")[0] != '\0')
		say("%s", text_of(o, "error"));
	return 0;
}

/* The code's title, as a problem has it; a code that we do not know, itself. */
static void
failed(struct json_object *o, struct session_end *end, struct fault *f)
{
	const char	*code = text_of(o, "code"), *detail;
	const char	*title = error_title(error_by_code(code));

	if (strcmp(error_code(error_by_code(code)), code) != 0)
		title = code;
	detail = text_of(o, "detail");
	end->failed = 1;
	(void)fault_set(f, CTL_ERROR, "%.64s%s%.600s", title,
	    detail[0] != '\0' ? ": " : "", detail);
}

int
session_event(const char *text, size_t len, const struct session_spec *spec,
    int *started, struct session_end *end, struct fault *f)
{
	struct json_object	*o = NULL;
	struct json_error	 err;
	const char		*type;
	int			 r = 0;

	if (json_parse(text, len, JSON_VALUES_MAX, &o, &err) != 0 ||
	    !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		return -1;
	}
	type = text_of(o, "type");
	if (strcmp(type, "process_started") == 0) {
		*started = 1;
	} else if (strcmp(type, "process_exited") == 0) {
		r = end->exited ? -1 : exited(o, spec, end);
	} else if (strcmp(type, "error") == 0) {
		failed(o, end, f);
	} else if (type[0] == '\0') {
		r = -1;
	}
	/* Other events are news of a newer server: nothing to us. */
	json_object_put(o);
	return r;
}

void
session_closed(unsigned int code, const char *reason, struct fault *f)
{
	static const struct {
		unsigned int	 code;
		const char	*text;
	} codes[] = {
		{ WS_CODE_GOING_AWAY, "sandboxd is stopping" },
		{ WS_CODE_PROTOCOL, "sandboxd did not understand us" },
		{ WS_CODE_POLICY, "not allowed" },
		{ WS_CODE_TOO_BIG, "the command line is too long" },
		{ WS_CODE_INTERNAL, "internal error of sandboxd" },
		{ WS_CODE_SANDBOX_GONE, "the sandbox is gone" },
		{ WS_CODE_EXEC_TIMEOUT, "the command's time was over" },
		{ WS_CODE_GUEST_LOST, "the sandbox's agent was lost" }
	};
	const char	*what = "the stream ended";
	size_t		 i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			what = codes[i].text;
	(void)fault_set(f, CTL_ERROR, "%s before the command's end was "
	    "reported (close code %u%s%.123s)", what, code,
	    reason[0] != '\0' ? ": " : "", reason);
}
