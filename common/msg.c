/* SPDX-License-Identifier: ISC */
/*
 * Packing and unpacking of internal messages.  Linked into all four daemon
 * processes; the bytes may come from a sibling that has been taken over, so
 * unpacking trusts nothing and is total.
 */
#include <string.h>

#include "id.h"
#include "msg.h"

struct cursor {
	uint8_t		*p;
	size_t		 left;
	int		 error;
};

static void
put_int(struct cursor *c, uint64_t v, unsigned int bytes)
{
	unsigned int	 i;

	if (c->left < bytes) {
		c->error = MSG_E_SPACE;
		return;
	}
	for (i = 0; i < bytes; i++)
		c->p[i] = (uint8_t)(v >> (8 * i));
	c->p += bytes;
	c->left -= bytes;
}

static void
put_bytes(struct cursor *c, const void *data, size_t len)
{
	put_int(c, len, 2);
	if (c->error != 0 || c->left < len) {
		c->error = MSG_E_SPACE;
		return;
	}
	memcpy(c->p, data, len);
	c->p += len;
	c->left -= len;
}

static uint64_t
load_int(const uint8_t *p, unsigned int bytes)
{
	uint64_t	 v = 0;

	while (bytes-- > 0)
		v = v << 8 | p[bytes];
	return v;
}

static uint64_t
get_int(struct cursor *c, unsigned int bytes)
{
	uint64_t	 v;

	if (c->left < bytes) {
		c->error = MSG_E_SHORT;
		return 0;
	}
	v = load_int(c->p, bytes);
	c->p += bytes;
	c->left -= bytes;
	return v;
}

static size_t
get_bytes(struct cursor *c, uint8_t *out, size_t max)
{
	size_t	 len;

	len = get_int(c, 2);
	if (c->error != 0)
		return 0;
	if (len > max) {
		c->error = MSG_E_FIELD;
		return 0;
	}
	if (c->left < len) {
		c->error = MSG_E_SHORT;
		return 0;
	}
	memcpy(out, c->p, len);
	c->p += len;
	c->left -= len;
	return len;
}

static const unsigned int int_bytes[] = {
	[MF_U8] = 1, [MF_U16] = 2, [MF_U32] = 4, [MF_U64] = 8
};

static void
pack_field(struct cursor *c, const struct msg_field *f, const uint8_t *body)
{
	const uint8_t	*at = body + f->offset;
	uint16_t	 len;
	uint64_t	 v;

	switch (f->kind) {
	case MF_U8:
	case MF_U16:
	case MF_U32:
	case MF_U64:
		/* Members have their field's own width; the host is LE too. */
		v = load_int(at, int_bytes[f->kind]);
		put_int(c, v, int_bytes[f->kind]);
		break;
	case MF_STR:
	case MF_ID:
		len = (uint16_t)strnlen((const char *)at, (size_t)f->max + 1);
		if (len > f->max || (f->kind == MF_ID &&
		    !id_valid((const char *)at)))
			c->error = MSG_E_FIELD;
		else
			put_bytes(c, at, len);
		break;
	case MF_BYTES:
		memcpy(&len, body + f->len_offset, sizeof(len));
		if (len > f->max)
			c->error = MSG_E_FIELD;
		else
			put_bytes(c, at, len);
		break;
	}
}

static void
unpack_field(struct cursor *c, const struct msg_field *f, uint8_t *body)
{
	uint8_t		*at = body + f->offset;
	uint16_t	 len;
	uint64_t	 v;

	switch (f->kind) {
	case MF_U8:
	case MF_U16:
	case MF_U32:
	case MF_U64:
		v = get_int(c, int_bytes[f->kind]);
		memcpy(at, &v, int_bytes[f->kind]);
		break;
	case MF_STR:
	case MF_ID:
		len = (uint16_t)get_bytes(c, at, f->max);
		at[len] = '\0';
		if (c->error == 0 && (memchr(at, '\0', len) != NULL ||
		    (f->kind == MF_ID && !id_valid((char *)at))))
			c->error = MSG_E_FIELD;
		break;
	case MF_BYTES:
		len = (uint16_t)get_bytes(c, at, f->max);
		memcpy(body + f->len_offset, &len, sizeof(len));
		break;
	}
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    "integer members are loaded as little endian");

int
msg_pack(uint8_t *buf, enum msg_type type, uint16_t flags, uint64_t request,
    const void *body)
{
	const struct msg_info	*info = &msg_infos[type];
	struct cursor		 c = { buf, MSG_MAX_BYTES, 0 };
	struct cursor		 head;
	unsigned int		 i;
	size_t			 len;

	put_int(&c, type, 2);
	put_int(&c, flags, 2);
	put_int(&c, 0, 4);
	put_int(&c, request, 8);
	for (i = 0; i < info->nfields && c.error == 0; i++)
		pack_field(&c, &info->fields[i], body);
	if (c.error != 0)
		return c.error;
	len = MSG_MAX_BYTES - c.left;
	head = (struct cursor){ buf + 4, 4, 0 };
	put_int(&head, len, 4);
	return (int)len;
}

int
msg_unpack(struct msg *m, const uint8_t *buf, size_t len)
{
	/* Nothing is written through this cursor. */
	struct cursor		 c = { (uint8_t *)(uintptr_t)buf, len, 0 };
	const struct msg_info	*info;
	unsigned int		 i, type;

	if (len < MSG_HEADER_BYTES)
		return MSG_E_SHORT;
	type = (unsigned int)get_int(&c, 2);
	m->flags = (uint16_t)get_int(&c, 2);
	if (get_int(&c, 4) != len || len > MSG_MAX_BYTES)
		return MSG_E_LENGTH;
	m->request = get_int(&c, 8);
	m->fd = -1;
	if (type == M_NONE || type >= M_COUNT)
		return MSG_E_TYPE;
	m->type = (enum msg_type)type;
	info = &msg_infos[type];
	if ((m->flags & ~(MSGF_ANSWER | MSGF_MORE)) != 0 ||
	    ((m->flags & MSGF_ANSWER) != 0) != (info->phase == MP_ANSWER))
		return MSG_E_TYPE;
	memset(&m->body, 0, info->size);
	for (i = 0; i < info->nfields && c.error == 0; i++)
		unpack_field(&c, &info->fields[i], (uint8_t *)&m->body);
	if (c.error != 0)
		return c.error;
	return c.left == 0 ? MSG_OK : MSG_E_TRAILING;
}

const char *
msg_name(unsigned int type)
{
	return type > M_NONE && type < M_COUNT ? msg_infos[type].name : "M_?";
}

const char *
msg_strerror(int e)
{
	switch (e) {
	case MSG_E_SHORT:
		return "too short";
	case MSG_E_LENGTH:
		return "length does not match";
	case MSG_E_TYPE:
		return "unknown type or flags";
	case MSG_E_FIELD:
		return "bad field";
	case MSG_E_TRAILING:
		return "trailing bytes";
	case MSG_E_SPACE:
		return "too long for a message";
	default:
		return "no error";
	}
}

int
msg_answers(enum msg_type request, enum msg_type answer)
{
	const struct msg_pair	*p;

	for (p = msg_pairs; p->request != M_NONE; p++)
		if (p->request == request && p->answer == answer)
			return 1;
	return 0;
}

int
msg_permitted(enum msg_type type, enum proc_id from, enum proc_id to,
    enum msg_phase phase)
{
	const struct msg_info	*info = &msg_infos[type];

	if (info->from != from || info->to != to)
		return 0;
	return info->phase == phase || info->phase == MP_ANY ||
	    (info->phase == MP_ANSWER && phase == MP_RUN);
}
