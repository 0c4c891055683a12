/* SPDX-License-Identifier: ISC */
/*
 * The terminal in front of us: raw while a guest's pty uses it, and put back on
 * every way out.
 */
#ifndef SBX_TTY_H
#define SBX_TTY_H

#include <stdint.h>

/* stdin goes raw until tty_restore() or the program's end.  0 or -1, errno. */
int	tty_set_raw(void);
void	tty_restore(void);
int	tty_is_raw(void);
/* Its size; 80 by 24 when it does not say. */
void	tty_size(uint16_t *cols, uint16_t *rows);

#endif
