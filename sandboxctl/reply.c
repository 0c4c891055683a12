/* SPDX-License-Identifier: ISC */
/*
 * Reading the head of a reply (RFC 9112), line by line: what sandboxd has no
 * reason to send is refused, not guessed at.  Pure functions over text.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client.h"

int
reply_status_line(struct reply *r, const char *s, const char **why)
{
	int	 i;

	*why = "its status line is malformed";
	if (strncmp(s, "HTTP/1.1 ", 9) != 0)
		return -1;
	for (i = 9; i < 12; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		r->status = 10 * r->status + (s[i] - '0');
	}
	if (r->status < 100 || r->status > 599 ||
	    (s[12] != ' ' && s[12] != '\0'))
		return -1;
	return 0;
}

static int
token_char(unsigned char c)
{
	return c > 0x20 && c < 0x7f && strchr("\"(),/:;<=>?@[\\]{}", c) == NULL;
}

static int
decimal(const char *s, uint64_t *out)
{
	uint64_t	 n = 0;

	if (*s == '\0' || strlen(s) > 18)
		return -1;
	for (; *s != '\0'; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		n = 10 * n + (uint64_t)(*s - '0');
	}
	*out = n;
	return 0;
}

static int
copy_once(char *to, size_t size, const char *value)
{
	if (to[0] != '\0' || value[0] == '\0' || strlen(value) >= size)
		return -1;
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int
take_field(struct reply *r, const char *name, const char *value)
{
	if (strcasecmp(name, "content-length") == 0) {
		if (r->has_length || r->chunked ||
		    decimal(value, &r->length) == -1)
			return -1;
		r->has_length = 1;
	} else if (strcasecmp(name, "transfer-encoding") == 0) {
		if (r->has_length || r->chunked ||
		    strcasecmp(value, "chunked") != 0)
			return -1;
		r->chunked = 1;
	} else if (strcasecmp(name, "upgrade") == 0) {
		r->upgrade = strcasecmp(value, "websocket") == 0;
	} else if (strcasecmp(name, "connection") == 0) {
		r->connection_upgrade = strcasecmp(value, "upgrade") == 0;
	} else if (strcasecmp(name, "sec-websocket-extensions") == 0) {
		r->extensions = 1;
	} else if (strcasecmp(name, "sec-websocket-accept") == 0) {
		return copy_once(r->accept, sizeof(r->accept), value);
	} else if (strcasecmp(name, "sec-websocket-protocol") == 0) {
		return copy_once(r->protocol, sizeof(r->protocol), value);
	}
	return 0;
}

int
reply_field(struct reply *r, const char *line, const char **why)
{
	char	 name[64], value[1024];
	size_t	 n = 0, len;

	*why = "one of its header fields is malformed";
	while (token_char((unsigned char)line[n]))
		n++;
	if (n == 0 || line[n] != ':')
		return -1;
	if (n >= sizeof(name))
		return 0;	/* none that we know */
	memcpy(name, line, n);
	name[n] = '\0';
	line += n + 1;
	line += strspn(line, " \t");
	len = strlen(line);
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	for (n = 0; n < len; n++)
		if (((unsigned char)line[n] < 0x20 && line[n] != '\t') ||
		    line[n] == 0x7f)
			return -1;
	if (len >= sizeof(value))
		len = sizeof(value) - 1;	/* known ones are far shorter */
	memcpy(value, line, len);
	value[len] = '\0';
	*why = "its header contradicts itself or has an impossible value";
	return take_field(r, name, value);
}

int
reply_chunk_size(const char *s, uint64_t max, uint64_t *out)
{
	static const char	 digits[] = "0123456789abcdef";
	const char		*d;
	uint64_t		 n = 0;
	int			 count = 0;

	for (; *s != '\0' && *s != ';'; s++, count++) {
		d = strchr(digits, *s >= 'A' && *s <= 'F' ? *s + 32 : *s);
		if (d == NULL || count == 8)
			return -1;
		n = n << 4 | (uint64_t)(d - digits);
	}
	if (count == 0 || n > max)
		return -1;
	*out = n;
	return 0;
}

void
reply_clear(struct reply *r)
{
	free(r->body);
	memset(r, 0, sizeof(*r));
}
