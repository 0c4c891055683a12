/* SPDX-License-Identifier: ISC */
/*
 * The grammar of sandboxd.conf(5); the only place that knows its keywords.
 * Runs in the parent (and in sandboxd -n) before anything is started.  The file
 * is the operator's, so it is trusted once its owner and mode have been
 * checked; every fault of it is reported with its line, not only the first.
 *
 * One statement a line, `#' starts a comment, a later statement replaces an
 * earlier one.
 */
%{
#include <sys/stat.h>

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "conf_value.h"
#include "limits.h"
#include "slot.h"

static struct parser {
	FILE		*file;
	const char	*name;		/* as it was given */
	int		 line;
	int		 faults;
	int		 new_line;	/* the next token starts one */
	size_t		 used;		/* of text */
	char		*token;		/* the latest, in text */
	char		*before;	/* the one before it on the line */
	int		 kind;		/* token number of the latest */
	char		 text[CONF_LINE_MAX];	/* tokens of the line */
} parser;

static void	yyerror(const char *);
static int	yylex(void);

static struct config	*conf;

#define SET_PATH(member, text, what)					\
	value_path(conf->member, sizeof(conf->member), text, what)
%}

%union {
	char	*string;
	int	 resource;
}

%token	ACCEL AUTO BOOT COUNT DEADLINE DEFAULT DISK DNS DRIVER FAILED FRONT
%token	GROUP INITRAMFS KEEP KERNEL KEYS KVM LIBEXEC LIMIT MAXIMUM MEMORY
%token	MKE2FS MODE NETD OWNER POOL QEMU RECONNECT SANDBOXES SOCKET STATE TAG
%token	TCG TEMPLATES TIMEOUT UIDS USER VCPU VERDICT
%token	UNREADABLE
%token	<string> STRING
%type	<resource> resource

%%

grammar		: /* empty */
		| grammar '\n'
		| grammar statement '\n'
		| grammar error '\n'		{ yyerrok; }
		;

statement	: STATE STRING		{ SET_PATH(state_dir, $2, "state"); }
		| SOCKET STRING socketopts {
			SET_PATH(socket_path, $2, "socket");
		}
		| TAG STRING		{ value_tag(conf, $2); }
		| DRIVER driver
		| ACCEL accel
		| UIDS STRING COUNT STRING {
			value_number(&conf->uid_first, $2, "uids", NULL,
			    1, CONF_UID_MAX);
			value_number(&conf->uid_count, $4, "uids", "count",
			    SLOT_UIDS_RESERVED + 1, CONF_UID_COUNT_MAX);
		}
		| FRONT USER STRING {
			value_user(&conf->front_uid, &conf->front_gid, $3,
			    "front user");
		}
		| NETD USER STRING {
			value_user(&conf->netd_uid, &conf->netd_gid, $3,
			    "netd user");
		}
		| paths
		| BOOT DEADLINE STRING {
			uint32_t	 s = 0;

			value_number(&s, $3, "boot", "deadline",
			    1, CONF_SECONDS_MAX);
			conf->boot_deadline_ms = s * 1000;
		}
		| POOL STRING		{ value_pool(conf, $2); }
		| DNS '{'		{ conf->dns_count = 0; } dns '}'
		| bounds
		;

socketopts	: /* empty */
		| socketopts GROUP STRING	{ value_group(conf, $3); }
		| socketopts MODE STRING	{ value_mode(conf, $3); }
		;

driver		: QEMU			{ conf->driver = DRIVER_QEMU; }
		| STRING {
			conf_fault("driver: there is no \"%s\"; it is qemu",
			    $1);
		}
		;

accel		: AUTO			{ conf->accel = ACCEL_AUTO; }
		| KVM			{ conf->accel = ACCEL_KVM; }
		| TCG			{ conf->accel = ACCEL_TCG; }
		| STRING {
			conf_fault("accel: there is no \"%s\"; it is auto, kvm "
			    "or tcg", $1);
		}
		;

paths		: QEMU STRING		{ SET_PATH(qemu, $2, "qemu"); }
		| MKE2FS STRING		{ SET_PATH(mke2fs, $2, "mke2fs"); }
		| KERNEL STRING		{ SET_PATH(kernel, $2, "kernel"); }
		| INITRAMFS STRING {
			SET_PATH(initramfs, $2, "initramfs");
		}
		| TEMPLATES STRING {
			SET_PATH(template_dir, $2, "templates");
		}
		| LIBEXEC STRING {
			SET_PATH(libexec_dir, $2, "libexec");
		}
		| VERDICT STRING {
			SET_PATH(verdict_file, $2, "verdict");
		}
		;

dns		: STRING		{ value_dns(conf, $1); }
		| dns ',' STRING	{ value_dns(conf, $3); }
		;

bounds		: DEFAULT resource STRING {
			value_resource(&conf->defaults, "default", $2, $3);
		}
		| MAXIMUM resource STRING {
			value_resource(&conf->maximum, "maximum", $2, $3);
		}
		| LIMIT SANDBOXES STRING {
			value_number(&conf->max_sandboxes, $3, "limit",
			    "sandboxes", 1, CONF_SANDBOXES_MAX);
		}
		| LIMIT OWNER STRING {
			value_number(&conf->max_per_owner, $3, "limit", "owner",
			    1, CONF_SANDBOXES_MAX);
		}
		| LIMIT MEMORY STRING	{ value_memory_limit(conf, $3); }
		| KEEP FAILED STRING {
			value_number(&conf->keep_failed_s, $3, "keep", "failed",
			    0, SBX_TIMEOUT_MAX_S);
		}
		| KEEP KEYS STRING {
			value_number(&conf->keep_keys_s, $3, "keep", "keys",
			    0, SBX_TIMEOUT_MAX_S);
		}
		| RECONNECT STRING {
			value_number(&conf->reconnect_s, $2, "reconnect", NULL,
			    0, CONF_SECONDS_MAX);
		}
		;

resource	: VCPU			{ $$ = RESOURCE_VCPU; }
		| MEMORY		{ $$ = RESOURCE_MEMORY; }
		| DISK			{ $$ = RESOURCE_DISK; }
		| TIMEOUT		{ $$ = RESOURCE_TIMEOUT; }
		;

%%

static const struct keyword {
	const char	*word;
	int		 token;
} keywords[] = {		/* sorted */
	{ "accel", ACCEL },
	{ "auto", AUTO },
	{ "boot", BOOT },
	{ "count", COUNT },
	{ "deadline", DEADLINE },
	{ "default", DEFAULT },
	{ "disk", DISK },
	{ "dns", DNS },
	{ "driver", DRIVER },
	{ "failed", FAILED },
	{ "front", FRONT },
	{ "group", GROUP },
	{ "initramfs", INITRAMFS },
	{ "keep", KEEP },
	{ "kernel", KERNEL },
	{ "keys", KEYS },
	{ "kvm", KVM },
	{ "libexec", LIBEXEC },
	{ "limit", LIMIT },
	{ "maximum", MAXIMUM },
	{ "memory", MEMORY },
	{ "mke2fs", MKE2FS },
	{ "mode", MODE },
	{ "netd", NETD },
	{ "owner", OWNER },
	{ "pool", POOL },
	{ "qemu", QEMU },
	{ "reconnect", RECONNECT },
	{ "sandboxes", SANDBOXES },
	{ "socket", SOCKET },
	{ "state", STATE },
	{ "tag", TAG },
	{ "tcg", TCG },
	{ "templates", TEMPLATES },
	{ "timeout", TIMEOUT },
	{ "uids", UIDS },
	{ "user", USER },
	{ "vcpu", VCPU },
	{ "verdict", VERDICT },
};

/* ---- faults ---- */

void
conf_fault(const char *fmt, ...)
{
	va_list	 ap;

	parser.faults++;
	(void)fprintf(stderr, "%s:%d: ", parser.name, parser.line);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
}

/* Called by the parser, whose text is always "syntax error". */
static void
yyerror(const char *text)
{
	if (parser.kind == UNREADABLE)
		return;		/* the lexer has said what it is */
	if (parser.kind == 0 || parser.kind == '\n')
		conf_fault("the line ends too early, after \"%s\"",
		    parser.before == NULL ? "" : parser.before);
	else if (parser.before != NULL)
		conf_fault("\"%s\" cannot stand after \"%s\"", parser.token,
		    parser.before);
	else if (parser.kind == STRING)
		conf_fault("unknown keyword \"%s\"", parser.token);
	else
		conf_fault("\"%s\" does not begin a statement", parser.token);
	(void)text;
}

/* ---- tokens ---- */

static int
keyword_compare(const void *word, const void *k)
{
	return strcmp(word, ((const struct keyword *)k)->word);
}

static int
is_word(int c)
{
	return c != EOF && c < 0x80 &&
	    (isalnum(c) || strchr("._-/:@+", c) != NULL) && c != '\0';
}

/* Appends to the line's text; 0 when there is no room. */
static int
put_char(int c)
{
	if (parser.used >= sizeof(parser.text) - 1)
		return 0;
	parser.text[parser.used++] = (char)c;
	parser.text[parser.used] = '\0';
	return 1;
}

static int
unreadable(const char *why)
{
	int	 c;

	conf_fault("%s", why);
	/* The rest of the line would only give faults that follow from it. */
	while ((c = getc(parser.file)) != EOF && c != '\n')
		continue;
	(void)ungetc(c, parser.file);
	return UNREADABLE;
}

static int
lex_quoted(void)
{
	int	 c;

	for (;;) {
		c = getc(parser.file);
		if (c == '"')
			return STRING;
		if (c == EOF || c == '\n') {
			(void)ungetc(c, parser.file);
			return unreadable("a string does not end on its line");
		}
		if (c == '\\') {
			c = getc(parser.file);
			if (c != '"' && c != '\\') {
				(void)ungetc(c, parser.file);
				return unreadable("a backslash stands only "
				    "before \" and \\");
			}
		}
		if (c < 0x20 || c == 0x7f)
			return unreadable("control character in a string");
		if (!put_char(c))
			return unreadable("line is too long");
	}
}

static int
lex_word(int c)
{
	const struct keyword	*k;

	for (; is_word(c); c = getc(parser.file))
		if (!put_char(c))
			return unreadable("line is too long");
	(void)ungetc(c, parser.file);
	k = bsearch(parser.token, keywords,
	    sizeof(keywords) / sizeof(keywords[0]), sizeof(keywords[0]),
	    keyword_compare);
	return k == NULL ? STRING : k->token;
}

static int
lex_token(void)
{
	char	 why[64];
	int	 c;

	do {
		c = getc(parser.file);
	} while (c == ' ' || c == '\t');
	if (c == '#')
		while (c != EOF && c != '\n')
			c = getc(parser.file);
	if (c == '\n')
		return '\n';
	if (c == EOF) {
		/* A last line without its newline is a line, too. */
		return parser.token == NULL ? 0 : '\n';
	}
	if (parser.used != 0 && !put_char('\0'))
		return unreadable("line is too long");
	parser.token = parser.text + parser.used;
	*parser.token = '\0';
	if (c == '"')
		return lex_quoted();
	if (c == '{' || c == '}' || c == ',')
		return put_char(c) ? c : unreadable("line is too long");
	if (is_word(c))
		return lex_word(c);
	if (c > 0x20 && c < 0x7f)
		(void)snprintf(why, sizeof(why), "\"%c\" is not allowed here",
		    c);
	else
		(void)snprintf(why, sizeof(why), "byte 0x%02x is not allowed "
		    "here", (unsigned int)c);
	return unreadable(why);
}

static int
yylex(void)
{
	if (parser.new_line) {
		parser.new_line = 0;
		parser.line++;
		parser.used = 0;
		parser.token = NULL;
	}
	parser.before = parser.token;
	parser.kind = lex_token();
	yylval.string = parser.token;
	if (parser.kind == '\n')
		parser.new_line = 1;
	return parser.kind;
}

/* ---- the file ---- */

/* Whoever can write this file decides what root runs. */
static int
check_secrecy(const char *path)
{
	struct stat	 st;

	if (fstat(fileno(parser.file), &st) == -1)
		(void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		(void)fprintf(stderr, "%s: not a regular file\n", path);
	else if (st.st_uid != 0 && st.st_uid != geteuid())
		(void)fprintf(stderr, "%s: owned by uid %u, not by root or "
		    "the caller\n", path, (unsigned int)st.st_uid);
	else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		(void)fprintf(stderr, "%s: group or others can write to it; "
		    "chmod go-w it\n", path);
	else
		return 0;
	return -1;
}

int
config_parse(struct config *c, const char *path)
{
	int	 failed = -1;

	memset(&parser, 0, sizeof(parser));
	parser.name = path;
	conf = c;
	parser.new_line = 1;
	parser.file = fopen(path, "re");
	if (parser.file == NULL) {
		(void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	if (check_secrecy(path) == 0) {
		if (yyparse() != 0 && parser.faults == 0)
			conf_fault("too complicated");
		if (ferror(parser.file))
			conf_fault("%s", strerror(errno));
		failed = parser.faults != 0 ? -1 : 0;
	}
	(void)fclose(parser.file);
	return failed;
}
