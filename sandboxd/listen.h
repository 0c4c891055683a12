/* SPDX-License-Identifier: ISC */
/*
 * The listening socket.
 */
#ifndef SBX_LISTEN_H
#define SBX_LISTEN_H

/* Begins to accept clients, on front.listener. */
void	listen_open(void);

#endif
