/* SPDX-License-Identifier: ISC */
/*
 * The WebSocket's handshake (RFC 6455, 4.1) and frames out, masked as a client
 * has to.
 */
#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "wsc.h"

#define PROTOCOL	"sandbox.v1"

static int
refuse(const char *why, struct fault *f)
{
	return fault_set(f, CTL_ERROR, "%s: sandboxd's WebSocket handshake is "
	    "wrong: %s (is this really sandboxd's socket?)", ctl.socket, why);
}

static int
check_upgrade(const struct reply *r, const char *key, struct fault *f)
{
	char	 accept[WS_ACCEPT_LEN + 1];

	ws_accept_for_key(key, accept);
	if (!r->upgrade || !r->connection_upgrade)
		return refuse("status 101 without the upgrade", f);
	if (strcmp(r->accept, accept) != 0)
		return refuse("Sec-WebSocket-Accept does not fit the key", f);
	if (r->extensions)
		return refuse("an extension that nobody asked for", f);
	if (strcmp(r->protocol, PROTOCOL) != 0)
		return refuse("not the protocol " PROTOCOL, f);
	return 0;
}

static int
handshake(struct client *c, const char *target, struct fault *f)
{
	struct reply	 r;
	char		 key[WS_KEY_LEN + 1], head[512];
	int		 n, ok = -1;

	memset(&r, 0, sizeof(r));
	ws_new_key(key);
	n = snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: sandboxd\r\n"
	    "User-Agent: sandboxctl/" SBX_VERSION "\r\nConnection: Upgrade\r\n"
	    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	    "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: " PROTOCOL
	    "\r\n\r\n", target, key);
	if (n < 0 || (size_t)n >= sizeof(head))
		return fault_set(f, CTL_ERROR, "request is too long");
	if (client_send(c, head, (size_t)n, f) == -1 ||
	    client_read_head(c, &r, f) == -1)
		goto done;
	if (r.status == 101)
		ok = check_upgrade(&r, key, f);
	else if (client_read_body(c, &r, f) == 0)
		(void)api_problem(r.status, r.body, r.len, f);
done:
	reply_clear(&r);
	return ok;
}

int
wsc_open(struct wsc *w, const char *target, unsigned int signals_max,
    struct fault *f)
{
	memset(w, 0, sizeof(*w));
	f->status = 0;
	w->client = client_new(f);
	if (w->client == NULL)
		return -1;
	w->client->signals_max = signals_max;
	client_set_deadline(w->client, CTL_REQUEST_MS);
	if (handshake(w->client, target, f) == -1) {
		wsc_close(w);
		return -1;
	}
	ws_reader_init(&w->reader, WS_CLIENT, CTL_EVENT_MAX, WS_MESSAGE_MAX);
	return 0;
}

void
wsc_close(struct wsc *w)
{
	if (w->client == NULL)
		return;
	ws_reader_clear(&w->reader);
	client_free(w->client);
	w->client = NULL;
}

int
wsc_send_text(struct wsc *w, const char *text, size_t len, struct fault *f)
{
	uint8_t	 mask[4], head[WS_HEAD_MAX], *copy;
	size_t	 n;
	int	 r;

	copy = malloc(len + 1);
	if (copy == NULL)
		return fault_set(f, CTL_ERROR, "out of memory");
	arc4random_buf(mask, sizeof(mask));
	n = ws_put_head(head, WS_OP_TEXT, 1, len, mask);
	memcpy(copy, text, len);
	ws_mask(copy, len, mask, 0);
	r = client_send(w->client, head, n, f);
	if (r == 0)
		r = client_send(w->client, copy, len, f);
	free(copy);
	return r;
}

static int
put(struct wsc *w, enum ws_opcode op, const uint8_t *prefix, size_t prefix_len,
    const void *data, size_t len)
{
	uint8_t	 mask[4];

	if (w->out_at > 0) {
		memmove(w->out, w->out + w->out_at, w->out_len - w->out_at);
		w->out_len -= w->out_at;
		w->out_at = 0;
	}
	if (WS_HEAD_MAX + prefix_len + len > sizeof(w->out) - w->out_len)
		return -1;
	arc4random_buf(mask, sizeof(mask));
	w->out_len += ws_put_head(w->out + w->out_len, op, 1, prefix_len + len,
	    mask);
	if (prefix_len > 0)
		memcpy(w->out + w->out_len, prefix, prefix_len);
	if (len > 0)
		memcpy(w->out + w->out_len + prefix_len, data, len);
	ws_mask(w->out + w->out_len, prefix_len + len, mask, 0);
	w->out_len += prefix_len + len;
	return 0;
}

int
wsc_put(struct wsc *w, enum ws_opcode op, const void *data, size_t len)
{
	return put(w, op, NULL, 0, data, len);
}

int
wsc_put_channel(struct wsc *w, uint8_t channel, const void *data, size_t len)
{
	return put(w, WS_OP_BINARY, &channel, 1, data, len);
}

int
wsc_flush(struct wsc *w)
{
	ssize_t	 n;

	while (w->out_at < w->out_len) {
		n = send(w->client->fd, w->out + w->out_at,
		    w->out_len - w->out_at, MSG_NOSIGNAL);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN ? 0 : -1;
		w->out_at += (size_t)n;
	}
	w->out_at = w->out_len = 0;
	return 0;
}

int
wsc_pending(const struct wsc *w)
{
	return w->out_at < w->out_len;
}
