/* SPDX-License-Identifier: ISC */
/*
 * Confinement: netd's list and the deny list of parent and vmm against every
 * system call number, in user space and for real, and what confine_apply()
 * leaves of a process.  The lists here are written by hand: a call more in the
 * code is a failure until it is stated here, too.
 */
/* objs: netd/netd_confine.o */
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "test.h"
#include "confine_probe.h"
#include "netd.h"

TEST_PLAN_AUTO;

static const struct probe netd_calls[] = {
	PROBE(recvmsg), PROBE(sendmsg), PROBE(recvfrom), PROBE(sendto),
	PROBE(read), PROBE(write), PROBE(close), PROBE(poll),
	PROBE(epoll_wait), PROBE(epoll_ctl), PROBE(clock_gettime),
	PROBE(gettimeofday), PROBE(newfstatat), PROBE(fstat),
	PROBE_IF(ioctl, 1, 0x400454ca, 0x400454cc, 0x400454ce),
	PROBE(brk), PROBE(munmap), PROBE(mremap),
	PROBE_IF(mmap, 2, 0, 1, 3),
	PROBE(rt_sigreturn), PROBE(restart_syscall), PROBE(exit_group),
#ifdef SBX_SANITIZER
	PROBE(sigaltstack), PROBE(gettid), PROBE(openat), PROBE(readlink),
	PROBE(sched_yield), PROBE(getrandom), PROBE(rt_sigaction),
	PROBE(tgkill), PROBE(sched_getaffinity), PROBE(futex), PROBE(madvise),
	PROBE(getpid), PROBE(rt_sigprocmask), PROBE_IF(mprotect, 2, 0, 1, 3),
#endif
};
#define NETD_CALLS	(sizeof(netd_calls) / sizeof(netd_calls[0]))

static void
test_netd(void)
{
	static struct probe_filter	 f;
	struct confine			 c;
	size_t				 i;

	netd_confine(&c, 4321, 4321, "/");
	f.n = confine_filter(&c, f.code, PROBE_CODE_MAX);
	ok(f.n > 0, "netd: %zu instructions", f.n);
	ok(c.ncalls <= 35 || PROBE_SANITIZER, "netd: %zu calls, at most 35",
	    c.ncalls);
	is_int(c.ncalls, NETD_CALLS, "netd: as many calls as stated");
	is_int(probe_numbers(&f, netd_calls, NETD_CALLS), 0,
	    "netd: filter and stated list agree for -1 to %d", PROBE_LAST);
	is_int(probe_kills(&f, netd_calls, NETD_CALLS), 0,
	    "netd: every other number kills, for real");
	for (i = 0; i < PROBE_FORBIDDEN; i++)
		if (!PROBE_SANITIZED(probe_forbidden[i].nr))
			ok(probe_forbids(&f, i), "netd: %s kills",
			    probe_text(i));
}

/* A call through the 32-bit gate has other numbers: 20 is getpid there. */
static void
test_gate(void)
{
	static struct probe_filter	 f;
	struct confine			 c;
	struct sock_fprog		 prog;
	pid_t				 pid;
	int				 status = -1;
	long				 r = 20;

	netd_confine(&c, 4321, 4321, "/");
	f.n = confine_filter(&c, f.code, PROBE_CODE_MAX);
	prog = (struct sock_fprog){ (unsigned short)f.n, f.code };
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
		    &prog) == -1)
			_exit(99);
		__asm__ volatile("int $0x80" : "+a"(r) : : "memory");
		_exit(r > 0 ? 2 : 3);
	}
	(void)waitpid(pid, &status, 0);
	/* A kernel without the gate raises SIGSEGV, which is as good. */
	ok(probe_killed(status) || (WIFSIGNALED(status) &&
	    WTERMSIG(status) == SIGSEGV), "filter: the 32-bit gate kills");
}

/* What the deny list has to hold, whatever else it holds. */
static const int	 denied[] = {
	SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module,
	SYS_delete_module, SYS_swapon, SYS_swapoff, SYS_reboot,
	SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
	SYS_acct, SYS_iopl, SYS_ioperm, SYS_ptrace, SYS_process_vm_readv,
	SYS_process_vm_writev, SYS_kcmp, SYS_add_key, SYS_request_key,
	SYS_keyctl, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
	SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
	SYS_open_by_handle_at, SYS_syslog, SYS_fanotify_init,
	SYS_sethostname, SYS_setdomainname, SYS_modify_ldt
};
/* What starting, stopping and jailing a process needs. */
static const int	 needed[] = {
	SYS_fork, SYS_vfork, SYS_clone, SYS_clone3, SYS_execve, SYS_execveat,
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare,
	SYS_setns, SYS_setuid, SYS_setresuid, SYS_setgroups, SYS_capset,
	SYS_prctl, SYS_seccomp, SYS_kill, SYS_pidfd_open,
	SYS_pidfd_send_signal, SYS_openat, SYS_openat2, SYS_mknodat,
	SYS_socket, SYS_socketpair, SYS_sendmsg, SYS_recvmsg, SYS_fdatasync,
	SYS_renameat, SYS_wait4, SYS_waitid, SYS_prlimit64, SYS_mmap,
	SYS_mprotect, SYS_memfd_create, SYS_fallocate, SYS_ioctl
};

static void
test_deny(void)
{
	static struct probe_filter	 f;
	static const long		 args[6] = { -1, -1, -1, -1, -1, -1 };
	struct confine			 c = { .mode = CONFINE_DENY,
					    .calls = confine_deny_calls,
					    .ncalls = confine_deny_ncalls };
	size_t				 i, j;
	int				 nr, want, bad = 0, status;

	f.n = confine_filter(&c, f.code, PROBE_CODE_MAX);
	ok(f.n > 0, "deny list: %zu instructions", f.n);
	for (nr = 0; nr <= PROBE_LAST; nr++) {
		for (want = 0, i = 0; i < confine_deny_ncalls; i++)
			want |= confine_deny_calls[i].nr == nr;
		if (probe_call(&f, AUDIT_ARCH_X86_64, nr, -1, 0) !=
		    (want ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW))
			bad++;
	}
	is_int(bad, 0, "deny list: filter and table agree");
	for (i = 0, bad = 0; i < confine_deny_ncalls; i++)
		for (j = 0; j < i; j++)
			bad += confine_deny_calls[i].nr ==
			    confine_deny_calls[j].nr;
	is_int(bad, 0, "deny list: no call twice");
	for (i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
		status = probe_child(&f, denied[i], args);
		ok(status != -1 && WIFEXITED(status) &&
		    WEXITSTATUS(status) == 1, "deny list: call %d fails with "
		    "EPERM", denied[i]);
	}
	for (i = 0, bad = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		bad += probe_call(&f, AUDIT_ARCH_X86_64, needed[i], -1, 0) !=
		    SECCOMP_RET_ALLOW;
	is_int(bad, 0, "deny list: what starts a VM is not in it");
}

/* A filter that does not fit is refused, not cut. */
static void
test_size(void)
{
	struct sock_filter	 code[32];
	struct confine		 c;
	size_t			 n;

	netd_confine(&c, 4321, 4321, "/");
	is_int(confine_filter(&c, code, 32), 0, "filter: too small a buffer");
	c.ncalls = 3;
	n = confine_filter(&c, code, 32);
	ok(n > 0 && code[n - 1].code == (BPF_RET | BPF_K) &&
	    code[n - 1].k == SECCOMP_RET_KILL_PROCESS,
	    "filter: ends with the refusal");
}

enum { STEP_IDS = 1, STEP_CAPS, STEP_ROOT, STEP_LIMITS, STEP_FLAGS, STEP_UID0 };

/* In a child after confine_apply(): which of its promises is broken? */
static int
inspect(void)
{
	struct __user_cap_header_struct	 head = { _LINUX_CAPABILITY_VERSION_3,
					    0 };
	struct __user_cap_data_struct	 data[2];
	struct rlimit			 rl;
	uid_t				 r, e, s;
	gid_t				 rg, eg, sg;
	struct stat			 st;

	if (getresuid(&r, &e, &s) == -1 || r != 4321 || e != 4321 ||
	    s != 4321 || getresgid(&rg, &eg, &sg) == -1 || rg != 4322 ||
	    eg != 4322 || sg != 4322 || getgroups(0, NULL) != 0)
		return STEP_IDS;
	if (syscall(SYS_capget, &head, data) == -1 ||
	    data[0].effective != 1U << CAP_NET_ADMIN ||
	    data[0].permitted != 1U << CAP_NET_ADMIN ||
	    data[0].inheritable != 0 || data[1].permitted != 0)
		return STEP_CAPS;
	if (prctl(PR_CAPBSET_READ, CAP_NET_ADMIN, 0, 0, 0) != 1 ||
	    prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0)
		return STEP_CAPS;
	if (stat("/etc", &st) != -1 || stat("/", &st) == -1)
		return STEP_ROOT;
	if (getrlimit(RLIMIT_NOFILE, &rl) == -1 ||
	    rl.rlim_max != NETD_NOFILE ||
	    getrlimit(RLIMIT_NPROC, &rl) == -1 || rl.rlim_max != 0 ||
	    getrlimit(RLIMIT_CORE, &rl) == -1 || rl.rlim_max != 0)
		return STEP_LIMITS;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return STEP_FLAGS;
	if (setresuid(0, 0, 0) != -1)
		return STEP_UID0;
	return 0;
}

static void
test_apply(void)
{
	char		 root[] = "/tmp/confine_test.XXXXXX";
	struct confine	 c;
	pid_t		 pid;
	int		 status = -1;

	if (geteuid() != 0) {
		skip("needs root", "apply: ids, capabilities, root, limits");
		return;
	}
	if (mkdtemp(root) == NULL || chmod(root, 0755) == -1) {
		ok(0, "apply: a root directory");
		return;
	}
	netd_confine(&c, 4321, 4322, root);
	c.ncalls = 0;		/* the filter would not let us look */
	pid = fork();
	if (pid == 0) {
		confine_apply(&c);
		_exit(inspect());
	}
	(void)waitpid(pid, &status, 0);
	is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
	    "apply: ids, capabilities, root, limits, flags");
	c.root = "/nonexistent/root";
	pid = fork();
	if (pid == 0) {
		(void)close(STDERR_FILENO);
		confine_apply(&c);
		_exit(0);
	}
	(void)waitpid(pid, &status, 0);
	is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1,
	    "apply: a root that is not there ends the process");
	(void)rmdir(root);
}

int
main(void)
{
	test_netd();
	test_gate();
	test_deny();
	test_size();
	test_apply();
	return done_testing();
}
