/* SPDX-License-Identifier: ISC */
/* objs: libs: -lbsd */
/*
 * What follows from a slot's number: addresses, MAC, tap, uid.
 */
#include <net/if.h>

#include "limits.h"
#include "slot.h"
#include "test.h"

TEST_PLAN_AUTO;

#define POOL	0x0ae70000U	/* 10.231.0.0 */

static const char *
address(uint32_t a)
{
	static char	 text[16];

	slot_format_address(a, text);
	return text;
}

static void
test_numbers(void)
{
	char	 mac[18];
	uint8_t	 bytes[6];

	is_str(address(slot_host_address(POOL, 0)), "10.231.0.1",
	    "slot 0: host");
	is_str(address(slot_guest_address(POOL, 0)), "10.231.0.2",
	    "slot 0: guest");
	is_str(address(slot_guest_address(POOL, 63)), "10.231.0.254",
	    "slot 63: guest");
	is_str(address(slot_host_address(POOL, 64)), "10.231.1.1",
	    "slot 64: host, next byte");
	is_str(address(slot_guest_address(POOL, 16383)), "10.231.255.254",
	    "slot 16383: the last guest of a /16");
	is_str(address(0xffffffffU), "255.255.255.255", "address: the longest");
	slot_format_mac(slot_guest_address(POOL, 5), mac);
	is_str(mac, "02:53:0a:e7:00:16", "MAC of slot 5's guest");
	slot_mac(slot_guest_address(POOL, 5), bytes);
	is_mem(bytes, "\x02\x53\x0a\xe7\x00\x16", 6, "MAC of it as bytes");
	/* IEEE 802: bit 0 of the first byte is multicast, bit 1 local. */
	is_int(bytes[0] & 3, 2, "MAC: unicast, locally administered");
	is_int(slot_uid(1900000000, 0), 1900000016, "uid of slot 0");
	is_int(slot_uid(1900000000, 4079), 1900004095,
	    "uid of the last slot of 4096");
}

static void
test_slots(void)
{
	is_int(slot_count(16, 4096), 4080, "count: by uids");
	is_int(slot_count(24, 4096), 64, "count: by addresses");
	is_int(slot_count(30, 4096), 1, "count: one network");
	is_int(slot_count(31, 4096), 0, "count: no room for a network");
	is_int(slot_count(32, 4096), 0, "count: a single address");
	is_int(slot_count(16, 16), 0, "count: only reserved uids");
	is_int(slot_count(16, 17), 1, "count: one uid");
	is_int(slot_count(16, 0), 0, "count: no uid");
	is_int(slot_count(8, UINT32_MAX), 1 << 22, "count: a /8");
}

static void
test_taps(void)
{
	static const char	*const bad[] = {
		"", "sb", "sbabcd", "sbabcd-", "sbabcd", "sbabcx-1",
		"sbabcd-01", "sbabcd- 1", "sbabcd-+1", "sbabcd--1",
		"sbabcd-0x1", "sbabcd-1g", "sbabcd-1F", "sbabcd-100000000",
		"sbabcd-ffffffffffffffffff",
		"xbabcd-1", "sbabcd_1", "sbabcd-1 ", "tap0", "sbabc-d1"
	};
	char			 name[TAP_NAME_MAX + 1];
	uint32_t		 slot;
	size_t			 i;
	int			 wrong = 0;

	slot_format_tap("k3fa", 0x1f, name);
	is_str(name, "sbk3fa-1f", "tap: name");
	slot_format_tap("abcd", UINT32_MAX, name);
	is_str(name, "sbabcd-ffffffff", "tap: the longest name");
	ok(strlen(name) < IFNAMSIZ, "tap: fits the kernel's IFNAMSIZ");
	for (slot = 0; slot < 70000; slot++) {
		slot_format_tap("abcd", slot, name);
		wrong += slot_from_tap("abcd", name) != slot;
		wrong += slot_from_tap("abce", name) != -1;
	}
	is_int(wrong, 0, "tap: name and back, 70000 slots");
	is_int(slot_from_tap("abcd", "sbabcd-ffffffff"), UINT32_MAX,
	    "tap: the last slot there is");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_int(slot_from_tap("abcd", bad[i]), -1,
		    "tap: \"%s\" is none of ours", bad[i]);
}

int
main(void)
{
	test_numbers();
	test_slots();
	test_taps();
	return done_testing();
}
