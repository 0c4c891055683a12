/* SPDX-License-Identifier: ISC */
/*
 * netd: taps, their addresses, one nftables table.  Started by sandboxd as
 * root; after its set-up it holds CAP_NET_ADMIN and nothing else, in an empty
 * root.  Speaks only to the parent, starts no program and reads no file.
 */
#include <bsd/string.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <linux/netlink.h>

#include "confine.h"
#include "id.h"
#include "log.h"
#include "msg_send.h"
#include "netd.h"
#include "slot.h"

static struct netd	 netd;

static void
take_setup(const struct m_parent_setup_netd *s)
{
	uint32_t	 mask;

	if (s->uid == 0 || s->gid == 0)
		fatalx("set-up: netd does not run as uid or gid 0");
	if (s->root[0] != '/' || !tag_valid(s->tag))
		fatalx("set-up: bad root or tag");
	if (s->pool_prefix < CONF_POOL_PREFIX_MIN ||
	    s->pool_prefix > SLOT_PREFIX)
		fatalx("set-up: pool prefix %u", s->pool_prefix);
	mask = UINT32_MAX << (32 - s->pool_prefix);
	if ((s->pool & ~mask) != 0)
		fatalx("set-up: pool has bits beyond its prefix");
	log_setverbose(s->verbose);
	netd.netd_uid = s->uid;
	netd.netd_gid = s->gid;
	netd.netd_pool = s->pool;
	netd.netd_slots = slot_count(s->pool_prefix, UINT32_MAX);
	(void)strlcpy(netd.netd_root, s->root, sizeof(netd.netd_root));
	(void)strlcpy(netd.netd_tag, s->tag, sizeof(netd.netd_tag));
}

/* Everything that needs more than is left afterwards happens here. */
static void
start(struct ipeer *p)
{
	static const struct m_netd_ready	 ready;
	struct confine				 c;
	int					 r;

	if (netd.netd_tag[0] == '\0')
		fatalx("PARENT_START_NETD before PARENT_SETUP_NETD");
	r = nl_open(&netd.netd_route, NETLINK_ROUTE);
	if (r == 0)
		r = nft_open(&netd.netd_nft, netd.netd_tag);
	if (r < 0)
		fatalx("netlink: %s", strerror(-r));
	r = tap_sync_table(&netd);
	if (r < 0)
		fatalx("nftables table %s: %s; is nf_tables in this kernel?",
		    netd.netd_nft.nft_table, strerror(-r));
	netd_confine(&c, netd.netd_uid, netd.netd_gid, netd.netd_root);
	confine_apply(&c);
	if (send_netd_ready(p, &ready) == -1)
		fatalx("cannot say that it is ready");
	ipeer_set_running(p);
	log_debug("ready table=%s", netd.netd_nft.nft_table);
}

static void
answer_failure(struct ipeer *p, uint64_t request, uint32_t slot, uint64_t gen,
    const struct failure *f)
{
	struct m_netd_fail	 m = { .slot = slot, .generation = gen,
				    .error = (uint16_t)f->fail_error };

	log_warnx("%s", f->fail_detail);
	(void)strlcpy(m.detail, f->fail_detail, sizeof(m.detail));
	(void)answer_netd_fail(p, request, 0, &m);
}

static void
create_tap(struct ipeer *p, struct msg *msg)
{
	const struct m_parent_create_tap	*q;
	struct m_netd_create_tap_ok		 m = { 0 };
	struct failure				 f;
	int					 index;

	q = &msg->body.parent_create_tap;
	m.slot = q->slot;
	m.generation = q->generation;
	if (tap_create(&netd, msg->fd, q->slot, q->generation, q->uid, &index,
	    m.name, &f) == -1) {
		answer_failure(p, msg->request, q->slot, q->generation, &f);
		return;
	}
	m.ifindex = (uint32_t)index;
	log_info("tap created name=%s slot=%u uid=%u", m.name, q->slot, q->uid);
	(void)answer_netd_create_tap_ok(p, msg->request, 0, &m);
}

static void
remove_tap(struct ipeer *p, struct msg *msg)
{
	const struct m_parent_remove_tap	*q;
	struct m_netd_remove_tap_ok		 m;
	struct failure				 f;

	q = &msg->body.parent_remove_tap;
	m.slot = q->slot;
	m.generation = q->generation;
	if (tap_remove(&netd, q->slot, q->generation, &f) == -1) {
		answer_failure(p, msg->request, q->slot, q->generation, &f);
		return;
	}
	log_info("tap removed slot=%u", q->slot);
	(void)answer_netd_remove_tap_ok(p, msg->request, 0, &m);
}

/* imsg.c has checked that the parent may send it now. */
static void
on_message(struct ipeer *p, struct msg *m, void *arg)
{
	(void)arg;
	switch (m->type) {
	case M_PARENT_SETUP_NETD:
		take_setup(&m->body.parent_setup_netd);
		break;
	case M_PARENT_START_NETD:
		start(p);
		break;
	case M_PARENT_CREATE_TAP:
		create_tap(p, m);
		break;
	case M_PARENT_REMOVE_TAP:
		remove_tap(p, m);
		break;
	default:
		fatalx("%s is not for netd", msg_name(m->type));
	}
}

/*
 * A tap that outlives us stays shut: the table goes only when no VM of this
 * instance runs.  Without sockets nothing was made.
 */
static void
leave(void)
{
	struct tap_list	 taps;
	int		 r;

	if (netd.netd_nft.nft_nl.nl_sock == NULL)
		return;
	r = link_list_taps(&netd.netd_route, netd.netd_tag, &taps);
	if (r == 0 && taps.count == 0)
		r = nft_remove(&netd.netd_nft);
	if (r < 0 && r != -ENOENT)
		log_warnx("table %s stays: %s", netd.netd_nft.nft_table,
		    strerror(-r));
	tap_list_free(&taps);
	nl_close(&netd.netd_nft.nft_nl);
	nl_close(&netd.netd_route);
}

static void
on_parent_gone(struct ipeer *p, void *arg)
{
	(void)p;
	(void)event_base_loopbreak(arg);
}

static void
on_signal(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	(void)event_base_loopbreak(arg);
}

int
main(void)
{
	struct event_base	*base;
	struct event		*term;
	struct ipeer		*parent;

	log_init("netd", 0);
	child_check("netd");
	if (geteuid() != 0)
		fatalx("has to be started as root");
	/* A terminal's signals go to the parent, which ends its children. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	if (base == NULL)
		fatalx("no event base");
	parent = ipeer_new(base, CHILD_FD, PROC_NETD, PROC_PARENT, on_message,
	    on_parent_gone, base);
	term = evsignal_new(base, SIGTERM, on_signal, base);
	if (parent == NULL || term == NULL || event_add(term, NULL) == -1)
		fatalx("out of memory");
	if (event_base_dispatch(base) == -1)
		fatalx("event loop");
	leave();
	ipeer_free(parent);
	return 0;
}
