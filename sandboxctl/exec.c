/* SPDX-License-Identifier: ISC */
/*
 * exec and run: commands in a sandbox, theirs the exit status.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "api.h"
#include "sandbox.h"
#include "session.h"
#include "signals.h"

enum { OPT_DISK = OPT_FIRST, OPT_LIFETIME, OPT_MEMORY, OPT_TIMEOUT, OPT_VCPU };

#define COMMAND_SHORT	"+e:itu:w:" CTL_SHORT
#define COMMAND_LONG							\
	{ "env",	required_argument,	NULL, 'e' },		\
	{ "interactive", no_argument,		NULL, 'i' },		\
	{ "timeout",	required_argument,	NULL, OPT_TIMEOUT },	\
	{ "tty",	no_argument,		NULL, 't' },		\
	{ "user",	required_argument,	NULL, 'u' },		\
	{ "workdir",	required_argument,	NULL, 'w' },		\
	CTL_LONG, { 0 }

static const struct option	exec_options[] = { COMMAND_LONG };
static const struct option	run_options[] = {
	{ "disk",	required_argument,	NULL, OPT_DISK },
	{ "lifetime",	required_argument,	NULL, OPT_LIFETIME },
	{ "memory",	required_argument,	NULL, OPT_MEMORY },
	{ "vcpu",	required_argument,	NULL, OPT_VCPU },
	COMMAND_LONG
};

struct line {
	struct session_spec	 session;
	struct create_spec	 create;	/* run only */
	struct pairs		 env;
	const char		*target;	/* id or template */
};

static void
take_option(struct line *l, int c)
{
	switch (c) {
	case 'e':
		pairs_add(&l->env, "-e", optarg, 1);
		break;
	case 'i':
		l->session.with_stdin = 1;
		break;
	case 't':
		l->session.tty = l->session.with_stdin = 1;
		break;
	case 'u':
		l->session.user = optarg;
		break;
	case 'w':
		l->session.cwd = optarg;
		break;
	case OPT_TIMEOUT:
		l->session.timeout_s = ctl_number("--timeout", optarg, 1,
		    SBX_TIMEOUT_MAX_S);
		break;
	case OPT_DISK:
		l->create.disk_mib = ctl_number("--disk", optarg,
		    SBX_DISK_MIN_MIB, SBX_DISK_MAX_MIB);
		break;
	case OPT_LIFETIME:
		l->create.timeout_s = ctl_number("--lifetime", optarg, 1,
		    SBX_TIMEOUT_MAX_S);
		break;
	case OPT_MEMORY:
		l->create.memory_mib = ctl_number("--memory", optarg,
		    SBX_MEMORY_MIN_MIB, SBX_MEMORY_MAX_MIB);
		break;
	case OPT_VCPU:
		l->create.vcpu = ctl_number("--vcpu", optarg, 1, SBX_VCPU_MAX);
		break;
	default:
		ctl_option(c);
	}
}

/* [options] target [--] command: what is behind the target is the guest's. */
static void
parse_line(struct line *l, int argc, char *argv[], const struct option *opts)
{
	int	 c;

	memset(l, 0, sizeof(*l));
	while ((c = getopt_long(argc, argv, COMMAND_SHORT, opts, NULL)) != -1)
		take_option(l, c);
	if (ctl.json)
		usage_error("--json: the output is the command's own");
	argv += optind;
	if (argv[0] == NULL)
		usage_error("no sandbox and no command");
	l->target = *argv++;
	if (argv[0] != NULL && strcmp(argv[0], "--") == 0)
		argv++;
	else if (argv[0] != NULL && argv[0][0] == '-')
		usage_error("\"%.64s\": options go before \"%.64s\", and the "
		    "command after --", argv[0], l->target);
	if (argv[0] == NULL)
		usage_error("no command behind \"%.64s\"", l->target);
	if (l->session.tty && !isatty(STDIN_FILENO))
		usage_error("-t: stdin is no terminal");
	l->session.argv = argv;
	l->session.env = l->env.v;
	l->session.nenv = l->env.n;
}

/* A signal's status is that of a program which it has ended. */
static int
failed(const struct fault *f)
{
	int	 status = ctl_fail(f);

	return signals_count() > 0 ? CTL_SIGNAL + signals_first() : status;
}

int
cmd_exec(int argc, char *argv[])
{
	static struct line	 l;	/* its lists are never freed */
	struct fault	 f;
	char		 id[SBX_ID_LEN + 1];
	int		 status;

	parse_line(&l, argc, argv, exec_options);
	if (api_resolve(l.target, id, &f) == -1)
		return ctl_fail(&f);
	signals_catch();
	l.session.id = id;
	l.session.on_disconnect = ON_DISCONNECT_KEEP;
	status = session_run(&l.session, &f);
	return status == -1 ? failed(&f) : status;
}

/* Long enough for the command, if that has a limit of its own. */
static uint32_t
lifetime(const struct line *l)
{
	uint64_t	 s = l->session.timeout_s;

	if (l->create.timeout_s != 0 || s == 0)
		return l->create.timeout_s;
	s += CTL_CREATE_MS / 1000;
	return s > SBX_TIMEOUT_MAX_S ? SBX_TIMEOUT_MAX_S : (uint32_t)s;
}

/*
 * A signal during create waits for its answer, so that there is a sandbox to
 * delete; a second one ends the request, which the daemon then takes back.
 */
int
cmd_run(int argc, char *argv[])
{
	static struct line	 l;	/* its lists are never freed */
	struct json_object	*o;
	struct fault		 f;
	char			 id[SBX_ID_LEN + 1];
	int			 status;

	parse_line(&l, argc, argv, run_options);
	signals_catch();
	l.create.template = l.target;
	l.create.on_disconnect = "delete";
	l.create.timeout_s = lifetime(&l);
	if (sandbox_create(&l.create, 1, &o, &f) == -1)
		return failed(&f);
	(void)strlcpy(id, api_text(o, "sandbox_id"), sizeof(id));
	json_object_put(o);
	l.session.id = id;
	l.session.on_disconnect = ON_DISCONNECT_DELETE;
	if (signals_count() > 0) {
		status = CTL_SIGNAL + signals_first();
	} else {
		status = session_run(&l.session, &f);
		if (status == -1)
			status = failed(&f);
	}
	if (api_delete(id, signals_count() + 1, &f) == -1) {
		say("run: %s: not deleted: %s", id, f.text);
		if (status == 0)
			status = CTL_FAILED;
	}
	return status;
}
