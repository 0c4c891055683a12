/* SPDX-License-Identifier: ISC */
/*
 * The instance's one nftables table.  Runs in netd.  Chains and rules are
 * fixed; a sandbox is an element of the set "taps", so neither the cost of a
 * change nor that of a packet grows with the number of sandboxes.
 *
 *	table inet sandboxd-TAG
 *		set taps { type ifname }
 *		chain from-tap	known taps: drop; others: drop
 *		chain to-tap	the same for the other direction
 *		chains forward, input, output: interfaces "sbTAG-*" jump there
 *
 * The base chains match by name and not by the set, so that a tap which the set
 * does not know is shut, not open.
 *
 * An earlier message of a failing batch is acknowledged as if it had worked:
 * see nl_talk_batch().
 */
#include <sys/socket.h>

#include <bsd/string.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <libnftnl/udata.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "netd.h"
#include "slot.h"

#define SET_TAPS	"taps"
#define CHAIN_FROM	"from-tap"
#define CHAIN_TO	"to-tap"
#define TYPE_IFNAME	41		/* nft(8)'s number, for its listing */
#define BYTEORDER_HOST	1		/* nft(8)'s number */
#define IFNAME_BYTES	16		/* a name is padded with zeros */
#define PRIORITY_FILTER	0
#define ELEMS_PER_MSG	256
#define BATCH_BYTES	16384		/* all but the elements */
#define ELEM_BYTES	64		/* one element, headers included */

struct batch {
	struct nft	*b_nft;
	uint8_t		*b_data;
	size_t		 b_size;
	size_t		 b_used;
	uint32_t	 b_first;	/* sequence numbers */
	uint32_t	 b_acked;	/* of the latest message but the end */
	struct nlmsghdr	*b_latest;
	int		 b_error;	/* sticky: a failed allocation */
};

/* ---- a batch ---- */

static int
batch_begin(struct batch *b, struct nft *nft, size_t elements)
{
	memset(b, 0, sizeof(*b));
	b->b_nft = nft;
	b->b_size = BATCH_BYTES + elements * ELEM_BYTES;
	b->b_data = calloc(1, b->b_size);
	if (b->b_data == NULL)
		return -ENOMEM;
	b->b_first = ++nft->nft_nl.nl_seq;
	b->b_used = nftnl_batch_begin((char *)b->b_data, b->b_first)->nlmsg_len;
	return 0;
}

static struct nlmsghdr *
batch_message(struct batch *b, uint16_t type, uint16_t flags)
{
	b->b_acked = ++b->b_nft->nft_nl.nl_seq;
	b->b_latest = nftnl_nlmsg_build_hdr((char *)b->b_data + b->b_used,
	    type, NFPROTO_INET, flags, b->b_acked);
	return b->b_latest;
}

static void
batch_message_end(struct batch *b)
{
	b->b_used += MNL_ALIGN(b->b_latest->nlmsg_len);
}

/* Sends it and frees what it holds. */
static int
batch_commit(struct batch *b)
{
	struct nl	*nl = &b->b_nft->nft_nl;
	struct nlmsghdr	*nlh;
	int		 r = b->b_error;

	if (r == 0) {
		b->b_latest->nlmsg_flags |= NLM_F_ACK;
		nlh = nftnl_batch_end((char *)b->b_data + b->b_used,
		    ++nl->nl_seq);
		b->b_used += nlh->nlmsg_len;
		r = nl_talk_batch(nl, b->b_data, b->b_used, b->b_first,
		    nl->nl_seq, b->b_acked);
	}
	free(b->b_data);
	return r;
}

/* ---- table, set, chains ---- */

static void
put_table(struct batch *b, uint16_t type)
{
	struct nftnl_table	*t;

	t = nftnl_table_alloc();
	if (t == NULL) {
		b->b_error = -ENOMEM;
		return;
	}
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	if (nftnl_table_set_str(t, NFTNL_TABLE_NAME, b->b_nft->nft_table) == -1)
		b->b_error = -ENOMEM;
	nftnl_table_nlmsg_build_payload(batch_message(b, type,
	    type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0), t);
	batch_message_end(b);
	nftnl_table_free(t);
}

static struct nftnl_set *
new_set(struct batch *b)
{
	struct nftnl_set	*s;

	s = nftnl_set_alloc();
	if (s == NULL) {
		b->b_error = -ENOMEM;
		return NULL;
	}
	nftnl_set_set_u32(s, NFTNL_SET_FAMILY, NFPROTO_INET);
	nftnl_set_set_u32(s, NFTNL_SET_ID, 1);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE, TYPE_IFNAME);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, IFNAME_BYTES);
	if (nftnl_set_set_str(s, NFTNL_SET_TABLE, b->b_nft->nft_table) == -1 ||
	    nftnl_set_set_str(s, NFTNL_SET_NAME, SET_TAPS) == -1)
		b->b_error = -ENOMEM;
	return s;
}

/* nft(8) wants to be told how to read a key before it lists it. */
static void
set_byte_order(struct batch *b, struct nftnl_set *s)
{
	struct nftnl_udata_buf	*u;

	u = nftnl_udata_buf_alloc(NFT_USERDATA_MAXLEN);
	if (u == NULL || nftnl_udata_put_u32(u, NFTNL_UDATA_SET_KEYBYTEORDER,
	    BYTEORDER_HOST) == 0 || nftnl_set_set_data(s, NFTNL_SET_USERDATA,
	    nftnl_udata_buf_data(u), nftnl_udata_buf_len(u)) == -1)
		b->b_error = -ENOMEM;
	if (u != NULL)
		nftnl_udata_buf_free(u);
}

static void
put_set(struct batch *b)
{
	struct nftnl_set	*s;

	s = new_set(b);
	if (s == NULL)
		return;
	set_byte_order(b, s);
	nftnl_set_nlmsg_build_payload(batch_message(b, NFT_MSG_NEWSET,
	    NLM_F_CREATE), s);
	batch_message_end(b);
	nftnl_set_free(s);
}

/* hook -1: a chain that others jump to. */
static void
put_chain(struct batch *b, const char *name, int hook)
{
	struct nftnl_chain	*c;

	c = nftnl_chain_alloc();
	if (c == NULL) {
		b->b_error = -ENOMEM;
		return;
	}
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	if (nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE,
	    b->b_nft->nft_table) == -1 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name) == -1)
		b->b_error = -ENOMEM;
	if (hook != -1) {
		if (nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter") == -1)
			b->b_error = -ENOMEM;
		nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, (uint32_t)hook);
		nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, PRIORITY_FILTER);
		/* Traffic of others is not ours to judge. */
		nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	}
	nftnl_chain_nlmsg_build_payload(batch_message(b, NFT_MSG_NEWCHAIN,
	    NLM_F_CREATE), c);
	batch_message_end(b);
	nftnl_chain_free(c);
}

/* ---- rules ---- */

static struct nftnl_expr *
add_expr(struct batch *b, struct nftnl_rule *r, const char *kind)
{
	struct nftnl_expr	*e;

	e = nftnl_expr_alloc(kind);
	if (e == NULL)
		b->b_error = -ENOMEM;
	else
		nftnl_rule_add_expr(r, e);
	return e;
}

static void
add_interface(struct batch *b, struct nftnl_rule *r, uint32_t key)
{
	struct nftnl_expr	*e;

	e = add_expr(b, r, "meta");
	if (e == NULL)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
}

/* The first bytes of the interface's name: nft's "sbTAG-*". */
static void
add_prefix(struct batch *b, struct nftnl_rule *r)
{
	struct nftnl_expr	*e;
	const char		*prefix = b->b_nft->nft_prefix;

	e = add_expr(b, r, "cmp");
	if (e == NULL)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	if (nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, prefix,
	    (uint32_t)strlen(prefix)) == -1)
		b->b_error = -ENOMEM;
}

static void
add_lookup(struct batch *b, struct nftnl_rule *r)
{
	struct nftnl_expr	*e;

	e = add_expr(b, r, "lookup");
	if (e == NULL)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
	if (nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, SET_TAPS) == -1)
		b->b_error = -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SET_ID, 1);
}

static void
add_verdict(struct batch *b, struct nftnl_rule *r, int verdict,
    const char *chain)
{
	struct nftnl_expr	*e;

	e = add_expr(b, r, "immediate");
	if (e == NULL)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
	if (chain != NULL &&
	    nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, chain) == -1)
		b->b_error = -ENOMEM;
}

static struct nftnl_rule *
new_rule(struct batch *b, const char *chain)
{
	struct nftnl_rule	*r;

	r = nftnl_rule_alloc();
	if (r == NULL) {
		b->b_error = -ENOMEM;
		return NULL;
	}
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_INET);
	if (nftnl_rule_set_str(r, NFTNL_RULE_TABLE,
	    b->b_nft->nft_table) == -1 ||
	    nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain) == -1)
		b->b_error = -ENOMEM;
	return r;
}

static void
put_rule(struct batch *b, struct nftnl_rule *r)
{
	nftnl_rule_nlmsg_build_payload(batch_message(b, NFT_MSG_NEWRULE,
	    NLM_F_CREATE | NLM_F_APPEND), r);
	batch_message_end(b);
	nftnl_rule_free(r);
}

/* <interface> "sbTAG-*" jump <target> */
static void
put_jump(struct batch *b, const char *chain, uint32_t key, const char *target)
{
	struct nftnl_rule	*r;

	r = new_rule(b, chain);
	if (r == NULL)
		return;
	add_interface(b, r, key);
	add_prefix(b, r);
	add_verdict(b, r, NFT_JUMP, target);
	put_rule(b, r);
}

/* [<interface> @taps] counter drop; key 0: for every interface. */
static void
put_drop(struct batch *b, const char *chain, int known, uint32_t key)
{
	struct nftnl_rule	*r;

	r = new_rule(b, chain);
	if (r == NULL)
		return;
	if (known) {
		add_interface(b, r, key);
		add_lookup(b, r);
	}
	(void)add_expr(b, r, "counter");
	add_verdict(b, r, NF_DROP, NULL);
	put_rule(b, r);
}

/* ---- elements ---- */

static void
add_element(struct batch *b, struct nftnl_set *s, const char *name)
{
	struct nftnl_set_elem	*e;
	char			 key[IFNAME_BYTES] = { 0 };

	(void)strlcpy(key, name, sizeof(key));
	e = nftnl_set_elem_alloc();
	if (e == NULL || nftnl_set_elem_set(e, NFTNL_SET_ELEM_KEY, key,
	    sizeof(key)) == -1) {
		b->b_error = -ENOMEM;
		if (e != NULL)
			nftnl_set_elem_free(e);
		return;
	}
	nftnl_set_elem_add(s, e);
}

static void
put_elements(struct batch *b, const uint32_t *slots, size_t n)
{
	char			 name[TAP_NAME_MAX + 1];
	struct nftnl_set	*s;
	size_t			 i;

	s = new_set(b);
	if (s == NULL)
		return;
	for (i = 0; i < n; i++) {
		slot_format_tap(b->b_nft->nft_tag, slots[i], name);
		add_element(b, s, name);
	}
	nftnl_set_elems_nlmsg_build_payload(batch_message(b,
	    NFT_MSG_NEWSETELEM, NLM_F_CREATE), s);
	batch_message_end(b);
	nftnl_set_free(s);
}

static int
change_element(struct nft *nft, uint16_t type, const char *name)
{
	struct batch		 b;
	struct nftnl_set	*s;

	if (batch_begin(&b, nft, 1) < 0)
		return -ENOMEM;
	s = new_set(&b);
	if (s != NULL) {
		/* The id is for a set made in the same batch. */
		nftnl_set_unset(s, NFTNL_SET_ID);
		add_element(&b, s, name);
		nftnl_set_elems_nlmsg_build_payload(batch_message(&b, type,
		    type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0), s);
		batch_message_end(&b);
		nftnl_set_free(s);
	}
	return batch_commit(&b);
}

/* ---- the whole ---- */

int
nft_open(struct nft *nft, const char *tag)
{
	nft->nft_tag = tag;
	nft->nft_handle = 0;
	(void)snprintf(nft->nft_table, sizeof(nft->nft_table), "sandboxd-%.*s",
	    SBX_TAG_LEN, tag);
	(void)snprintf(nft->nft_prefix, sizeof(nft->nft_prefix), "sb%.*s-",
	    SBX_TAG_LEN, tag);
	return nl_open(&nft->nft_nl, NETLINK_NETFILTER);
}

static int
take_handle(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr	*a;
	uint64_t		*handle = arg, be;

	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(a) != NFTA_TABLE_HANDLE ||
		    mnl_attr_validate(a, MNL_TYPE_U64) < 0)
			continue;
		be = mnl_attr_get_u64(a);
		*handle = be64toh(be);
	}
	return 0;
}

/* A table of this name may be a successor's; only the handle says. */
static int
read_handle(struct nft *nft)
{
	char		 buf[256] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr	*nlh;

	nft->nft_handle = 0;
	nlh = nftnl_nlmsg_build_hdr(buf, NFT_MSG_GETTABLE, NFPROTO_INET, 0, 0);
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, nft->nft_table);
	return nl_talk(&nft->nft_nl, nlh, take_handle, &nft->nft_handle);
}

static void
put_frame(struct batch *b)
{
	put_chain(b, CHAIN_FROM, -1);
	put_chain(b, CHAIN_TO, -1);
	put_chain(b, "forward", NF_INET_FORWARD);
	put_chain(b, "input", NF_INET_LOCAL_IN);
	put_chain(b, "output", NF_INET_LOCAL_OUT);
	put_drop(b, CHAIN_FROM, 1, NFT_META_IIFNAME);
	put_drop(b, CHAIN_FROM, 0, 0);
	put_drop(b, CHAIN_TO, 1, NFT_META_OIFNAME);
	put_drop(b, CHAIN_TO, 0, 0);
	put_jump(b, "forward", NFT_META_IIFNAME, CHAIN_FROM);
	put_jump(b, "forward", NFT_META_OIFNAME, CHAIN_TO);
	put_jump(b, "input", NFT_META_IIFNAME, CHAIN_FROM);
	put_jump(b, "output", NFT_META_OIFNAME, CHAIN_TO);
}

int
nft_build(struct nft *nft, const struct tap_list *taps)
{
	struct batch	 b;
	size_t		 i, n;
	int		 r;

	if (batch_begin(&b, nft, taps->count) < 0)
		return -ENOMEM;
	/* Made if it is not there, so that it can be removed in any case. */
	put_table(&b, NFT_MSG_NEWTABLE);
	put_table(&b, NFT_MSG_DELTABLE);
	put_table(&b, NFT_MSG_NEWTABLE);
	put_set(&b);
	put_frame(&b);
	for (i = 0; i < taps->count; i += n) {
		n = taps->count - i;
		if (n > ELEMS_PER_MSG)
			n = ELEMS_PER_MSG;
		put_elements(&b, taps->slots + i, n);
	}
	r = batch_commit(&b);
	return r < 0 ? r : read_handle(nft);
}

int
nft_add_tap(struct nft *nft, const char *name)
{
	return change_element(nft, NFT_MSG_NEWSETELEM, name);
}

int
nft_remove_tap(struct nft *nft, const char *name)
{
	return change_element(nft, NFT_MSG_DELSETELEM, name);
}

int
nft_remove(struct nft *nft)
{
	struct batch	 b;
	struct nlmsghdr	*nlh;

	if (nft->nft_handle == 0)
		return -ENOENT;
	if (batch_begin(&b, nft, 0) < 0)
		return -ENOMEM;
	nlh = batch_message(&b, NFT_MSG_DELTABLE, 0);
	mnl_attr_put_u64(nlh, NFTA_TABLE_HANDLE, htobe64(nft->nft_handle));
	batch_message_end(&b);
	return batch_commit(&b);
}
