/* SPDX-License-Identifier: ISC */
/*
 * One command in a sandbox, for a client that came by WebSocket (exec_ws.c) or
 * by POST (exec_http.c): permission from the parent, a channel to the guest, a
 * stream in it, and the end of each of these exactly once.
 */
#ifndef SBX_EXEC_H
#define SBX_EXEC_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"
#include "gproto.h"
#include "limits.h"
#include "state.h"

struct evbuffer;
struct exec;
struct json_object;
struct json_error;

/* ---- what a client asks for (exec_parse.c) ---- */

struct exec_request {
	struct evbuffer		*records;	/* for GP_ARGS, without START */
	struct evbuffer		*input;		/* POST: stdin, or NULL */
	enum on_disconnect	 on_disconnect;
	int			 wants_stdin;
	int			 tty;
	uint16_t		 cols, rows;	/* with tty */
	int			 base64;	/* POST: of the output */
	/* For messages, cut if long. */
	char			 command[SBX_NAME_MAX + 1];
	char			 cwd[SBX_PATH_MAX + 1];
	char			 user[SBX_NAME_MAX + 1];
};

enum exec_form { EXEC_FORM_START, EXEC_FORM_POST };

/*
 * Reads the members of a start message (its "type" is not taken: see exec_ws.c)
 * or of a POST's body.  0, or a negative sbx_error with the detail filled in;
 * exec_request_clear() in both cases.
 */
int	exec_request_read(struct exec_request *, enum exec_form,
	    struct json_object *, struct json_error *);
void	exec_request_clear(struct exec_request *);

/* ---- how it ends ---- */

struct exec_result {
	int		 exit_code;	/* 128 + signal, 126, 127 by custom */
	int		 signal;	/* 0: none */
	int		 timed_out;
	int		 oom_killed;
	uint64_t	 duration_ms;
	uint64_t	 stdout_bytes;
	uint64_t	 stderr_bytes;
	char		 error[SBX_DETAIL_MAX];	/* why it was not invoked, "" */
};

/*
 * The client's side.  failed, exited: the exec is over and freed when they are
 * called; no other follows.
 */
struct exec_events {
	void	(*attached)(void *);
	void	(*started)(void *, uint32_t pid);
	void	(*output)(void *, enum gp_channel, const uint8_t *, size_t);
	void	(*drained)(void *);
	void	(*exited)(void *, const struct exec_result *);
	void	(*failed)(void *, enum sbx_error, const char *detail,
		    uint32_t retry_after_s);
};

/*
 * Asks the parent whether this owner may run a command there.  `attached` or
 * `failed` follows, never before this returns.  NULL: no memory, or too many
 * requests wait.
 */
struct exec	*exec_new(uint64_t owner, const char *id, enum on_disconnect,
		    const struct exec_events *, void *);
/*
 * After `attached`: starts it.  Takes what the request holds.  `started`,
 * `exited` or `failed` follows, never before this returns.
 */
void		 exec_start(struct exec *, struct exec_request *);
/*
 * Before the end was reported: kills the command and frees the exec.  Has the
 * client vanished (on_disconnect applies), or was it sent away before a start?
 */
void		 exec_end(struct exec *, int vanished);

/* After `started`. */
void		 exec_input(struct exec *, const uint8_t *, size_t);
void		 exec_input_eof(struct exec *);
int		 exec_blocked(struct exec *);	/* `drained` follows */
void		 exec_signal(struct exec *, uint8_t);
void		 exec_resize(struct exec *, uint16_t cols, uint16_t rows);
void		 exec_pause(struct exec *, int);

/* ---- from channel.c ---- */

void	exec_channel_ready(const char *id);
void	exec_channel_closed(const char *id, enum sbx_error, const char *);

#endif
