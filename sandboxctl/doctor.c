/* SPDX-License-Identifier: ISC */
/*
 * doctor: options, the order of looking, and the report.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "../sandboxd/config.h"
#include "doctor.h"
#include "json.h"
#include "signals.h"

#define CONFIG_FILE	"/etc/sandboxd.conf"
#define LOOKS		4	/* at a live daemon's residue: it must stay */
#define LOOK_AGAIN_MS	400

void
report_add(struct report *r, enum level level, const char *kind,
    const char *fmt, ...)
{
	struct finding	*more;
	va_list		 ap;

	if (r->n == r->size) {
		r->size = r->size == 0 ? 32 : 2 * r->size;
		more = reallocarray(r->v, r->size, sizeof(*more));
		if (more == NULL) {
			say("out of memory");
			exit(CTL_ERROR);
		}
		r->v = more;
	}
	r->v[r->n].level = level;
	r->v[r->n].kind = kind;
	va_start(ap, fmt);
	(void)vsnprintf(r->v[r->n].text, sizeof(r->v[r->n].text), fmt, ap);
	va_end(ap);
	r->n++;
}

void
report_free(struct report *r)
{
	free(r->v);
	memset(r, 0, sizeof(*r));
}

static size_t
count(const struct report *r, enum level level)
{
	size_t	 i, n = 0;

	for (i = 0; i < r->n; i++)
		n += r->v[i].level == level;
	return n;
}

static int
has(const struct report *r, const struct finding *f)
{
	size_t	 i;

	for (i = 0; i < r->n; i++)
		if (r->v[i].kind == f->kind &&
		    strcmp(r->v[i].text, f->text) == 0)
			return 1;
	return 0;
}

/*
 * A running daemon makes and removes things all the time, and has for some
 * moments what its ledger names no more: only what stays is residue.
 */
static int
look(const struct instance *in, struct report *out, struct fault *f)
{
	struct report	 now = { 0 }, again = { 0 };
	size_t		 i;
	int		 looks;

	if (residue_find(in, &now, f) == -1)
		return -1;
	for (looks = 1; in->pid != 0 && now.n > 0 && looks < LOOKS; looks++) {
		(void)signals_poll(NULL, 0, LOOK_AGAIN_MS);
		if (residue_find(in, &again, f) == -1)
			return -1;
		for (i = 0; i < now.n; i++)
			if (!has(&again, &now.v[i]))
				now.v[i--] = now.v[--now.n];
		report_free(&again);
	}
	for (i = 0; i < now.n; i++)
		report_add(out, LEVEL_LEFT, now.v[i].kind, "%s", now.v[i].text);
	report_free(&now);
	return 0;
}

static void
print_text(const struct report *r, const struct instance *in, int others)
{
	static const char *const words[] = { "ok  ", "note", "BAD ", "LEFT" };
	char			 line[700], safe[2048];
	size_t			 i;

	for (i = 0; i < r->n; i++) {
		if (ctl.quiet && r->v[i].level < LEVEL_BAD)
			continue;
		(void)snprintf(line, sizeof(line), "%s  %s: %s",
		    words[r->v[i].level], r->v[i].kind, r->v[i].text);
		(void)text_safe(safe, sizeof(safe), line, strlen(line));
		text_print(safe);
		text_print("\n");
	}
	if (ctl.quiet)
		return;
	(void)snprintf(line, sizeof(line), "%s; %zu left over in %s%s\n",
	    count(r, LEVEL_BAD) == 0 ? "this host is ready" :
	    "this host is not ready", count(r, LEVEL_LEFT), in->state_dir,
	    others ? " and other instances" : "");
	text_print(line);
}

static void
print_json(const struct report *r, const struct instance *in)
{
	static const char *const words[] = { "ok", "note", "bad", "left" };
	struct json_out		 out = { 0 };
	size_t			 i;

	json_put_object(&out);
	json_put_key_bool(&out, "ready", count(r, LEVEL_BAD) == 0);
	json_put_key_u64(&out, "left_over", count(r, LEVEL_LEFT));
	json_put_key_string(&out, "state_dir", in->state_dir);
	json_put_key_string(&out, "tag", in->tag);
	json_put_key_bool(&out, "running", in->pid != 0);
	json_put_key(&out, "findings");
	json_put_array(&out);
	for (i = 0; i < r->n; i++) {
		json_put_object(&out);
		json_put_key_string(&out, "level", words[r->v[i].level]);
		json_put_key_string(&out, "kind", r->v[i].kind);
		json_put_key(&out, "text");
		json_put_lossy(&out, r->v[i].text, strlen(r->v[i].text));
		json_put_object_end(&out);
	}
	json_put_array_end(&out);
	json_put_object_end(&out);
	if (json_out_end(&out) == 0)
		text_json_line(out.text, out.len);
	json_out_free(&out);
}

/* What a daemon here would use: its configuration, else the defaults. */
static void
read_config(struct config *conf, const char *state)
{
	char	 exe[4096], *slash;
	ssize_t	 n;

	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash != NULL)
		*slash = '\0';
	config_defaults(conf, exe);
	if (state == NULL && access(CONFIG_FILE, F_OK) == 0)
		(void)config_parse(conf, CONFIG_FILE);
	if (state != NULL)
		(void)strlcpy(conf->state_dir, state, sizeof(conf->state_dir));
	if (conf->template_dir[0] == '\0')
		(void)snprintf(conf->template_dir, sizeof(conf->template_dir),
		    "%.200s/templates", conf->state_dir);
}

static int
examine(const char *state, int all)
{
	static struct config	 conf;
	struct instance		 in;
	struct report		 r = { 0 };
	struct fault		 f;
	int			 others, status;

	if (geteuid() != 0) {
		(void)fault_set(&f, CTL_ERROR, "only root can see what "
		    "belongs to whom on this host");
		return ctl_fail(&f);
	}
	read_config(&conf, state);
	host_check(&conf, &r);
	if (instance_read(&in, conf.state_dir, &f) == -1)
		return ctl_fail(&f);
	if (in.tag[0] != '\0' && look(&in, &r, &f) == -1)
		return ctl_fail(&f);
	others = state == NULL || all;
	if (others)
		residue_others(&in, &r);
	if (ctl.json)
		print_json(&r, &in);
	else
		print_text(&r, &in, others);
	status = count(&r, LEVEL_BAD) + count(&r, LEVEL_LEFT) == 0 ? CTL_OK :
	    CTL_ERROR;
	report_free(&r);
	return status;
}

int
cmd_doctor(int argc, char *argv[])
{
	static const struct option	 opts[] = {
		{ "all",	no_argument,		NULL, 'a' },
		{ "state",	required_argument,	NULL, 'S' },
		CTL_LONG, { 0 }
	};
	const char			*state = getenv("SANDBOXD_STATE");
	int				 c, all = 0;

	while ((c = getopt_long(argc, argv, "aS:" CTL_SHORT, opts, NULL)) != -1)
		if (c == 'a')
			all = 1;
		else if (c == 'S')
			state = optarg;
		else
			ctl_option(c);
	if (argc != optind)
		usage_error("takes no argument");
	if (state != NULL && (state[0] != '/' || strlen(state) > SBX_PATH_MAX))
		usage_error("-S: a state directory is an absolute path of at "
		    "most %d bytes", SBX_PATH_MAX);
	return examine(state, all);
}
