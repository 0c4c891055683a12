/* SPDX-License-Identifier: ISC */
/*
 * The character classes and lists of HTTP (RFC 9110, 5.6) and URIs (RFC 3986),
 * shared by the reader of requests, of their fields, and of paths.  Strings end
 * with NUL; their bytes are a client's.
 */
#ifndef SBX_HTTP_LEX_H
#define SBX_HTTP_LEX_H

#include <stddef.h>

int	lex_is_hex(char);
/* tchar: what names, methods and tokens are made of. */
int	lex_is_tchar(char);
/* Length of the token at the start, 0 if there is none. */
size_t	lex_token(const char *);
/* Is there a pchar (RFC 3986, 3.3; "%" and two digits, too) at the start? */
int	lex_is_pchar(const char *, size_t);
/* host [ ":" port ], in Host and in absolute-form targets (RFC 9112, 3.2). */
int	lex_is_authority(const char *, size_t);
/*
 * #token: a comma-separated list, empty elements allowed.  Is it one; and does
 * it have this element (without case)?
 */
int	lex_list_valid(const char *);
int	lex_list_has(const char *, const char *);

#endif
