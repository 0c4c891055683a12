/* SPDX-License-Identifier: ISC */
/*
 * One end of a socketpair to a sibling process: sends and receives the typed
 * messages of msg.def, with at most one descriptor each, and matches answers to
 * requests.  Never blocks: what the socket does not take at once is queued, and
 * replies are always read.
 *
 * A message that a sibling may not send (wrong bytes, type, phase or
 * descriptor) ends a child: fatal(), the parent starts it again.  In the parent
 * it ends the channel as if the sibling had closed it.  Client bytes never come
 * this way unchecked.
 */
#ifndef SBX_IMSG_H
#define SBX_IMSG_H

#include <stdint.h>

#include "msg.h"

struct event_base;
struct ipeer;

/*
 * A message that is not an answer.  The receiver borrows the msg; a descriptor
 * in it is closed afterwards unless msg_take_fd() took it.
 */
typedef void	(*ipeer_msg_cb)(struct ipeer *, struct msg *, void *);
/*
 * The answer to a request; NULL when its deadline passed or the peer went.
 * With MSGF_MORE set it is called again.
 */
typedef void	(*ipeer_answer_cb)(struct msg *, void *);
/*
 * The peer has closed or has broken the rules; the ipeer may be freed here, not
 * in the others.  Called once.
 */
typedef void	(*ipeer_gone_cb)(struct ipeer *, void *);

/*
 * Takes the descriptor (SOCK_SEQPACKET; made non-blocking).  `self` and `peer`
 * say who talks here, for the permit table.  NULL: out of memory.
 */
struct ipeer	*ipeer_new(struct event_base *, int, enum proc_id self,
		    enum proc_id peer, ipeer_msg_cb, ipeer_gone_cb, void *);
/* Closes; every waiting request is answered NULL first.  NULL is allowed. */
void		 ipeer_free(struct ipeer *);
/* From set-up to run, for what may be sent and received. */
void		 ipeer_set_running(struct ipeer *);

/*
 * These take the descriptor (-1: none), also on failure.  They return 0, or -1
 * when the message cannot be queued: too many waiting requests, or a
 * body that does not pack (a bug: logged).
 * Use the typed wrappers in msg_send.h.
 */
int		 ipeer_send(struct ipeer *, enum msg_type, const void *, int);
int		 ipeer_answer(struct ipeer *, uint64_t, uint16_t,
		    enum msg_type, const void *, int);
int		 ipeer_request(struct ipeer *, enum msg_type, const void *, int,
		    unsigned int ms, ipeer_answer_cb, void *);
/* The id that the latest ipeer_request() used. */
uint64_t	 ipeer_last_request(const struct ipeer *);
/* Forget a request's callback: the object behind `arg` goes away. */
void		 ipeer_forget(struct ipeer *, void *arg);

/* The message's descriptor, which the caller owns from now on. */
int		 msg_take_fd(struct msg *);

/*
 * A child's start: checks that CHILD_FD is a SOCK_SEQPACKET socket (nobody but
 * the parent starts us) and that stdin, stdout and stderr are open.
 */
void		 child_check(const char *name);

struct ipeer_stats {
	uint64_t	 sent;
	uint64_t	 received;
	uint64_t	 late_answers;	/* after their deadline: dropped */
	unsigned int	 queued;
	unsigned int	 waiting;
};
void		 ipeer_get_stats(const struct ipeer *, struct ipeer_stats *);

#endif
