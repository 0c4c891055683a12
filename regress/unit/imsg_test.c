/* SPDX-License-Identifier: ISC */
/* objs: libs: -lbsd */
/*
 * The channel between two processes: requests, answers, deadlines, descriptors,
 * queues, and siblings that break the rules.  One end is an ipeer; the other is
 * an ipeer, too, or a plain socket of the test's.
 */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <event2/event.h>

#include "log.h"
#include "msg_send.h"
#include "test.h"

TEST_PLAN_AUTO;

#define SHORT_MS	60

static struct {
	struct event_base	*base;
	int			 got;		/* messages */
	int			 gone;
	int			 answers;
	int			 nulls;
	int			 fd;		/* the latest, taken */
	struct msg		 last;
} w;

static int
count_fds(void)
{
	DIR	*d;
	int	 n = 0;

	d = opendir("/proc/self/fd");
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

static void
on_msg(struct ipeer *p, struct msg *m, void *arg)
{
	(void)p;
	(void)arg;
	w.got++;
	w.last = *m;
}

static void
on_gone(struct ipeer *p, void *arg)
{
	(void)p;
	(void)arg;
	w.gone++;
}

static void
on_answer(struct msg *m, void *arg)
{
	(void)arg;
	if (m == NULL) {
		w.nulls++;
		return;
	}
	w.answers++;
	w.last = *m;
}

/* netd's side: answers at once. */
static void
on_netd_msg(struct ipeer *p, struct msg *m, void *arg)
{
	struct m_netd_create_tap_ok	 a = { .slot = 7, .name = "sbabcd-7" };

	(void)arg;
	w.got++;
	if (m->type == M_PARENT_CREATE_TAP) {
		w.fd = msg_take_fd(m);
		(void)answer_netd_create_tap_ok(p, m->request, 0, &a);
	}
}

static void
run(int ms)
{
	struct timeval	 tv = { ms / 1000, (ms % 1000) * 1000 };

	(void)event_base_loopexit(w.base, &tv);
	(void)event_base_dispatch(w.base);
}

/* A parent's ipeer to `peer`, running; the other end of the pair. */
static struct ipeer *
parent_of(enum proc_id peer, int *other)
{
	struct ipeer	*p;
	int		 pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		exit(1);
	w.got = w.gone = w.answers = w.nulls = 0;
	w.fd = -1;
	p = ipeer_new(w.base, pair[0], PROC_PARENT, peer, on_msg, on_gone,
	    NULL);
	if (p == NULL)
		exit(1);
	ipeer_set_running(p);
	*other = pair[1];
	return p;
}

static void
test_request(void)
{
	struct m_parent_create_tap	 q = { .slot = 7, .uid = 12345 };
	struct ipeer			*parent, *netd;
	struct ipeer_stats		 st;
	struct stat			 a, b;
	int				 other, fd, before;

	before = count_fds();
	parent = parent_of(PROC_NETD, &other);
	netd = ipeer_new(w.base, other, PROC_NETD, PROC_PARENT, on_netd_msg,
	    on_gone, NULL);
	ipeer_set_running(netd);
	fd = open("/dev/null", O_RDWR);
	(void)fstat(fd, &a);
	is_int(request_parent_create_tap(parent, &q, fd, 2000, on_answer,
	    NULL), 0, "request: sent");
	is_int(fcntl(fd, F_GETFD), -1, "request: takes the descriptor");
	run(SHORT_MS);
	is_int(w.answers, 1, "request: answered once");
	is_int(w.last.type, M_NETD_CREATE_TAP_OK, "request: its answer");
	is_str(w.last.body.netd_create_tap_ok.name, "sbabcd-7",
	    "request: the answer's text");
	ok(w.fd != -1 && fstat(w.fd, &b) == 0 && a.st_rdev == b.st_rdev,
	    "request: the descriptor has arrived");
	is_int(fcntl(w.fd, F_GETFD), FD_CLOEXEC, "request: close on exec");
	(void)close(w.fd);
	ipeer_get_stats(parent, &st);
	ok(st.waiting == 0 && st.queued == 0 && st.sent == 1 &&
	    st.received == 1, "request: counted");
	ipeer_free(netd);
	run(SHORT_MS);
	is_int(w.gone, 1, "gone: said once");
	ipeer_free(parent);
	is_int(count_fds(), before, "request: no descriptor is left");
	ipeer_free(NULL);
}

static void
test_deadline(void)
{
	struct m_parent_remove_tap	 q = { .slot = 7 };
	struct m_netd_remove_tap_ok	 a = { .slot = 7 };
	struct ipeer			*parent;
	struct ipeer_stats		 st;
	uint8_t				 buf[MSG_MAX_BYTES];
	int				 other, n;
	struct m_parent_create_tap	 c = { .slot = 1 };

	parent = parent_of(PROC_NETD, &other);
	(void)request_parent_remove_tap(parent, &q, 30, on_answer, NULL);
	run(20);
	is_int(w.nulls, 0, "deadline: not before its time");
	run(SHORT_MS);
	is_int(w.nulls, 1, "deadline: NULL after it");
	n = msg_pack(buf, M_NETD_REMOVE_TAP_OK, MSGF_ANSWER,
	    ipeer_last_request(parent), &a);
	(void)send(other, buf, (size_t)n, 0);
	run(SHORT_MS);
	ipeer_get_stats(parent, &st);
	ok(w.answers == 0 && st.late_answers == 1 && w.gone == 0,
	    "deadline: a late answer is dropped and counted");
	(void)request_parent_remove_tap(parent, &q, 5000, on_answer, &other);
	ipeer_forget(parent, &other);
	n = msg_pack(buf, M_NETD_REMOVE_TAP_OK, MSGF_ANSWER,
	    ipeer_last_request(parent), &a);
	(void)send(other, buf, (size_t)n, 0);
	run(SHORT_MS);
	ok(w.answers == 0 && w.nulls == 1 && w.gone == 0,
	    "forget: nobody is told");
	ipeer_get_stats(parent, &st);
	is_int(st.waiting, 0, "forget: the request is done");
	(void)request_parent_remove_tap(parent, &q, 5000, on_answer, NULL);
	(void)request_parent_create_tap(parent, &c, open("/dev/null", O_RDWR),
	    5000, on_answer, NULL);
	ipeer_free(parent);
	is_int(w.nulls, 3, "free: what waits is answered NULL");
	(void)close(other);
}

static void
test_more(void)
{
	static const struct m_vmm_fail	 fail = { .id = "sb-aaaaaaaaaaaaaaaa" };
	struct m_parent_destroy_vm	 q = { .id = "sb-aaaaaaaaaaaaaaaa" };
	struct ipeer			*parent;
	struct ipeer_stats		 st;
	uint8_t				 buf[MSG_MAX_BYTES];
	int				 other, n, i;

	parent = parent_of(PROC_VMM, &other);
	(void)request_parent_destroy_vm(parent, &q, 5000, on_answer, NULL);
	for (i = 0; i < 4; i++) {
		n = msg_pack(buf, M_VMM_FAIL,
		    i < 3 ? MSGF_ANSWER | MSGF_MORE : MSGF_ANSWER,
		    ipeer_last_request(parent), &fail);
		(void)send(other, buf, (size_t)n, 0);
	}
	run(SHORT_MS);
	is_int(w.answers, 4, "more: every part is delivered");
	ipeer_get_stats(parent, &st);
	is_int(st.waiting, 0, "more: the last one ends it");
	ipeer_free(parent);
	(void)close(other);
}

static void
test_queue(void)
{
	struct m_parent_remove_tap	 q = { .slot = 0 };
	struct ipeer			*parent;
	struct ipeer_stats		 st;
	struct msg			 m;
	uint8_t				 buf[MSG_MAX_BYTES];
	ssize_t				 n;
	int				 other, wrong = 0;
	uint32_t			 i;

	parent = parent_of(PROC_NETD, &other);
	for (i = 0; i < IPEER_REQUESTS_MAX; i++) {
		q.slot = i;
		wrong += request_parent_remove_tap(parent, &q, 60000,
		    on_answer, NULL) != 0;
	}
	is_int(wrong, 0, "queue: %d requests are taken", IPEER_REQUESTS_MAX);
	is_int(request_parent_remove_tap(parent, &q, 60000, on_answer, NULL),
	    -1, "queue: one more is refused");
	ipeer_get_stats(parent, &st);
	ok(st.queued > 0 && st.waiting == IPEER_REQUESTS_MAX,
	    "queue: %u wait for the socket", st.queued);
	for (i = 0; i < IPEER_REQUESTS_MAX; ) {
		n = recv(other, buf, sizeof(buf), MSG_DONTWAIT);
		if (n == -1) {
			run(5);
			continue;
		}
		wrong += msg_unpack(&m, buf, (size_t)n) != MSG_OK ||
		    m.body.parent_remove_tap.slot != i;
		i++;
	}
	is_int(wrong, 0, "queue: all arrive, in their order");
	ipeer_free(parent);
	is_int(w.nulls, IPEER_REQUESTS_MAX, "queue: each is answered NULL");
	(void)close(other);
}

static void
test_overflow(void)
{
	struct m_parent_close_channel	 c = { .id = "sb-aaaaaaaaaaaaaaaa" };
	struct m_parent_open_channel	 o = { .id = "sb-aaaaaaaaaaaaaaaa" };
	struct ipeer			*parent;
	struct ipeer_stats		 st;
	int				 other, i, before, wrong = 0;

	before = count_fds();
	parent = parent_of(PROC_FRONT, &other);
	for (i = 0; i < IPEER_QUEUE_MAX + 2000; i++)
		wrong += send_parent_close_channel(parent, &c) != 0;
	is_int(wrong, 0, "overflow: a send never fails for it");
	ipeer_get_stats(parent, &st);
	is_int(st.queued, IPEER_QUEUE_MAX, "overflow: the queue is bounded");
	is_int(w.gone, 0, "overflow: gone is not called inside of a send");
	is_int(send_parent_open_channel(parent, &o, open("/dev/null", O_RDWR)),
	    0, "overflow: a send with a descriptor");
	run(SHORT_MS);
	is_int(w.gone, 1, "overflow: the channel ends, once");
	ipeer_free(parent);
	(void)close(other);
	is_int(count_fds(), before, "overflow: no descriptor is left");
}

/* The parent as request.c is: a request brings many answers. */
static void
on_list(struct ipeer *p, struct msg *m, void *arg)
{
	static const struct m_parent_give_sandbox	 g = {
		.id = "sb-aaaaaaaaaaaaaaaa"
	};
	int						 i;

	(void)arg;
	w.got++;
	for (i = 0; i < 1000; i++)
		(void)answer_parent_give_sandbox(p, m->request, MSGF_MORE, &g);
}

static void
test_pause(void)
{
	static const struct m_front_list_sandboxes	 q;
	struct ipeer					*parent;
	struct ipeer_stats				 st;
	uint8_t						 buf[MSG_MAX_BYTES];
	int						 pair[2], n, i;
	int						 most = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		exit(1);
	w.got = w.gone = 0;
	parent = ipeer_new(w.base, pair[0], PROC_PARENT, PROC_FRONT, on_list,
	    on_gone, NULL);
	ipeer_set_running(parent);
	for (i = 0; i < 12; i++) {
		n = msg_pack(buf, M_FRONT_LIST_SANDBOXES, 0, (uint64_t)i, &q);
		(void)send(pair[1], buf, (size_t)n, 0);
	}
	run(SHORT_MS);
	ok(w.got >= 1 && w.got < 12 && w.gone == 0,
	    "pause: %d of 12 lists are begun", w.got);
	for (i = 0; i < 12000; ) {
		ipeer_get_stats(parent, &st);
		if ((int)st.queued > most)
			most = (int)st.queued;
		if (recv(pair[1], buf, sizeof(buf), MSG_DONTWAIT) > 0)
			i++;
		else
			(void)event_base_loop(w.base, EVLOOP_NONBLOCK);
		if (w.gone != 0)
			break;
	}
	ok(i == 12000 && w.got == 12, "pause: all 12000 answers arrive");
	ok(most < IPEER_QUEUE_MAX, "pause: at most %d were queued", most);
	(void)close(pair[1]);
	run(SHORT_MS);
	is_int(w.gone, 1, "pause: the end is seen");
	ipeer_free(parent);
}

/* ---- siblings that break the rules ---- */

static void
send_raw(int sock, const void *data, size_t len, int nfds)
{
	char		 space[CMSG_SPACE(8 * sizeof(int))];
	struct iovec	 iov = { (void *)(uintptr_t)data, len };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr	*c;
	int		 fds[8], i;

	memset(space, 0, sizeof(space));
	for (i = 0; i < nfds; i++)
		fds[i] = open("/dev/null", O_RDWR);
	if (nfds > 0) {
		mh.msg_control = space;
		mh.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)nfds * sizeof(int));
	}
	if (sendmsg(sock, &mh, MSG_NOSIGNAL) == -1)
		printf("# sendmsg: %s\n", strerror(errno));
	for (i = 0; i < nfds; i++)
		(void)close(fds[i]);
}

static void
refused(const char *what, const void *data, size_t len, int nfds)
{
	struct ipeer	*parent;
	int		 other, before;

	before = count_fds();
	parent = parent_of(PROC_FRONT, &other);
	send_raw(other, data, len, nfds);
	/* What comes behind it is not looked at. */
	send_raw(other, data, len, nfds);
	run(SHORT_MS);
	ok(w.gone == 1 && w.got == 0, "refused: %s ends the channel", what);
	ipeer_free(parent);
	(void)close(other);
	is_int(count_fds(), before, "refused: %s leaves no descriptor", what);
}

static void
test_refused(void)
{
	static const struct m_front_get_health		 health;
	static const struct m_front_identify_client	 identify;
	static const struct m_parent_open_api		 api;
	static const struct m_vmm_sweep_ok		 sweep;
	static const struct m_front_ready		 ready;
	uint8_t						 buf[MSG_MAX_BYTES];
	static uint8_t					 big[MSG_MAX_BYTES + 1];
	size_t						 n;

	refused("one byte", "x", 1, 0);
	refused("an empty datagram", "", 0, 0);
	refused("an empty datagram with a descriptor", "", 0, 1);
	refused("a datagram that is too long", big, sizeof(big), 0);
	refused("one too long with a descriptor", big, sizeof(big), 1);
	n = (size_t)msg_pack(buf, M_FRONT_GET_HEALTH, 0, 1, &health);
	refused("a descriptor that is not wanted", buf, n, 1);
	refused("eight descriptors", buf, n, 8);
	n = (size_t)msg_pack(buf, M_FRONT_IDENTIFY_CLIENT, 0, 1, &identify);
	refused("a missing descriptor", buf, n, 0);
	refused("two descriptors for one", buf, n, 2);
	refused("three descriptors for one", buf, n, 3);
	n = (size_t)msg_pack(buf, M_PARENT_OPEN_API, 0, 1, &api);
	refused("our own message", buf, n, 0);
	n = (size_t)msg_pack(buf, M_VMM_SWEEP_OK, MSGF_ANSWER, 1, &sweep);
	refused("another child's message", buf, n, 0);
	n = (size_t)msg_pack(buf, M_FRONT_READY, 0, 1, &ready);
	refused("a message of the set-up", buf, n, 0);
}

/* A descriptor that its receiver does not want is closed. */
static void
test_untaken(void)
{
	static const struct m_front_identify_client	 identify;
	struct ipeer					*parent;
	uint8_t						 buf[MSG_MAX_BYTES];
	int						 other, n, i, before;

	parent = parent_of(PROC_FRONT, &other);
	before = count_fds();
	n = msg_pack(buf, M_FRONT_IDENTIFY_CLIENT, 0, 1, &identify);
	for (i = 0; i < 40; i++)
		send_raw(other, buf, (size_t)n, 1);
	run(SHORT_MS);
	is_int(w.got, 40, "untaken: all are delivered");
	ok(w.last.fd > 2, "untaken: each with its descriptor");
	is_int(count_fds(), before, "untaken: none is left");
	ipeer_free(parent);
	(void)close(other);
}

static void
test_wrong_answer(void)
{
	struct m_parent_remove_tap	 q = { .slot = 7 };
	struct m_netd_create_tap_ok	 a = { .slot = 7 };
	struct ipeer			*parent;
	uint8_t				 buf[MSG_MAX_BYTES];
	int				 other, n;

	parent = parent_of(PROC_NETD, &other);
	(void)request_parent_remove_tap(parent, &q, 5000, on_answer, NULL);
	n = msg_pack(buf, M_NETD_CREATE_TAP_OK, MSGF_ANSWER,
	    ipeer_last_request(parent), &a);
	(void)send(other, buf, (size_t)n, 0);
	run(SHORT_MS);
	ok(w.gone == 1 && w.answers == 0,
	    "answer: one of another request's kind ends the channel");
	ipeer_free(parent);
	is_int(w.nulls, 1, "answer: the request is answered NULL");
	(void)close(other);
}

/* A full descriptor table: the data comes without its descriptor. */
static void
test_table_full(void)
{
	static const struct m_front_identify_client	 identify;
	struct ipeer					*parent;
	struct rlimit					 rl, low;
	uint8_t						 buf[MSG_MAX_BYTES];
	int						 other, n, top;

	parent = parent_of(PROC_FRONT, &other);
	n = msg_pack(buf, M_FRONT_IDENTIFY_CLIENT, 0, 1, &identify);
	send_raw(other, buf, (size_t)n, 1);
	(void)getrlimit(RLIMIT_NOFILE, &rl);
	low = rl;
	top = dup(0);
	(void)close(top);
	low.rlim_cur = (rlim_t)top;
	(void)setrlimit(RLIMIT_NOFILE, &low);
	(void)event_base_loop(w.base, EVLOOP_NONBLOCK);
	(void)setrlimit(RLIMIT_NOFILE, &rl);
	ok(w.gone == 1 && w.got == 0,
	    "full table: a lost descriptor ends the channel");
	ipeer_free(parent);
	(void)close(other);
}

static void
on_unexpected(struct ipeer *p, struct msg *m, void *arg)
{
	(void)p;
	(void)m;
	(void)arg;
	_exit(3);
}

/* A child is ended by its sibling's bad message: the parent starts another. */
static void
test_child(void)
{
	int	 pair[2], status = -1;
	pid_t	 pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		exit(1);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct event_base	*base = event_base_new();

		(void)close(STDERR_FILENO);
		(void)ipeer_new(base, pair[0], PROC_NETD, PROC_PARENT,
		    on_unexpected, on_gone, NULL);
		(void)event_base_dispatch(base);
		_exit(4);
	}
	send_raw(pair[1], "garbage garbage garbage", 23, 0);
	(void)waitpid(pid, &status, 0);
	is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1,
	    "child: a bad message ends it with 1");
	(void)close(pair[0]);
	(void)close(pair[1]);
}

int
main(void)
{
	(void)close(STDERR_FILENO);	/* refusals are logged, many times */
	(void)open("/dev/null", O_WRONLY);
	log_init("test", 0);
	w.base = event_base_new();
	test_request();
	test_deadline();
	test_more();
	test_queue();
	test_overflow();
	test_pause();
	test_refused();
	test_untaken();
	test_wrong_answer();
	test_table_full();
	test_child();
	event_base_free(w.base);
	return done_testing();
}
