/* SPDX-License-Identifier: ISC */
/* objs: libs: -lbsd options: -max_len=16500 */
/*
 * The unpacker of internal messages: any bytes give a message or an error, and
 * what is accepted packs to the very same bytes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "id.h"
#include "msg.h"

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* Every text ends within its bound, every id is one. */
static void
check_fields(const struct msg *m)
{
	const struct msg_info	*info = &msg_infos[m->type];
	const struct msg_field	*f;
	const uint8_t		*at;
	unsigned int		 i;
	uint16_t		 len;

	for (i = 0; i < info->nfields; i++) {
		f = &info->fields[i];
		at = (const uint8_t *)&m->body + f->offset;
		switch (f->kind) {
		case MF_STR:
			if (memchr(at, '\0', (size_t)f->max + 1) == NULL)
				abort();
			break;
		case MF_ID:
			if (!id_valid((const char *)at))
				abort();
			break;
		case MF_BYTES:
			memcpy(&len, (const uint8_t *)&m->body + f->len_offset,
			    sizeof(len));
			if (len > f->max)
				abort();
			break;
		case MF_U8:
		case MF_U16:
		case MF_U32:
		case MF_U64:
			break;
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct msg	 m;
	static uint8_t		 again[MSG_MAX_BYTES];
	int			 r;

	r = msg_unpack(&m, data, len);
	if (r != MSG_OK) {
		if (r > 0 || msg_strerror(r)[0] == '\0')
			abort();
		return 0;
	}
	if (m.fd != -1 || m.type <= M_NONE || m.type >= M_COUNT)
		abort();
	check_fields(&m);
	r = msg_pack(again, m.type, m.flags, m.request, &m.body);
	if (r < 0 || (size_t)r != len || memcmp(again, data, len) != 0)
		abort();
	return 0;
}
