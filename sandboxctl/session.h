/* SPDX-License-Identifier: ISC */
/*
 * One command in a sandbox: its stream (sandbox.v1, sandboxd-api(7)) joined to
 * our stdin, stdout, stderr, terminal and signals.
 */
#ifndef SBX_SESSION_H
#define SBX_SESSION_H

#include "ctl.h"
#include "state.h"

struct session_spec {
	const char	 *id;
	char		**argv;		/* NULL at its end; at least one */
	const char	**env;		/* "KEY=value" */
	size_t		  nenv;
	const char	 *cwd;		/* NULL: the user's home */
	const char	 *user;		/* NULL: root */
	uint32_t	  timeout_s;	/* 0: none */
	int		  with_stdin;
	int		  tty;
	enum on_disconnect on_disconnect;
};

/*
 * Runs it to its end.  The exit status for our caller; or -1 with the fault,
 * when it is not known how the command ended.
 */
int	session_run(const struct session_spec *, struct fault *);

/* session_event.c */
struct session_end {
	int	 exited;	/* process_exited came */
	int	 status;	/* what we exit with */
	int	 failed;	/* an error event came; fault filled in */
};
/* JSON text of the start message, owned by the caller; NULL: fault. */
char	*session_start_message(const struct session_spec *, size_t *,
	    struct fault *);
/* A text message of the server.  0, or -1: it makes no sense. */
int	session_event(const char *, size_t, const struct session_spec *,
	    int *started, struct session_end *, struct fault *);
/* The stream ended without process_exited. */
void	session_closed(unsigned int code, const char *reason, struct fault *);

#endif
