/* SPDX-License-Identifier: ISC */
/*
 * Asks the kernel for our nftables tables and the taps in their set "taps"
 * (netd's layout: table inet sandboxd-<tag>).  Only reads.
 */
#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bsd/string.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "doctor.h"
#include "id.h"

#define PREFIX		"sandboxd-"
#define TABLES_MAX	256
#define IFNAME_BYTES	16

struct dump {
	char				 tags[TABLES_MAX][SBX_TAG_LEN + 1];
	size_t				 n;
	const struct nft_events		*ev;
	const char			*tag;
	void				*arg;
};

static struct nlmsghdr *
request(char *buf, uint16_t type, uint8_t family, uint32_t seq)
{
	struct nfgenmsg	*nfg;
	struct nlmsghdr	*h;

	h = mnl_nlmsg_put_header(buf);
	h->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	h->nlmsg_seq = seq;
	nfg = mnl_nlmsg_put_extra_header(h, sizeof(*nfg));
	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	return h;
}

static int
talk(struct mnl_socket *nl, struct nlmsghdr *h, mnl_cb_t cb, void *arg)
{
	char		 buf[32768];
	ssize_t		 n;
	int		 r;

	if (mnl_socket_sendto(nl, h, h->nlmsg_len) == -1)
		return -1;
	do {
		n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (n == -1)
			return -1;
		r = mnl_cb_run(buf, (size_t)n, h->nlmsg_seq,
		    mnl_socket_get_portid(nl), cb, arg);
	} while (r > 0);
	return r;
}

static int
on_table(const struct nlmsghdr *h, void *arg)
{
	struct dump		*d = arg;
	const struct nlattr	*a;
	const char		*name;

	mnl_attr_for_each(a, h, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(a) != NFTA_TABLE_NAME ||
		    mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == -1)
			continue;
		name = mnl_attr_get_str(a);
		if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
		    !tag_valid(name + strlen(PREFIX)) || d->n == TABLES_MAX)
			continue;
		(void)strlcpy(d->tags[d->n++], name + strlen(PREFIX),
		    sizeof(d->tags[0]));
	}
	return MNL_CB_OK;
}

/* The attribute of this type inside of another, or NULL. */
static const struct nlattr *
inside(const struct nlattr *outer, int type)
{
	const struct nlattr	*a;

	if (outer != NULL)
		mnl_attr_for_each_nested(a, outer)
			if (mnl_attr_get_type(a) == type)
				return a;
	return NULL;
}

static int
on_elements(const struct nlmsghdr *h, void *arg)
{
	struct dump		*d = arg;
	const struct nlattr	*a, *e, *value;
	char			 name[IFNAME_BYTES + 1];
	size_t			 n;

	mnl_attr_for_each(a, h, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(a) != NFTA_SET_ELEM_LIST_ELEMENTS)
			continue;
		mnl_attr_for_each_nested(e, a) {
			value = inside(inside(e, NFTA_SET_ELEM_KEY),
			    NFTA_DATA_VALUE);
			if (value == NULL)
				continue;
			n = mnl_attr_get_payload_len(value);
			if (n > IFNAME_BYTES)
				n = IFNAME_BYTES;
			memcpy(name, mnl_attr_get_payload(value), n);
			name[n] = '\0';
			d->ev->tap(d->tag, name, d->arg);
		}
	}
	return MNL_CB_OK;
}

static int
dump_elements(struct mnl_socket *nl, struct dump *d, uint32_t seq)
{
	char		 buf[512], table[32];
	struct nlmsghdr	*h;

	(void)strlcpy(table, PREFIX, sizeof(table));
	(void)strlcat(table, d->tag, sizeof(table));
	h = request(buf, NFT_MSG_GETSETELEM, NFPROTO_INET, seq);
	mnl_attr_put_strz(h, NFTA_SET_ELEM_LIST_TABLE, table);
	mnl_attr_put_strz(h, NFTA_SET_ELEM_LIST_SET, "taps");
	if (talk(nl, h, on_elements, d) == -1 && errno != ENOENT)
		return -1;
	/* No table or no set by now: nothing in it. */
	return 0;
}

int
nft_each(const struct nft_events *ev, void *arg)
{
	struct mnl_socket	*nl;
	struct timeval		 tv = { 5, 0 };
	struct dump		*d;
	char			 buf[512];
	size_t			 i;
	int			 r = -1;

	d = calloc(1, sizeof(*d));
	nl = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (d == NULL || nl == NULL ||
	    mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) == -1 ||
	    setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVTIMEO, &tv,
	    sizeof(tv)) == -1)
		goto done;
	d->ev = ev;
	d->arg = arg;
	r = talk(nl, request(buf, NFT_MSG_GETTABLE, NFPROTO_INET, 1), on_table,
	    d);
	for (i = 0; r != -1 && i < d->n; i++) {
		d->tag = d->tags[i];
		ev->table(d->tag, arg);
		if (ev->tap != NULL)
			r = dump_elements(nl, d, (uint32_t)i + 2);
	}
done:
	if (nl != NULL)
		(void)mnl_socket_close(nl);
	free(d);
	return r == -1 ? -1 : 0;
}
