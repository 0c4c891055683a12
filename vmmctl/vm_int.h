/* SPDX-License-Identifier: ISC */
/*
 * A VM as vm.c and vm_request.c share it; nobody else looks inside.
 *
 *	PREPARING	waits for an empty layer of its size
 *	STARTING	the process exists; no answer from its control channel
 *	RUNNING
 *	DEAD		ended by itself; what it leaves waits for the destroy
 *	RELEASING	being killed and removed
 */
#ifndef SBX_VM_INT_H
#define SBX_VM_INT_H

#include <sys/types.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "clock.h"
#include "driver.h"

struct event;

enum vm_state { VM_PREPARING, VM_STARTING, VM_RUNNING, VM_DEAD, VM_RELEASING };

struct destroy {
	TAILQ_ENTRY(destroy)	 entry;
	uint64_t		 request;
};

struct vm {
	RB_ENTRY(vm)		 entry;
	char			 id[SBX_ID_LEN + 1];
	uint64_t		 generation;
	uid_t			 uid;
	gid_t			 gid;
	enum vm_state		 state;
	struct vm_spec		 spec;		/* until started */
	struct boottime		 since;		/* the start was asked for */
	uint64_t		 start_request;	/* 0: answered, or none */
	TAILQ_HEAD(, destroy)	 destroys;	/* that wait for the release */
	pid_t			 pid;		/* 0: no process (any more) */
	uint64_t		 start_time;
	int			 pidfd;
	struct event		*exit_ev;
	struct event		*start_ev;	/* deadline of a start */
	int			 adopted;	/* not our child */
	int			 ended;		/* its end was seen */
	int			 booted;
	int			 dir;
	int			 cgroup;
	char			 path[SBX_PATH_MAX + 32];
	enum vm_cause		 cause;
	char			 cause_text[SBX_DETAIL_MAX];
	struct fault		 fault;		/* of the start */
	int			 failed;	/* fault is filled */
	void			*data;		/* the driver's */
};

/* The VM of an id, NULL if there is none. */
struct vm	*vm_find(const char *);
/* A VM in the table, without anything; NULL: out of memory. */
struct vm	*vm_new(const char *id, uint64_t generation, uid_t);
/* Closes and forgets; the process, if any, is left alone. */
void		 vm_free(struct vm *);
/* The descriptors of a start are done with. */
void		 vm_close_spec(struct vm *);
/* Kills what lives and removes what is left; answers who waits for it. */
void		 vm_release(struct vm *);
void		 vm_answer_fail(uint64_t request, const char *id,
		    uint64_t generation, const struct fault *);

#endif
