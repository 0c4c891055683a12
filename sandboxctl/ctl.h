/* SPDX-License-Identifier: ISC */
/*
 * sandboxctl's own types: its options, its commands, its exit statuses, and how
 * it speaks to the person in front of it.  Runs as whoever calls it; what the
 * daemon answers is checked, and no byte of it reaches a terminal raw.
 */
#ifndef SBX_CTL_H
#define SBX_CTL_H

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"

struct json_object;
struct json_out;

enum ctl_exit {
	CTL_OK		= 0,
	CTL_ERROR	= 1,
	CTL_USAGE	= 2,
	CTL_NOT_FOUND	= 3,
	CTL_TIMEOUT	= 4,
	/* exec and run, where the others are the guest's (chroot(1)). */
	CTL_FAILED	= 125,
	CTL_SIGNAL	= 128
};

/* What went wrong, as it is told: what failed, on what, what to do. */
struct fault {
	enum ctl_exit	 code;
	int		 status;	/* HTTP status it came with, or 0 */
	char		 text[1024];
};
/* Fills it and returns -1. */
int	fault_set(struct fault *, enum ctl_exit, const char *, ...)
	    __attribute__((format(printf, 3, 4)));

struct command {
	const char	*name;
	const char	*synopsis;	/* after the name */
	const char	*summary;	/* one line */
	const char	*text;		/* for help */
	/* A command's argv[0] is its name; the result is the exit status. */
	int		(*run)(int, char *[]);
	int		 runs_guest;	/* own failures are CTL_FAILED */
};

struct ctl {
	const char		*socket;
	const struct command	*command;
	int			 json;
	int			 quiet;
	int			 no_header;
};
extern struct ctl	 ctl;

/* sandboxctl.c: options that every command takes. */
#define CTL_SHORT	"hqs:"
enum { OPT_JSON = 256, OPT_NO_HEADER, OPT_FIRST };
#define CTL_LONG							\
	{ "help",	no_argument,		NULL, 'h' },		\
	{ "quiet",	no_argument,		NULL, 'q' },		\
	{ "socket",	required_argument,	NULL, 's' },		\
	{ "json",	no_argument,		NULL, OPT_JSON },	\
	{ "no-header",	no_argument,		NULL, OPT_NO_HEADER }
/* Takes one of them, or ends in usage(). */
void	ctl_option(int);
/* Parses a command's line when it has no options of its own. */
void	ctl_options(int, char *[]);
void	usage(void) __attribute__((noreturn));
/* A usage error that needs saying, then usage(). */
void	usage_error(const char *, ...)
	    __attribute__((format(printf, 1, 2), noreturn));
/* Exit status for a fault of the command under way. */
int	ctl_status(const struct fault *);
/* Says it, and returns that. */
int	ctl_fail(const struct fault *);
/* A number of an option, or usage_error(). */
uint32_t	ctl_number(const char *what, const char *, uint32_t lo,
	    uint32_t hi);

/* text.c */
/* "sandboxctl: ..." on stderr, made safe for a terminal. */
void	say(const char *, ...) __attribute__((format(printf, 1, 2)));
/*
 * Bytes made safe for a terminal: printable UTF-8 stays, control characters of
 * all kinds, what reorders text and what is no UTF-8 becomes \n, \t, \xHH.
 * Always ends with a NUL; returns its length.
 */
size_t	text_safe(char *, size_t, const char *, size_t len);
/* On stdout; a failing stdout ends the program. */
void	text_print(const char *);
void	text_json(struct json_object *);
void	text_json_line(const char *, size_t);
/*
 * "name: value" lines for an object's members; what is inside of one of them
 * gets its name before ("metadata.key"), an array a line for each element.
 */
void	text_members(struct json_object *);
void	text_flush(void);

/* A table that is as wide as what is in it; text is copied, made safe. */
#define TABLE_COLUMNS	8
struct table {
	const char	*heads[TABLE_COLUMNS];
	size_t		 ncolumns;
	size_t		 widths[TABLE_COLUMNS];
	char		**cells;
	size_t		 ncells, size;
};
void	table_cell(struct table *, const char *);
void	table_print(struct table *);	/* and frees the cells */
/* "3 min", "2 h": two of them take turns in static memory. */
const char	*text_duration(int64_t seconds);

/* Commands. */
int	cmd_create(int, char *[]);
int	cmd_doctor(int, char *[]);
int	cmd_exec(int, char *[]);
int	cmd_health(int, char *[]);
int	cmd_help(int, char *[]);
int	cmd_ls(int, char *[]);
int	cmd_rm(int, char *[]);
int	cmd_run(int, char *[]);
int	cmd_show(int, char *[]);
int	cmd_version(int, char *[]);
int	cmd_wait(int, char *[]);

#endif
