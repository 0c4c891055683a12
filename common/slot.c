/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limits.h"
#include "slot.h"

uint32_t
slot_count(unsigned int pool_prefix, uint32_t uid_count)
{
	uint32_t	 nets, uids;

	nets = pool_prefix <= SLOT_PREFIX ?
	    1U << (SLOT_PREFIX - pool_prefix) : 0;
	uids = uid_count > SLOT_UIDS_RESERVED ?
	    uid_count - SLOT_UIDS_RESERVED : 0;
	return nets < uids ? nets : uids;
}

uint32_t
slot_uid(uint32_t uid_first, uint32_t slot)
{
	return uid_first + SLOT_UIDS_RESERVED + slot;
}

uint32_t
slot_host_address(uint32_t pool, uint32_t slot)
{
	return pool + 4 * slot + 1;
}

uint32_t
slot_guest_address(uint32_t pool, uint32_t slot)
{
	return pool + 4 * slot + 2;
}

void
slot_format_address(uint32_t a, char *out)
{
	(void)snprintf(out, 16, "%u.%u.%u.%u", a >> 24, a >> 16 & 255,
	    a >> 8 & 255, a & 255);
}

void
slot_mac(uint32_t a, uint8_t *mac)
{
	mac[0] = 0x02;		/* locally administered, unicast */
	mac[1] = 0x53;
	mac[2] = (uint8_t)(a >> 24);
	mac[3] = (uint8_t)(a >> 16);
	mac[4] = (uint8_t)(a >> 8);
	mac[5] = (uint8_t)a;
}

void
slot_format_mac(uint32_t a, char *out)
{
	uint8_t	 m[6];

	slot_mac(a, m);
	(void)snprintf(out, 18, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1],
	    m[2], m[3], m[4], m[5]);
}

void
slot_format_tap(const char *tag, uint32_t slot, char *out)
{
	(void)snprintf(out, TAP_NAME_MAX + 1, "sb%.4s-%x", tag, slot);
}

int64_t
slot_from_tap(const char *tag, const char *name)
{
	char		 again[TAP_NAME_MAX + 1];
	char		*end;
	unsigned long	 slot;

	if (strncmp(name, "sb", 2) != 0 ||
	    strncmp(name + 2, tag, SBX_TAG_LEN) != 0 ||
	    name[2 + SBX_TAG_LEN] != '-')
		return -1;
	slot = strtoul(name + 3 + SBX_TAG_LEN, &end, 16);
	if (*end != '\0' || slot > UINT32_MAX)
		return -1;
	/* Only the one spelling that we write: no sign, blank or zeros. */
	slot_format_tap(tag, (uint32_t)slot, again);
	return strcmp(again, name) == 0 ? (int64_t)slot : -1;
}
