/* SPDX-License-Identifier: ISC */
/*
 * netd's own types.  netd keeps no state of its own about sandboxes: which taps
 * there are and which generation they belong to stands in the kernel (name and
 * alias of the interface), so that a restarted netd knows what the former did.
 *
 * Functions return 0 or a negative errno; lower layers do not log.
 */
#ifndef SBX_NETD_H
#define SBX_NETD_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "limits.h"

struct confine;
struct mnl_socket;
struct nlmsghdr;

/* ---- nl.c: a netlink socket, one request at a time ---- */

struct nl {
	struct mnl_socket	*nl_sock;
	int			 nl_fd;
	uint32_t		 nl_seq;	/* of the latest message */
};

/* Called for each message of an answer; a negative result is the outcome. */
typedef int	(*nl_msg_cb)(const struct nlmsghdr *, void *);

int	nl_open(struct nl *, int bus);
void	nl_close(struct nl *);
/*
 * Sends one request (its sequence number and flags for an answer are set here)
 * and reads until its acknowledgement or, of a dump, its end.  May block: at
 * most NETLINK_DEADLINE_MS.
 */
int	nl_talk(struct nl *, struct nlmsghdr *, nl_msg_cb, void *);
/*
 * Sends messages with the sequence numbers [first, last]; only `acked` asks for
 * an acknowledgement.  0 only if that has come and no message reports an error.
 */
int	nl_talk_batch(struct nl *, const void *, size_t, uint32_t first,
	    uint32_t last, uint32_t acked);

/* ---- link.c: interfaces and addresses by rtnetlink ---- */

struct link {
	int		 link_index;
	int		 link_is_tun;
	int		 link_has_generation;
	uint64_t	 link_generation;
};

/* -ENODEV when there is none. */
int	link_find(struct nl *, const char *, struct link *);
/* MAC, MTU, alias, ARP and redirect rules; no IPv6 address by itself. */
int	link_configure(struct nl *, int, uint32_t mac_address, uint64_t gen);
int	link_add_address(struct nl *, int, uint32_t);
int	link_set_up(struct nl *, int);
int	link_delete(struct nl *, int);

struct tap_list {		/* slots, ascending or not */
	uint32_t	*slots;
	size_t		 count;
	size_t		 room;
};

/* Every tap of the tag.  The caller frees with tap_list_free(). */
int	link_list_taps(struct nl *, const char *tag, struct tap_list *);
void	tap_list_free(struct tap_list *);

/* ---- nft.c: the table ---- */

struct nft {
	struct nl	 nft_nl;
	char		 nft_table[16];		/* "sandboxd-" tag */
	char		 nft_prefix[8];		/* "sb" tag "-" */
	const char	*nft_tag;
	uint64_t	 nft_handle;		/* of our table, 0: none */
};

int	nft_open(struct nft *, const char *tag);
/* Replaces the table by a fresh one that knows these taps, atomically. */
int	nft_build(struct nft *, const struct tap_list *);
/* -ENOENT: the table or (remove) the element is not there. */
int	nft_add_tap(struct nft *, const char *);
int	nft_remove_tap(struct nft *, const char *);
/* Removes the table that we made; another's in its place stays. */
int	nft_remove(struct nft *);

/* ---- tap.c: what the parent asks for ---- */

struct netd {
	uint32_t	 netd_uid;
	uint32_t	 netd_gid;
	char		 netd_root[SBX_PATH_MAX + 1];
	char		 netd_tag[SBX_TAG_LEN + 1];
	uint32_t	 netd_pool;
	uint32_t	 netd_slots;		/* in the pool */
	struct nl	 netd_route;
	struct nft	 netd_nft;
};

struct failure {		/* for NETD_FAIL */
	enum sbx_error	 fail_error;
	char		 fail_detail[SBX_DETAIL_MAX];
};

/* Reads the taps that exist and builds the table for them. */
int	tap_sync_table(struct netd *);
/*
 * Borrows the descriptor of /dev/net/tun.  0 and the interface's index and name
 * (TAP_NAME_MAX + 1 bytes), or -1 and the failure; nothing is left then.
 */
int	tap_create(struct netd *, int fd, uint32_t slot, uint64_t gen,
	    uint32_t uid, int *index, char *name, struct failure *);
/* Also when it is not there; refuses a tap of another generation. */
int	tap_remove(struct netd *, uint32_t slot, uint64_t gen,
	    struct failure *);

/* ---- netd_confine.c ---- */

/* What netd may do after its set-up.  Borrows the root's path. */
void	netd_confine(struct confine *, uint32_t uid, uint32_t gid,
	    const char *root);

#endif
