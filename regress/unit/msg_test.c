/* SPDX-License-Identifier: ISC */
/* objs: libs: -lbsd */
/*
 * Packing and unpacking of internal messages.  The bytes are compared with ones
 * written by hand; "msg_test dump" prints every type packed, for the comparison
 * with another reader of msg.def (regress/net/messages.py).
 */
#include <stdint.h>

#include "msg_fill.h"
#include "test.h"

TEST_PLAN_AUTO;

static uint8_t	 buf[MSG_MAX_BYTES + 16];

static void
dump_all(void)
{
	union msg_body	 body;
	int		 how, len, i;
	unsigned int	 type;

	for (type = M_NONE + 1; type < M_COUNT; type++)
		for (how = FILL_SOME; how <= FILL_FULL; how++) {
			msg_fill((enum msg_type)type, &body, (enum fill)how);
			len = msg_pack(buf, (enum msg_type)type,
			    msg_infos[type].phase == MP_ANSWER ?
			    MSGF_ANSWER : 0, 0x0102030405060708ULL, &body);
			printf("%s ", msg_name(type));
			for (i = 0; i < len; i++)
				printf("%02x", buf[i]);
			printf("\n");
		}
}

/* A message of each kind of field, byte by byte as msg(5) says. */
static void
test_bytes(void)
{
	static const uint8_t	 want[] = {
		M_NETD_CREATE_TAP_OK, 0,	/* type */
		1, 0,				/* flags: an answer */
		44, 0, 0, 0,			/* length */
		8, 7, 6, 5, 4, 3, 2, 1,		/* request */
		0x1f, 0, 0, 0,			/* slot */
		0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
		0xfe, 0xff, 0xff, 0xff,		/* index */
		10, 0, 's', 'b', 'a', 'b', 'c', 'd', '-', '1', 'f', '!'
	};
	static const uint8_t	 lost[] = {
		M_VMM_DESTROY_VM_OK, 0, 1, 0, 50, 0, 0, 0,
		1, 0, 0, 0, 0, 0, 0, 0,
		19, 0, 's', 'b', '-', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a',
		'2', '2', '2', '2', '7', '7', '7', '7',
		5, 0, 0, 0, 0, 0, 0, 0,
		3, 0, 0, 'x', 0xff		/* bytes may hold a NUL */
	};
	struct m_netd_create_tap_ok	 t = { .slot = 0x1f,
	    .generation = 0x0123456789abcdefULL, .ifindex = 0xfffffffeU,
	    .name = "sbabcd-1f!" };
	struct m_vmm_destroy_vm_ok	 v = { .id = "sb-aaaaaaaa22227777",
	    .generation = 5, .console_len = 3, .console = { 0, 'x', 0xff } };
	struct msg			 m;

	is_int(msg_pack(buf, M_NETD_CREATE_TAP_OK, MSGF_ANSWER,
	    0x0102030405060708ULL, &t), sizeof(want), "bytes: length");
	is_mem(buf, want, sizeof(want), "bytes: numbers and text");
	is_int(msg_pack(buf, M_VMM_DESTROY_VM_OK, MSGF_ANSWER, 1, &v),
	    sizeof(lost), "bytes: length with an id");
	is_mem(buf, lost, sizeof(lost), "bytes: id and bytes");
	is_int(msg_unpack(&m, lost, sizeof(lost)), MSG_OK, "bytes: unpacked");
	is_int(m.type, M_VMM_DESTROY_VM_OK, "bytes: type");
	is_int(m.fd, -1, "bytes: no descriptor of its own");
	is_str(m.body.vmm_destroy_vm_ok.id, "sb-aaaaaaaa22227777",
	    "bytes: id");
	is_int(m.body.vmm_destroy_vm_ok.console_len, 3, "bytes: their number");
	is_mem(m.body.vmm_destroy_vm_ok.console, "\0x\xff", 3,
	    "bytes: themselves");
}

/* Does every type come back as it was, empty, half and full? */
static void
test_round_trip(void)
{
	union msg_body	 body;
	struct msg	 m;
	unsigned int	 type;
	int		 how, len, longest = 0, bad = 0;
	uint16_t	 flags;

	for (type = M_NONE + 1; type < M_COUNT; type++)
		for (how = FILL_EMPTY; how <= FILL_FULL; how++) {
			msg_fill((enum msg_type)type, &body, (enum fill)how);
			flags = msg_infos[type].phase == MP_ANSWER ?
			    MSGF_ANSWER | MSGF_MORE : 0;
			len = msg_pack(buf, (enum msg_type)type, flags, type,
			    &body);
			if (len < MSG_HEADER_BYTES || msg_unpack(&m, buf,
			    (size_t)len) != MSG_OK || m.type != type ||
			    m.flags != flags || m.request != type ||
			    memcmp(&m.body, &body, msg_infos[type].size) != 0) {
				printf("# %s, fill %d\n", msg_name(type), how);
				bad++;
			}
			if (len > longest)
				longest = len;
		}
	is_int(bad, 0, "round trip: %d types, empty, half and full",
	    M_COUNT - 1);
	ok(longest <= MSG_MAX_BYTES, "round trip: the longest has %d bytes",
	    longest);
}

/* Every shortened, lengthened or bit-flipped form is refused or harmless. */
static void
test_damage(void)
{
	union msg_body	 body;
	struct msg	 m;
	unsigned int	 type;
	uint8_t		*copy;
	int		 len, n, bad = 0, r;

	for (type = M_NONE + 1; type < M_COUNT; type++) {
		msg_fill((enum msg_type)type, &body, FILL_SOME);
		len = msg_pack(buf, (enum msg_type)type,
		    msg_infos[type].phase == MP_ANSWER ? MSGF_ANSWER : 0, 1,
		    &body);
		for (n = 0; n < len; n++) {
			/* In a block of its own, so that a sanitizer sees. */
			copy = malloc((size_t)n + 1);
			memcpy(copy, buf, (size_t)n);
			if (msg_unpack(&m, copy, (size_t)n) == MSG_OK)
				bad++;
			/* With a header that claims the shortened length. */
			if (n >= MSG_HEADER_BYTES) {
				copy[4] = (uint8_t)n;
				copy[5] = (uint8_t)(n >> 8);
				if (msg_unpack(&m, copy, (size_t)n) == MSG_OK)
					bad++;
			}
			free(copy);
		}
		buf[len] = 0;
		buf[4] = (uint8_t)(len + 1);
		buf[5] = (uint8_t)((len + 1) >> 8);
		r = msg_unpack(&m, buf, (size_t)len + 1);
		if (r != MSG_E_TRAILING)
			bad++;
	}
	is_int(bad, 0, "damage: no shortened or lengthened message passes");
}

static int
unpack_changed(const uint8_t *data, size_t len, size_t at, uint8_t value)
{
	uint8_t		 copy[256];
	struct msg	 m;

	memcpy(copy, data, len);
	copy[at] = value;
	return msg_unpack(&m, copy, len);
}

static void
test_refused(void)
{
	struct m_netd_create_tap_ok	 t = { .slot = 1, .name = "abc" };
	struct m_parent_destroy_vm	 d = { .id = "sb-aaaaaaaa22227777" };
	struct m_netd_fail		 f = { 0 };
	struct m_vmm_vm_died_event	 v = { .id = "sb-aaaaaaaa22227777",
					    .console_len = 4097 };
	struct msg			 m;
	size_t				 n;

	n = (size_t)msg_pack(buf, M_NETD_CREATE_TAP_OK, MSGF_ANSWER, 1, &t);
	is_int(msg_unpack(&m, buf, n), MSG_OK, "refused: not the good one");
	is_int(msg_unpack(&m, buf, 0), MSG_E_SHORT, "refused: nothing");
	is_int(msg_unpack(&m, buf, 15), MSG_E_SHORT, "refused: short header");
	is_int(unpack_changed(buf, n, 4, (uint8_t)(n - 1)), MSG_E_LENGTH,
	    "refused: length too small");
	is_int(unpack_changed(buf, n, 6, 1), MSG_E_LENGTH,
	    "refused: length too big");
	is_int(unpack_changed(buf, n, 0, 0), MSG_E_TYPE, "refused: type 0");
	is_int(unpack_changed(buf, n, 0, M_COUNT), MSG_E_TYPE,
	    "refused: type after the last");
	is_int(unpack_changed(buf, n, 1, 0x80), MSG_E_TYPE,
	    "refused: type 32768 and more");
	is_int(unpack_changed(buf, n, 2, 0), MSG_E_TYPE,
	    "refused: an answer that does not say so");
	is_int(unpack_changed(buf, n, 2, 5), MSG_E_TYPE,
	    "refused: an unknown flag");
	is_int(unpack_changed(buf, n, 3, 0x80), MSG_E_TYPE,
	    "refused: an unknown flag above");
	is_int(unpack_changed(buf, n, n - 2, 0), MSG_E_FIELD,
	    "refused: NUL in text");
	is_int(unpack_changed(buf, n, n - 5, 16), MSG_E_FIELD,
	    "refused: text longer than its bound");
	is_int(unpack_changed(buf, n, n - 5, 4), MSG_E_SHORT,
	    "refused: text longer than the message");
	is_int(unpack_changed(buf, n, n - 5, 2), MSG_E_TRAILING,
	    "refused: bytes behind the last field");
	n = (size_t)msg_pack(buf, M_PARENT_DESTROY_VM, 0, 1, &d);
	is_int(unpack_changed(buf, n, 2, MSGF_ANSWER), MSG_E_TYPE,
	    "refused: a request that says answer");
	is_int(unpack_changed(buf, n, 18, 'S'), MSG_E_FIELD,
	    "refused: id with another start");
	is_int(unpack_changed(buf, n, 25, '1'), MSG_E_FIELD,
	    "refused: id with a letter that is none");
	is_int(unpack_changed(buf, n, 25, '/'), MSG_E_FIELD,
	    "refused: id with a slash");
	memset(d.id, 'a', sizeof(d.id));
	is_int(msg_pack(buf, M_PARENT_DESTROY_VM, 0, 1, &d), MSG_E_FIELD,
	    "pack: refuses a malformed id");
	memset(f.detail, 'x', sizeof(f.detail));
	is_int(msg_pack(buf, M_NETD_FAIL, MSGF_ANSWER, 1, &f), MSG_E_FIELD,
	    "pack: refuses text without an end");
	is_int(msg_pack(buf, M_VMM_VM_DIED_EVENT, 0, 1, &v), MSG_E_FIELD,
	    "pack: refuses more bytes than the bound");
}

static void
test_tables(void)
{
	const struct msg_pair	*p;
	const struct msg_info	*q, *a;
	unsigned int		 type, bad = 0, pairs = 0;

	for (type = M_NONE + 1; type < M_COUNT; type++) {
		q = &msg_infos[type];
		bad += strncmp(q->name, "M_", 2) != 0;
		bad += q->from == q->to || q->from >= PROC_COUNT ||
		    q->to >= PROC_COUNT;
		bad += q->from != PROC_PARENT && q->to != PROC_PARENT;
		bad += q->size > sizeof(union msg_body);
		bad += msg_permitted((enum msg_type)type, q->to, q->from,
		    MP_RUN) != 0;
		bad += msg_permitted((enum msg_type)type, q->from, q->to,
		    MP_SETUP) != (q->phase == MP_SETUP || q->phase == MP_ANY);
		bad += msg_permitted((enum msg_type)type, q->from, q->to,
		    MP_RUN) != (q->phase != MP_SETUP);
	}
	is_int(bad, 0, "tables: names, ends and phases of every type");
	for (p = msg_pairs, bad = 0; p->request != M_NONE; p++, pairs++) {
		q = &msg_infos[p->request];
		a = &msg_infos[p->answer];
		bad += a->phase != MP_ANSWER || a->from != q->to ||
		    a->to != q->from || !msg_answers(p->request, p->answer);
	}
	ok(pairs > 10 && bad == 0, "tables: %u answers go back to who asked",
	    pairs);
	ok(msg_answers(M_PARENT_CREATE_TAP, M_NETD_FAIL) &&
	    !msg_answers(M_PARENT_CREATE_TAP, M_VMM_FAIL) &&
	    !msg_answers(M_PARENT_START_NETD, M_NETD_FAIL),
	    "tables: only listed answers");
	ok(!msg_permitted(M_PARENT_START_VM, PROC_FRONT, PROC_VMM, MP_RUN) &&
	    !msg_permitted(M_PARENT_CREATE_TAP, PROC_PARENT, PROC_VMM,
	    MP_RUN) && msg_permitted(M_PARENT_CREATE_TAP, PROC_PARENT,
	    PROC_NETD, MP_RUN), "tables: who may send what to whom");
	is_str(msg_name(M_NETD_READY), "M_NETD_READY", "name: of a type");
	is_str(msg_name(0), "M_?", "name: of none");
	is_str(msg_name(M_COUNT), "M_?", "name: beyond the last");
	is_str(msg_name(70000), "M_?", "name: of a number that is no type");
	is_str(msg_strerror(MSG_E_FIELD), "bad field", "error: text");
	is_str(msg_strerror(0), "no error", "error: none");
	is_str(proc_name(PROC_NETD), "netd", "process: name");
	is_str(proc_name((enum proc_id)9), "?", "process: no name");
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "dump") == 0) {
		dump_all();
		return 0;
	}
	test_bytes();
	test_round_trip();
	test_damage();
	test_refused();
	test_tables();
	return done_testing();
}
