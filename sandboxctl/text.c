/* SPDX-License-Identifier: ISC */
/*
 * Everything that sandboxctl itself writes: messages, tables, JSON.  What comes
 * from the daemon (names, details) may hold anything and is made safe here.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "ctl.h"
#include "tty.h"
#include "utf8.h"

int
fault_set(struct fault *f, enum ctl_exit code, const char *fmt, ...)
{
	va_list	 ap;

	f->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	return -1;
}

static uint32_t
code_point(const unsigned char *p, size_t n)
{
	static const unsigned char	 mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t			 c = p[0] & mask[n];
	size_t				 i;

	for (i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* Characters that a terminal may take for commands, or that move others. */
static int
harmless(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return 0;
	if (c == 0x61c || c == 0x200e || c == 0x200f || c == 0x2028 ||
	    c == 0x2029 || c == 0xfeff)
		return 0;
	if ((c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
		return 0;
	/* Private use, tags. */
	return c < 0xe0000;
}

size_t
text_safe(char *out, size_t size, const char *in, size_t len)
{
	const unsigned char	*p = (const unsigned char *)in;
	size_t			 at = 0, n, i = 0, w;
	char			 one[8];

	while (i < len) {
		n = utf8_char(p + i, len - i);
		if (n != 0 && harmless(code_point(p + i, n))) {
			w = n;
			memcpy(one, p + i, n);
		} else if (p[i] == '\n' || p[i] == '\t' || p[i] == '\r') {
			n = 1;
			w = (size_t)snprintf(one, sizeof(one), "\\%c",
			    p[i] == '\n' ? 'n' : p[i] == '\t' ? 't' : 'r');
		} else {
			n = 1;
			w = (size_t)snprintf(one, sizeof(one), "\\x%02x", p[i]);
		}
		if (at + w >= size)
			break;
		memcpy(out + at, one, w);
		at += w;
		i += n;
	}
	out[at] = '\0';
	return at;
}

void
say(const char *fmt, ...)
{
	char	 raw[2048], safe[4096];
	va_list	 ap;

	va_start(ap, fmt);
	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	(void)text_safe(safe, sizeof(safe), raw, strlen(raw));
	/* A raw terminal does not go back to the line's start by itself. */
	(void)fprintf(stderr, "sandboxctl: %s%s\n", safe,
	    tty_is_raw() ? "\r" : "");
}

/* stdout is where results go: without it there is nothing left to do. */
static void
stdout_failed(void)
{
	if (errno == EPIPE)
		_exit(CTL_SIGNAL + SIGPIPE);
	say("stdout: %s", strerror(errno));
	_exit(ctl.command != NULL && ctl.command->runs_guest ? CTL_FAILED :
	    CTL_ERROR);
}

void
text_print(const char *s)
{
	if (fputs(s, stdout) == EOF)
		stdout_failed();
}

void
text_flush(void)
{
	if (fflush(stdout) == EOF)
		stdout_failed();
}

/*
 * What a terminal may obey is legal inside JSON strings; outside of strings it
 * cannot be.  So it is escaped wherever it stands.
 */
void
text_json_line(const char *s, size_t len)
{
	const unsigned char	*p = (const unsigned char *)s;
	uint32_t		 c;
	size_t			 i, n;
	char			 out[16];

	for (i = 0; i < len; i += n) {
		n = utf8_char(p + i, len - i);
		if (n == 0)
			n = 1;
		c = n == 1 ? p[i] : code_point(p + i, n);
		if (harmless(c)) {
			memcpy(out, p + i, n);
			out[n] = '\0';
		} else if (c < 0x10000) {
			(void)snprintf(out, sizeof(out), "\\u%04x", c);
		} else {
			(void)snprintf(out, sizeof(out), "\\u%04x\\u%04x",
			    0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
		}
		text_print(out);
	}
	text_print("\n");
}

void
text_json(struct json_object *o)
{
	const char	*s;
	size_t		 len;

	s = json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN |
	    JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	text_json_line(s, len);
}

/* Columns on the screen, nearly: one for each character. */
static size_t
width(const char *s)
{
	size_t	 n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

void
table_cell(struct table *t, const char *s)
{
	char	 safe[256], **more;
	size_t	 col, size;

	if (t->ncells == t->size) {
		size = t->size == 0 ? 64 : 2 * t->size;
		more = reallocarray(t->cells, size, sizeof(*more));
		if (more == NULL) {
			say("out of memory");
			exit(CTL_ERROR);
		}
		t->cells = more;
		t->size = size;
	}
	(void)text_safe(safe, sizeof(safe), s, strlen(s));
	if (safe[0] == '\0')
		(void)strcpy(safe, "-");
	t->cells[t->ncells] = strdup(safe);
	if (t->cells[t->ncells] == NULL) {
		say("out of memory");
		exit(CTL_ERROR);
	}
	col = t->ncells++ % t->ncolumns;
	if (width(safe) > t->widths[col])
		t->widths[col] = width(safe);
}

static void
print_row(const struct table *t, const char *const *cells)
{
	size_t	 i, w;

	for (i = 0; i < t->ncolumns; i++) {
		text_print(cells[i]);
		if (i + 1 == t->ncolumns)
			break;
		for (w = width(cells[i]); w < t->widths[i] + 2; w++)
			text_print(" ");
	}
	text_print("\n");
}

void
table_print(struct table *t)
{
	size_t	 i;

	for (i = 0; i < t->ncolumns; i++)
		if (width(t->heads[i]) > t->widths[i] && !ctl.no_header)
			t->widths[i] = width(t->heads[i]);
	if (!ctl.no_header)
		print_row(t, t->heads);
	for (i = 0; i + t->ncolumns <= t->ncells; i += t->ncolumns)
		print_row(t, (const char *const *)t->cells + i);
	for (i = 0; i < t->ncells; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->ncells = t->size = 0;
}

const char *
text_duration(int64_t s)
{
	static char	 buf[2][32];
	static int	 turn;
	const char	*unit = "s";
	char		*out = buf[turn++ % 2];

	if (s < 0)
		s = 0;
	if (s >= 2 * 86400) {
		unit = "d";
		s /= 86400;
	} else if (s >= 2 * 3600) {
		unit = "h";
		s /= 3600;
	} else if (s >= 120) {
		unit = "min";
		s /= 60;
	}
	(void)snprintf(out, sizeof(buf[0]), "%lld %s", (long long)s, unit);
	return out;
}

static void
member_line(const char *prefix, const char *name, struct json_object *v)
{
	const char	*text;
	char		 safe[8192];

	text = v == NULL ? "" : json_object_is_type(v, json_type_string) ?
	    json_object_get_string(v) : json_object_to_json_string_ext(v,
	    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	(void)text_safe(safe, sizeof(safe), prefix, strlen(prefix));
	text_print(safe);
	(void)text_safe(safe, sizeof(safe), name, strlen(name));
	text_print(safe);
	text_print(": ");
	(void)text_safe(safe, sizeof(safe), text, strlen(text));
	text_print(safe);
	text_print("\n");
}

void
text_members(struct json_object *o)
{
	char	 prefix[128];
	size_t	 i;

	json_object_object_foreach(o, name, v) {
		if (json_object_is_type(v, json_type_array)) {
			for (i = 0; i < json_object_array_length(v); i++)
				member_line("", name,
				    json_object_array_get_idx(v, i));
			continue;
		}
		if (!json_object_is_type(v, json_type_object)) {
			member_line("", name, v);
			continue;
		}
		(void)snprintf(prefix, sizeof(prefix), "%s.", name);
		json_object_object_foreach(v, inner, value)
			member_line(prefix, inner, value);
	}
}
