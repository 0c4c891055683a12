/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "signals.h"
#include "tty.h"

static const int	 ending[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
#define NENDING		(sizeof(ending) / sizeof(ending[0]))

static volatile sig_atomic_t	 came[NENDING];	/* not taken yet */
static volatile sig_atomic_t	 count, first, resized, suspend;
static sigset_t			 outside;	/* mask while polling */
static int			 catching;

static void
on_ending(int sig)
{
	size_t	 i;

	for (i = 0; i < NENDING; i++)
		if (ending[i] == sig)
			came[i] = 1;
	if (count++ == 0)
		first = sig;
}

static void
on_other(int sig)
{
	if (sig == SIGTSTP)
		suspend = 1;
	else
		resized = 1;	/* SIGWINCH, and SIGCONT: it may have */
}

static void
catch_one(int sig, void (*handler)(int), sigset_t *blocked)
{
	struct sigaction	 sa, old;

	if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
		return;
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = handler;
	(void)sigaction(sig, &sa, NULL);
	(void)sigaddset(blocked, sig);
	(void)sigdelset(&outside, sig);
}

void
signals_catch(void)
{
	sigset_t	 blocked;
	size_t		 i;

	if (catching)
		return;
	catching = 1;
	(void)sigemptyset(&blocked);
	(void)sigprocmask(SIG_SETMASK, NULL, &outside);
	for (i = 0; i < NENDING; i++)
		catch_one(ending[i], on_ending, &blocked);
	catch_one(SIGWINCH, on_other, &blocked);
	catch_one(SIGCONT, on_other, &blocked);
	catch_one(SIGTSTP, on_other, &blocked);
	(void)sigprocmask(SIG_BLOCK, &blocked, NULL);
}

int
signals_poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
	struct timespec	 ts = { timeout_ms / 1000,
			    timeout_ms % 1000 * 1000000L };

	return ppoll(p, n, timeout_ms < 0 ? NULL : &ts,
	    catching ? &outside : NULL);
}

unsigned int
signals_count(void)
{
	return (unsigned int)count;
}

int
signals_first(void)
{
	return first;
}

int
signals_take(void)
{
	size_t	 i;

	for (i = 0; i < NENDING; i++)
		if (came[i]) {
			came[i] = 0;
			return ending[i];
		}
	return 0;
}

int
signals_resized(void)
{
	int	 r = resized;

	resized = 0;
	return r;
}

void
signals_suspend(void)
{
	int	 was_raw = tty_is_raw();

	if (!suspend)
		return;
	suspend = 0;
	tty_restore();
	(void)raise(SIGSTOP);
	if (was_raw)
		(void)tty_set_raw();
	resized = 1;
}

const char *
signals_name(int sig)
{
	return sigabbrev_np(sig);
}

int
signals_number(const char *name)
{
	const char	*s;
	int		 i;

	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (i = 1; i < NSIG; i++) {
		s = sigabbrev_np(i);
		if (s != NULL && strcmp(s, name) == 0)
			return i;
	}
	return 0;
}
