/* SPDX-License-Identifier: ISC */
/*
 * The terminal: raw mode and its end.  tcsetattr(3) is safe in a signal
 * handler, so that a crash of ours does not leave the user with a dead terminal
 * either.
 */
#include <sys/ioctl.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "tty.h"

static struct termios		 saved;
static volatile sig_atomic_t	 raw;

void
tty_restore(void)
{
	if (!raw)
		return;
	/* From the background it would stop us: the shell has put it back. */
	(void)signal(SIGTTOU, SIG_IGN);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
	raw = 0;
}

int
tty_is_raw(void)
{
	return raw;
}

static void
on_crash(int sig)
{
	tty_restore();
	/* SA_RESETHAND: this time it ends us. */
	(void)raise(sig);
}

int
tty_set_raw(void)
{
	static const int	 crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE,
				    SIGILL };
	static int		 once;
	struct sigaction	 sa;
	struct termios		 t;
	size_t			 i;

	if (!raw && tcgetattr(STDIN_FILENO, &saved) == -1)
		return -1;
	if (!once) {
		once = 1;
		if (atexit(tty_restore) != 0)
			return -1;
		memset(&sa, 0, sizeof(sa));
		sa.sa_handler = on_crash;
		sa.sa_flags = SA_RESETHAND | SA_NODEFER;
		for (i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
			(void)sigaction(crashes[i], &sa, NULL);
	}
	t = saved;
	cfmakeraw(&t);
	raw = 1;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == -1) {
		raw = 0;
		return -1;
	}
	return 0;
}

void
tty_size(uint16_t *cols, uint16_t *rows)
{
	struct winsize	 ws;

	*cols = 80;
	*rows = 24;
	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) == -1)
		return;
	if (ws.ws_col != 0)
		*cols = ws.ws_col;
	if (ws.ws_row != 0)
		*rows = ws.ws_row;
}
