/* SPDX-License-Identifier: ISC */
/*
 * Confinement of the daemon's processes.  Runs once in each, as root, before
 * any byte from outside is read.
 */
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"

#ifdef SBX_SANITIZER
/*
 * The search for leaks at exit needs a thread and ptrace(2), which no confined
 * process has.  The unit tests, which link the same objects, do search.
 */
const char	*__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

#define FILTER_MAX	1024	/* instructions; the kernel's bound is 4096 */

const struct confine_call confine_deny_calls[] = {
	CALL(kexec_load), CALL(kexec_file_load), CALL(init_module),
	CALL(finit_module), CALL(delete_module), CALL(swapon), CALL(swapoff),
	CALL(reboot), CALL(settimeofday), CALL(clock_settime), CALL(adjtimex),
	CALL(clock_adjtime), CALL(acct), CALL(quotactl), CALL(iopl),
	CALL(ioperm), CALL(ptrace), CALL(process_vm_readv),
	CALL(process_vm_writev), CALL(kcmp), CALL(add_key), CALL(request_key),
	CALL(keyctl), CALL(bpf), CALL(perf_event_open), CALL(userfaultfd),
	CALL(io_uring_setup), CALL(io_uring_enter), CALL(io_uring_register),
	CALL(open_by_handle_at), CALL(lookup_dcookie), CALL(syslog),
	CALL(vhangup), CALL(fanotify_init), CALL(move_pages),
	CALL(migrate_pages), CALL(mbind), CALL(sethostname),
	CALL(setdomainname), CALL(modify_ldt), CALL(uselib), CALL(ustat),
	CALL(sysfs), CALL(nfsservctl)
};
const size_t confine_deny_ncalls =
    sizeof(confine_deny_calls) / sizeof(confine_deny_calls[0]);

struct program {
	struct sock_filter	*code;
	size_t			 n;
	size_t			 max;
};

static void
emit(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (p->n < p->max)
		p->code[p->n] = (struct sock_filter){ code, jt, jf, k };
	p->n++;
}

static void
emit_call(struct program *p, const struct confine_call *c, uint32_t action)
{
	uint32_t	 arg;
	unsigned int	 i;

	if (c->arg < 0) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)c->nr, 0, 1);
		emit(p, BPF_RET | BPF_K, action, 0, 0);
		return;
	}
	arg = (uint32_t)(offsetof(struct seccomp_data, args) +
	    sizeof(uint64_t) * (unsigned int)c->arg);
	/* Skip: load, the compares, one jump to the end, the return, reload. */
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)c->nr, 0,
	    (uint8_t)(c->nvalues + 4));
	emit(p, BPF_LD | BPF_W | BPF_ABS, arg, 0, 0);
	for (i = 0; i < c->nvalues; i++)
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, c->values[i],
		    (uint8_t)(c->nvalues - i), 0);
	emit(p, BPF_JMP | BPF_JA, 1, 0, 0);
	emit(p, BPF_RET | BPF_K, action, 0, 0);
	emit(p, BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, nr), 0, 0);
}

size_t
confine_filter(const struct confine *c, struct sock_filter *code, size_t max)
{
	struct program	 p = { code, 0, max };
	uint32_t	 hit, miss;
	size_t		 i;

	if (c->mode == CONFINE_ALLOW) {
		hit = SECCOMP_RET_ALLOW;
		miss = SECCOMP_RET_KILL_PROCESS;
	} else {
		hit = SECCOMP_RET_ERRNO | EPERM;
		miss = SECCOMP_RET_ALLOW;
	}
	emit(&p, BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, arch), 0, 0);
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	emit(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	emit(&p, BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, nr), 0, 0);
	/* x32 calls share the arch value and have bit 30 set. */
	emit(&p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000U, 0, 1);
	emit(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	for (i = 0; i < c->ncalls; i++)
		emit_call(&p, &c->calls[i], hit);
	emit(&p, BPF_RET | BPF_K, miss, 0, 0);
	return p.n <= max ? p.n : 0;
}

static void
set_limit(int which, uint64_t value, const char *name)
{
	struct rlimit	 rl = { value, value };

	if (setrlimit((__rlimit_resource_t)which, &rl) == -1)
		fatal("confine: %s", name);
}

/* As many as the caller's hard limit lets us have, should it be less. */
static uint64_t
descriptors_allowed(uint64_t wanted)
{
	struct rlimit	 rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_max < wanted) {
		log_warnx("descriptors are limited to %llu, wanted %llu",
		    (unsigned long long)rl.rlim_max,
		    (unsigned long long)wanted);
		return rl.rlim_max;
	}
	return wanted;
}

static void
limit_resources(const struct confine *c)
{
	struct stat	 st;

	set_limit(RLIMIT_CORE, 0, "RLIMIT_CORE");
	if (c->nofile != 0)
		set_limit(RLIMIT_NOFILE, descriptors_allowed(c->nofile),
		    "RLIMIT_NOFILE");
	if (!c->no_files)
		return;
	set_limit(RLIMIT_NPROC, 0, "RLIMIT_NPROC");
	/* A log that is a file would end with the first line: SIGXFSZ. */
	if (fstat(STDERR_FILENO, &st) == -1 || !S_ISREG(st.st_mode))
		set_limit(RLIMIT_FSIZE, 0, "RLIMIT_FSIZE");
}

static void
cut_bounding_set(const struct confine *c)
{
	cap_value_t	 cap;

	for (cap = 0; cap <= cap_max_bits() - 1; cap++) {
		if (c->keep_bounding && (c->caps & CONFINE_CAP(cap)) != 0)
			continue;
		if (cap_drop_bound(cap) == -1)
			fatal("confine: bounding set, capability %d", cap);
	}
}

static void
change_ids(const struct confine *c)
{
	if (c->uid == 0)
		return;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == -1)
		fatal("confine: keepcaps");
	if (setgroups(0, NULL) == -1 ||
	    setresgid(c->gid, c->gid, c->gid) == -1 ||
	    setresuid(c->uid, c->uid, c->uid) == -1)
		fatal("confine: ids %u:%u", c->uid, c->gid);
}

/*
 * A container or a VM may have been given less than root's full set: what is
 * not there to keep is not missed here, but where it is used.
 */
static void
keep_capabilities(const struct confine *c)
{
	cap_t			 have, caps;
	cap_value_t		 cap;
	cap_flag_value_t	 on;

	have = cap_get_proc();
	caps = cap_init();
	if (have == NULL || caps == NULL)
		fatal("confine: capabilities");
	for (cap = 0; cap <= cap_max_bits() - 1; cap++) {
		if ((c->caps & CONFINE_CAP(cap)) == 0 ||
		    cap_get_flag(have, cap, CAP_PERMITTED, &on) == -1 ||
		    on != CAP_SET)
			continue;
		if (cap_set_flag(caps, CAP_PERMITTED, 1, &cap, CAP_SET) == -1 ||
		    cap_set_flag(caps, CAP_EFFECTIVE, 1, &cap, CAP_SET) == -1)
			fatal("confine: capability %d", cap);
	}
	if (cap_set_proc(caps) == -1)
		fatal("confine: capabilities");
	(void)cap_free(have);
	(void)cap_free(caps);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1)
		fatal("confine: ambient capabilities");
}

static void
install_filter(const struct confine *c)
{
	struct sock_filter	 code[FILTER_MAX];
	struct sock_fprog	 prog;

	if (c->ncalls == 0)
		return;
	prog.len = (unsigned short)confine_filter(c, code, FILTER_MAX);
	prog.filter = code;
	if (prog.len == 0)
		fatalx("confine: filter is too long");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == -1)
		fatal("confine: seccomp");
}

void
confine_apply(const struct confine *c)
{
	limit_resources(c);
	if (c->root != NULL && (chroot(c->root) == -1 || chdir("/") == -1))
		fatal("confine: root %s", c->root);
	cut_bounding_set(c);
	change_ids(c);
	keep_capabilities(c);
	/* setresuid cleared it for a changed id; root keeps it without this. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		fatal("confine: dumpable");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		fatal("confine: no_new_privs");
	install_filter(c);
}
