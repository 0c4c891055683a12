/* SPDX-License-Identifier: ISC */
/*
 * The parent's tables: sandboxes by id and by age, slots, retired keys, and
 * the requests that wait for a sandbox.
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "id.h"
#include "ledger.h"
#include "sandboxd.h"

#define TOMBSTONES	1024	/* ids that a list's cursor may still name */

/* Ages of sandboxes that are gone, so that paging over them goes on. */
static struct {
	char		 id[SBX_ID_LEN + 1];
	uint64_t	 generation;
} tombs[TOMBSTONES];
static unsigned int	 next_tomb;

static int
sandbox_cmp(struct sandbox *a, struct sandbox *b)
{
	return strcmp(a->id, b->id);
}

RB_GENERATE(sandbox_tree, sandbox, by_id, sandbox_cmp)

struct sandbox *
table_new(void)
{
	struct sandbox	*sb;

	sb = calloc(1, sizeof(*sb));
	if (sb == NULL)
		return NULL;
	sb->tun = -1;
	TAILQ_INIT(&sb->creators);
	TAILQ_INIT(&sb->deleters);
	return sb;
}

void
table_free_unused(struct sandbox *sb)
{
	free(sb);
}

void
table_add(struct sandbox *sb)
{
	(void)RB_INSERT(sandbox_tree, &sandboxd->sandboxes, sb);
	TAILQ_INSERT_TAIL(&sandboxd->ages, sb, by_age);
	if (!sb->probe)
		sandboxd->count++;
}

void
table_remove(struct sandbox *sb)
{
	enum proc_id	 p;

	(void)RB_REMOVE(sandbox_tree, &sandboxd->sandboxes, sb);
	TAILQ_REMOVE(&sandboxd->ages, sb, by_age);
	if (!sb->probe)
		sandboxd->count--;
	(void)strcpy(tombs[next_tomb].id, sb->id);
	tombs[next_tomb].generation = sb->generation;
	next_tomb = (next_tomb + 1) % TOMBSTONES;
	for (p = PROC_FRONT; p < PROC_COUNT; p++)
		if (sandboxd->children[p].peer != NULL)
			ipeer_forget(sandboxd->children[p].peer, sb);
	ledger_forget(sandboxd->ledger, sb);
	waiters_clear(&sb->creators);
	waiters_clear(&sb->deleters);
	if (sb->retry != NULL)
		event_free(sb->retry);
	free(sb);
}

struct sandbox *
table_find(const char *id)
{
	struct sandbox	 want;

	(void)strncpy(want.id, id, sizeof(want.id) - 1);
	want.id[sizeof(want.id) - 1] = '\0';
	return RB_FIND(sandbox_tree, &sandboxd->sandboxes, &want);
}

struct sandbox *
table_find_key(const char *owner, const char *key)
{
	struct sandbox	*sb;

	TAILQ_FOREACH(sb, &sandboxd->ages, by_age)
		if (strcmp(sb->key, key) == 0 && strcmp(sb->owner, owner) == 0)
			return sb;
	return NULL;
}

struct old_key *
table_find_old_key(const char *owner, const char *key)
{
	struct old_key	*k;

	TAILQ_FOREACH(k, &sandboxd->old_keys, entry)
		if (strcmp(k->key, key) == 0 && strcmp(k->owner, owner) == 0)
			return k;
	return NULL;
}

void
table_add_old_key(const struct old_key *k)
{
	struct old_key	*copy;

	copy = malloc(sizeof(*copy));
	if (copy == NULL)
		return;
	*copy = *k;
	TAILQ_INSERT_TAIL(&sandboxd->old_keys, copy, entry);
}

void
table_retire_key(const struct sandbox *sb, struct walltime until)
{
	struct old_key	 k = { .generation = sb->generation, .until = until };

	(void)strcpy(k.owner, sb->owner);
	(void)strcpy(k.key, sb->key);
	(void)strcpy(k.id, sb->id);
	memcpy(k.fingerprint, sb->fingerprint, sizeof(k.fingerprint));
	table_add_old_key(&k);
}

/* Keys end in the order in which they were retired. */
void
table_expire_keys(void)
{
	struct walltime	 now = walltime_now();
	struct old_key	*k;

	while ((k = TAILQ_FIRST(&sandboxd->old_keys)) != NULL &&
	    k->until.ms <= now.ms) {
		TAILQ_REMOVE(&sandboxd->old_keys, k, entry);
		free(k);
	}
}

uint64_t
table_age_of(const char *id)
{
	struct sandbox	*sb;
	unsigned int	 i;

	sb = table_find(id);
	if (sb != NULL)
		return sb->generation;
	for (i = 0; i < TOMBSTONES; i++)
		if (strcmp(tombs[i].id, id) == 0)
			return tombs[i].generation;
	return 0;
}

static int
slot_taken(uint32_t slot)
{
	return (int)(sandboxd->slots[slot / 64] >> (slot % 64) & 1);
}

/*
 * The next free one after the last one given: a slot rests as long as it can
 * before it gets its next tenant.
 */
int
slot_take(uint32_t *slot)
{
	uint32_t	 i, s;

	for (i = 0; i < sandboxd->nslots; i++) {
		s = (sandboxd->next_slot + i) % sandboxd->nslots;
		if (slot_take_this(s) == 0) {
			sandboxd->next_slot = s + 1;
			*slot = s;
			return 0;
		}
	}
	return -1;
}

int
slot_take_this(uint32_t slot)
{
	if (slot >= sandboxd->nslots || slot_taken(slot))
		return -1;
	sandboxd->slots[slot / 64] |= 1ULL << (slot % 64);
	return 0;
}

void
slot_release(uint32_t slot)
{
	sandboxd->slots[slot / 64] &= ~(1ULL << (slot % 64));
}

void
waiters_add(struct waiters *list, uint64_t request, int replay)
{
	struct waiter	*w;

	w = calloc(1, sizeof(*w));
	if (w == NULL) {
		request_fail(request, E_HOST_MEMORY, NULL, "out of memory");
		return;
	}
	w->request = request;
	w->replay = replay;
	w->since = boottime_now();
	TAILQ_INSERT_TAIL(list, w, entry);
}

void
waiters_drop(struct waiters *list, uint64_t request)
{
	struct waiter	*w, *next;

	TAILQ_FOREACH_SAFE(w, list, entry, next)
		if (w->request == request) {
			TAILQ_REMOVE(list, w, entry);
			free(w);
		}
}

void
waiters_clear(struct waiters *list)
{
	struct waiter	*w;

	while ((w = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, w, entry);
		free(w);
	}
}
