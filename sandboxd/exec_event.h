/* SPDX-License-Identifier: ISC */
/*
 * A command's events as JSON, the same over a WebSocket and as NDJSON.
 */
#ifndef SBX_EXEC_EVENT_H
#define SBX_EXEC_EVENT_H

#include "exec.h"
#include "json.h"

void	exec_event_started(struct json_out *, uint32_t pid);
void	exec_event_exited(struct json_out *, const struct exec_result *);
void	exec_event_error(struct json_out *, enum sbx_error, const char *detail);
/* The members of process_exited that a whole JSON answer has, too. */
void	exec_put_result(struct json_out *, const struct exec_result *);
/* "SIGTERM", "TERM": the number on Linux; 0: no such name. */
int	exec_signal_number(const char *);

#endif
