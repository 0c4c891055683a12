/* SPDX-License-Identifier: ISC */
/*
 * Interfaces and their addresses by rtnetlink.  Runs in netd; trusts the
 * kernel's answers.  A tap's alias carries the generation of its slot, so that
 * a late removal cannot take the successor.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>

#include "netd.h"
#include "slot.h"

#define REQUEST_BYTES	1024
#define ALIAS_FORMAT	"sandboxd generation %" PRIu64
#define MAC_BYTES	6

struct request {
	uint8_t		 data[REQUEST_BYTES]
			    __attribute__((aligned(NLMSG_ALIGNTO)));
};

static struct nlmsghdr *
link_request(struct request *rq, uint16_t type, int index,
    struct ifinfomsg **info)
{
	struct nlmsghdr	*nlh;

	memset(rq, 0, sizeof(*rq));
	nlh = mnl_nlmsg_put_header(rq->data);
	nlh->nlmsg_type = type;
	*info = mnl_nlmsg_put_extra_header(nlh, sizeof(**info));
	(*info)->ifi_family = AF_UNSPEC;
	(*info)->ifi_index = index;
	return nlh;
}

static int
is_tun(const struct nlattr *linkinfo)
{
	const struct nlattr	*a;

	mnl_attr_for_each_nested(a, linkinfo)
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			return mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0 &&
			    strcmp(mnl_attr_get_str(a), "tun") == 0;
	return 0;
}

static void
read_generation(struct link *l, const char *alias)
{
	char		 again[64];
	uint64_t	 gen;

	if (sscanf(alias, ALIAS_FORMAT, &gen) != 1)
		return;
	(void)snprintf(again, sizeof(again), ALIAS_FORMAT, gen);
	if (strcmp(again, alias) != 0)
		return;
	l->link_has_generation = 1;
	l->link_generation = gen;
}

static int
take_link(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg	*info = mnl_nlmsg_get_payload(nlh);
	const struct nlattr	*a;
	struct link		*l = arg;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return 0;
	l->link_index = info->ifi_index;
	mnl_attr_for_each(a, nlh, sizeof(*info)) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_LINKINFO:
			l->link_is_tun = is_tun(a);
			break;
		case IFLA_IFALIAS:
			if (mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0)
				read_generation(l, mnl_attr_get_str(a));
			break;
		}
	}
	return 0;
}

int
link_find(struct nl *nl, const char *name, struct link *l)
{
	struct request		 rq;
	struct ifinfomsg	*info;
	struct nlmsghdr		*nlh;
	int			 r;

	memset(l, 0, sizeof(*l));
	nlh = link_request(&rq, RTM_GETLINK, 0, &info);
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	r = nl_talk(nl, nlh, take_link, l);
	if (r == 0 && l->link_index == 0)
		return -ENODEV;
	return r;
}

/* A devconf value is an attribute whose type is its number (linux/ip.h). */
static void
put_ipv4_rules(struct nlmsghdr *nlh)
{
	struct nlattr	*inet, *values;

	inet = mnl_attr_nest_start(nlh, AF_INET);
	values = mnl_attr_nest_start(nlh, IFLA_INET_CONF);
	/* A guest cannot find our other addresses by asking for them. */
	mnl_attr_put_u32(nlh, IPV4_DEVCONF_ARP_IGNORE, 1);
	mnl_attr_put_u32(nlh, IPV4_DEVCONF_RP_FILTER, 1);
	mnl_attr_put_u32(nlh, IPV4_DEVCONF_ACCEPT_REDIRECTS, 0);
	mnl_attr_put_u32(nlh, IPV4_DEVCONF_SEND_REDIRECTS, 0);
	mnl_attr_nest_end(nlh, values);
	mnl_attr_nest_end(nlh, inet);
}

/* The interface's own rules for each family; it must still be down. */
static int
put_family_rules(struct nl *nl, int index, int family)
{
	struct request		 rq;
	struct ifinfomsg	*info;
	struct nlmsghdr		*nlh;
	struct nlattr		*spec, *inet6;

	nlh = link_request(&rq, RTM_NEWLINK, index, &info);
	spec = mnl_attr_nest_start(nlh, IFLA_AF_SPEC);
	if (family == AF_INET) {
		put_ipv4_rules(nlh);
	} else {
		inet6 = mnl_attr_nest_start(nlh, AF_INET6);
		mnl_attr_put_u8(nlh, IFLA_INET6_ADDR_GEN_MODE,
		    IN6_ADDR_GEN_MODE_NONE);
		mnl_attr_nest_end(nlh, inet6);
	}
	mnl_attr_nest_end(nlh, spec);
	return nl_talk(nl, nlh, NULL, NULL);
}

int
link_configure(struct nl *nl, int index, uint32_t address, uint64_t gen)
{
	struct request		 rq;
	struct ifinfomsg	*info;
	struct nlmsghdr		*nlh;
	uint8_t			 mac[MAC_BYTES];
	char			 alias[64];
	int			 r;

	slot_mac(address, mac);
	(void)snprintf(alias, sizeof(alias), ALIAS_FORMAT, gen);
	nlh = link_request(&rq, RTM_NEWLINK, index, &info);
	mnl_attr_put(nlh, IFLA_ADDRESS, sizeof(mac), mac);
	mnl_attr_put_u32(nlh, IFLA_MTU, TAP_MTU);
	/* The kernel counts an alias without its NUL. */
	mnl_attr_put(nlh, IFLA_IFALIAS, strlen(alias), alias);
	r = nl_talk(nl, nlh, NULL, NULL);
	if (r < 0)
		return r;
	r = put_family_rules(nl, index, AF_INET);
	if (r < 0)
		return r;
	r = put_family_rules(nl, index, AF_INET6);
	/* A kernel without IPv6 gives the interface no address of it. */
	return r == -EAFNOSUPPORT ? 0 : r;
}

int
link_add_address(struct nl *nl, int index, uint32_t address)
{
	struct request		 rq;
	struct nlmsghdr		*nlh;
	struct ifaddrmsg	*ifa;

	memset(&rq, 0, sizeof(rq));
	nlh = mnl_nlmsg_put_header(rq.data);
	nlh->nlmsg_type = RTM_NEWADDR;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
	ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	ifa->ifa_family = AF_INET;
	ifa->ifa_prefixlen = SLOT_PREFIX;
	ifa->ifa_scope = RT_SCOPE_UNIVERSE;
	ifa->ifa_index = (unsigned int)index;
	mnl_attr_put_u32(nlh, IFA_LOCAL, htonl(address));
	mnl_attr_put_u32(nlh, IFA_ADDRESS, htonl(address));
	return nl_talk(nl, nlh, NULL, NULL);
}

int
link_set_up(struct nl *nl, int index)
{
	struct request		 rq;
	struct ifinfomsg	*info;
	struct nlmsghdr		*nlh;

	nlh = link_request(&rq, RTM_NEWLINK, index, &info);
	info->ifi_flags = IFF_UP;
	info->ifi_change = IFF_UP;
	return nl_talk(nl, nlh, NULL, NULL);
}

int
link_delete(struct nl *nl, int index)
{
	struct request		 rq;
	struct ifinfomsg	*info;
	struct nlmsghdr		*nlh;

	nlh = link_request(&rq, RTM_DELLINK, index, &info);
	return nl_talk(nl, nlh, NULL, NULL);
}

/* ---- every tap of a tag ---- */

struct listing {
	const char	*tag;
	struct tap_list	*taps;
};

static int
tap_list_add(struct tap_list *t, uint32_t slot)
{
	uint32_t	*more;
	size_t		 room;

	if (t->count == t->room) {
		room = t->room == 0 ? 64 : t->room * 2;
		more = reallocarray(t->slots, room, sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		t->slots = more;
		t->room = room;
	}
	t->slots[t->count++] = slot;
	return 0;
}

static int
take_listed(const struct nlmsghdr *nlh, void *arg)
{
	const struct listing	*l = arg;
	const struct nlattr	*a;
	int64_t			 slot;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return 0;
	mnl_attr_for_each(a, nlh, sizeof(struct ifinfomsg)) {
		if (mnl_attr_get_type(a) != IFLA_IFNAME ||
		    mnl_attr_validate(a, MNL_TYPE_NUL_STRING) < 0)
			continue;
		slot = slot_from_tap(l->tag, mnl_attr_get_str(a));
		return slot < 0 ? 0 : tap_list_add(l->taps, (uint32_t)slot);
	}
	return 0;
}

int
link_list_taps(struct nl *nl, const char *tag, struct tap_list *taps)
{
	struct request		 rq;
	struct ifinfomsg	*info;
	struct nlmsghdr		*nlh;
	struct listing		 l = { tag, taps };
	int			 r, turns;

	memset(taps, 0, sizeof(*taps));
	/* Interfaces that come and go meanwhile interrupt a dump. */
	for (turns = 0; turns < 10; turns++) {
		taps->count = 0;
		nlh = link_request(&rq, RTM_GETLINK, 0, &info);
		nlh->nlmsg_flags = NLM_F_DUMP;
		r = nl_talk(nl, nlh, take_listed, &l);
		if (r != -EINTR)
			break;
	}
	if (r < 0)
		tap_list_free(taps);
	return r;
}

void
tap_list_free(struct tap_list *taps)
{
	free(taps->slots);
	memset(taps, 0, sizeof(*taps));
}
