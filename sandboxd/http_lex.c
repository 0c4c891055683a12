/* SPDX-License-Identifier: ISC */
/*
 * Character classes and token lists (RFC 9110, 5.6; RFC 3986).  Runs in front;
 * the bytes are a client's.  No locale: <ctype.h> is not used.
 */
#include <string.h>
#include <strings.h>

#include "http_lex.h"

static int
is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9');
}

int
lex_is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
	    (c >= 'A' && c <= 'F');
}

int
lex_is_tchar(char c)
{
	return is_alnum(c) ||
	    (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

size_t
lex_token(const char *s)
{
	size_t	 n = 0;

	while (lex_is_tchar(s[n]))
		n++;
	return n;
}

int
lex_is_pchar(const char *s, size_t len)
{
	if (len == 0 || s[0] == '\0')
		return 0;
	if (s[0] == '%')
		return len >= 3 && lex_is_hex(s[1]) && lex_is_hex(s[2]);
	return is_alnum(s[0]) || strchr("-._~!$&'()*+,;=:@", s[0]) != NULL;
}

int
lex_is_authority(const char *s, size_t len)
{
	size_t	 i = 0, port;

	if (len > 0 && s[0] == '[') {
		for (i = 1; i < len && s[i] != ']'; i++)
			if (!lex_is_hex(s[i]) && s[i] != ':' && s[i] != '.')
				return 0;
		if (i < 3 || i >= len)
			return 0;
		i++;
	} else {
		while (i < len && s[i] != ':') {
			if (!lex_is_pchar(s + i, len - i) || s[i] == '@')
				return 0;
			i++;
		}
	}
	if (i == len)
		return 1;
	if (s[i] != ':' || len - i > 6)
		return 0;
	for (port = i + 1; port < len; port++)
		if (s[port] < '0' || s[port] > '9')
			return 0;
	return 1;
}

/* The next element; its length, 0 at the end.  Moves past what follows it. */
static size_t
list_next(const char **p, const char **element)
{
	size_t	 n;

	*p += strspn(*p, ", \t");
	*element = *p;
	n = strcspn(*p, ",");
	*p += n;
	while (n > 0 && ((*element)[n - 1] == ' ' || (*element)[n - 1] == '\t'))
		n--;
	return n;
}

int
lex_list_valid(const char *s)
{
	const char	*e;
	size_t		 n;

	while ((n = list_next(&s, &e)) > 0)
		if (lex_token(e) != n)
			return 0;
	return 1;
}

int
lex_list_has(const char *s, const char *want)
{
	const char	*e;
	size_t		 n;

	while ((n = list_next(&s, &e)) > 0)
		if (n == strlen(want) && strncasecmp(e, want, n) == 0)
			return 1;
	return 0;
}
