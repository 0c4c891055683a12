/* SPDX-License-Identifier: ISC */
/*
 * The guest protocol's codec (guest-protocol(7)): the same file on both sides.
 * Pure functions over bytes: no I/O, no allocation, no libc beyond string.h, so
 * that it builds with musl for guestd and with glibc for front, and can be
 * fuzzed.  Bytes may be hostile in both directions.
 *
 * One byte stream carries everything, whatever brings it (a virtio-serial port
 * under QEMU, vsock under Firecracker).  All integers are little endian.
 *
 * Sync record: 16 bytes GP_MAGIC, 16 bytes nonce.  The host sends one whenever
 * it has connected; the guest looks for it in everything that it reads, also in
 * the middle of a frame, forgets the connection before, and answers with the
 * same record.  The host drops what it reads until the record with its nonce.
 * A host's frame never contains GP_MAGIC: no byte of it is GP_FRAME_MAGIC or 0,
 * so it cannot overlap a header, and free bytes (ARGS, DATA) are split inside
 * it.
 *
 * Frame header, 12 bytes:
 *	0	u8	GP_FRAME_MAGIC
 *	1	u8	type
 *	2	u16	flags
 *	4	u32	stream (0: the connection itself)
 *	8	u32	length of the payload, at most GP_PAYLOAD_MAX
 *
 * Streams are opened by the host with ids that only grow in a connection.
 *
 * Credit: a DATA or ARGS frame costs its payload plus GP_FRAME_COST, in its own
 * direction of its own stream.  Each side starts with GP_WINDOW and gets more
 * by CREDIT frames; sending beyond it ends the connection.
 */
#ifndef SBX_GPROTO_H
#define SBX_GPROTO_H

#include <stddef.h>
#include <stdint.h>

#include "limits.h"

#define GP_VERSION		1
#define GP_HEADER_BYTES		12
#define GP_FRAME_MAGIC		0xa5
#define GP_FRAME_COST		16
#define GP_MAGIC_BYTES		16
#define GP_NONCE_BYTES		16
#define GP_SYNC_BYTES		(GP_MAGIC_BYTES + GP_NONCE_BYTES)
#define GP_PORT_NAME		"org.sandboxd.agent.0"	/* virtio-serial */

/* First byte is nowhere else in it: a mismatch never has to look back. */
#define GP_MAGIC	"\x93sandboxd-sync\r\n"

enum gp_type {
	GP_HELLO	= 0x01,	/* both; gp_hello */
	GP_CONFIG	= 0x02,	/* to guest; records, see gp_config_tag */
	GP_CONFIG_DONE	= 0x03,	/* to host; u32 errno (0: all applied), text */
	GP_PING		= 0x04,	/* both; 8 bytes */
	GP_PONG		= 0x05,	/* both; the same 8 bytes */
	GP_OPEN		= 0x10,	/* to guest; u8 kind (gp_kind) */
	GP_ARGS		= 0x11,	/* to guest; a piece of the stream's records */
	GP_START	= 0x12,	/* to guest; records are complete: begin */
	GP_STARTED	= 0x13,	/* to host; u32 pid */
	GP_REFUSED	= 0x14,	/* to host; u8 stage, u32 errno; stream is closed */
	GP_DATA		= 0x15,	/* both; flags: channel */
	GP_EOF		= 0x16,	/* both; flags: channel */
	GP_CREDIT	= 0x17,	/* both; u32 bytes more */
	GP_SIGNAL	= 0x18,	/* to guest; u8 signal number, u8 whole tree */
	GP_RESIZE	= 0x19,	/* to guest; u16 columns, u16 rows */
	GP_CLOSE	= 0x1a,	/* to guest; give up: kill the tree.  EXITED follows */
	GP_EXITED	= 0x1b	/* to host; gp_exited; stream is closed */
};

enum gp_kind { GP_KIND_EXEC = 1 };

enum gp_channel { GP_STDIN = 0, GP_STDOUT = 1, GP_STDERR = 2 };

/* Where a start failed. */
enum gp_stage {
	GP_STAGE_RECORDS = 1,	/* malformed, too long, no argv */
	GP_STAGE_USER = 2,
	GP_STAGE_CWD = 3,
	GP_STAGE_EXEC = 4,	/* ENOENT: 127, else 126 by chroot(1)'s custom */
	GP_STAGE_RESOURCES = 5	/* fork, pipes, cgroup, too many streams */
};

/*
 * Records, in CONFIG and in an exec stream's ARGS: tag u8, length u32, bytes.
 * Unknown tags are refused.
 */
enum gp_exec_tag {
	GP_EXEC_ARG	= 'a',	/* one argv element, in order; at least one */
	GP_EXEC_ENV	= 'e',	/* "KEY=value"; the later of two wins */
	GP_EXEC_CWD	= 'd',	/* absolute or relative to the user's home */
	GP_EXEC_USER	= 'u',	/* name, or uid[:gid] */
	GP_EXEC_TIMEOUT	= 't',	/* u64, ms, > 0; then the tree is killed */
	GP_EXEC_FLAGS	= 'f'	/* u32 of gp_exec_flags */
};
enum gp_exec_flags {
	GP_EXEC_STDIN	= 0x1,	/* a pipe; otherwise /dev/null */
	GP_EXEC_TTY	= 0x2	/* a pty: stdout carries all output */
};
enum gp_config_tag {
	GP_CONFIG_HOSTNAME = 'h',
	GP_CONFIG_ADDRESS = 'a',	/* "10.0.0.2/30" */
	GP_CONFIG_GATEWAY = 'g',	/* "10.0.0.1" */
	GP_CONFIG_MAC	= 'm',		/* "02:53:..." */
	GP_CONFIG_MTU	= 'M',		/* u16 */
	GP_CONFIG_DNS	= 'd',		/* one resolver address; up to three */
	GP_CONFIG_TIME	= 't',		/* u64, ns since 1970 UTC: set the clock */
	GP_CONFIG_ENTROPY = 'r',	/* up to 64 bytes, credited to the pool */
	GP_CONFIG_MACHINE_ID = 'i'	/* 32 hex digits */
};

struct gp_frame {
	uint8_t		 type;
	uint16_t	 flags;
	uint32_t	 stream;
	uint32_t	 len;
	const uint8_t	*payload;	/* borrowed, until the callback returns */
};

enum gp_error {
	GP_OK = 0,
	GP_E_MAGIC = -1,	/* a frame does not start where it should */
	GP_E_TYPE = -2,		/* unknown, or not for this side */
	GP_E_LENGTH = -3,	/* over GP_PAYLOAD_MAX, or wrong for the type */
	GP_E_STREAM = -4,	/* 0 where a stream is needed, or the reverse */
	GP_E_VALUE = -5		/* a field out of range */
};
const char	*gp_strerror(int);

enum gp_side { GP_TO_GUEST, GP_TO_HOST };

/* Writes GP_HEADER_BYTES. */
void	gp_put_header(uint8_t *, uint8_t type, uint16_t flags, uint32_t stream,
	    uint32_t len);
/*
 * Reads a header for the receiving side and checks what can be checked without
 * the payload: type and direction, stream, flags, and the length that its type
 * has.  Returns a gp_error.
 */
int	gp_get_header(const uint8_t *, enum gp_side, struct gp_frame *);
/*
 * How many of these bytes one DATA or ARGS frame of the host may carry: at most
 * GP_PAYLOAD_MAX, and no whole GP_MAGIC.  0 only for 0 bytes.
 */
size_t	gp_frame_room(const uint8_t *, size_t);

/* Writes GP_SYNC_BYTES. */
void	gp_put_sync(uint8_t *, const uint8_t *nonce);

/* Looks for a sync record in a stream of bytes, in pieces of any size. */
struct gp_scan {
	unsigned int	 matched;		/* bytes of magic and nonce so far */
	uint8_t		 nonce[GP_NONCE_BYTES];
};
/*
 * Returns 1 when a record was completed; *used is then the number of bytes up
 * to its end (the rest is for after the sync).  Else 0 and *used is len.
 */
int	gp_scan(struct gp_scan *, const uint8_t *, size_t len, size_t *used);

/* Cuts a stream of bytes into frames. */
struct gp_reader {
	enum gp_side	 side;
	size_t		 have;
	uint8_t		 buf[GP_HEADER_BYTES + GP_PAYLOAD_MAX];
};
/* Returns 0 to go on; anything else stops gp_reader_feed() with that value. */
typedef int	(*gp_frame_cb)(const struct gp_frame *, void *);
void	gp_reader_init(struct gp_reader *, enum gp_side);
/*
 * Feeds bytes; calls back for each frame that is complete.  Returns 0, a
 * gp_error, or what the callback returned.
 */
int	gp_reader_feed(struct gp_reader *, const uint8_t *, size_t, gp_frame_cb,
	    void *);

/* Records.  gp_record_next: 1 a record, 0 the end, -1 malformed. */
struct gp_record {
	uint8_t		 tag;
	uint32_t	 len;
	const uint8_t	*data;
};
int	gp_record_next(const uint8_t **, size_t *left, struct gp_record *);
/* Writes the 5-byte head of a record. */
#define GP_RECORD_HEAD	5
void	gp_put_record_head(uint8_t *, uint8_t tag, uint32_t len);

/* Fixed payloads: writers return the length, readers a gp_error. */
struct gp_hello {
	uint16_t	 version_min;	/* guest: both are the version it chose */
	uint16_t	 version_max;
	uint8_t		 boot_id[16];	/* guest's; zero from the host */
	uint64_t	 uptime_ms;	/* guest's */
};
#define GP_HELLO_BYTES	28
size_t	gp_put_hello(uint8_t *, const struct gp_hello *);
int	gp_get_hello(const struct gp_frame *, struct gp_hello *);

struct gp_exited {
	uint8_t		 signaled;	/* code is a signal number */
	uint8_t		 timed_out;
	uint8_t		 oom_killed;
	uint32_t	 code;
	uint64_t	 duration_us;
	uint64_t	 stdout_bytes;	/* that the command wrote and we read */
	uint64_t	 stderr_bytes;
};
#define GP_EXITED_BYTES	31
size_t	gp_put_exited(uint8_t *, const struct gp_exited *);
int	gp_get_exited(const struct gp_frame *, struct gp_exited *);

void		gp_put_u16(uint8_t *, uint16_t);
void		gp_put_u32(uint8_t *, uint32_t);
void		gp_put_u64(uint8_t *, uint64_t);
uint16_t	gp_get_u16(const uint8_t *);
uint32_t	gp_get_u32(const uint8_t *);
uint64_t	gp_get_u64(const uint8_t *);

#endif
