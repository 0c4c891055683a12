/* SPDX-License-Identifier: ISC */
/*
 * ls, show, rm and wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "api.h"
#include "clock.h"
#include "json.h"
#include "signals.h"

/* Seconds since 1970 of an RFC 3339 time in UTC; -1. */
static int64_t
parse_time(const char *s)
{
	struct tm	 tm;
	const char	*end;

	memset(&tm, 0, sizeof(tm));
	end = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	return end == NULL ? -1 : (int64_t)timegm(&tm);
}

static void
cell_time(struct table *t, const char *when, int past)
{
	char	 text[64] = "";
	int64_t	 at, now = (int64_t)time(NULL);

	at = parse_time(when);
	if (at != -1 && past)
		(void)snprintf(text, sizeof(text), "%s ago",
		    text_duration(now - at));
	else if (at != -1)
		(void)snprintf(text, sizeof(text), "in %s",
		    text_duration(at - now));
	table_cell(t, text);
}

static void
ls_table(struct json_object *list)
{
	struct table		 t = { .heads = { "ID", "NAME", "STATE",
				    "TEMPLATE", "VCPU", "MEMORY", "CREATED",
				    "EXPIRES" }, .ncolumns = 8 };
	struct json_object	*o;
	char			 memory[48];
	size_t			 i;

	for (i = 0; i < json_object_array_length(list); i++) {
		o = json_object_array_get_idx(list, i);
		table_cell(&t, api_text(o, "sandbox_id"));
		table_cell(&t, api_text(o, "name"));
		table_cell(&t, api_text(o, "state"));
		table_cell(&t, api_text(o, "template"));
		table_cell(&t, api_text(o, "vcpu"));
		(void)snprintf(memory, sizeof(memory), "%.32s MiB",
		    api_text(o, "memory_mib"));
		table_cell(&t, memory);
		cell_time(&t, api_text(o, "created_at"), 1);
		cell_time(&t, api_text(o, "expires_at"), 0);
	}
	table_print(&t);
}

int
cmd_ls(int argc, char *argv[])
{
	struct json_object	*list;
	struct fault		 f;
	size_t			 i;

	ctl_options(argc, argv);
	if (argc != optind)
		usage_error("takes no argument");
	if (api_list(&list, &f) == -1)
		return ctl_fail(&f);
	if (ctl.json) {
		text_json(list);
	} else if (ctl.quiet) {
		for (i = 0; i < json_object_array_length(list); i++) {
			text_print(api_text(json_object_array_get_idx(list, i),
			    "sandbox_id"));
			text_print("\n");
		}
	} else {
		ls_table(list);
	}
	json_object_put(list);
	return CTL_OK;
}

int
cmd_show(int argc, char *argv[])
{
	struct json_object	*o;
	struct fault		 f;
	char			 id[SBX_ID_LEN + 1];

	ctl_options(argc, argv);
	if (argc - optind != 1)
		usage_error("takes one id");
	if (api_resolve(argv[optind], id, &f) == -1 ||
	    api_show(id, &o, &f) == -1)
		return ctl_fail(&f);
	if (ctl.json) {
		text_json(o);
	} else if (ctl.quiet) {
		text_print(id);
		text_print("\n");
	} else {
		text_members(o);
	}
	json_object_put(o);
	return CTL_OK;
}

/* Every one is tried; the status is the first fault's. */
int
cmd_rm(int argc, char *argv[])
{
	struct json_out	 out = { 0 };
	struct fault	 f;
	char		 id[SBX_ID_LEN + 1];
	int		 i, ok, status = CTL_OK;

	ctl_options(argc, argv);
	if (argc == optind)
		usage_error("no id");
	json_put_array(&out);
	for (i = optind; i < argc; i++) {
		id[0] = '\0';
		ok = api_resolve(argv[i], id, &f) == 0 &&
		    api_delete(id, 0, &f) == 0;
		if (!ok) {
			say("rm: %.64s: %s", argv[i], f.text);
			if (status == CTL_OK)
				status = (int)f.code;
		}
		if (id[0] == '\0')
			continue;
		json_put_object(&out);
		json_put_key_string(&out, "sandbox_id", id);
		json_put_key_bool(&out, "deleted", ok);
		json_put_object_end(&out);
	}
	json_put_array_end(&out);
	if (ctl.json && json_out_end(&out) == 0)
		text_json_line(out.text, out.len);
	json_out_free(&out);
	return status;
}

enum { OPT_STATE = OPT_FIRST, OPT_WAIT };

static const char *
wait_state(const char *text)
{
	static const char *const	 states[] = { "creating", "running",
					    "deleting", "failed", "deleted",
					    "gone" };
	size_t				 i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(text, states[i]) == 0)
			return states[i];
	usage_error("--state: \"%.64s\" is none of creating, running, deleting, "
	    "failed, deleted and gone", text);
}

/* 1: it is so; 0: not yet; -1: it never will be, or a fault. */
static int
reached(const char *id, const char *state, struct json_object **o,
    struct fault *f)
{
	const char	*now;

	*o = NULL;
	if (api_show(id, o, f) == -1) {
		if (f->status != 404)
			return -1;
		if (strcmp(state, "gone") == 0)
			return 1;
		return fault_set(f, CTL_ERROR, "%s: is gone, and was waited "
		    "for to be %s", id, state);
	}
	now = api_text(*o, "state");
	if (strcmp(now, state) == 0)
		return 1;
	if (strcmp(now, "failed") == 0 && strcmp(state, "gone") != 0)
		return fault_set(f, CTL_ERROR, "%s: has failed: %.512s", id,
		    api_text(*o, "detail"));
	return 0;
}

static int
wait_until(const char *id, const char *state, uint64_t end, struct fault *f)
{
	struct json_object	*o;
	int			 r;

	while ((r = reached(id, state, &o, f)) == 0) {
		json_object_put(o);
		if (end != 0 && boottime_now().ms >= end)
			return fault_set(f, CTL_TIMEOUT, "%s: is not %s yet",
			    id, state);
		(void)signals_poll(NULL, 0, CTL_POLL_MS);
	}
	if (r == 1 && ctl.json && o != NULL)
		text_json(o);
	json_object_put(o);
	return r == 1 ? 0 : -1;
}

int
cmd_wait(int argc, char *argv[])
{
	static const struct option	 opts[] = {
		{ "state",	required_argument,	NULL, OPT_STATE },
		{ "timeout",	required_argument,	NULL, OPT_WAIT },
		CTL_LONG, { 0 }
	};
	struct fault			 f;
	const char			*state = "gone";
	char				 id[SBX_ID_LEN + 1];
	uint64_t			 end = 0;
	int				 c;

	while ((c = getopt_long(argc, argv, CTL_SHORT, opts, NULL)) != -1)
		if (c == OPT_STATE)
			state = wait_state(optarg);
		else if (c == OPT_WAIT)
			end = boottime_now().ms + 1000ULL * ctl_number(
			    "--timeout", optarg, 0, SBX_TIMEOUT_MAX_S);
		else
			ctl_option(c);
	if (argc - optind != 1)
		usage_error("takes one id");
	if (api_resolve(argv[optind], id, &f) == -1 ||
	    wait_until(id, state, end, &f) == -1)
		return ctl_fail(&f);
	return CTL_OK;
}
