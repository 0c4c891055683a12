/* SPDX-License-Identifier: ISC */
/*
 * The handlers of the native API, one for each route, and what they share.
 */
#ifndef SBX_API_H
#define SBX_API_H

#include "conn.h"
#include "json.h"
#include "msg_types.h"

struct msg;

void	api_health(struct conn *);
void	api_create(struct conn *);
void	api_list(struct conn *);
void	api_show(struct conn *);
void	api_delete(struct conn *);
void	api_exec(struct conn *);	/* exec_http.c */
void	api_command(struct conn *);	/* exec_ws.c */

/* The body as JSON; NULL after having answered what is wrong with it. */
struct json_object	*api_body(struct conn *, size_t values_max);
/* Answers with what a json reader found. */
void	api_refuse(struct conn *, const struct json_error *);
/* Answers for the parent's PARENT_FAIL, or for its silence (NULL). */
void	api_fail(struct conn *, const struct msg *);
/* One sandbox as its owner sees it. */
void	api_put_sandbox(struct json_out *,
	    const struct m_parent_give_sandbox *);

#endif
