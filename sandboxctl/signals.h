/* SPDX-License-Identifier: ISC */
/*
 * Signals of exec and run: forwarded to the guest once, the second ends us.
 * They are blocked but for the time of signals_poll(), so that none is missed.
 */
#ifndef SBX_SIGNALS_H
#define SBX_SIGNALS_H

#include <poll.h>

/* From here on they are counted.  What was ignored at our start stays so. */
void	signals_catch(void);
/* poll(2), with the signals let in.  Works without signals_catch(), too. */
int	signals_poll(struct pollfd *, nfds_t, int timeout_ms);
/* How many have asked us to end, and the first of them. */
unsigned int	signals_count(void);
int	signals_first(void);
/* The next one that nobody has forwarded yet, 0: none. */
int	signals_take(void);
/* Has the terminal's size changed, or may it have, since the last call? */
int	signals_resized(void);
/* Did SIGTSTP come?  Stops us, and returns when we go on. */
void	signals_suspend(void);
/* "TERM" for 15; NULL if it has no name. */
const char	*signals_name(int);
/* 15 for "TERM" or "SIGTERM"; 0. */
int	signals_number(const char *);

#endif
