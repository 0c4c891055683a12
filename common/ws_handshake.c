/* SPDX-License-Identifier: ISC */
/*
 * The fields of the WebSocket handshake (RFC 6455, 4; section numbers are its
 * own).  Used by front and sandboxctl; the values are the peer's.
 */
#include <stdlib.h>
#include <string.h>

#include <sha1.h>

#include "base64.h"
#include "ws.h"

#define GUID	"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"	/* 1.3 */
#define KEY_BYTES	16

void
ws_accept_for_key(const char *key, char *accept)
{
	SHA1_CTX	 ctx;
	uint8_t		 digest[SHA1_DIGEST_LENGTH];

	SHA1Init(&ctx);
	SHA1Update(&ctx, (const uint8_t *)key, strlen(key));
	SHA1Update(&ctx, (const uint8_t *)GUID, strlen(GUID));
	SHA1Final(digest, &ctx);
	(void)base64_encode(accept, digest, sizeof(digest));
}

void
ws_new_key(char *key)
{
	uint8_t	 r[KEY_BYTES];

	arc4random_buf(r, sizeof(r));
	(void)base64_encode(key, r, sizeof(r));
}

/* 4.2.1: base64 that decodes to 16 bytes. */
static int
key_valid(const char *key)
{
	uint8_t	 r[BASE64_BYTES(WS_KEY_LEN)];
	size_t	 n;

	return strlen(key) == WS_KEY_LEN &&
	    base64_decode(r, &n, key, WS_KEY_LEN) == 0 && n == KEY_BYTES;
}

static const char *
known_protocol(const char *const *known, const char *s, size_t len)
{
	for (; *known != NULL; known++)
		if (strlen(*known) == len && strncmp(*known, s, len) == 0)
			return *known;
	return NULL;
}

/* 4.2.2, 4: the client's order is its preference. */
static const char *
choose_protocol(const char *list, const char *const *known)
{
	const char	*found;
	size_t		 len;

	for (;;) {
		list += strspn(list, ", \t");
		if (*list == '\0')
			return NULL;
		len = strcspn(list, ", \t");
		found = known_protocol(known, list, len);
		if (found != NULL)
			return found;
		list += len;
	}
}

int
ws_check_offer(const struct ws_offer *offer, const char *const *known,
    const char **protocol, char *accept)
{
	const char	*chosen = NULL;

	/* 4.4: an older client learns which version to use. */
	if (offer->version == NULL || strcmp(offer->version, "13") != 0)
		return -E_UPGRADE;
	if (offer->key == NULL || !key_valid(offer->key))
		return -E_BAD_HEADER;
	if (offer->protocols != NULL) {
		chosen = choose_protocol(offer->protocols, known);
		if (chosen == NULL)
			return -E_BAD_HEADER;
	}
	*protocol = chosen;
	ws_accept_for_key(offer->key, accept);
	return 0;
}
