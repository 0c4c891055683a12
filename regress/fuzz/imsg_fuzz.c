/* SPDX-License-Identifier: ISC */
/* objs: libs: -lbsd options: -max_len=40000 */
/*
 * What a sibling that has been taken over can send to the parent: datagrams of
 * any bytes with any number of descriptors, through a real socketpair into the
 * receiving side.  The process goes on, no descriptor is left, and what is
 * delivered was permitted.
 *
 * Input: one byte (bits 0-1 the sibling, 2 still in its set-up, 3 requests
 * wait), then records: a byte (0-7: descriptors; bit 7: an event loop
 * before the next), length u16 little endian, bytes.
 */
#include <sys/socket.h>

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "log.h"
#include "msg_send.h"

int	LLVMFuzzerInitialize(int *, char ***);
int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/*
 * In place of log.c: the parent says something about most inputs, and it may
 * not end for any.
 */
void
log_warnx(const char *fmt, ...)
{
	(void)fmt;
}

void
fatal(const char *fmt, ...)
{
	(void)fmt;
	abort();
}

void
fatalx(const char *fmt, ...)
{
	(void)fmt;
	abort();
}

static struct event_base	*base;
static enum proc_id		 peer_id;
static enum msg_phase		 phase;
static int			 gone;
static int			 null;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	base = event_base_new();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (base == NULL || null == -1)
		abort();
	return 0;
}

static void
on_msg(struct ipeer *p, struct msg *m, void *arg)
{
	(void)p;
	(void)arg;
	if (gone || !msg_permitted(m->type, peer_id, PROC_PARENT, phase) ||
	    (m->fd != -1) != msg_infos[m->type].fd)
		abort();
	/* Some handlers take the descriptor and some do not. */
	if (m->fd != -1 && (m->request & 1) != 0)
		(void)close(msg_take_fd(m));
}

static void
on_gone(struct ipeer *p, void *arg)
{
	(void)p;
	(void)arg;
	if (gone)
		abort();
	gone = 1;
}

static void
on_answer(struct msg *m, void *arg)
{
	const enum msg_type	*request = arg;

	if (m != NULL && !msg_answers(*request, m->type))
		abort();
}

/* Requests of ours, numbered 1 and 2, for answers to meet. */
static void
ask(struct ipeer *p)
{
	static enum msg_type			 start = M_PARENT_START_VM;
	static enum msg_type			 destroy = M_PARENT_DESTROY_VM;
	static enum msg_type			 gone_tap = M_PARENT_REMOVE_TAP;
	static const struct m_parent_start_vm	 s = {
		.id = "sb-aaaaaaaaaaaaaaaa"
	};
	static const struct m_parent_destroy_vm	 d = {
		.id = "sb-aaaaaaaaaaaaaaaa"
	};
	static const struct m_parent_remove_tap	 r;

	if (phase != MP_RUN)
		return;
	if (peer_id == PROC_VMM) {
		(void)request_parent_start_vm(p, &s, dup(null), 60000,
		    on_answer, &start);
		(void)request_parent_destroy_vm(p, &d, 60000, on_answer,
		    &destroy);
	} else if (peer_id == PROC_NETD) {
		(void)request_parent_remove_tap(p, &r, 60000, on_answer,
		    &gone_tap);
		(void)request_parent_remove_tap(p, &r, 60000, on_answer,
		    &gone_tap);
	}
}

static void
put_datagram(int sock, const uint8_t *data, size_t len, int nfds)
{
	char		 space[CMSG_SPACE(8 * sizeof(int))]
			    __attribute__((aligned(_Alignof(struct cmsghdr))));
	struct iovec	 iov = { (void *)(uintptr_t)data, len };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr	*c;
	int		 i;

	memset(space, 0, sizeof(space));
	if (nfds > 0) {
		mh.msg_control = space;
		mh.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		for (i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &null,
			    sizeof(int));
	}
	/* A full socket, or one that has been closed, loses it: as well. */
	(void)sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
put_records(int sock, const uint8_t *data, size_t len)
{
	size_t	 n;
	uint8_t	 what;

	while (len >= 3) {
		what = data[0];
		n = (size_t)data[1] | (size_t)data[2] << 8;
		data += 3;
		len -= 3;
		if (n > len)
			n = len;
		put_datagram(sock, data, n, what & 7);
		data += n;
		len -= n;
		if ((what & 0x80) != 0)
			(void)event_base_loop(base, EVLOOP_NONBLOCK);
	}
}

static int
lowest_free_fd(void)
{
	int	 fd = dup(null);

	(void)close(fd);
	return fd;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const enum proc_id	 peers[] = {
		PROC_FRONT, PROC_VMM, PROC_NETD, PROC_FRONT
	};
	struct ipeer			*p;
	int				 pair[2], before, turns;

	if (len < 1)
		return 0;
	before = lowest_free_fd();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		abort();
	peer_id = peers[data[0] & 3];
	phase = (data[0] & 4) != 0 ? MP_SETUP : MP_RUN;
	gone = 0;
	p = ipeer_new(base, pair[0], PROC_PARENT, peer_id, on_msg, on_gone,
	    NULL);
	if (p == NULL)
		abort();
	if (phase == MP_RUN)
		ipeer_set_running(p);
	if ((data[0] & 8) != 0)
		ask(p);
	put_records(pair[1], data + 1, len - 1);
	(void)close(pair[1]);
	/* To the end of what was sent, which must come. */
	for (turns = 0; !gone; turns++) {
		if (turns > 100000)
			abort();
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
	}
	ipeer_free(p);
	if (lowest_free_fd() != before)
		abort();
	return 0;
}
