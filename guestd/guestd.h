/* SPDX-License-Identifier: ISC */
/*
 * guestd: PID 1 and agent of the guest.  One process, one poll(2) loop, no
 * library but musl.  Holds the types and the interfaces of its files:
 *
 *	guestd.c	main, the loop, reaping
 *	gboot.c		disks, overlay, new root; gmount.c what is mounted in it
 *	gmod.c		kernel modules
 *	gconf.c		CONFIG: names, files, clock, entropy; gnet.c eth0
 *	gcarrier.c	the byte stream to the host
 *	gchan.c		sync, frames, the queue of what goes out
 *	gstream.c	streams, their credit and their records; gargs.c parsing
 *	gcmd.c		running commands; gpump.c their pipes; gcgroup.c trees
 *	gexec.c		from fork to exec; guser.c passwd(5) and group(5)
 *
 * What it may trust: the initramfs and the kernel.  The host's bytes are
 * checked all the same, and the root file system and every process in it belong
 * to the sandbox's user, who may be hostile.
 */
#ifndef SBX_GUESTD_H
#define SBX_GUESTD_H

#include <sys/types.h>

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "gproto.h"

/* Numbers that only the guest knows. */
#define GUEST_DISCARD_MAX	1024	/* open pipes of ended commands */
#define GUEST_ARGS_MIN		4194304	/* bytes, for records that come */
#define GUEST_ARGS_SHARE	8	/* ... or this part of the memory */
#define GUEST_RESERVE_MIN	8388608	/* bytes that commands cannot have */
#define GUEST_RESERVE_SHARE	16	/* ... or this part of the memory */
#define GUEST_DEVICE_MS		10000	/* disks and port are there by then */
#define GUEST_FILE_MAX		1048576	/* bytes, passwd(5) and group(5) */
#define GUEST_GROUPS_MAX	64	/* supplementary groups of a user */
#define GUEST_TTY_QUIET_MS	20	/* a pty's last bytes come by then */

/* The process's one global. */
struct guest {
	int		 test;		/* -T: nothing is configured */
	int		 configured;	/* CONFIG has come */
	int		 signal_fd;
	int		 proc_fd;	/* folders, opened at the start */
	int		 pts_fd;
	int		 random_fd;
	uint64_t	 memory_bytes;
	uint8_t		 boot_id[16];
};
extern struct guest guest;

/* guestd.c */
uint64_t	now_us(void);		/* CLOCK_MONOTONIC */
void		guest_log(const char *, ...)
		    __attribute__((format(printf, 1, 2)));
/* Says why on console and kernel log, and restarts: the VMM then ends. */
void		guest_die(const char *, ...)
		    __attribute__((format(printf, 1, 2), noreturn));

/* What poll(2) waits for, made anew each turn. */
typedef void	(*poll_fn)(void *, int fd, short revents);
void		poll_add(int fd, short events, poll_fn, void *);
void		poll_by(uint64_t deadline_us);	/* wake up then at the latest */

/* gmod.c: "always", "squashfs", ... as in /lib/modules/order. */
void	modules_open(void);
void	modules_load(const char *word);
void	modules_close(void);

/* gboot.c */
void	boot_mount_early(void);
void	boot_switch_root(void);
/* gmount.c */
void	mount_all(void);

/* gconf.c: CONFIG's records; returns 0 or an errno with a text. */
int	conf_apply(const uint8_t *, size_t, char *text, size_t);
/* gnet.c */
struct net_config {
	int		 have_mac;
	uint8_t		 mac[6];
	int		 mtu;		/* 0: as it is */
	uint32_t	 address;	/* network order; 0: none */
	int		 prefix;
	uint32_t	 gateway;	/* 0: none */
};
int	net_loopback_up(void);
int	net_apply(const struct net_config *, const char **what);

/* gcarrier.c */
void	carrier_open_port(void);
void	carrier_open_test(int fd);
void	carrier_poll(void);
void	carrier_check(void);		/* SIGIO: has a host come? */

/* gchan.c */
void	chan_init(void);
void	chan_feed(const uint8_t *, size_t);
/* Ends the connection: nothing is heard or said until the next sync. */
void	chan_end(const char *why);
/* Queues a frame that carries no counted bytes. */
void	chan_put(uint8_t type, uint16_t flags, uint32_t stream, const void *,
	    size_t);
/* Room for one DATA frame's payload, NULL when there is none now. */
uint8_t	*chan_data_room(void);
void	chan_data_put(uint32_t stream, uint16_t channel, size_t len);
const uint8_t	*chan_pending(size_t *);
void	chan_sent(size_t);

/* What an exec stream's records say; the strings are inside the records. */
struct exec_args {
	char		**argv;
	char		**envp;		/* with room for GARGS_DEFAULTS more */
	size_t		 env_count;
	const char	*cwd;		/* NULL: not given */
	const char	*user;
	uint64_t	 timeout_ms;	/* 0: none */
	uint32_t	 flags;
};
#define GARGS_DEFAULTS	4

/* gargs.c: cuts the records in place.  Returns 0 or an errno. */
int	args_parse(uint8_t *buf, size_t len, struct exec_args *);
void	args_free(struct exec_args *);

enum stream_state {
	STREAM_ARGS,		/* records are coming */
	STREAM_STARTING,	/* forked, exec has not answered */
	STREAM_RUNNING,
	STREAM_DRAINING,	/* the leader has ended, output is left */
	STREAM_ENDED		/* freed at the end of the turn */
};

struct stream {
	struct stream	*next;
	uint32_t	 id;
	enum stream_state state;
	int		 lost;		/* its connection is gone */

	uint8_t		*args;
	size_t		 args_len;
	size_t		 args_size;

	uint64_t	 in_credit;	/* what the host may still send */
	uint64_t	 in_owed;	/* used up, not given back yet */
	uint64_t	 out_credit;	/* what we may send */

	/* gcmd.c */
	pid_t		 pid;
	int		 status;	/* of waitpid(2) */
	int		 reaped;
	int		 killed;	/* CLOSE: output no longer matters */
	int		 timed_out;
	int		 oom_killed;
	int		 tty;
	unsigned int	 cgroup;	/* 0: none */
	int		 cgroup_fd;
	int		 exec_fd;	/* says how exec failed */
	int		 in_fd;
	int		 out_fd[2];	/* stdout, stderr */
	int		 drain[2];	/* bytes left at the leader's end */
	uint64_t	 out_bytes[2];
	uint64_t	 quiet_us;	/* tty: no byte since */
	uint64_t	 hold_us;	/* tty: closed, not read before */
	uint8_t		*in_buf;	/* stdin that the pipe did not take */
	size_t		 in_start;
	size_t		 in_len;
	int		 in_eof;
	uint16_t	 columns;
	uint16_t	 rows;
	uint64_t	 start_us;
	uint64_t	 end_us;
	uint64_t	 deadline_us;	/* 0: none */
};

/* gstream.c; stream_frame returns 0 or a gp_error (ends the connection). */
extern struct stream *streams;
void	streams_init(uint64_t memory_bytes);
int	stream_frame(const struct gp_frame *);
void	streams_rotate(void);
void	streams_lose(void);
void	stream_warm_up(void);
void	streams_sweep(void);
void	stream_owe(struct stream *, size_t);
void	stream_started(struct stream *);
void	stream_refused(struct stream *, int stage, int error);
void	stream_exited(struct stream *, const struct gp_exited *);

/* gcmd.c; cmd_start returns 0 or an errno with its gp_stage. */
int	cmd_start(struct stream *, struct exec_args *, int *stage);
void	cmd_stdin(struct stream *, const uint8_t *, size_t);
void	cmd_stdin_eof(struct stream *);
void	cmd_signal(struct stream *, int number, int tree);
void	cmd_resize(struct stream *);
void	cmd_kill(struct stream *);
void	cmd_free(struct stream *);
void	cmd_poll(struct stream *);
int	cmd_reaped(pid_t, int status);	/* 1: it was a command's leader */

/* gpump.c */
void	pump_poll(struct stream *);
void	pump_stdin(struct stream *);
int	pump_stdin_add(struct stream *, const uint8_t *, size_t);
void	pump_leader_ended(struct stream *);
int	pump_drained(const struct stream *);
void	pump_finish(struct stream *);	/* what is still open is discarded */
void	pump_close(struct stream *);
void	discard_poll(void);

/* gcgroup.c; a number names a command's cgroup, 0 is none. */
void	cgroup_init(int root_fd);
unsigned int	cgroup_take(int *fd);
int	cgroup_wants_spare(void);
void	cgroup_prepare(void);		/* a spare one, in idle time */
int	cgroup_kill(int fd);		/* -1: it cannot */
void	cgroup_signal(int fd, int number);
int	cgroup_oom_killed(int fd);
void	cgroup_release(unsigned int, int fd);
void	cgroup_sweep(void);		/* after a process has ended */

/* gexec.c: in the child; does not return. */
struct exec_fds {
	int		 std[3];	/* of the child; tty: all the same */
	int		 error;		/* one byte gp_stage, four of errno */
	int		 cgroup;	/* to join, -1: already in */
	int		 tty;
};
void	exec_child(struct exec_args *, const struct exec_fds *)
	    __attribute__((noreturn));

/* guser.c; returns 0 or an errno. */
struct user {
	uid_t		 uid;
	gid_t		 gid;
	gid_t		 groups[GUEST_GROUPS_MAX];
	int		 group_count;
	char		 name[256];
	char		 home[4096];
};
int	user_find(const char *, struct user *);

/* Small files; both return 0 or -1 with errno. */
int	file_write(int dir, const char *path, const char *text);
ssize_t	file_read(int dir, const char *path, char *, size_t);

#endif
