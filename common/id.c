/* SPDX-License-Identifier: ISC */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "id.h"

static const char base32[] = "abcdefghijklmnopqrstuvwxyz234567";

void
id_new(char *id)
{
	uint8_t	 r[SBX_ID_LEN - 3];
	size_t	 i;

	arc4random_buf(r, sizeof(r));
	memcpy(id, "sb-", 3);
	for (i = 0; i < sizeof(r); i++)
		id[3 + i] = base32[r[i] & 31];
	id[SBX_ID_LEN] = '\0';
}

static int
all_base32(const char *s, size_t len)
{
	size_t	 i;

	for (i = 0; i < len; i++)
		if (s[i] == '\0' || strchr(base32, s[i]) == NULL)
			return 0;
	return s[len] == '\0';
}

int
id_valid(const char *id)
{
	return strncmp(id, "sb-", 3) == 0 && all_base32(id + 3, SBX_ID_LEN - 3);
}

int
name_valid(const char *name)
{
	size_t	 i;
	char	 c;

	for (i = 0; name[i] != '\0'; i++) {
		c = name[i];
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c >= '0' && c <= '9'))
			continue;
		if (i == 0 || (c != '.' && c != '_' && c != '-'))
			return 0;
	}
	return i >= 1 && i <= SBX_NAME_MAX;
}

int
tag_valid(const char *tag)
{
	return all_base32(tag, SBX_TAG_LEN);
}

/*
 * FNV-1a (64 bit): not a secret, only a name that stays the same across
 * restarts and differs between the instances of one machine.
 */
void
tag_from_path(const char *path, char *tag)
{
	uint64_t	 h = 0xcbf29ce484222325ULL;
	int		 i;

	for (; *path != '\0'; path++)
		h = (h ^ (uint8_t)*path) * 0x100000001b3ULL;
	h ^= h >> 32;
	for (i = 0; i < SBX_TAG_LEN; i++, h >>= 5)
		tag[i] = base32[h & 31];
	tag[SBX_TAG_LEN] = '\0';
}
