/* SPDX-License-Identifier: ISC */
/*
 * sandboxctl: options, the command table, usage and help.  Each command is one
 * call of the API (sandboxd-api(7)), but for run (three) and doctor (none).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "ctl.h"

#define DEFAULT_SOCKET	"/run/sandboxd/api.sock"

struct ctl	 ctl;

static const struct command commands[] = {
	{ "create", "[-e key=value] [--disk mib] [--key key] [--memory mib]\n"
	    "[--metadata key=value] [--name name] [--on-disconnect keep|delete]"
	    "\n[--timeout s] [--vcpu n] [template]",
	    "create a sandbox and print its id",
	    "Creates a sandbox from a template (default: seed) and returns when"
	    " it runs.\nIt lives until it is removed or its --timeout is over;"
	    " -e sets a variable\nfor every command in it.  With --key the same"
	    " create may be sent twice.", cmd_create, 0 },
	{ "exec", "[-it] [-e key[=value]] [-u user] [-w directory] "
	    "[--timeout s]\nid -- command [argument ...]",
	    "run a command in a sandbox",
	    "The command's output, error output and exit status become ours. "
	    " -i gives it\nour stdin, -t a terminal (which implies -i).  There"
	    " is no shell unless the\ncommand is one.  125: sandboxctl or the"
	    " daemon failed, 126: cannot be invoked,\n127: not found, 128+n:"
	    " killed by signal n.", cmd_exec, 1 },
	{ "run", "[-it] [-e key[=value]] [-u user] [-w directory] "
	    "[--disk mib]\n[--lifetime s] [--memory mib] [--timeout s] "
	    "[--vcpu n] template --\ncommand [argument ...]",
	    "create a sandbox, run a command in it, delete it",
	    "As exec, in a sandbox of its own that is deleted whatever happens:"
	    " also on a\nsignal, when the command cannot be started, or when"
	    " sandboxctl is killed.", cmd_run, 1 },
	{ "ls", "", "list the sandboxes",
	    "All of your sandboxes, oldest first.  -q: only their ids.",
	    cmd_ls, 0 },
	{ "show", "id", "show all that is known about a sandbox",
	    "All that is known about one sandbox.", cmd_show, 0 },
	{ "rm", "id ...", "delete sandboxes",
	    "Deletes sandboxes with all that is in them; returns when nothing"
	    " of them is\nleft.  What is gone already is no error when named"
	    " by its whole id.", cmd_rm, 0 },
	{ "wait", "[--state state] [--timeout s] id",
	    "wait until a sandbox is gone, or in a state",
	    "Returns 0 when it is in this state (default: gone), 1 when it can"
	    " no longer\nget there, 4 when the time is over.", cmd_wait, 0 },
	{ "health", "", "show how the daemon is",
	    "Version, uptime, counts, and how VMs are run.  0 when it serves.",
	    cmd_health, 0 },
	{ "doctor", "[-a] [-S state-directory]",
	    "check this host, and look for residue",
	    "Looks at the host itself, as root, also when no daemon runs: what"
	    " running\nsandboxes needs, and every process, tap, cgroup and file"
	    " that no record owns.\nWithout -S or SANDBOXD_STATE also those of"
	    " other instances whose daemon does\nnot run (-a: always).  1 if"
	    " anything is missing or left over.", cmd_doctor, 0 },
	{ "version", "", "show the versions of sandboxctl and the daemon",
	    "Versions of sandboxctl and of the daemon, if one answers.",
	    cmd_version, 0 },
	{ "help", "[command]", "explain a command", "This.", cmd_help, 0 },
};
#define NCOMMANDS	(sizeof(commands) / sizeof(commands[0]))

/* The command's synopsis, with its following lines set under its first. */
static void
print_synopsis(FILE *out, const struct command *cmd)
{
	const char	*s;
	int		 indent;

	indent = fprintf(out, "usage: sandboxctl %s%s", cmd->name,
	    cmd->synopsis[0] != '\0' ? " " : "");
	for (s = cmd->synopsis; *s != '\0'; s++)
		if (*s == '\n')
			(void)fprintf(out, "\n%*s", indent, "");
		else
			(void)fputc(*s, out);
	(void)fputc('\n', out);
}

static void
print_overview(FILE *out)
{
	size_t	 i;

	(void)fprintf(out, "usage: sandboxctl [-q] [-s socket] [--json] "
	    "[--no-header] command [argument ...]\n\ncommands:\n");
	for (i = 0; i < NCOMMANDS; i++)
		(void)fprintf(out, "  %-9s %s\n", commands[i].name,
		    commands[i].summary);
	(void)fprintf(out, "\n\"sandboxctl help command\" says more; "
	    "all of it is in sandboxctl(8).\n");
}

void
usage(void)
{
	if (ctl.command == NULL) {
		print_overview(stderr);
		exit(CTL_USAGE);
	}
	print_synopsis(stderr, ctl.command);
	exit(ctl.command->runs_guest ? CTL_FAILED : CTL_USAGE);
}

void
usage_error(const char *fmt, ...)
{
	char	 text[512];
	va_list	 ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say("%s%s%s", ctl.command != NULL ? ctl.command->name : "",
	    ctl.command != NULL ? ": " : "", text);
	usage();
}

int
ctl_status(const struct fault *f)
{
	return ctl.command->runs_guest ? CTL_FAILED : (int)f->code;
}

int
ctl_fail(const struct fault *f)
{
	say("%s: %s", ctl.command->name, f->text);
	return ctl_status(f);
}

uint32_t
ctl_number(const char *what, const char *s, uint32_t lo, uint32_t hi)
{
	const char	*why;
	long long	 n;

	n = strtonum(s, lo, hi, &why);
	if (why != NULL)
		usage_error("%s: \"%.64s\" is %s (a whole number from %u to "
		    "%u)", what, s, why, lo, hi);
	return (uint32_t)n;
}

void
ctl_option(int c)
{
	switch (c) {
	case 'h':
		(void)cmd_help(0, NULL);
		exit(CTL_OK);
	case 'q':
		ctl.quiet = 1;
		break;
	case 's':
		ctl.socket = optarg;
		break;
	case OPT_JSON:
		ctl.json = 1;
		break;
	case OPT_NO_HEADER:
		ctl.no_header = 1;
		break;
	default:
		/* getopt_long(3) has said why. */
		usage();
	}
}

void
ctl_options(int argc, char *argv[])
{
	static const struct option	 opts[] = { CTL_LONG, { 0 } };
	int				 c;

	while ((c = getopt_long(argc, argv, CTL_SHORT, opts, NULL)) != -1)
		ctl_option(c);
}

static const struct command *
find_command(const char *name)
{
	size_t	 i;

	for (i = 0; i < NCOMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

int
cmd_help(int argc, char *argv[])
{
	const struct command	*cmd = ctl.command;

	if (argc > 0) {
		ctl_options(argc, argv);
		argc -= optind;
		argv += optind;
		if (argc > 1)
			usage();
		cmd = argc == 1 ? find_command(argv[0]) : NULL;
		if (argc == 1 && cmd == NULL)
			usage_error("no command is called \"%.64s\"", argv[0]);
	}
	if (cmd == NULL) {
		print_overview(stdout);
	} else {
		print_synopsis(stdout, cmd);
		(void)printf("\n%s\n", cmd->text);
	}
	text_flush();
	return CTL_OK;
}

/* A descriptor that we open must never be taken for a standard one. */
static void
fill_standard_fds(void)
{
	int	 fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd == -1)
			_exit(CTL_ERROR);
	} while (fd <= STDERR_FILENO);
	(void)close(fd);
}

/* getopt(3) names the program in its messages as it was called. */
static char	program[] = "sandboxctl";

static void
global_options(int argc, char *argv[])
{
	static const struct option	 opts[] = { CTL_LONG,
		{ "version", no_argument, NULL, 'V' }, { 0 } };
	int				 c;

	while ((c = getopt_long(argc, argv, "+V" CTL_SHORT, opts, NULL)) != -1)
		if (c == 'V') {
			(void)printf("sandboxctl " SBX_VERSION "\n");
			text_flush();
			exit(CTL_OK);
		} else {
			ctl_option(c);
		}
}

int
main(int argc, char *argv[])
{
	int	 status;

	fill_standard_fds();
	(void)signal(SIGPIPE, SIG_IGN);
	ctl.socket = getenv("SANDBOXD_SOCKET");
	if (ctl.socket == NULL || ctl.socket[0] == '\0')
		ctl.socket = DEFAULT_SOCKET;
	if (argc < 1)
		usage();
	argv[0] = program;
	global_options(argc, argv);
	argc -= optind;
	argv += optind;
	if (argc == 0)
		usage();
	ctl.command = find_command(argv[0]);
	if (ctl.command == NULL)
		usage_error("no command is called \"%.64s\"", argv[0]);
	argv[0] = program;
	optind = 0;	/* glibc: start anew */
	status = ctl.command->run(argc, argv);
	text_flush();
	return status;
}
