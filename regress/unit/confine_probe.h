/* SPDX-License-Identifier: ISC */
/*
 * Holds a process's confinement against the list that its test states: the
 * filter is run in user space for every system call number, and then for real,
 * in a forked child for each.  Test programs only.
 */
#ifndef SBX_CONFINE_PROBE_H
#define SBX_CONFINE_PROBE_H

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "confine.h"

#define PROBE_LAST	460	/* cachestat and its neighbours, Linux 6.x */
#define PROBE_CODE_MAX	4096
/*
 * uretprobe(2) and uprobe(2): newer kernels let them pass any filter, and
 * refuse them everywhere but in the trampoline that the kernel itself made.
 */
#define PROBE_UNFILTERED(nr)	((nr) == 335 || (nr) == 336)
#define PROBE_X32	0x40000000U

struct probe {			/* an allowed call as the test states it */
	const char	*name;
	int		 nr;
	int		 arg;		/* -1: with any arguments */
	uint32_t	 values[8];
	unsigned int	 nvalues;
};
#define PROBE(name)	{ #name, SYS_##name, -1, { 0 }, 0 }
#define PROBE_IF(name, arg, ...) { #name, SYS_##name, arg, { __VA_ARGS__ }, \
	sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t) }

struct probe_filter {
	struct sock_filter	 code[PROBE_CODE_MAX];
	size_t			 n;
};

/*
 * Classic BPF over seccomp_data, as seccomp(2) defines it: only loads of words,
 * jumps and returns.  Anything else is UINT32_MAX, which no filter returns.
 */
static uint32_t
probe_run(const struct probe_filter *f, const struct seccomp_data *d)
{
	const struct sock_filter	*i;
	uint32_t			 a = 0;
	size_t				 pc;
	int				 jump;

	for (pc = 0; pc < f->n; pc++) {
		i = &f->code[pc];
		jump = -1;
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (i->k > sizeof(*d) - 4 || i->k % 4 != 0)
				return UINT32_MAX;
			memcpy(&a, (const uint8_t *)d + i->k, 4);
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			jump = a == i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			jump = a >= i->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			jump = a > i->k;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			return UINT32_MAX;
		}
		if (jump != -1)
			pc += jump ? i->jt : i->jf;
	}
	return UINT32_MAX;
}

static uint32_t
probe_call(const struct probe_filter *f, uint32_t arch, int nr, int arg,
    uint64_t value)
{
	struct seccomp_data	 d;
	unsigned int		 i;

	memset(&d, 0, sizeof(d));
	d.nr = nr;
	d.arch = arch;
	/* No argument but the one that is asked for has a special value. */
	for (i = 0; i < 6; i++)
		d.args[i] = 0xdeadbeefULL;
	if (arg >= 0)
		d.args[arg] = value;
	return probe_run(f, &d);
}

/* Installs the filter in a child and makes the call there; the wait status. */
static int
probe_child(const struct probe_filter *f, int nr, const long *args)
{
	struct sock_fprog	 prog = { (unsigned short)f->n,
				    (struct sock_filter *)(uintptr_t)f->code };
	pid_t			 pid;
	int			 status = -1;

	pid = fork();
	if (pid == -1)
		return -1;
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
		    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1 ||
		    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
		    &prog) == -1)
			_exit(99);
		errno = 0;
		if (syscall(nr, args[0], args[1], args[2], args[3], args[4],
		    args[5]) == -1 && errno == EPERM)
			_exit(1);
		_exit(2);
	}
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		continue;
	return status;
}

static int
probe_killed(int status)
{
	return status != -1 && WIFSIGNALED(status) &&
	    WTERMSIG(status) == SIGSYS;
}

static const struct probe *
probe_find(const struct probe *list, size_t n, int nr)
{
	size_t	 i;

	for (i = 0; i < n; i++)
		if (list[i].nr == nr)
			return &list[i];
	return NULL;
}

static int
probe_listed(const struct probe *p, uint64_t value)
{
	unsigned int	 i;

	for (i = 0; i < p->nvalues; i++)
		if (p->values[i] == (uint32_t)value)
			return 1;
	return 0;
}

/* Of one call whose argument counts: bits of values, and listed ones. */
static int
probe_arguments(const struct probe_filter *f, const struct probe *p)
{
	unsigned int	 i;
	uint64_t	 v;
	int		 bad = 0;

	for (i = 0; i < 4096 + 64 + p->nvalues; i++) {
		if (i < 4096)
			v = i;
		else if (i < 4096 + 64)
			v = 1ULL << (i - 4096);
		else
			v = p->values[i - 4096 - 64];
		if ((probe_call(f, AUDIT_ARCH_X86_64, p->nr, p->arg, v) ==
		    SECCOMP_RET_ALLOW) != probe_listed(p, v))
			bad++;
	}
	return bad;
}

/* Numbers for which the filter and the list do not agree. */
static int
probe_numbers(const struct probe_filter *f, const struct probe *list, size_t n)
{
	const struct probe	*p;
	uint32_t		 got, want;
	int			 nr, bad = 0;

	for (nr = -1; nr <= PROBE_LAST; nr++) {
		p = probe_find(list, n, nr);
		want = p != NULL && p->arg == -1 ? SECCOMP_RET_ALLOW :
		    SECCOMP_RET_KILL_PROCESS;
		got = probe_call(f, AUDIT_ARCH_X86_64, nr, -1, 0);
		if (got != want) {
			printf("# call %d: 0x%x, want 0x%x\n", nr, got, want);
			bad++;
		}
		if (p != NULL && p->arg != -1)
			bad += probe_arguments(f, p);
		/* The same number as another architecture's or x32's call. */
		if (probe_call(f, AUDIT_ARCH_I386, nr, -1, 0) !=
		    SECCOMP_RET_KILL_PROCESS)
			bad++;
		if (nr >= 0 && probe_call(f, AUDIT_ARCH_X86_64,
		    (int)(PROBE_X32 | (unsigned int)nr), -1, 0) !=
		    SECCOMP_RET_KILL_PROCESS)
			bad++;
	}
	return bad;
}

/* For real: every number that is not in the list kills its child. */
static int
probe_kills(const struct probe_filter *f, const struct probe *list, size_t n)
{
	static const long	 args[6] = { -1, -1, -1, -1, -1, -1 };
	int			 nr, bad = 0;

	for (nr = 0; nr <= PROBE_LAST; nr++) {
		if (probe_find(list, n, nr) != NULL || PROBE_UNFILTERED(nr))
			continue;
		if (!probe_killed(probe_child(f, nr, args))) {
			printf("# call %d lives\n", nr);
			bad++;
		}
	}
	return bad;
}

/* What front and netd may never do, by name: each is tried for real. */
static const struct {
	const char	*name;
	int		 nr;
	long		 args[6];
} probe_forbidden[] = {
#define TRY(name, ...)	{ #name, SYS_##name, { __VA_ARGS__ } }
	TRY(open, (long)"/etc/passwd", O_RDONLY),
	TRY(openat2, AT_FDCWD, (long)"/etc/passwd", 0, 24),
	TRY(creat, (long)"/tmp/x", 0600),
	TRY(socket, AF_INET, SOCK_STREAM, 0),
	TRY(socket, AF_UNIX, SOCK_STREAM, 0),
	TRY(socket, AF_NETLINK, SOCK_RAW, 0),
	TRY(socket, AF_PACKET, SOCK_RAW, 0),
	TRY(connect, 0, 0, 0), TRY(bind, 0, 0, 0), TRY(listen, 0, 1),
	TRY(accept4, 0, 0, 0, 0), TRY(socketpair, AF_UNIX, SOCK_STREAM, 0, 0),
	TRY(execve, (long)"/bin/true", 0, 0),
	TRY(execveat, AT_FDCWD, (long)"/bin/true", 0, 0, 0),
	TRY(fork, 0), TRY(vfork, 0), TRY(clone, SIGCHLD), TRY(clone3, 0, 0),
	TRY(ptrace, 16, 1), TRY(process_vm_readv, 1, 0, 0, 0, 0, 0),
	TRY(process_vm_writev, 1, 0, 0, 0, 0, 0), TRY(kcmp, 1, 1, 0, 0, 0),
	TRY(mount, 0, 0, 0, 0, 0), TRY(umount2, (long)"/", 0),
	TRY(pivot_root, 0, 0), TRY(chroot, (long)"/"), TRY(chdir, (long)"/"),
	TRY(fchdir, 0), TRY(unshare, CLONE_NEWUSER), TRY(setns, 0, 0),
	TRY(bpf, 0, 0, 0), TRY(io_uring_setup, 1, 0),
	TRY(keyctl, 0, 0), TRY(add_key, 0, 0, 0, 0, 0),
	TRY(request_key, 0, 0, 0, 0), TRY(userfaultfd, 0),
	TRY(perf_event_open, 0, 0, 0, 0, 0), TRY(kexec_load, 0, 0, 0, 0),
	TRY(init_module, 0, 0, 0), TRY(finit_module, 0, 0, 0),
	TRY(delete_module, 0, 0), TRY(swapon, 0, 0),
	TRY(mknod, (long)"/tmp/x", S_IFCHR, 0), TRY(mkdir, (long)"/tmp/x", 0),
	TRY(unlink, (long)"/tmp/none"), TRY(rename, 0, 0),
	TRY(chmod, (long)"/tmp/none", 0), TRY(chown, (long)"/tmp/none", 0, 0),
	TRY(link, 0, 0), TRY(symlink, 0, 0), TRY(truncate, 0, 0),
	TRY(readlink, 0, 0, 0), TRY(getdents64, 0, 0, 0),
	TRY(setuid, 0), TRY(setresuid, 0, 0, 0), TRY(setresgid, 0, 0, 0),
	TRY(setgroups, 0, 0), TRY(capset, 0, 0), TRY(prctl, 0),
	TRY(seccomp, 0, 0, 0), TRY(kill, 1, 0), TRY(tkill, 1, 0),
	TRY(pidfd_open, 1, 0), TRY(pidfd_getfd, 0, 0, 0),
	TRY(memfd_create, (long)"x", 0), TRY(shmget, 0, 0, 0),
	TRY(personality, 0), TRY(sethostname, 0, 0), TRY(settimeofday, 0, 0),
	TRY(setrlimit, 0, 0), TRY(prlimit64, 0, 0, 0, 0),
	TRY(open_by_handle_at, 0, 0, 0), TRY(fanotify_init, 0, 0),
	TRY(inotify_init1, 0), TRY(setpriority, 0, 0, 0), TRY(iopl, 3),
	TRY(modify_ldt, 0, 0, 0), TRY(arch_prctl, 0, 0),
	TRY(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0),
	TRY(mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	TRY(mprotect, 0, 0, PROT_READ | PROT_EXEC),
	TRY(pkey_mprotect, 0, 0, PROT_READ | PROT_EXEC, 0),
	TRY(ioctl, 0, 0x5412), /* TIOCSTI */
	TRY(ioctl, 0, 0x400454cb), /* TUNSETPERSIST */
	TRY(ioctl, 0, 0x8914), /* SIOCSIFFLAGS */
	TRY(ioctl, 0, 0xae01), /* KVM_CREATE_VM */
#undef TRY
};
#define PROBE_FORBIDDEN							\
	(sizeof(probe_forbidden) / sizeof(probe_forbidden[0]))

static int
probe_forbids(const struct probe_filter *f, size_t i)
{
	return probe_killed(probe_child(f, probe_forbidden[i].nr,
	    probe_forbidden[i].args));
}

static const char *
probe_text(size_t i)
{
	static char	 text[96];

	(void)snprintf(text, sizeof(text), "%s (%lx, %lx, %lx)",
	    probe_forbidden[i].name, probe_forbidden[i].args[0],
	    probe_forbidden[i].args[1], probe_forbidden[i].args[2]);
	return text;
}

/* A sanitizer needs some of these itself; which is not our concern. */
#ifdef SBX_SANITIZER
#define PROBE_SANITIZER		1
#else
#define PROBE_SANITIZER		0
#endif
#define PROBE_SANITIZED(nr)						\
	(PROBE_SANITIZER && (nr) != SYS_socket && (nr) != SYS_execve)


#endif
