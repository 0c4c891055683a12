/* SPDX-License-Identifier: ISC */
/*
 * Logging: one line for each event, UTC with milliseconds, process name first
 * (conventions: a fixed verb, then key=value).  Goes to stderr: with "<N>"
 * priorities when systemd reads it, with a time stamp else.  An inherited
 * stderr keeps working in a chrooted, filtered process, which syslog(3) does
 * not. errno is left as it was.
 */
#ifndef SBX_LOG_H
#define SBX_LOG_H

#include <stddef.h>

/* Name of this process in each line; verbosity 0: info, 1: debug. */
void	log_init(const char *, int);
void	log_setverbose(int);
int	log_getverbose(void);

void	log_warn(const char *, ...) __attribute__((format(printf, 1, 2)));	/* + strerror */
void	log_warnx(const char *, ...) __attribute__((format(printf, 1, 2)));
void	log_info(const char *, ...) __attribute__((format(printf, 1, 2)));
void	log_debug(const char *, ...) __attribute__((format(printf, 1, 2)));

/* Start-up errors, broken invariants, bad messages from a sibling: exit 1. */
void	fatal(const char *, ...) __attribute__((format(printf, 1, 2), noreturn));
void	fatalx(const char *, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Text from outside made safe for a log line: strvis(3), cut at 128 bytes.
 * Returns a static buffer (four of them take turns).
 */
const char	*log_vis(const char *, size_t);

#endif
