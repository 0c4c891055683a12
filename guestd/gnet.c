/* SPDX-License-Identifier: ISC */
/*
 * eth0 and lo, by rtnetlink(7): no program of the root file system is needed.
 * Called again for a clone, whose template had another address.
 */
#include <sys/socket.h>

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <net/if.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "guestd.h"

#define NIC	"eth0"

struct request {
	struct nlmsghdr	 head;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg addr;
		struct rtmsg	 route;
	} u;
	uint8_t		 attrs[128];
};

static struct net_config	 applied;

static void
request_init(struct request *r, uint16_t type, uint16_t flags, size_t len)
{
	memset(r, 0, sizeof(*r));
	r->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(len);
	r->head.nlmsg_type = type;
	r->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
}

/* attrs has room for all that any request below adds. */
static void
request_add(struct request *r, uint16_t type, const void *data, size_t len)
{
	struct rtattr	*a;

	a = (struct rtattr *)(void *)((uint8_t *)r +
	    NLMSG_ALIGN(r->head.nlmsg_len));
	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	r->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(r->head.nlmsg_len) +
	    RTA_ALIGN(a->rta_len));
}

/* Sends it and waits for the kernel's answer; returns 0 or an errno. */
static int
request_do(int fd, struct request *r)
{
	union {
		struct nlmsghdr	 head;
		uint8_t		 bytes[1024];
	} answer;
	struct nlmsgerr	*e;
	ssize_t		 n;

	if (send(fd, r, r->head.nlmsg_len, 0) == -1)
		return errno;
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n == -1)
		return errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(*e)) ||
	    answer.head.nlmsg_type != NLMSG_ERROR)
		return EPROTO;
	e = NLMSG_DATA(&answer.head);
	return -e->error;
}

static int
link_set(int fd, int index, const struct net_config *c, int up)
{
	struct request	 r;
	uint32_t	 mtu;

	request_init(&r, RTM_NEWLINK, 0, sizeof(r.u.link));
	r.u.link.ifi_family = AF_UNSPEC;
	r.u.link.ifi_index = index;
	r.u.link.ifi_change = IFF_UP;
	r.u.link.ifi_flags = up ? IFF_UP : 0;
	if (c != NULL && c->have_mac)
		request_add(&r, IFLA_ADDRESS, c->mac, sizeof(c->mac));
	if (c != NULL && c->mtu != 0) {
		mtu = (uint32_t)c->mtu;
		request_add(&r, IFLA_MTU, &mtu, sizeof(mtu));
	}
	return request_do(fd, &r);
}

static int
address_set(int fd, int index, const struct net_config *c, uint16_t type)
{
	struct request	 r;

	request_init(&r, type,
	    type == RTM_NEWADDR ? NLM_F_CREATE | NLM_F_REPLACE : 0,
	    sizeof(r.u.addr));
	r.u.addr.ifa_family = AF_INET;
	r.u.addr.ifa_prefixlen = (uint8_t)c->prefix;
	r.u.addr.ifa_index = (uint32_t)index;
	request_add(&r, IFA_LOCAL, &c->address, sizeof(c->address));
	request_add(&r, IFA_ADDRESS, &c->address, sizeof(c->address));
	return request_do(fd, &r);
}

static int
route_set(int fd, int index, const struct net_config *c)
{
	struct request	 r;
	uint32_t	 oif = (uint32_t)index;

	request_init(&r, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE,
	    sizeof(r.u.route));
	r.u.route.rtm_family = AF_INET;
	r.u.route.rtm_table = RT_TABLE_MAIN;
	r.u.route.rtm_protocol = RTPROT_STATIC;
	r.u.route.rtm_scope = RT_SCOPE_UNIVERSE;
	r.u.route.rtm_type = RTN_UNICAST;
	/* A /32 has no network that the gateway would be in. */
	r.u.route.rtm_flags = RTNH_F_ONLINK;
	request_add(&r, RTA_GATEWAY, &c->gateway, sizeof(c->gateway));
	request_add(&r, RTA_OIF, &oif, sizeof(oif));
	return request_do(fd, &r);
}

static int
open_rtnetlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

int
net_loopback_up(void)
{
	int	 fd, error;

	fd = open_rtnetlink();
	if (fd == -1)
		return errno;
	/* lo is the first interface of every network namespace. */
	error = link_set(fd, 1, NULL, 1);
	(void)close(fd);
	return error;
}

static int
nic_set(int fd, int index, const struct net_config *c, const char **what)
{
	int	 error;

	if (applied.address != 0) {
		/* EADDRNOTAVAIL: the sandbox's user has removed it. */
		(void)address_set(fd, index, &applied, RTM_DELADDR);
		memset(&applied, 0, sizeof(applied));
	}
	*what = NIC " MAC and MTU";
	error = link_set(fd, index, NULL, 0);
	if (error == 0)
		error = link_set(fd, index, c, 0);
	if (error != 0)
		return error;
	/* The host drops it; without it the guest need not try. */
	(void)file_write(guest.proc_fd, "sys/net/ipv6/conf/" NIC
	    "/disable_ipv6", "1");
	*what = NIC " up";
	error = link_set(fd, index, NULL, 1);
	if (error != 0 || c->address == 0)
		return error;
	*what = NIC " address";
	error = address_set(fd, index, c, RTM_NEWADDR);
	if (error != 0)
		return error;
	applied = *c;
	*what = "default route";
	return c->gateway == 0 ? 0 : route_set(fd, index, c);
}

int
net_apply(const struct net_config *c, const char **what)
{
	unsigned int	 index;
	int		 fd, error;

	*what = NIC;
	index = if_nametoindex(NIC);
	if (index == 0)
		return ENODEV;
	fd = open_rtnetlink();
	if (fd == -1)
		return errno;
	error = nic_set(fd, (int)index, c, what);
	(void)close(fd);
	return error;
}
