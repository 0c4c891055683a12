/* SPDX-License-Identifier: ISC */
/*
 * Making and removing a sandbox's tap.  Runs in netd, confined; the parent is
 * obeyed but each of its numbers is checked again.  The tap is not persistent:
 * it lives as long as somebody holds its descriptor, and netd does not.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <bsd/string.h>

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <linux/if_tun.h>

#include "netd.h"
#include "slot.h"

static int	fail(struct failure *, enum sbx_error, int, const char *, ...)
		    __attribute__((format(printf, 4, 5)));

/* Fills the failure (err: a negative errno for its text, 0: none); -1. */
static int
fail(struct failure *f, enum sbx_error error, int err, const char *fmt, ...)
{
	va_list	 ap;
	size_t	 n;

	f->fail_error = error;
	va_start(ap, fmt);
	(void)vsnprintf(f->fail_detail, sizeof(f->fail_detail), fmt, ap);
	va_end(ap);
	n = strlen(f->fail_detail);
	if (err != 0)
		(void)snprintf(f->fail_detail + n, sizeof(f->fail_detail) - n,
		    ": %s", strerror(-err));
	return -1;
}

int
tap_sync_table(struct netd *n)
{
	struct tap_list	 taps;
	int		 r;

	r = link_list_taps(&n->netd_route, n->netd_tag, &taps);
	if (r < 0)
		return r;
	r = nft_build(&n->netd_nft, &taps);
	tap_list_free(&taps);
	return r;
}

static int
check_slot(const struct netd *n, uint32_t slot, char *name, struct failure *f)
{
	if (slot >= n->netd_slots)
		return fail(f, E_OUT_OF_RANGE, 0, "slot %u is beyond the %u of "
		    "the address pool", slot, n->netd_slots);
	slot_format_tap(n->netd_tag, slot, name);
	/* The kernel would cut a longer name and join another's tap. */
	if (slot_from_tap(n->netd_tag, name) != (int64_t)slot)
		return fail(f, E_OUT_OF_RANGE, 0, "slot %u gives no tap name",
		    slot);
	return 0;
}

/* From an open /dev/net/tun to an interface that belongs to the uid. */
static int
attach_tun(int fd, const char *name, uint32_t uid, struct failure *f)
{
	struct ifreq	 ifr;
	struct stat	 st;

	if (fstat(fd, &st) == -1 || !S_ISCHR(st.st_mode))
		return fail(f, E_NETWORK, 0, "tap %s: the descriptor is not of "
		    "/dev/net/tun", name);
	memset(&ifr, 0, sizeof(ifr));
	ifr.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR |
	    IFF_TUN_EXCL);
	if (strlcpy(ifr.ifr_name, name, IFNAMSIZ) >= IFNAMSIZ)
		return fail(f, E_OUT_OF_RANGE, 0, "tap %s: name is too long",
		    name);
	if (ioctl(fd, TUNSETIFF, &ifr) == -1) {
		if (errno == EBUSY)
			return fail(f, E_NETWORK, -EBUSY, "tap %s exists: the "
			    "tag is ours, so a VM of this instance still "
			    "holds it; remove it first", name);
		return fail(f, E_NETWORK, -errno, "tap %s: TUNSETIFF", name);
	}
	if (ioctl(fd, TUNSETOWNER, (unsigned long)uid) == -1 ||
	    ioctl(fd, TUNSETGROUP, (unsigned long)uid) == -1)
		return fail(f, E_NETWORK, -errno, "tap %s: owner %u", name,
		    uid);
	return 0;
}

/* Somebody may have flushed the whole rule set: then make ours again. */
static int
admit_tap(struct netd *n, const char *name)
{
	int	 r;

	r = nft_add_tap(&n->netd_nft, name);
	return r == -ENOENT ? tap_sync_table(n) : r;
}

/*
 * Address, rules and only then up.  On a failure the caller deletes the link.
 */
static int
furnish_tap(struct netd *n, const char *name, int index, uint32_t slot,
    uint64_t gen, struct failure *f)
{
	struct nl	*nl = &n->netd_route;
	uint32_t	 address = slot_host_address(n->netd_pool, slot);
	char		 text[16];
	int		 r;

	slot_format_address(address, text);
	r = link_configure(nl, index, address, gen);
	if (r < 0)
		return fail(f, E_NETWORK, r, "tap %s: cannot be configured",
		    name);
	r = link_add_address(nl, index, address);
	if (r < 0)
		return fail(f, E_NETWORK, r, "tap %s: address %s/%d", name,
		    text, SLOT_PREFIX);
	r = admit_tap(n, name);
	if (r < 0)
		return fail(f, E_NETWORK, r, "tap %s: table %s", name,
		    n->netd_nft.nft_table);
	r = link_set_up(nl, index);
	if (r < 0) {
		(void)nft_remove_tap(&n->netd_nft, name);
		return fail(f, E_NETWORK, r, "tap %s: cannot be brought up",
		    name);
	}
	return 0;
}

int
tap_create(struct netd *n, int fd, uint32_t slot, uint64_t gen, uint32_t uid,
    int *index, char *name, struct failure *f)
{
	struct link	 l;
	int		 r;

	if (check_slot(n, slot, name, f) == -1)
		return -1;
	if (uid == 0 || uid == UINT32_MAX || uid == n->netd_uid)
		return fail(f, E_OUT_OF_RANGE, 0, "tap %s: uid %u cannot own "
		    "it", name, uid);
	if (attach_tun(fd, name, uid, f) == -1)
		return -1;	/* what it made goes with the descriptor */
	r = link_find(&n->netd_route, name, &l);
	if (r < 0)
		return fail(f, E_NETWORK, r, "tap %s: not found after it was "
		    "made", name);
	if (furnish_tap(n, name, l.link_index, slot, gen, f) == -1) {
		/* The parent has the descriptor, too: closing is not enough. */
		(void)link_delete(&n->netd_route, l.link_index);
		return -1;
	}
	*index = l.link_index;
	return 0;
}

int
tap_remove(struct netd *n, uint32_t slot, uint64_t gen, struct failure *f)
{
	char		 name[TAP_NAME_MAX + 1];
	struct link	 l;
	int		 r;

	if (check_slot(n, slot, name, f) == -1)
		return -1;
	r = link_find(&n->netd_route, name, &l);
	if (r < 0 && r != -ENODEV)
		return fail(f, E_NETWORK, r, "tap %s: cannot be looked up",
		    name);
	if (r == 0) {
		if (!l.link_is_tun)
			return fail(f, E_NETWORK, 0, "interface %s is not a "
			    "tap; remove it by hand", name);
		if (l.link_has_generation && l.link_generation != gen)
			return fail(f, E_CONFLICT, 0, "tap %s belongs to "
			    "generation %llu of its slot, not to %llu", name,
			    (unsigned long long)l.link_generation,
			    (unsigned long long)gen);
		r = link_delete(&n->netd_route, l.link_index);
		if (r < 0 && r != -ENODEV)
			return fail(f, E_NETWORK, r, "tap %s: cannot be "
			    "removed", name);
	}
	r = nft_remove_tap(&n->netd_nft, name);
	if (r < 0 && r != -ENOENT)
		return fail(f, E_NETWORK, r, "tap %s: table %s", name,
		    n->netd_nft.nft_table);
	return 0;
}
