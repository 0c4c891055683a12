/* SPDX-License-Identifier: ISC */
/* objs: vmmctl/qmp.o vmmctl/template.o vmmctl/fault.o libs: -ljson-c -lbsd
   options: -max_len=20000 */
/*
 * Fuzzes the reader of QEMU's monitor.  The first byte says how the rest is cut
 * into pieces: whatever they are, the same messages must come out.  The text
 * goes to template.json's reader, too, which shares the JSON parser.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "qmp.h"
#include "template.h"

int		LLVMFuzzerTestOneInput(const uint8_t *, size_t);

struct vmm	vmm;

struct seen {
	unsigned int	 n;
	uint64_t	 hash;
};

static int
see(const struct qmp_msg *m, void *arg)
{
	struct seen	*s = arg;
	const char	*p;

	if (m->kind > QMP_OTHER ||
	    memchr(m->text, '\0', sizeof(m->text)) == NULL ||
	    memchr(m->status, '\0', sizeof(m->status)) == NULL)
		abort();
	s->n++;
	s->hash = s->hash * 31 + (uint64_t)m->kind;
	for (p = m->text; *p != '\0'; p++)
		s->hash = s->hash * 31 + (uint8_t)*p;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct qmp_reader	 one, many;
	struct seen			 a = { 0, 0 }, b = { 0, 0 };
	struct fault			 f;
	const char			*text;
	char				 root[SBX_NAME_MAX + 1];
	size_t				 at, n, step;
	int				 ra, rb = 0;

	if (size < 1)
		return 0;
	step = (size_t)data[0] + 1;
	text = (const char *)data + 1;
	size--;
	one.have = many.have = 0;
	ra = qmp_feed(&one, text, size, see, &a);
	for (at = 0; at < size && rb == 0; at += n) {
		n = size - at < step ? size - at : step;
		rb = qmp_feed(&many, text + at, n, see, &b);
	}
	if (ra != rb || a.n != b.n || a.hash != b.hash)
		abort();
	if (template_parse(text, size, "t", root, sizeof(root), &f) == 0 &&
	    (root[0] == '\0' || strchr(root, '/') != NULL))
		abort();
	return 0;
}
