/* SPDX-License-Identifier: ISC */
/*
 * Base64 (RFC 4648, section 4): with padding, no line breaks, and strict when
 * reading: one text for each byte string.
 */
#ifndef SBX_BASE64_H
#define SBX_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Characters for so many bytes, without a NUL. */
#define BASE64_LEN(n)		(((n) + 2) / 3 * 4)
/* Bytes that so many characters can hold at most. */
#define BASE64_BYTES(n)		((n) / 4 * 3)

/*
 * Writes BASE64_LEN(len) characters and a NUL; returns the number of
 * characters.  A long input can go in pieces when all but the last are
 * multiples of 3 bytes.
 */
size_t	base64_encode(char *, const void *, size_t len);
/*
 * Writes at most BASE64_BYTES(len) bytes (may be the same memory) and their
 * number.  0, or -1: wrong character, length, padding, or bits that are not 0.
 */
int	base64_decode(void *, size_t *outlen, const char *, size_t len);

#endif
