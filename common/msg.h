/* SPDX-License-Identifier: ISC */
/*
 * Internal messages as bytes: packing and unpacking by the field tables made
 * from msg.def.  Pure functions, no I/O (imsg.h moves them).
 *
 * On the wire (little endian): type u16, flags u16, length u32 (header
 * included), request id u64, then the fields in order; a string or bytes field
 * is a u16 length and that many bytes.  One message is one SOCK_SEQPACKET
 * datagram.
 */
#ifndef SBX_MSG_H
#define SBX_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "limits.h"
#include "msg_types.h"
#include "proc.h"

#define MSGF_ANSWER	0x0001	/* request id is that of the request */
#define MSGF_MORE	0x0002	/* further answers to the same request follow */

enum msg_field_kind { MF_U8, MF_U16, MF_U32, MF_U64, MF_STR, MF_BYTES, MF_ID };
enum msg_phase { MP_SETUP, MP_RUN, MP_ANY, MP_ANSWER };

struct msg_field {
	const char		*name;
	enum msg_field_kind	 kind;
	uint16_t		 max;		/* bytes, of str, bytes and id */
	size_t			 offset;
	size_t			 len_offset;	/* of bytes */
};

struct msg_info {
	const char		*name;
	enum proc_id		 from;
	enum proc_id		 to;
	enum msg_phase		 phase;
	int			 fd;		/* exactly one descriptor, or none */
	unsigned int		 nfields;
	const struct msg_field	*fields;
	size_t			 size;		/* of its struct */
};

struct msg_pair {
	enum msg_type		 request;
	enum msg_type		 answer;
};

extern const struct msg_info msg_infos[M_COUNT];
extern const struct msg_pair msg_pairs[];	/* ends with M_NONE */

struct msg {
	enum msg_type	 type;
	uint16_t	 flags;
	uint64_t	 request;
	int		 fd;		/* -1, or ours until taken */
	union msg_body	 body;
};

enum msg_error {
	MSG_OK = 0,
	MSG_E_SHORT = -1,	/* fewer bytes than a header or a field */
	MSG_E_LENGTH = -2,	/* header's length is not the datagram's */
	MSG_E_TYPE = -3,	/* no such type, or flags that do not fit */
	MSG_E_FIELD = -4,	/* over-long, NUL in text, malformed id */
	MSG_E_TRAILING = -5,	/* bytes after the last field */
	MSG_E_SPACE = -6	/* does not fit in MSG_MAX_BYTES */
};

/*
 * Writes header and body of the type into buf (MSG_MAX_BYTES).  Returns the
 * length or a negative msg_error; body is the type's own struct.
 */
int		 msg_pack(uint8_t *, enum msg_type, uint16_t, uint64_t,
		    const void *);
/* Total: fills the msg (fd -1) or returns a negative msg_error. */
int		 msg_unpack(struct msg *, const uint8_t *, size_t);
/* "M_..." or "M_?". */
const char	*msg_name(unsigned int);
const char	*msg_strerror(int);
/* Is `answer` listed as an answer of `request`? */
int		 msg_answers(enum msg_type, enum msg_type);
/* May this type go from one process to the other in this phase? */
int		 msg_permitted(enum msg_type, enum proc_id, enum proc_id,
		    enum msg_phase);

#endif
