/* SPDX-License-Identifier: ISC */
/*
 * Every number that bounds something, with its unit and its reason.
 * Used by all processes; holds no code.
 */
/* GCC's <limits.h> looks for the C library's by this name and finds us. */
#include_next <limits.h>

#ifndef SBX_LIMITS_H
#define SBX_LIMITS_H

/* Internal messages: one SOCK_SEQPACKET datagram each (msg(5)). */
#define MSG_MAX_BYTES		16384	/* header included */
#define MSG_HEADER_BYTES	16
#define IPEER_QUEUE_MAX		4096	/* datagrams; more: the sibling is stuck */
#define IPEER_QUEUE_HIGH	1024	/* the parent reads no more requests */
#define IPEER_REQUESTS_MAX	2048	/* requests waiting for their answer */
#define CHILD_FD		3	/* the socketpair's end in each child */

/* Names. */
#define SBX_ID_LEN		19	/* "sb-" and 16 base32 characters */
#define SBX_NAME_MAX		63	/* bytes, sandbox name and template name */
#define SBX_KEY_MAX		128	/* bytes, Idempotency-Key */
#define SBX_TAG_LEN		4	/* instance tag, [a-z2-7] */
#define TAP_NAME_MAX		15	/* IFNAMSIZ - 1; longer is cut silently */
#define SUN_PATH_MAX		107	/* sockaddr_un without its NUL */
#define SBX_PATH_MAX		255	/* bytes, paths in messages */

/* A create request; it has to fit in one internal message. */
#define SBX_METADATA_MAX	16	/* entries */
#define SBX_METADATA_BYTES	4096	/* packed "key\0value\0" */
#define SBX_ENV_BYTES		6144	/* packed "key=value\0" */
#define SBX_DETAIL_MAX		512	/* bytes, text of an error */
#define SBX_CONSOLE_TAIL	4096	/* bytes, console kept until ready */
#define SBX_DNS_MAX		3	/* resolv.conf(5) MAXNS */

/* Sandbox resources: what any configuration may ask for. */
#define SBX_VCPU_MAX		32
#define SBX_MEMORY_MIN_MIB	96	/* Debian's kernel boots in 88, not in 80 */
#define SBX_MEMORY_MAX_MIB	262144
#define SBX_DISK_MIN_MIB	16
#define SBX_DISK_MAX_MIB	1048576
#define SBX_TIMEOUT_MAX_S	2592000	/* 30 days */

/* netd. */
#define TAP_MTU			1500	/* Ethernet's, also in the guest */
#define NETLINK_DEADLINE_MS	2000	/* of one request to the kernel */
#define NETD_NOFILE		64	/* a few, and one for each queued request */

/* The configuration file: what it may ask for (sandboxd.conf(5)). */
#define CONF_LINE_MAX		1024	/* bytes, tokens of one line */
#define CONF_UID_MAX		4294967294LL	/* 2^32 - 1 is "no id" */
#define CONF_UID_COUNT_MAX	65536
#define CONF_SANDBOXES_MAX	10000	/* look-ups and messages are sized for it */
#define CONF_MEMORY_MAX_MIB	(1LL << 32)	/* 4 PiB: no host has it */
#define CONF_SECONDS_MAX	3600	/* waits of the daemon itself */
#define CONF_POOL_PREFIX_MIN	8	/* an address family's largest private net */

/* HTTP (front). */
#define HTTP_REQUEST_LINE_MAX	2048	/* bytes */
#define HTTP_HEADER_MAX		8192	/* bytes, request line included */
#define HTTP_FIELDS_MAX		64
#define HTTP_HEADER_DEADLINE_MS	10000	/* absolute, from the first byte */
#define HTTP_BODY_DEADLINE_MS	30000	/* absolute, from the end of the header */
#define HTTP_IDLE_MS		60000	/* between two requests */
#define HTTP_BODY_MAX		65536	/* JSON routes */
#define HTTP_CREATE_BODY_MAX	12288	/* POST /sandboxes: one message */
#define HTTP_EXEC_BODY_MAX	1048576	/* POST exec: arguments, env and stdin */
#define HTTP_CLIENTS_MAX	1024	/* connections */
#define HTTP_CLIENTS_PER_UID	256	/* of a uid that is no proxy */
#define HTTP_REQUEST_ID_MAX	64	/* bytes, X-Request-Id */
#define HTTP_METHOD_MAX		16	/* bytes; longer than any method: 501 */
#define HTTP_CHUNK_DIGITS_MAX	8	/* hex digits of one chunk size */
#define HTTP_CHUNK_EXT_MAX	256	/* bytes of chunk extensions in a body */
#define HTTP_REPLY_HEAD_MAX	1024	/* bytes, all that we ever write */
#define HTTP_ALLOW_MAX		64	/* bytes, an Allow field's value */
#define QUERY_VALUE_MAX		255	/* bytes, decoded */
#define PROBLEM_MAX		8192	/* bytes: details escaped, six for one */
#define EXEC_OUTPUT_MAX		1048576	/* bytes of each stream in one JSON answer */
#define EXEC_COLLECT_MAX	67108864 /* bytes of all those answers at a time */
#define EXEC_VALUES_MAX		65536	/* JSON values: 10,000 variables and more */
#define EXEC_CWD_MAX		4095	/* bytes, PATH_MAX - 1 */
#define EXEC_USER_MAX		255	/* bytes */
#define EXEC_KEEPALIVE_MS	15000	/* NDJSON: proxies cut what is silent */
#define EXEC_CHANNEL_WAIT_MS	15000	/* for a channel that is being opened */
#define EXEC_STDIN_QUEUE_HIGH	65536	/* bytes that wait for the guest's credit */
#define HTTP_INPUT_MAX		65536	/* bytes read ahead of what is handled */
#define HTTP_LINGER_MS		2000	/* reading on after the last reply */
#define HTTP_STALL_MS		60000	/* a reply of which nothing is read */
#define HTTP_GONE_CHECK_MS	250	/* of clients that are not being read */
#define HTTP_ACCEPT_PAUSE_MS	250	/* when descriptors have run out */
#define FRONT_NOFILE		16384	/* clients; a channel for each sandbox */

/* JSON. */
#define JSON_DEPTH_MAX		8	/* levels of arrays and objects */
#define JSON_VALUES_MAX		16384	/* values and keys in a request's body */
#define JSON_NUMBER_MAX		128	/* bytes of one number */
#define JSON_TAKEN_MAX		32	/* members that one object may have */

/* WebSocket (RFC 6455). */
#define WS_MESSAGE_MAX		1048576	/* bytes, larger: close 1009 */
#define WS_PING_MS		15000	/* proxies cut what is silent for 30 s */
#define WS_PONG_DEADLINE_MS	60000
#define WS_QUEUE_HIGH		262144	/* bytes unsent: stop giving credit */
#define WS_QUEUE_LOW		65536	/* bytes unsent: give it again */
#define WS_START_MS		30000	/* handshake to the start message */
#define WS_CLOSE_MS		5000	/* our close frame to the client's */

/* Guest protocol (guest-protocol(7)). */
#define GP_PAYLOAD_MAX		32768	/* bytes in a frame */
#define GP_WINDOW		262144	/* bytes of credit a stream starts with */
#define GP_STREAMS_MAX		256	/* open at once in one guest */
#define GP_ARGS_MAX		2097152	/* bytes of argv and env, Linux's own bound */
#define GP_STRING_MAX		131071	/* bytes, one string: MAX_ARG_STRLEN - 1 */
#define GP_QUEUE_HIGH		262144	/* bytes unsent to a guest: hold streams */
#define GP_QUEUE_MAX		1048576	/* a guest that reads nothing and asks on */
#define GP_PING_MS		15000	/* while commands run */
#define GP_SILENT_MS		60000	/* no frame after a ping: lost (TCG, load) */
#define GP_PINGS_PER_S		20	/* of a guest's own; more: it plays with us */

/* sandboxctl. */
#define CTL_CONNECT_MS		10000	/* a full backlog empties, or does not */
#define CTL_REQUEST_MS		60000	/* over DELETE_ANSWER_MS */
#define CTL_CREATE_MS		150000	/* over FRONT_CREATE_MS */
#define CTL_STARTED_MS		60000	/* handshake to process_started */
#define CTL_SILENT_MS		90000	/* sandboxd pings every WS_PING_MS */
#define CTL_PONG_MS		10000	/* unasked pongs while stdout is stuck */
#define CTL_CLOSE_MS		2000	/* process_exited to the close frame */
#define CTL_SIGNAL_MS		5000	/* a signal that cannot be sent: give up */
#define CTL_POLL_MS		200	/* between two looks of wait */
#define CTL_HEADER_MAX		16384	/* bytes of a reply's head */
#define CTL_FIELDS_MAX		64
#define CTL_BODY_MAX		16777216 /* a page of sandboxes, all escaped */
#define CTL_VALUES_MAX		262144	/* JSON values in it */
#define CTL_PAGE		100	/* sandboxes asked for at a time */
#define CTL_PAGES_MAX		1000	/* then the list does not end by itself */
#define CTL_EVENT_MAX		65536	/* bytes of a text message to us */
#define CTL_INPUT_BYTES		131072	/* read at once: all that is ever held */
#define CTL_STDIN_PIECE		32768	/* bytes of one frame to stdin */

/* VMMs (vmm). */
#define QMP_LINE_MAX		16384	/* bytes; our commands' answers are short */
#define QMP_BURST_MAX		65536	/* bytes read of one monitor ... */
#define QMP_BURST_MS		250	/* ... in this time; more has to wait */
#define QMP_DEPTH_MAX		8	/* levels of JSON; a greeting has 4 */
#define VMM_TB_MIB		128	/* QEMU's translated code, software emulation */
#define VMM_OVERHEAD_MIB	96	/* QEMU itself, page tables, its disk cache */
#define VMM_FDS_MAX		128	/* RLIMIT_NOFILE of a VMM */
#define VMM_THREADS_MAX		72	/* beside vCPUs: QEMU's pool has up to 64 */
#define VMM_STDERR_TAIL		1024	/* bytes kept */
#define VMM_STDERR_MAX		65536	/* bytes read; a guest can cause warnings */
#define VMM_NOFILE		65536	/* descriptors of vmm, five for each VM */
#define VMM_UID_MIN		65536	/* below: people and services; we kill by uid */
#define VMM_BLANKS_MAX		16	/* sizes of empty layers kept on disk */
#define TEMPLATE_JSON_MAX	4096	/* bytes of template.json */
#define VMM_PROBE_MS		5000	/* a VMM asked for its version */
#define VM_START_MS		12000	/* start to working monitor, busy box */
#define VM_MONITOR_GONE_MS	1000	/* monitor closed, VMM still there: kill */
#define VM_RELEASE_MS		10000	/* kill to nothing left */
#define VM_RELEASE_POLL_MS	5	/* a cgroup empties a moment after the exit */
#define VM_UNLINK_INLINE	(64 << 20) /* bytes; more: a helper unlinks it */

/* Deadlines, ms. */
#define CHILD_READY_MS		20000	/* exec to ready, a slow box included */
#define NETD_REQUEST_MS		5000
#define FRONT_CREATE_MS		120000	/* the parent answers before */
#define FRONT_REQUEST_MS	35000	/* every other request of front */
#define VMM_REQUEST_MS		15000
#define GUEST_BOOT_TCG_MS	60000	/* software emulation on a busy box */
#define GUEST_BOOT_KVM_MS	10000
#define CHANNEL_LOST_MS		2000	/* for the parent to say what it was */
#define GUEST_HANDSHAKE_MS	10000	/* reconnect to a guest that has booted */
#define DELETE_ANSWER_MS	30000	/* then 202 and the sweep goes on */

#endif
