/* SPDX-License-Identifier: ISC */
/*
 * An exec stream's records: argv, environment and the rest, checked and cut in
 * place.  Pure; the bytes come from the host and are trusted in nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guestd.h"

/* Where each variable's name was seen: open addressing, at most half full. */
struct names {
	uint32_t	*slot;		/* index in envp + 1, 0: free */
	size_t		 mask;
};

static int
names_init(struct names *n, size_t count)
{
	size_t	 size = 8;

	while (size < count * 2)
		size *= 2;
	n->mask = size - 1;
	n->slot = calloc(size, sizeof(*n->slot));
	return n->slot == NULL ? ENOMEM : 0;
}

/* FNV-1a; a user who makes his own names collide wastes his own guest's time. */
static size_t
name_hash(const char *s, size_t len)
{
	uint64_t	 h = 0xcbf29ce484222325ULL;
	size_t		 i;

	for (i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3ULL;
	return (size_t)(h ^ h >> 32);
}

/* The later of two values for one name wins, in the first one's place. */
static int
env_add(struct exec_args *a, struct names *n, char *var)
{
	const char	*eq = strchr(var, '=');
	size_t		 len, i;

	if (eq == NULL || eq == var)
		return EINVAL;
	len = (size_t)(eq - var) + 1;
	for (i = name_hash(var, len) & n->mask; n->slot[i] != 0;
	    i = (i + 1) & n->mask) {
		if (strncmp(a->envp[n->slot[i] - 1], var, len) == 0) {
			a->envp[n->slot[i] - 1] = var;
			return 0;
		}
	}
	a->envp[a->env_count++] = var;
	n->slot[i] = (uint32_t)a->env_count;
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
string_set(struct exec_args *a, struct names *n, uint8_t tag, char *s,
    size_t *argc)
{
	const char	**one;

	if (tag == GP_EXEC_ARG) {
		a->argv[(*argc)++] = s;
		return 0;
	}
	if (tag == GP_EXEC_ENV)
		return env_add(a, n, s);
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
	struct names		 names = { NULL, 0 };
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
	error = a->argv == NULL || a->envp == NULL ? ENOMEM :
	    names_init(&names, envc);
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
		error = string_set(a, &names, r.tag, s, &argc);
	}
	free(names.slot);
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
