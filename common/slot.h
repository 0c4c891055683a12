/* SPDX-License-Identifier: ISC */
/*
 * What follows from a slot's number: pure functions, no state.  A slot is one
 * place for a sandbox: a uid, a /30 of the address pool and a tap.
 *
 *	uid		uid_first + SLOT_UIDS_RESERVED + slot
 *	network		pool + 4 * slot: host side +1, guest side +2
 *	MAC		02:53:<address>, guest side and host side
 *	tap		"sb" tag "-" slot in hex, e.g. "sbk3fa-1f"
 */
#ifndef SBX_SLOT_H
#define SBX_SLOT_H

#include <stdint.h>

/* The first uids of the range belong to front and netd. */
#define SLOT_UID_FRONT		0
#define SLOT_UID_NETD		1
#define SLOT_UIDS_RESERVED	16

#define SLOT_PREFIX		30	/* of each slot's network */

/* Slots that an address pool of this prefix length and a uid range hold. */
uint32_t	slot_count(unsigned int, uint32_t);
uint32_t	slot_uid(uint32_t, uint32_t);
/* Addresses in host byte order; pool is the pool's first address. */
uint32_t	slot_host_address(uint32_t, uint32_t);
uint32_t	slot_guest_address(uint32_t, uint32_t);
/* Text forms; buffers of 16, 18 and TAP_NAME_MAX + 1 bytes. */
void		slot_format_address(uint32_t, char *);
void		slot_format_mac(uint32_t, char *);
void		slot_format_tap(const char *, uint32_t, char *);
/* The six bytes of the MAC for an address (the tap has its own side's). */
void		slot_mac(uint32_t, uint8_t *);
/* The slot number in a tap name of this tag, -1 if it is none of ours. */
int64_t		slot_from_tap(const char *, const char *);

#endif
