/* SPDX-License-Identifier: ISC */
/*
 * Fills a message's struct by its field table, for tests.
 */
#ifndef SBX_MSG_FILL_H
#define SBX_MSG_FILL_H

#include <string.h>

#include "msg.h"

enum fill { FILL_EMPTY, FILL_SOME, FILL_FULL };

static inline void
fill_int(uint8_t *at, unsigned int bytes, enum fill how, unsigned int salt)
{
	unsigned int	 i;

	for (i = 0; i < bytes; i++)
		at[i] = how == FILL_EMPTY ? 0 : how == FILL_FULL ? 0xff :
		    (uint8_t)(salt * 37 + i + 1);
}

/* Writes every member; integers get all bits, text all its length. */
static inline void
msg_fill(enum msg_type type, union msg_body *body, enum fill how)
{
	const struct msg_info	*info = &msg_infos[type];
	const struct msg_field	*f;
	uint8_t			*at;
	unsigned int		 i, j;
	uint16_t		 len;

	memset(body, 0, sizeof(*body));
	for (i = 0; i < info->nfields; i++) {
		f = &info->fields[i];
		at = (uint8_t *)body + f->offset;
		len = how == FILL_EMPTY ? 0 : how == FILL_FULL ? f->max :
		    (uint16_t)(f->max / 2);
		switch (f->kind) {
		case MF_U8:
			fill_int(at, 1, how, i);
			break;
		case MF_U16:
			fill_int(at, 2, how, i);
			break;
		case MF_U32:
			fill_int(at, 4, how, i);
			break;
		case MF_U64:
			fill_int(at, 8, how, i);
			break;
		case MF_ID:
			memcpy(at, "sb-abcdefgh234567zz", 20);
			break;
		case MF_STR:
			for (j = 0; j < len; j++)
				at[j] = (uint8_t)(how == FILL_FULL ?
				    255 - j % 255 : 'a' + j % 26);
			break;
		case MF_BYTES:
			for (j = 0; j < len; j++)
				at[j] = (uint8_t)(j * 7);
			memcpy((uint8_t *)body + f->len_offset, &len,
			    sizeof(len));
			break;
		}
	}
}

#endif
