/* SPDX-License-Identifier: ISC */
/*
 * Reads a descriptor (a guest's console, a VMM's stderr) to its end and keeps
 * only the last bytes.
 */
#ifndef SBX_TAIL_H
#define SBX_TAIL_H

#include <stddef.h>
#include <stdint.h>

struct tail;

/*
 * Takes the descriptor; keeps `keep` bytes; after `budget` bytes in all it is
 * closed (0: no bound).  NULL: out of memory, the descriptor is closed.
 */
struct tail	*tail_new(int, size_t keep, uint64_t budget);
/* Reads what is there now, without waiting. */
void		 tail_drain(struct tail *);
/* Stops reading; what was kept stays. */
void		 tail_close(struct tail *);
/* Copies the last bytes, oldest first. */
size_t		 tail_copy(const struct tail *, uint8_t *, size_t);
/* Closes and frees; NULL is allowed. */
void		 tail_free(struct tail *);

#endif
