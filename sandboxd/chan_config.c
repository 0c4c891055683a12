/* SPDX-License-Identifier: ISC */
/*
 * The CONFIG frame: host name, network, clock, entropy, machine id.  Runs in
 * front; all values come from the parent, the clock or the kernel's random
 * pool. A guest gets it again after every reconnect, so whatever must not
 * change in a sandbox's life (its machine id) is a function of the sandbox's
 * id.
 */
#include <sys/types.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sha2.h>

#include "chan_config.h"
#include "channel_int.h"

#define ENTROPY_BYTES	64	/* the most that the protocol takes */
#define CONFIG_MAX	1024	/* the texts of its message, and the rest */

struct config_frame {
	uint8_t	 data[CONFIG_MAX];
	size_t	 len;
	int	 full;
};

static void
add_record(struct config_frame *c, uint8_t tag, const void *data, size_t len)
{
	if (len > sizeof(c->data) - GP_RECORD_HEAD ||
	    c->len > sizeof(c->data) - GP_RECORD_HEAD - len) {
		c->full = 1;
		return;
	}
	gp_put_record_head(c->data + c->len, tag, (uint32_t)len);
	memcpy(c->data + c->len + GP_RECORD_HEAD, data, len);
	c->len += GP_RECORD_HEAD + len;
}

static void
add_text(struct config_frame *c, uint8_t tag, const char *text)
{
	if (text[0] != '\0')
		add_record(c, tag, text, strlen(text));
}

/* Addresses, with spaces between them. */
static void
add_dns(struct config_frame *c, const char *list)
{
	size_t	 n;

	for (;;) {
		list += strspn(list, " ");
		n = strcspn(list, " ");
		if (n == 0)
			return;
		add_record(c, GP_CONFIG_DNS, list, n);
		list += n;
	}
}

/* 80 random bits of the id, as the 128 that systemd wants, and no secret. */
static void
add_machine_id(struct config_frame *c, const char *id)
{
	uint8_t	 digest[SHA256_DIGEST_LENGTH];
	char	 hex[33];
	SHA2_CTX ctx;
	int	 i;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)"machine-id:", 11);
	SHA256Update(&ctx, (const uint8_t *)id, strlen(id));
	SHA256Final(digest, &ctx);
	for (i = 0; i < 16; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	add_record(c, GP_CONFIG_MACHINE_ID, hex, 32);
}

int
chan_config_send(struct channel *ch)
{
	const struct m_parent_open_channel	*m = &ch->about;
	struct config_frame			 c = { { 0 }, 0, 0 };
	char					 address[32];
	uint8_t					 num[8], entropy[ENTROPY_BYTES];
	struct timespec				 now = { 0, 0 };

	add_text(&c, GP_CONFIG_HOSTNAME, m->hostname);
	if (m->address[0] != '\0') {
		(void)snprintf(address, sizeof(address), "%s/%u", m->address,
		    m->prefix);
		add_text(&c, GP_CONFIG_ADDRESS, address);
	}
	add_text(&c, GP_CONFIG_GATEWAY, m->gateway);
	add_text(&c, GP_CONFIG_MAC, m->mac);
	if (m->mtu != 0) {
		gp_put_u16(num, m->mtu);
		add_record(&c, GP_CONFIG_MTU, num, 2);
	}
	add_dns(&c, m->dns);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	gp_put_u64(num, (uint64_t)now.tv_sec * 1000000000U +
	    (uint64_t)now.tv_nsec);
	add_record(&c, GP_CONFIG_TIME, num, 8);
	arc4random_buf(entropy, sizeof(entropy));
	add_record(&c, GP_CONFIG_ENTROPY, entropy, sizeof(entropy));
	add_machine_id(&c, m->id);
	if (c.full)
		return channel_fail(ch, E_INTERNAL,
		    "configuration does not fit in its frame");
	channel_put(ch, GP_CONFIG, 0, 0, c.data, c.len);
	explicit_bzero(entropy, sizeof(entropy));
	explicit_bzero(c.data, sizeof(c.data));
	return ch->error != E_OK;
}
