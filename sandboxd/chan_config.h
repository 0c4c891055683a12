/* SPDX-License-Identifier: ISC */
/*
 * What a guest is told about itself after the handshake.
 */
#ifndef SBX_CHAN_CONFIG_H
#define SBX_CHAN_CONFIG_H

struct channel;

/* Sends CONFIG; 0, or 1 after channel_fail(). */
int	chan_config_send(struct channel *);

#endif
