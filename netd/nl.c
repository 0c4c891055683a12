/* SPDX-License-Identifier: ISC */
/*
 * Requests to the kernel over netlink, one at a time and each with a deadline.
 * Runs in netd.  Trusts messages from the kernel (port 0) and drops all others;
 * an answer to an earlier request that came too late is told by its number.
 */
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/netlink.h>

#include "clock.h"
#include "netd.h"

#define NL_READ_BYTES	32768	/* the kernel's largest part of a dump */
#define NL_SEND_BYTES	4194304	/* a table for CONF_SANDBOXES_MAX taps */

int
nl_open(struct nl *nl, int bus)
{
	int	 bytes = NL_SEND_BYTES, error;

	nl->nl_seq = 0;
	nl->nl_sock = mnl_socket_open2(bus, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (nl->nl_sock == NULL)
		return -errno;
	nl->nl_fd = mnl_socket_get_fd(nl->nl_sock);
	if (mnl_socket_bind(nl->nl_sock, 0, MNL_SOCKET_AUTOPID) == -1 ||
	    setsockopt(nl->nl_fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes,
	    sizeof(bytes)) == -1) {
		error = -errno;
		nl_close(nl);
		return error;
	}
	return 0;
}

void
nl_close(struct nl *nl)
{
	if (nl->nl_sock != NULL)
		(void)mnl_socket_close(nl->nl_sock);
	nl->nl_sock = NULL;
}

static int
nl_send(struct nl *nl, const void *data, size_t len)
{
	ssize_t	 n;

	do {
		n = mnl_socket_sendto(nl->nl_sock, data, len);
	} while (n == -1 && errno == EINTR);
	return n == -1 ? -errno : 0;
}

/*
 * Reads one datagram of the kernel's.  Its length, 0 when there is none until
 * the time (boot, ms), or a negative errno.
 */
static ssize_t
nl_read(struct nl *nl, uint8_t *buf, uint64_t until)
{
	struct sockaddr_nl	 from = { 0 };
	struct pollfd		 pfd = { .fd = nl->nl_fd, .events = POLLIN };
	socklen_t		 len;
	uint64_t		 now;
	ssize_t			 n;

	for (;;) {
		len = sizeof(from);
		n = recvfrom(nl->nl_fd, buf, NL_READ_BYTES,
		    MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from, &len);
		if (n > NL_READ_BYTES)
			return -EMSGSIZE;
		if (n >= 0 && from.nl_pid == 0)
			return n;
		if (n >= 0 || errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		now = boottime_now().ms;
		if (now >= until)
			return 0;
		if (poll(&pfd, 1, (int)(until - now)) == -1 && errno != EINTR)
			return -errno;
	}
}

/*
 * One message of an answer.  1: the answer is complete, 0: more to come, or
 * the negative errno that the kernel reports.
 */
static int
take_message(const struct nlmsghdr *nlh, nl_msg_cb cb, void *arg)
{
	const struct nlmsgerr	*e;

	if (nlh->nlmsg_type == NLMSG_ERROR) {
		if (nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*e)))
			return -EBADMSG;
		e = mnl_nlmsg_get_payload(nlh);
		return e->error == 0 ? 1 : e->error;
	}
	if ((nlh->nlmsg_flags & NLM_F_DUMP_INTR) != 0)
		return -EINTR;
	if (nlh->nlmsg_type == NLMSG_DONE)
		return 1;
	return cb == NULL ? 0 : cb(nlh, arg);
}

int
nl_talk(struct nl *nl, struct nlmsghdr *nlh, nl_msg_cb cb, void *arg)
{
	uint8_t			 buf[NL_READ_BYTES]
				    __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr	*in;
	uint64_t		 until;
	ssize_t			 n;
	int			 left, r, outcome = 0;

	nlh->nlmsg_seq = ++nl->nl_seq;
	nlh->nlmsg_flags |= NLM_F_REQUEST;
	if ((nlh->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		nlh->nlmsg_flags |= NLM_F_ACK;
	until = boottime_now().ms + NETLINK_DEADLINE_MS;
	r = nl_send(nl, nlh, nlh->nlmsg_len);
	if (r < 0)
		return r;
	for (;;) {
		n = nl_read(nl, buf, until);
		if (n <= 0)
			return n == 0 ? -ETIMEDOUT : (int)n;
		left = (int)n;
		for (in = (const struct nlmsghdr *)buf; mnl_nlmsg_ok(in, left);
		    in = mnl_nlmsg_next(in, &left)) {
			if (in->nlmsg_seq != nl->nl_seq)
				continue;
			r = take_message(in, cb, arg);
			if (r < 0 && outcome == 0)
				outcome = r;
			/* A dump is read to its end whatever is in it. */
			if (r == 1 || (in->nlmsg_type == NLMSG_ERROR && r < 0))
				return outcome;
		}
	}
}

int
nl_talk_batch(struct nl *nl, const void *data, size_t len, uint32_t first,
    uint32_t last, uint32_t acked)
{
	uint8_t			 buf[NL_READ_BYTES]
				    __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr	*in;
	uint64_t		 until;
	ssize_t			 n;
	int			 left, r, done = 0, outcome = 0;

	until = boottime_now().ms + NETLINK_DEADLINE_MS;
	r = nl_send(nl, data, len);
	if (r < 0)
		return r;
	/*
	 * Messages before the one that failed are acknowledged all the same, so
	 * reading goes on until nothing is left.
	 */
	for (;;) {
		n = nl_read(nl, buf, done || outcome != 0 ? 0 : until);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		left = (int)n;
		for (in = (const struct nlmsghdr *)buf; mnl_nlmsg_ok(in, left);
		    in = mnl_nlmsg_next(in, &left)) {
			if (in->nlmsg_seq - first > last - first)
				continue;
			r = take_message(in, NULL, NULL);
			if (r < 0 && outcome == 0)
				outcome = r;
			if (r == 1 && in->nlmsg_seq == acked)
				done = 1;
		}
	}
	if (outcome != 0)
		return outcome;
	return done ? 0 : -ETIMEDOUT;
}
