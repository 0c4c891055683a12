/* SPDX-License-Identifier: ISC */
/*
 * create, and what run shares with it.
 */
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "api.h"
#include "id.h"
#include "json.h"
#include "sandbox.h"

void
pairs_add(struct pairs *p, const char *option, const char *text, int from_env)
{
	const char	**more, *eq, *value;
	char		 *pair;
	size_t		  size;

	eq = strchr(text, '=');
	if (eq == text || text[0] == '\0' || (eq == NULL && !from_env))
		usage_error("%s: \"%.64s\" is not key=value", option, text);
	if (eq == NULL) {
		value = getenv(text);
		if (value == NULL)
			usage_error("%s: there is no %.64s in the environment",
			    option, text);
		size = strlen(text) + strlen(value) + 2;
		pair = malloc(size);
		if (pair == NULL)
			usage_error("out of memory");
		(void)strlcpy(pair, text, size);
		(void)strlcat(pair, "=", size);
		(void)strlcat(pair, value, size);
		text = pair;
	}
	more = reallocarray(p->v, p->n + 1, sizeof(*more));
	if (more == NULL)
		usage_error("out of memory");
	more[p->n++] = text;
	p->v = more;
}

/* An object of strings; of two with the same key, the later one. */
static void
put_pairs(struct json_out *out, const char *name, const struct pairs *p)
{
	const char	*eq;
	char		*key;
	size_t		 i, j, n;

	if (p->n == 0)
		return;
	json_put_key(out, name);
	json_put_object(out);
	for (i = 0; i < p->n; i++) {
		eq = strchr(p->v[i], '=');
		n = (size_t)(eq - p->v[i]) + 1;
		for (j = i + 1; j < p->n; j++)
			if (strncmp(p->v[j], p->v[i], n) == 0)
				break;
		if (j < p->n)
			continue;
		key = strndup(p->v[i], n - 1);
		if (key == NULL)
			break;
		json_put_key_string(out, key, eq + 1);
		free(key);
	}
	json_put_object_end(out);
}

static void
put_number(struct json_out *out, const char *name, uint32_t n)
{
	if (n != 0)
		json_put_key_u64(out, name, n);
}

int
sandbox_create(const struct create_spec *spec, unsigned int signals_max,
    struct json_object **answer, struct fault *f)
{
	struct json_out	 out = { .max = HTTP_CREATE_BODY_MAX };
	struct api_call	 a = { .method = "POST", .target = "/v1/sandboxes",
			    .key = spec->key, .deadline_ms = CTL_CREATE_MS,
			    .signals_max = signals_max };
	int		 r;

	json_put_object(&out);
	json_put_key_string(&out, "template", spec->template);
	if (spec->name != NULL)
		json_put_key_string(&out, "name", spec->name);
	put_number(&out, "vcpu", spec->vcpu);
	put_number(&out, "memory_mib", spec->memory_mib);
	put_number(&out, "disk_mib", spec->disk_mib);
	put_number(&out, "timeout_s", spec->timeout_s);
	json_put_key_string(&out, "on_disconnect", spec->on_disconnect);
	put_pairs(&out, "env", &spec->env);
	put_pairs(&out, "metadata", &spec->metadata);
	json_put_object_end(&out);
	if (json_out_end(&out) != 0) {
		json_out_free(&out);
		return fault_set(f, CTL_ERROR, "the request does not fit in %d "
		    "bytes, or something in it is not UTF-8",
		    HTTP_CREATE_BODY_MAX);
	}
	a.body = out.text;
	r = api_call(&a, f);
	json_out_free(&out);
	if (r == -1)
		return -1;
	if (!id_valid(api_text(a.answer, "sandbox_id"))) {
		json_object_put(a.answer);
		return fault_set(f, CTL_ERROR, "sandboxd's answer names no "
		    "sandbox");
	}
	*answer = a.answer;
	return 0;
}

enum { OPT_DISK = OPT_FIRST, OPT_KEY, OPT_MEMORY, OPT_METADATA, OPT_NAME,
    OPT_ON_DISCONNECT, OPT_TIMEOUT, OPT_VCPU };

static const struct option	create_options[] = {
	{ "disk",	required_argument,	NULL, OPT_DISK },
	{ "env",	required_argument,	NULL, 'e' },
	{ "key",	required_argument,	NULL, OPT_KEY },
	{ "memory",	required_argument,	NULL, OPT_MEMORY },
	{ "metadata",	required_argument,	NULL, OPT_METADATA },
	{ "name",	required_argument,	NULL, OPT_NAME },
	{ "on-disconnect", required_argument,	NULL, OPT_ON_DISCONNECT },
	{ "timeout",	required_argument,	NULL, OPT_TIMEOUT },
	{ "vcpu",	required_argument,	NULL, OPT_VCPU },
	CTL_LONG, { 0 }
};

static void
take_key(struct create_spec *spec, const char *key)
{
	const char	*s;

	for (s = key; *s > 0x20 && *s < 0x7f; s++)
		continue;
	if (*s != '\0' || s == key || s - key > SBX_KEY_MAX)
		usage_error("--key: 1 to %d printable characters without "
		    "blanks", SBX_KEY_MAX);
	spec->key = key;
}

static void
create_option(struct create_spec *spec, int c)
{
	switch (c) {
	case 'e':
		pairs_add(&spec->env, "-e", optarg, 1);
		break;
	case OPT_DISK:
		spec->disk_mib = ctl_number("--disk", optarg,
		    SBX_DISK_MIN_MIB, SBX_DISK_MAX_MIB);
		break;
	case OPT_KEY:
		take_key(spec, optarg);
		break;
	case OPT_MEMORY:
		spec->memory_mib = ctl_number("--memory", optarg,
		    SBX_MEMORY_MIN_MIB, SBX_MEMORY_MAX_MIB);
		break;
	case OPT_METADATA:
		pairs_add(&spec->metadata, "--metadata", optarg, 0);
		break;
	case OPT_NAME:
		spec->name = optarg;
		break;
	case OPT_ON_DISCONNECT:
		spec->on_disconnect = optarg;
		break;
	case OPT_TIMEOUT:
		spec->timeout_s = ctl_number("--timeout", optarg, 1,
		    SBX_TIMEOUT_MAX_S);
		break;
	case OPT_VCPU:
		spec->vcpu = ctl_number("--vcpu", optarg, 1, SBX_VCPU_MAX);
		break;
	default:
		ctl_option(c);
	}
}

int
cmd_create(int argc, char *argv[])
{
	/* Lives as long as the program: its lists are never freed. */
	static struct create_spec	 spec = { .template = "seed",
					    .on_disconnect = "keep" };
	struct json_object		*o;
	struct fault			 f;
	int				 c;

	while ((c = getopt_long(argc, argv, "e:" CTL_SHORT, create_options,
	    NULL)) != -1)
		create_option(&spec, c);
	if (argc - optind > 1)
		usage_error("takes one template");
	if (argc - optind == 1)
		spec.template = argv[optind];
	if (sandbox_create(&spec, 0, &o, &f) == -1)
		return ctl_fail(&f);
	if (ctl.json) {
		text_json(o);
	} else {
		text_print(api_text(o, "sandbox_id"));
		text_print("\n");
	}
	json_object_put(o);
	return CTL_OK;
}
