/* SPDX-License-Identifier: ISC */
/*
 * The vmm process: start-up, confinement, dispatch of the parent's messages.
 * Started by the parent with a socketpair on CHILD_FD; ends when the parent
 * goes. VMs outlive it: a fresh vmm adopts them.
 *
 * Confinement is inherited by every VMM it starts, so: no Landlock (it breaks
 * mounts), no list of allowed calls (it would be QEMU's), only a deny list,
 * and the capabilities that jails need.
 */
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <event2/event.h>

#include "cgroup.h"
#include "confine.h"
#include "driver.h"
#include "host.h"
#include "id.h"
#include "image.h"
#include "log.h"
#include "msg_send.h"
#include "slot.h"
#include "vm.h"
#include "vmm.h"

struct vmm	vmm;

static int
open_dir(const char *base, const char *name)
{
	char	 path[SBX_PATH_MAX + 16];
	int	 fd;

	(void)strlcpy(path, base, sizeof(path));
	(void)strlcat(path, name, sizeof(path));
	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		fatal("%s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		fatal("%s", path);
	return fd;
}

static void
setup(const struct m_parent_setup_vmm *b)
{
	const char	*path[] = { b->state_dir, b->template_dir, b->kernel,
			    b->initramfs, b->mke2fs, b->qemu };
	size_t		 i;

	for (i = 0; i < sizeof(path) / sizeof(path[0]); i++)
		if (path[i][0] != '/')
			fatalx("path \"%s\" is not absolute", path[i]);
	if (!tag_valid(b->tag))
		fatalx("malformed tag");
	/*
	 * Left-overs are killed by uid: never one that somebody else may have.
	 */
	if (b->uid_first < VMM_UID_MIN || b->uid_count <= SLOT_UIDS_RESERVED ||
	    b->uid_first + b->uid_count < b->uid_first)
		fatalx("uid range %u + %u is not above %u", b->uid_first,
		    b->uid_count, VMM_UID_MIN);
	/* "/vm/<id>/monitor.sock" has to fit in a socket's address. */
	if (strlen(b->state_dir) + strlen("/vm//monitor.sock") + SBX_ID_LEN >
	    SUN_PATH_MAX)
		fatalx("%s: too long for a socket's path of %d bytes",
		    b->state_dir, SUN_PATH_MAX);
	if (strcmp(b->driver, driver_qemu.name) != 0)
		fatalx("no driver \"%s\"", b->driver);
	vmm.cfg = *b;
	vmm.driver = &driver_qemu;
	log_setverbose(b->verbose);
}

static void
confine(void)
{
	struct rlimit		 rl;
	struct confine		 c = {
		.caps = CONFINE_CAP(CAP_SYS_ADMIN) |	/* namespaces, mounts */
		    CONFINE_CAP(CAP_MKNOD) |		/* /dev/kvm in a jail */
		    CONFINE_CAP(CAP_CHOWN) |		/* ... for its uid */
		    CONFINE_CAP(CAP_SETUID) |
		    CONFINE_CAP(CAP_SETGID) |
		    CONFINE_CAP(CAP_SETPCAP) |		/* bounding sets */
		    CONFINE_CAP(CAP_KILL) |
		    CONFINE_CAP(CAP_DAC_OVERRIDE),	/* others' files */
		.keep_bounding = 1,
		.mode = CONFINE_DENY,
		.calls = confine_deny_calls,
		.ncalls = confine_deny_ncalls
	};

	/* A container may allow less, and not let us raise it. */
	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("RLIMIT_NOFILE");
	c.nofile = rl.rlim_max < VMM_NOFILE ? rl.rlim_max : VMM_NOFILE;
	confine_apply(&c);
}

static void
start(void)
{
	struct m_vmm_ready	 ready;
	struct cgroup_have	 have;

	if (vmm.driver == NULL)
		fatalx("started without a set-up");
	memset(&ready, 0, sizeof(ready));
	vmm.vm_dir = open_dir(vmm.cfg.state_dir, "/vm");
	vmm.layer_dir = open_dir(vmm.cfg.state_dir, "/layers");
	(void)close(open_dir(vmm.cfg.state_dir, "/jail"));
	image_init();
	vmm.tsc_khz = host_tsc_khz();
	vmm.kvm_node = host_has_kvm();
	vmm.driver->probe(ready.qemu_version, sizeof(ready.qemu_version));
	host_kernel_version(vmm.cfg.kernel, ready.kernel_version,
	    sizeof(ready.kernel_version));
	cgroup_probe(vmm.cfg.tag, &have);
	confine();
	ready.cgroup_tracking = (uint8_t)have.tracking;
	ready.cgroup_memory = (uint8_t)have.memory;
	ready.cgroup_cpu = (uint8_t)have.cpu;
	ready.cgroup_pids = (uint8_t)have.pids;
	ready.kvm_node = (uint8_t)vmm.kvm_node;
	log_info("ready tsc_khz=%llu kvm_node=%d qemu=\"%s\" kernel=\"%s\"",
	    (unsigned long long)vmm.tsc_khz, vmm.kvm_node, ready.qemu_version,
	    ready.kernel_version);
	(void)send_vmm_ready(vmm.parent, &ready);
	ipeer_set_running(vmm.parent);
}

static void
on_message(struct ipeer *p, struct msg *m, void *arg)
{
	(void)p;
	(void)arg;
	switch (m->type) {
	case M_PARENT_SETUP_VMM:
		setup(&m->body.parent_setup_vmm);
		break;
	case M_PARENT_START_VMM:
		start();
		break;
	case M_PARENT_START_VM:
		vm_handle_start(m);
		break;
	case M_PARENT_ADOPT_VM:
		vm_handle_adopt(m);
		break;
	case M_PARENT_CONNECT_VM:
		vm_handle_connect(m);
		break;
	case M_PARENT_VM_BOOTED:
		vm_handle_booted(m);
		break;
	case M_PARENT_DESTROY_VM:
		vm_handle_destroy(m);
		break;
	case M_PARENT_SWEEP_VMS:
		sweep_handle(m);
		break;
	default:
		/* The permit table lets nothing else through. */
		fatalx("unexpected %s", msg_name(m->type));
	}
}

static void
on_gone(struct ipeer *p, void *arg)
{
	(void)p;
	(void)arg;
	(void)event_base_loopbreak(vmm.base);
}

static void
on_signal(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	(void)arg;
	(void)event_base_loopbreak(vmm.base);
}

int
main(int argc, char **argv)
{
	struct event	*term, *intr;

	(void)argc;
	(void)argv;
	log_init("vmm", 0);
	child_check("vmm");
	if (getuid() != 0 || geteuid() != 0)
		fatalx("must be root to make jails");
	(void)umask(077);
	if (chdir("/") == -1)
		fatal("/");
	vmm.template_dir = -1;
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		fatal("SIGPIPE");
	vmm.base = event_base_new();
	if (vmm.base == NULL)
		fatalx("event base");
	term = evsignal_new(vmm.base, SIGTERM, on_signal, NULL);
	intr = evsignal_new(vmm.base, SIGINT, on_signal, NULL);
	vmm.parent = ipeer_new(vmm.base, CHILD_FD, PROC_VMM, PROC_PARENT,
	    on_message, on_gone, NULL);
	if (term == NULL || intr == NULL || vmm.parent == NULL ||
	    event_add(term, NULL) == -1 || event_add(intr, NULL) == -1)
		fatalx("out of memory");
	if (event_base_dispatch(vmm.base) == -1)
		fatalx("event loop");
	/* VMs go on; the kernel closes what we hold of them. */
	cgroup_finish();
	log_info("exit");
	return 0;
}
