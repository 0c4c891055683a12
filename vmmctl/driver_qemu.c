/* SPDX-License-Identifier: ISC */
/*
 * The QEMU driver: a microvm in a jail of ours.  Runs in vmm.  QEMU is trusted
 * until its guest runs; after that everything it writes (monitor, console,
 * stderr) may be hostile and can end this VM only.
 *
 * Sockets of the agent and the monitor are made here, in the VM's directory,
 * and inherited by QEMU as listening sockets, so that a fresh vmm connects
 * again.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "driver.h"
#include "helper.h"
#include "image.h"
#include "jail.h"
#include "log.h"
#include "qemu.h"
#include "qemu_args.h"
#include "tail.h"

#define AGENT_SOCKET	"agent.sock"
#define MONITOR_SOCKET	"monitor.sock"
#define LAYER_FILE	"layer.img"

/* QEMU's end of what it inherits; all closed once it has been started. */
struct inherit {
	int	 monitor, agent, console, err;
};

static void
close_fd(int *fd)
{
	if (*fd != -1)
		(void)close(*fd);
	*fd = -1;
}

/* ---- sockets ---- */

static int
socket_address(struct vm *vm, const char *name, struct sockaddr_un *sun,
    struct fault *f)
{
	int	 n;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	n = snprintf(sun->sun_path, sizeof(sun->sun_path), "%s/%s",
	    vm_path(vm), name);
	if (n < 0 || (size_t)n >= sizeof(sun->sun_path))
		return fault_set(f, E_START_FAILED,
		    "%s/%s: a socket's path has at most %d bytes",
		    vm_path(vm), name, SUN_PATH_MAX);
	return 0;
}

static int
socket_listen(struct vm *vm, const char *name, struct fault *f)
{
	struct sockaddr_un	 sun;
	int			 fd;

	if (socket_address(vm, name, &sun, f) == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return fault_errno(f, E_START_FAILED, "socket");
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1 ||
	    listen(fd, 8) == -1) {
		(void)fault_errno(f, E_START_FAILED, "%s", sun.sun_path);
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* Does not wait: a listening socket's queue takes it, or it fails. */
static int
socket_connect(struct vm *vm, const char *name, struct fault *f)
{
	struct sockaddr_un	 sun;
	int			 fd;

	if (socket_address(vm, name, &sun, f) == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return fault_errno(f, E_GUEST_LOST, "socket");
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		(void)fault_errno(f, E_GUEST_LOST, "%s", sun.sun_path);
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* ---- start ---- */

/* In the child, before the root changes: the layer is its work. */
static int
prepare_layer(struct jail_spec *j, void *arg, struct fault *f)
{
	const int	*fds = arg;	/* blank, directory */
	int		 rdwr, rdonly;

	if (image_copy_layer(fds[0], fds[1], LAYER_FILE, &rdwr, &rdonly, f) ==
	    -1)
		return -1;
	j->fds[j->nfds++] = (struct jail_fd){ rdonly, QEMU_FD_LAYER_RO };
	j->fds[j->nfds++] = (struct jail_fd){ rdwr, QEMU_FD_LAYER_RW };
	return 0;
}

/*
 * Only what QEMU opens: its libraries and modules, its firmware, the loader,
 * two devices; then the guest's kernel and initramfs under fixed names.
 */
static void
fill_binds(struct jail_spec *j)
{
	const struct jail_bind	 binds[] = {
		{ vmm.cfg.qemu, vmm.cfg.qemu, 0, 0 },
		{ "/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
		    0, 0 },
		{ "/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2",
		    0, 0 },
		{ "/etc/ld.so.cache", "/etc/ld.so.cache", 0, 1 },
		{ "/usr/share/qemu", "/usr/share/qemu", 0, 0 },
		{ "/usr/share/seabios", "/usr/share/seabios", 0, 1 },
		{ "/dev/null", "/dev/null", 1, 0 },
		{ "/dev/urandom", "/dev/urandom", 1, 0 },
		{ vmm.cfg.kernel, QEMU_JAIL_KERNEL, 0, 0 },
		{ vmm.cfg.initramfs, QEMU_JAIL_INITRAMFS, 0, 0 }
	};

	memcpy(j->binds, binds, sizeof(binds));
	j->nbinds = sizeof(binds) / sizeof(binds[0]);
}

static int
spawn(struct vm *vm, struct qemu *q, const struct vm_spec *s,
    const struct inherit *in, struct fault *f)
{
	struct qemu_args	 args;
	struct jail_spec	 j;
	char			 root[SBX_PATH_MAX + 8];
	int			 prepare[2] = { s->blank_fd, vm_dir(vm) };
	int			 pidfd;
	pid_t			 pid;

	if (qemu_build_args(&args, vmm.cfg.qemu, vm_id(vm), s,
	    vmm.tsc_khz) != 0)
		return fault_set(f, E_INTERNAL, "QEMU's arguments: too long");
	(void)snprintf(root, sizeof(root), "%s/jail", vmm.cfg.state_dir);
	memset(&j, 0, sizeof(j));
	j = (struct jail_spec){ .id = vm_id(vm), .uid = vm_uid(vm),
	    .gid = vm_gid(vm), .cgroup_fd = vm_cgroup(vm), .root = root,
	    .kvm = s->kvm, .max_file = ((uint64_t)s->disk_mib + 1) << 20,
	    .max_procs = VMM_THREADS_MAX + s->vcpu, .max_fds = VMM_FDS_MAX,
	    .err_fd = in->err, .argv = args.argv,
	    .prepare = prepare_layer, .prepare_arg = prepare };
	fill_binds(&j);
	j.fds[j.nfds++] = (struct jail_fd){ in->monitor, QEMU_FD_MONITOR };
	j.fds[j.nfds++] = (struct jail_fd){ in->agent, QEMU_FD_AGENT };
	j.fds[j.nfds++] = (struct jail_fd){ in->console, QEMU_FD_CONSOLE };
	j.fds[j.nfds++] = (struct jail_fd){ s->tap_fd, QEMU_FD_TAP };
	j.fds[j.nfds++] = (struct jail_fd){ s->root_fd, QEMU_FD_ROOT };
	if (jail_spawn(&j, &pid, &pidfd, &q->report, f) == -1)
		return -1;
	/* From here on the process exists: what fails now kills it. */
	if (vm_set_process(vm, pid, pidfd, f) == -1)
		return -1;
	return qemu_watch_report(q, f);
}

/* The near ends: a console and stderr that vmm reads, the monitor. */
static int
open_channels(struct vm *vm, struct qemu *q, struct inherit *in,
    struct fault *f)
{
	int	 con[2], err[2];

	in->monitor = socket_listen(vm, MONITOR_SOCKET, f);
	if (in->monitor == -1)
		return -1;
	in->agent = socket_listen(vm, AGENT_SOCKET, f);
	if (in->agent == -1)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, con) == -1)
		return fault_errno(f, E_START_FAILED, "console");
	in->console = con[1];
	q->console = tail_new(con[0], SBX_CONSOLE_TAIL, 0);
	if (pipe2(err, O_CLOEXEC) == -1)
		return fault_errno(f, E_START_FAILED, "stderr");
	in->err = err[1];
	q->err = tail_new(err[0], VMM_STDERR_TAIL, VMM_STDERR_MAX);
	/* A full pipe must not stop QEMU: what does not fit is lost. */
	if (q->console == NULL || q->err == NULL ||
	    fcntl(in->err, F_SETFL, O_NONBLOCK) == -1)
		return fault_set(f, E_HOST_MEMORY, "out of memory");
	return 0;
}

static int
check_files(struct fault *f)
{
	const char	*path[] = { vmm.cfg.qemu, vmm.cfg.kernel,
			    vmm.cfg.initramfs };
	const char	*what[] = { "QEMU", "guest kernel", "initramfs" };
	struct stat	 st;
	int		 i;

	for (i = 0; i < 3; i++) {
		if (stat(path[i], &st) == -1)
			return fault_errno(f, E_START_FAILED, "%s %s", what[i],
			    path[i]);
		if (!S_ISREG(st.st_mode) || (st.st_mode & S_IROTH) == 0)
			return fault_set(f, E_START_FAILED, "%s %s: must be a"
			    " file that everybody may read", what[i], path[i]);
	}
	return 0;
}

static int
driver_start(struct vm *vm, const struct vm_spec *s, struct fault *f)
{
	struct inherit	 in = { -1, -1, -1, -1 };
	struct qemu	*q;
	int		 fd, r = -1;

	if (check_files(f) == -1)
		return -1;
	q = qemu_new(vm);
	if (q == NULL)
		return fault_set(f, E_HOST_MEMORY, "out of memory");
	vm_set_driver_data(vm, q);
	if (open_channels(vm, q, &in, f) == -1 ||
	    spawn(vm, q, s, &in, f) == -1)
		goto done;
	fd = socket_connect(vm, MONITOR_SOCKET, f);
	if (fd == -1)
		goto done;
	r = qemu_monitor_open(q, fd, f);
done:
	close_fd(&in.monitor);
	close_fd(&in.agent);
	close_fd(&in.console);
	close_fd(&in.err);
	return r;
}

static int
driver_adopt(struct vm *vm, struct fault *f)
{
	struct qemu	*q;
	int		 fd;

	q = qemu_new(vm);
	if (q == NULL)
		return fault_set(f, E_HOST_MEMORY, "out of memory");
	vm_set_driver_data(vm, q);
	q->executed = 1;
	fd = socket_connect(vm, MONITOR_SOCKET, f);
	if (fd == -1)
		return -1;
	return qemu_monitor_open(q, fd, f);
}

static void
driver_connect(struct vm *vm, uint64_t request)
{
	struct fault	 f;
	int		 fd;

	fd = socket_connect(vm, AGENT_SOCKET, &f);
	vm_channel(vm, request, fd, &f);
}

static void
driver_booted(struct vm *vm)
{
	struct qemu	*q = vm_driver_data(vm);

	tail_free(q->console);
	q->console = NULL;
}

static void
driver_drain(struct vm *vm)
{
	struct qemu	*q = vm_driver_data(vm);

	if (q == NULL)
		return;
	qemu_drain(q);
	if (q->console != NULL)
		tail_drain(q->console);
	if (q->err != NULL)
		tail_drain(q->err);
}

static size_t
driver_console(struct vm *vm, uint8_t *out, size_t size)
{
	struct qemu	*q = vm_driver_data(vm);

	return q == NULL || q->console == NULL ? 0 :
	    tail_copy(q->console, out, size);
}

static void
driver_last_words(struct vm *vm, char *out, size_t size)
{
	struct qemu	*q = vm_driver_data(vm);
	size_t		 i, n = 0;

	if (q != NULL && q->err != NULL)
		n = tail_copy(q->err, (uint8_t *)out, size - 1);
	while (n > 0 && out[n - 1] == '\n')
		n--;
	out[n] = '\0';
	/* One line of plain characters: it goes to logs and to clients. */
	for (i = 0; i < n; i++)
		if (out[i] == '\n')
			out[i] = ' ';
		else if (out[i] < ' ' || out[i] > '~')
			out[i] = '?';
}

static void
driver_release(struct vm *vm)
{
	qemu_free(vm_driver_data(vm));
	vm_set_driver_data(vm, NULL);
}

/* The first line of `qemu --version`, or "" when it takes too long. */
static void
ask_version(char *line, size_t size)
{
	struct pollfd	 pfd;
	ssize_t		 n = 0;
	pid_t		 pid;
	int		 p[2];

	line[0] = '\0';
	if (pipe2(p, O_CLOEXEC) == -1)
		return;
	pid = fork();
	if (pid == 0) {
		if (dup2(p[1], STDOUT_FILENO) != -1)
			(void)execl(vmm.cfg.qemu, vmm.cfg.qemu, "--version",
			    (char *)NULL);
		_exit(127);
	}
	(void)close(p[1]);
	pfd = (struct pollfd){ .fd = p[0], .events = POLLIN };
	if (pid != -1 && poll(&pfd, 1, VMM_PROBE_MS) == 1)
		n = read(p[0], line, size - 1);
	(void)close(p[0]);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (pid != -1) {
		/* It has said what was asked, or never will. */
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
}

static void
driver_probe(char *version, size_t size)
{
	char	 line[256];
	char	*p;

	version[0] = '\0';
	if (access(vmm.cfg.qemu, X_OK) == -1) {
		log_warn("QEMU %s", vmm.cfg.qemu);
		return;
	}
	ask_version(line, sizeof(line));
	p = strstr(line, "version ");
	if (p == NULL)
		log_warnx("QEMU %s: --version says nothing that is known",
		    vmm.cfg.qemu);
	else
		(void)snprintf(version, size, "%s", p + strlen("version "));
}

const struct vmm_driver	driver_qemu = {
	.name = "qemu",
	.probe = driver_probe,
	.start = driver_start,
	.adopt = driver_adopt,
	.connect = driver_connect,
	.booted = driver_booted,
	.drain = driver_drain,
	.console = driver_console,
	.last_words = driver_last_words,
	.release = driver_release
};
