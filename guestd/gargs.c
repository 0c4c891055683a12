/* SPDX-License-Identifier: ISC */
/*
 * An exec stream's records: argv, environment and the rest, checked and cut in
 * place.  Pure; the bytes come from the host and are trusted in nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guestd.h"

struct var {
	char	*text;
	size_t	 at;		/* its place among the others */
};

static int
is_end(char c)
{
	return c == '=';
}

/* By name, equal names in their order. */
static int
var_compare(const void *va, const void *vb)
{
	const struct var	*x = va, *y = vb;
	const char		*a = x->text, *b = y->text;

	while (*a == *b && !is_end(*a)) {
		a++;
		b++;
	}
	if (*a != *b) {
		/* The shorter of two names is the lesser. */
		if (is_end(*a) || is_end(*b))
			return is_end(*a) ? -1 : 1;
		return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
	}
	return x->at < y->at ? -1 : 1;
}

static int
same_name(const struct var *x, const struct var *y)
{
	size_t	 len = strcspn(x->text, "=") + 1;

	return strncmp(x->text, y->text, len) == 0;
}

/*
 * The last of several values for one name wins, in the first one's place.
 * Sorted, not hashed: names that were chosen to collide cost nothing more.
 */
static int
env_unique(struct exec_args *a)
{
	struct var	*v;
	size_t		 count = a->env_count, i, first = 0;

	if (count == 0)
		return 0;
	v = calloc(count, sizeof(*v));
	if (v == NULL)
		return ENOMEM;
	for (i = 0; i < count; i++) {
		v[i].text = a->envp[i];
		v[i].at = i;
	}
	qsort(v, count, sizeof(*v), var_compare);
	for (i = 1; i < count; i++) {
		if (!same_name(&v[first], &v[i])) {
			first = i;
			continue;
		}
		a->envp[v[first].at] = v[i].text;
		a->envp[v[i].at] = NULL;
	}
	free(v);
	a->env_count = 0;
	for (i = 0; i < count; i++)
		if (a->envp[i] != NULL)
			a->envp[a->env_count++] = a->envp[i];
	for (i = a->env_count; i < count; i++)
		a->envp[i] = NULL;
	return 0;
}

static int
env_add(struct exec_args *a, char *var)
{
	const char	*eq = strchr(var, '=');

	if (eq == NULL || eq == var)
		return EINVAL;
	a->envp[a->env_count++] = var;
	return 0;
}

static int
number_set(struct exec_args *a, const struct gp_record *r)
{
	if (r->tag == GP_EXEC_TIMEOUT) {
		if (r->len != 8 || a->timeout_ms != 0)
			return EINVAL;
		a->timeout_ms = gp_get_u64(r->data);
		return a->timeout_ms == 0 ? EINVAL : 0;
	}
	if (r->len != 4 || a->flags != 0)
		return EINVAL;
	a->flags = gp_get_u32(r->data);
	return (a->flags & ~(uint32_t)(GP_EXEC_STDIN | GP_EXEC_TTY)) != 0 ?
	    EINVAL : 0;
}

static int
string_set(struct exec_args *a, uint8_t tag, char *s, size_t *argc)
{
	const char	**one;

	if (tag == GP_EXEC_ARG) {
		a->argv[(*argc)++] = s;
		return 0;
	}
	if (tag == GP_EXEC_ENV)
		return env_add(a, s);
	one = tag == GP_EXEC_CWD ? &a->cwd : &a->user;
	if (*one != NULL || *s == '\0')
		return EINVAL;
	*one = s;
	return 0;
}

/* Counts, and refuses what no later step has to look at again. */
static int
records_check(const uint8_t *p, size_t left, size_t *argc, size_t *envc)
{
	struct gp_record	 r;
	int			 more;

	*argc = *envc = 0;
	while ((more = gp_record_next(&p, &left, &r)) == 1) {
		switch (r.tag) {
		case GP_EXEC_ARG:
			(*argc)++;
			break;
		case GP_EXEC_ENV:
			(*envc)++;
			break;
		case GP_EXEC_CWD:
		case GP_EXEC_USER:
			break;
		case GP_EXEC_TIMEOUT:
		case GP_EXEC_FLAGS:
			continue;
		default:
			return EINVAL;
		}
		if (r.len > GP_STRING_MAX)
			return E2BIG;
		if (r.len > 0 && memchr(r.data, '\0', r.len) != NULL)
			return EINVAL;
	}
	return more != 0 || *argc == 0 ? EINVAL : 0;
}

int
args_parse(uint8_t *buf, size_t len, struct exec_args *a)
{
	struct gp_record	 r;
	const uint8_t		*p = buf;
	size_t			 argc, envc;
	char			*s;
	int			 error;

	memset(a, 0, sizeof(*a));
	error = records_check(buf, len, &argc, &envc);
	if (error != 0)
		return error;
	a->argv = calloc(argc + 1, sizeof(*a->argv));
	a->envp = calloc(envc + GARGS_DEFAULTS + 1, sizeof(*a->envp));
	error = a->argv == NULL || a->envp == NULL ? ENOMEM : 0;
	argc = 0;
	while (error == 0 && gp_record_next(&p, &len, &r) == 1) {
		if (r.tag == GP_EXEC_TIMEOUT || r.tag == GP_EXEC_FLAGS) {
			error = number_set(a, &r);
			continue;
		}
		/* Moved over its own head, which leaves room for the NUL. */
		s = (char *)buf + (r.data - buf) - 1;
		memmove(s, r.data, r.len);
		s[r.len] = '\0';
		error = string_set(a, r.tag, s, &argc);
	}
	if (error == 0)
		error = env_unique(a);
	if (error != 0)
		args_free(a);
	return error;
}

void
args_free(struct exec_args *a)
{
	free(a->argv);
	free(a->envp);
	a->argv = a->envp = NULL;
}
