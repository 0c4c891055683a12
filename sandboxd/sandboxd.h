/* SPDX-License-Identifier: ISC */
/*
 * The parent's own types: the daemon's state, its children, its sandboxes.
 * Nothing of front, vmm or netd.  The parent owns the truth (configuration,
 * ledger, each sandbox's state) and reads nothing from outside but its
 * configuration and its ledger; what front sends is checked as if a client had
 * sent it.
 */
#ifndef SBX_SANDBOXD_H
#define SBX_SANDBOXD_H

#include <sys/types.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <stdint.h>

#include "clock.h"
#include "config.h"
#include "errors.h"
#include "imsg.h"
#include "msg_send.h"
#include "state.h"

struct event;
struct event_base;
struct ledger;
struct sandbox;

/* ---- children (proc.c, setup.c) ---- */

struct child {
	enum proc_id	 proc;
	pid_t		 pid;		/* 0: not running */
	struct ipeer	*peer;		/* NULL: not running */
	int		 ready;		/* has said so */
	uint64_t	 started_ms;	/* boot time */
	unsigned int	 quick_deaths;	/* in a row, soon after their start */
	struct event	*timer;		/* restart, or the deadline for ready */
};

/* ---- sandboxes (table.c) ---- */

/* Who waits for a sandbox: a request of front. */
struct waiter {
	TAILQ_ENTRY(waiter)	 entry;
	uint64_t		 request;
	int			 replay;	/* was not the one who created it */
	struct boottime		 since;
};
TAILQ_HEAD(waiters, waiter);

enum step {			/* of a create, and what is in flight */
	STEP_NONE,
	STEP_TAP,
	STEP_VM,
	STEP_GUEST
};

struct sandbox {
	RB_ENTRY(sandbox)	 by_id;
	TAILQ_ENTRY(sandbox)	 by_age;
	/* The record: what the ledger holds. */
	char			 id[SBX_ID_LEN + 1];
	uint64_t		 generation;	/* grows with each create */
	uint32_t		 slot;
	char			 owner[32];	/* "uid:1000" */
	enum sandbox_state	 state;
	enum vm_cause		 cause;
	char			 detail[SBX_DETAIL_MAX];
	char			 template[SBX_NAME_MAX + 1];
	char			 name[SBX_NAME_MAX + 1];
	struct resources	 res;
	enum on_disconnect	 on_disconnect;
	char			 key[SBX_KEY_MAX + 1];
	uint8_t			 fingerprint[32];
	uint8_t			 metadata[SBX_METADATA_BYTES];
	uint16_t		 metadata_len;
	uint8_t			 env[SBX_ENV_BYTES];
	uint16_t		 env_len;
	struct walltime		 created;
	struct boottime		 deadline;	/* of its timeout */
	uint64_t		 boot_ms;	/* create to agent's answer */
	uint32_t		 pid;		/* 0: no VM */
	uint64_t		 start_time;	/* with pid: this VM and no other */
	/* Of this run of the parent only. */
	enum step		 step;
	int			 in_flight;	/* a request has no answer yet */
	int			 released;	/* VM, tap and slot are gone */
	int			 releasing;
	int			 to_delete;	/* as soon as nothing is in flight */
	int			 kvm;
	int			 probe;		/* accel auto's own VM */
	int			 vmm_has;	/* this vmm knows its VM */
	int			 has_channel;	/* this front was given one */
	int			 recorded;	/* the ledger knows it */
	int			 tun;		/* parent's copy, -1 */
	struct boottime		 began;
	struct boottime		 purge;		/* a failed record's end, 0: none */
	struct boottime		 reconnect;	/* front died with streams, 0 */
	struct boottime		 give_up;	/* guest has to answer by then */
	struct boottime		 lost;		/* channel broke; fails then, 0 */
	enum sbx_error		 lost_error;
	enum sbx_error		 fail_error;	/* of a create that failed */
	unsigned int		 streams;
	struct waiters		 creators;
	struct waiters		 deleters;
	struct event		*retry;
};

RB_HEAD(sandbox_tree, sandbox);
TAILQ_HEAD(sandbox_list, sandbox);
RB_PROTOTYPE(sandbox_tree, sandbox, by_id, sandbox_cmp);

/* A key whose sandbox is gone: it never makes a second VM. */
struct old_key {
	TAILQ_ENTRY(old_key)	 entry;
	char			 owner[32];
	char			 key[SBX_KEY_MAX + 1];
	char			 id[SBX_ID_LEN + 1];
	uint64_t		 generation;
	uint8_t			 fingerprint[32];
	struct walltime		 until;
};
TAILQ_HEAD(old_keys, old_key);

/* A client's stream, attached to a sandbox. */
struct stream {
	RB_ENTRY(stream)	 entry;
	uint64_t		 handle;	/* random; what front knows */
	struct sandbox		*sb;
	enum on_disconnect	 on_disconnect;
};
RB_HEAD(stream_tree, stream);
RB_PROTOTYPE(stream_tree, stream, entry, stream_cmp);

/* ---- owners (owner.c): handles are random and die with front ---- */

struct owner {
	TAILQ_ENTRY(owner)	 entry;
	uint64_t		 handle;
	uint32_t		 uid;
	char			 name[32];
};
TAILQ_HEAD(owners, owner);

/* ---- the daemon ---- */

struct sandboxd {
	struct config		 conf;
	const char		*conf_path;
	struct event_base	*base;
	struct child		 children[PROC_COUNT];	/* [PROC_PARENT] unused */
	int			 listener;
	int			 lock;
	int			 starter;	/* who waits for us, -1 */
	int			 stopping;
	int			 api_open;
	int			 vmm_known;	/* adoption and sweep are done */
	int			 recovering;	/* ... and under way */
	unsigned int		 adopting;	/* answers missing */
	struct boottime		 started;
	struct ledger		*ledger;
	uint64_t		 generation;	/* the last one given */
	struct sandbox_tree	 sandboxes;
	struct sandbox_list	 ages;		/* oldest first */
	unsigned int		 count;		/* in the tree, probe not counted */
	uint64_t		*slots;		/* bit map of those taken */
	uint32_t		 nslots;
	uint32_t		 next_slot;
	struct old_keys		 old_keys;
	struct stream_tree	 streams;
	struct owners		 owners;
	/* The accelerator's verdict (accel.c). */
	int			 kvm;
	char			 accel_reason[256];
	struct m_vmm_ready	 host;
};

extern struct sandboxd	*sandboxd;

/* proc.c */
void		 proc_start(enum proc_id);
void		 proc_start_all(void);
void		 proc_stop_all(void);
void		 proc_reap(void);
/* NULL while that child is not ready. */
struct ipeer	*proc_peer(enum proc_id);

/* setup.c */
void		 setup_child(struct child *);
void		 setup_child_ready(struct child *, struct msg *);
void		 setup_child_gone(struct child *);
void		 setup_dispatch_vmm(struct ipeer *, struct msg *, void *);
void		 setup_dispatch_netd(struct ipeer *, struct msg *, void *);

/* api_socket.c: the listening socket, -1 after a warning */
int		 api_socket_listen(const struct config *);

/* claim.c: tag, uids and addresses are ours alone, or fatal() */
void		 claim_host(const struct config *);

/* parent_confine.c */
void		 parent_confine(void);

/* health.c */
void		 health_answer(uint64_t request);

/* request.c: everything that front asks */
void		 request_dispatch(struct ipeer *, struct msg *, void *);
void		 request_fill_sandbox(const struct sandbox *, int replay,
		    struct m_parent_give_sandbox *);
void		 request_fail(uint64_t request, enum sbx_error,
		    const struct sandbox *, const char *detail);

/* admit.c: is this create allowed?  Fills what was left to defaults. */
enum sbx_error	 admit_create(struct m_front_create_sandbox *,
		    const struct owner *, char *detail, size_t);

/* table.c */
struct sandbox	*table_new(void);
void		 table_free_unused(struct sandbox *);	/* never added; NULL */
void		 table_add(struct sandbox *);
void		 table_remove(struct sandbox *);	/* frees it */
struct sandbox	*table_find(const char *id);
struct sandbox	*table_find_key(const char *owner, const char *key);
struct old_key	*table_find_old_key(const char *owner, const char *key);
void		 table_retire_key(const struct sandbox *, struct walltime until);
void		 table_add_old_key(const struct old_key *);
void		 table_expire_keys(void);
uint64_t	 table_age_of(const char *id);	/* generation, also if gone */
int		 slot_take(uint32_t *);
int		 slot_take_this(uint32_t);
void		 slot_release(uint32_t);
void		 waiters_add(struct waiters *, uint64_t request, int replay);
void		 waiters_drop(struct waiters *, uint64_t request);
void		 waiters_clear(struct waiters *);

/* stream.c */
struct stream	*stream_attach(struct sandbox *, enum on_disconnect);
void		 stream_detach(uint64_t handle, int vanished);
void		 stream_end_all(struct sandbox *);
void		 stream_front_died(void);

/* owner.c */
struct owner	*owner_identify(int fd, enum sbx_error *);
struct owner	*owner_by_handle(uint64_t);
void		 owner_forget_all(void);

/* lifecycle.c: the one place that changes a sandbox's state */
void		 life_create(struct sandbox *);
void		 life_delete(struct sandbox *, const char *why);
void		 life_fail(struct sandbox *, enum vm_cause, enum sbx_error,
		    const char *detail);
void		 life_guest_ready(struct sandbox *);
void		 life_guest_lost(struct sandbox *, enum sbx_error,
		    const char *detail);
void		 life_vm_died(struct sandbox *, enum vm_cause,
		    const char *detail);
void		 life_tick(void);
void		 life_connect(struct sandbox *);

/* release.c: gives back what a sandbox holds; retries until it is clean */
void		 release_start(struct sandbox *);

/* recover.c: after a start of the parent or of vmm */
void		 recover_loaded(void);
void		 recover_vmm(void);

/* accel.c */
int		 accel_decide(void);	/* 0: known, 1: a probe is under way */
void		 accel_probe_done(int works, int remember, const char *reason);

/* sandboxd.c */
void		 daemon_open_api(void);

#endif
