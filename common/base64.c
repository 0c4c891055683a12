/* SPDX-License-Identifier: ISC */
/*
 * Base64 (RFC 4648, section 4).  Decoding is exact: the bits that padding
 * leaves over must be 0 (section 3.5), and nothing outside the alphabet is
 * skipped (section 3.3).
 */
#include "base64.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t
base64_encode(char *out, const void *data, size_t len)
{
	const uint8_t	*p = data;
	uint32_t	 v;
	size_t		 i, n = 0;

	for (i = 0; i + 2 < len; i += 3) {
		v = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];
		out[n++] = alphabet[v >> 18];
		out[n++] = alphabet[v >> 12 & 63];
		out[n++] = alphabet[v >> 6 & 63];
		out[n++] = alphabet[v & 63];
	}
	if (i < len) {
		v = (uint32_t)p[i] << 16;
		if (i + 1 < len)
			v |= (uint32_t)p[i + 1] << 8;
		out[n++] = alphabet[v >> 18];
		out[n++] = alphabet[v >> 12 & 63];
		out[n++] = i + 1 < len ? alphabet[v >> 6 & 63] : '=';
		out[n++] = '=';
	}
	out[n] = '\0';
	return n;
}

static int
value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

int
base64_decode(void *out, size_t *outlen, const char *s, size_t len)
{
	uint8_t		*q = out;
	uint32_t	 v;
	size_t		 i, j, pad, n = 0;
	int		 d;

	if (len % 4 != 0)
		return -1;
	for (i = 0; i < len; i += 4) {
		pad = 0;
		if (i + 4 == len && s[i + 3] == '=')
			pad = s[i + 2] == '=' ? 2 : 1;
		v = 0;
		for (j = 0; j < 4; j++) {
			d = j < 4 - pad ? value(s[i + j]) : 0;
			if (d == -1)
				return -1;
			v = v << 6 | (uint32_t)d;
		}
		if ((pad == 1 && (v & 0xff) != 0) ||
		    (pad == 2 && (v & 0xffff) != 0))
			return -1;
		q[n++] = v >> 16;
		if (pad < 2)
			q[n++] = v >> 8 & 0xff;
		if (pad < 1)
			q[n++] = v & 0xff;
	}
	*outlen = n;
	return 0;
}
