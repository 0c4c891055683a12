/* SPDX-License-Identifier: ISC */
/*
 * Strict JSON (RFC 8259; where it leaves a choice, we refuse): a parser that
 * builds json-c's objects, typed getters over them, and a writer.  json-c's
 * own tokener is not used: it lets through what the RFC refuses.  Runs in
 * front, parent (ledger), vmm (QEMU's replies) and sandboxctl; the text may be
 * hostile.
 *
 * Refused: anything outside the grammar, a byte order mark, bad UTF-8, lone
 * surrogates, NUL (also as \u0000), a key twice in one object (compared after
 * escapes are resolved), more than JSON_DEPTH_MAX levels, more values than
 * asked for, integers outside -2^63 .. 2^64-1, other numbers that no double
 * holds.
 */
#ifndef SBX_JSON_H
#define SBX_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "limits.h"

struct json_object;	/* json-c's */

struct json_error {
	enum sbx_error	 code;		/* E_OK: none so far */
	char		 detail[SBX_DETAIL_MAX];	/* UTF-8, cut if long */
};

/*
 * Parses a whole text; white space may surround the one value.  Gives the value
 * (json_object_put() frees it; NULL for the text `null`).  At most `values_max`
 * values and keys: bounds memory, JSON_VALUES_MAX suits a request.
 * 0, or -E_BAD_JSON (-E_HOST_MEMORY) with the detail filled in.
 */
int	json_parse(const char *, size_t, size_t values_max,
	    struct json_object **, struct json_error *);

/*
 * Taking an object apart.  Open it, take each member that may be there, then
 * json_end(), which refuses members that nobody took.  The first fault sticks
 * (later calls do nothing and return it too), so a caller may check only
 * json_end().  A member that is absent and not needed leaves its output alone.
 * null is a wrong type.  Everything taken is borrowed from the object.  All
 * return 0 or the negative code: -E_BAD_MEMBER (missing, type, length, word),
 * -E_OUT_OF_RANGE, -E_UNKNOWN_MEMBER; the detail names the member
 * ("env.PATH").
 */
enum json_need { JSON_OPTIONAL, JSON_REQUIRED };

struct json_reader {
	struct json_object	*obj;
	struct json_error	*err;
	const struct json_reader *up;		/* the object this one is in */
	const char		*name;		/* under this name */
	size_t			 index;		/* in an array there: 1 + it */
	unsigned int		 ntaken;
	const char		*taken[JSON_TAKEN_MAX];
};

/* The error is cleared.  What is not an object is refused. */
void	json_open(struct json_reader *, struct json_object *,
	    struct json_error *);
int	json_end(struct json_reader *);
/* Says in the same way what else is wrong with a member; returns the code. */
int	json_refuse(struct json_reader *, const char *name, enum sbx_error,
	    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Was it there (and taken)? */
int	json_has(const struct json_reader *, const char *name);

/* A whole number without fraction or exponent, in [lo, hi]. */
int	json_take_u32(struct json_reader *, const char *, enum json_need,
	    uint32_t lo, uint32_t hi, uint32_t *);
int	json_take_u64(struct json_reader *, const char *, enum json_need,
	    uint64_t lo, uint64_t hi, uint64_t *);
int	json_take_i64(struct json_reader *, const char *, enum json_need,
	    int64_t lo, int64_t hi, int64_t *);
/* Any number, with a fraction or without, in [lo, hi]. */
int	json_take_double(struct json_reader *, const char *, enum json_need,
	    double lo, double hi, double *);
int	json_take_bool(struct json_reader *, const char *, enum json_need,
	    int *);
/* A string of min to size - 1 bytes, copied with its NUL. */
int	json_take_string(struct json_reader *, const char *, enum json_need,
	    size_t min, char *, size_t size);
/* A string of min to max bytes, borrowed; *len may be NULL. */
int	json_take_text(struct json_reader *, const char *, enum json_need,
	    size_t min, size_t max, const char **, size_t *len);
/* One of `n` words; gives its index. */
int	json_take_word(struct json_reader *, const char *, enum json_need,
	    const char *const *words, unsigned int n, unsigned int *);
/* An object in it, to be taken apart and ended in turn; *there may be NULL. */
int	json_take_object(struct json_reader *, const char *, enum json_need,
	    struct json_reader *, int *there);

/* An array of strings: min to max of them, each at most string_max bytes. */
struct json_list {
	struct json_object	*array;	/* NULL: absent */
	size_t			 n;
};
int		 json_take_list(struct json_reader *, const char *,
		    enum json_need, size_t min, size_t max, size_t string_max,
		    struct json_list *);
const char	*json_list_get(const struct json_list *, size_t, size_t *len);

/* An object whose values are strings: at most `max` of them. */
struct json_map {
	struct json_object	*obj;	/* NULL: absent */
	size_t			 n;
	const void		*next;	/* json_map_next()'s place */
};
int	json_take_map(struct json_reader *, const char *, enum json_need,
	    size_t max, size_t key_max, size_t value_max, struct json_map *);
/* 1 and the next pair, in the order of the text; 0 at the end. */
int	json_map_next(struct json_map *, const char **key, const char **value);

/*
 * An array of anything: json_array_open() refuses what is no object; for the
 * ledger and sandboxctl.
 */
int	json_take_array(struct json_reader *, const char *, enum json_need,
	    size_t max, struct json_object **, size_t *n);
int	json_array_open(struct json_reader *up, const char *name,
	    struct json_object *array, size_t, struct json_reader *);

/*
 * Writing: puts commas and quotes where they belong, into memory that grows.
 * Faults (no memory, over `max`, nesting, text that is not UTF-8) stick and
 * come out of json_out_end().  Zero the struct, set max.
 */
struct json_out {
	char		*text;
	size_t		 len, size;
	size_t		 max;		/* bytes, 0: no bound */
	int		 failed;	/* an enum sbx_error */
	int		 depth;
	int		 comma;		/* one is due before the next value */
};
void	json_out_free(struct json_out *);
/* Ready for another text in the same memory. */
void	json_out_reset(struct json_out *);
/* 0, or a negative code; text (NUL after it) and len are then complete. */
int	json_out_end(struct json_out *);
void	json_put_object(struct json_out *);	/* { */
void	json_put_object_end(struct json_out *);
void	json_put_array(struct json_out *);	/* [ */
void	json_put_array_end(struct json_out *);
void	json_put_key(struct json_out *, const char *);
void	json_put_string(struct json_out *, const char *);
/* Bytes that must be UTF-8 (utf8.h); NUL among them is written as \u0000. */
void	json_put_text(struct json_out *, const char *, size_t);
/* Any bytes: what is no UTF-8 becomes U+FFFD. */
void	json_put_lossy(struct json_out *, const char *, size_t);
void	json_put_base64(struct json_out *, const void *, size_t);
void	json_put_u64(struct json_out *, uint64_t);
void	json_put_i64(struct json_out *, int64_t);
void	json_put_bool(struct json_out *, int);
void	json_put_null(struct json_out *);
/* A value that json-c holds, compact. */
void	json_put_value(struct json_out *, struct json_object *);
/* Shorthands: key and value. */
void	json_put_key_string(struct json_out *, const char *, const char *);
void	json_put_key_u64(struct json_out *, const char *, uint64_t);
void	json_put_key_bool(struct json_out *, const char *, int);

#endif
