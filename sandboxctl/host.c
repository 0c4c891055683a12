/* SPDX-License-Identifier: ISC */
/*
 * health and version.
 */
#include <string.h>

#include <json-c/json.h>

#include "api.h"
#include "json.h"

int
cmd_health(int argc, char *argv[])
{
	struct api_call	 a = { .method = "GET", .target = "/healthz" };
	struct fault	 f;

	ctl_options(argc, argv);
	if (argc != optind)
		usage_error("takes no argument");
	if (api_call(&a, &f) == -1)
		return ctl_fail(&f);
	if (ctl.json)
		text_json(a.answer);
	else if (!ctl.quiet)
		text_members(a.answer);
	json_object_put(a.answer);
	return CTL_OK;
}

/* A daemon that does not answer is told of, and is no failure of ours. */
int
cmd_version(int argc, char *argv[])
{
	struct api_call	 a = { .method = "GET", .target = "/healthz" };
	struct json_out	 out = { 0 };
	struct fault	 f;
	const char	*daemon;
	char		 safe[128];

	ctl_options(argc, argv);
	if (argc != optind)
		usage_error("takes no argument");
	if (api_call(&a, &f) == -1 && !ctl.quiet)
		say("version: %s", f.text);
	daemon = api_text(a.answer, "version");
	if (ctl.json) {
		json_put_object(&out);
		json_put_key_string(&out, "sandboxctl", SBX_VERSION);
		json_put_key(&out, "sandboxd");
		if (daemon[0] != '\0')
			json_put_string(&out, daemon);
		else
			json_put_null(&out);
		json_put_object_end(&out);
		if (json_out_end(&out) == 0)
			text_json_line(out.text, out.len);
		json_out_free(&out);
	} else {
		text_print("sandboxctl " SBX_VERSION "\n");
		(void)text_safe(safe, sizeof(safe), daemon, strlen(daemon));
		if (daemon[0] != '\0') {
			text_print("sandboxd ");
			text_print(safe);
			text_print("\n");
		}
	}
	json_object_put(a.answer);
	return CTL_OK;
}
