/* SPDX-License-Identifier: ISC */
/*
 * The parent: options, configuration, lock, ledger, start of the children, and
 * the event loop.  Root.  Reads nothing from outside but its configuration and
 * its ledger.
 */
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <event2/event.h>
#include <json-c/json.h>

#include "ledger.h"
#include "log.h"
#include "record.h"
#include "sandboxd.h"
#include "slot.h"

#define DEFAULT_CONFIG	"/etc/sandboxd.conf"
#define TICK_MS		250

struct sandboxd	*sandboxd;

static void __attribute__((noreturn))
usage(void)
{
	(void)fprintf(stderr, "usage: sandboxd [-dnVv] [-f file]\n");
	exit(2);
}

/* The folder of the running program, without its last component. */
static void
program_folder(char *out, size_t size)
{
	ssize_t	 n;
	char	*slash;

	n = readlink("/proc/self/exe", out, size - 1);
	if (n == -1)
		fatal("/proc/self/exe");
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (slash != NULL)
		*slash = '\0';
}

static void
make_dir(const char *path, mode_t mode)
{
	struct stat	 st;

	if (mkdir(path, mode) == -1 && errno != EEXIST)
		fatal("%s", path);
	if (lstat(path, &st) == -1 || !S_ISDIR(st.st_mode))
		fatalx("%s: not a directory", path);
	if (st.st_uid != 0 || (st.st_mode & 022) != 0)
		fatalx("%s: must belong to root and be writable by root alone",
		    path);
}

/* Other processes find out here what belongs to this instance. */
static void
write_instance(void)
{
	const struct config	*c = &sandboxd->conf;
	char			 path[SBX_PATH_MAX + 32];
	char			 final[SBX_PATH_MAX + 32], pool[16];
	FILE			*f;
	int			 r;

	(void)snprintf(path, sizeof(path), "%s/instance.json.new",
	    c->state_dir);
	(void)snprintf(final, sizeof(final), "%s/instance.json", c->state_dir);
	slot_format_address(c->pool, pool);
	f = fopen(path, "we");
	if (f != NULL)
		(void)fprintf(f, "{\"tag\":\"%s\",\"pid\":%d,\"uid_first\":%u,"
		    "\"uid_count\":%u,\"socket\":\"%s\",\"pool\":\"%s/%u\"}\n",
		    c->tag, (int)getpid(), c->uid_first, c->uid_count,
		    c->socket_path, pool, c->pool_prefix);
	r = f != NULL ? fclose(f) : -1;
	if (r == 0)
		r = rename(path, final);
	if (r != 0 && (errno != ENOSPC || access(final, F_OK) == -1))
		fatal("%s", final);
	if (r != 0) {
		/* The last start's, nearly the same; the disk has no room. */
		log_warn("%s stays as it was", final);
		(void)unlink(path);
	}
}

/* One daemon for a state directory; the file names the one that holds it. */
static void
take_lock(void)
{
	char	 path[SBX_PATH_MAX + 16], pid[32] = "";
	ssize_t	 n;

	(void)snprintf(path, sizeof(path), "%s/lock", sandboxd->conf.state_dir);
	sandboxd->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (sandboxd->lock == -1)
		fatal("%s", path);
	if (flock(sandboxd->lock, LOCK_EX | LOCK_NB) == -1) {
		n = read(sandboxd->lock, pid, sizeof(pid) - 1);
		pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
		fatalx("%s: another daemon (pid %s) uses this state directory",
		    sandboxd->conf.state_dir, pid);
	}
	(void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	/* Written over, then cut: a full disk gives no block back. */
	n = pwrite(sandboxd->lock, pid, strlen(pid), 0);
	if (n == -1 || ftruncate(sandboxd->lock, n) == -1)
		fatal("%s", path);
}

static void
load_ledger(void)
{
	struct json_object	*entries;
	struct ledger_position	 pos;
	char			 err[256] = "";
	const char		*dir = sandboxd->conf.state_dir;
	int			 r = -1;

	entries = ledger_read(dir, &pos, err, sizeof(err));
	if (entries != NULL)
		r = record_load(entries, err, sizeof(err));
	if (r == -2)
		fatalx("ledger in %s: %s: make them as large as they were, "
		    "delete the sandboxes, then make them smaller", dir, err);
	if (r == -1)
		fatalx("ledger in %s: %s.  It is left as it is; move it away "
		    "to start with an empty one (sandboxes that still run are "
		    "then swept)", dir, err);
	json_object_put(entries);
	recover_loaded();
	sandboxd->ledger = ledger_open(dir, &pos, sandboxd->base, record_dump,
	    NULL, err, sizeof(err));
	if (sandboxd->ledger == NULL)
		fatalx("ledger in %s cannot be written: %s", dir, err);
	/*
	 * The boot id on disk has to be this boot's from now on.  A full disk
	 * has no room for a new file, the log has: what runs can be deleted.
	 */
	if (ledger_compact(sandboxd->ledger) == -1 &&
	    (record_mark_host() == -1 || ledger_flush(sandboxd->ledger) == -1))
		fatalx("ledger in %s cannot be written, neither a new file nor "
		    "its log: make room there", dir);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	life_tick();
}

static void
on_child(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	proc_reap();
}

static void
on_stop(evutil_socket_t sig, short what, void *arg)
{
	(void)what;
	(void)arg;
	log_info("stopping signal=%d sandboxes=%u", (int)sig, sandboxd->count);
	sandboxd->stopping = 1;
	(void)event_base_loopbreak(sandboxd->base);
}

/* Tells whoever started us in the background that we serve. */
static void
detach_done(void)
{
	if (sandboxd->starter == -1)
		return;
	if (write(sandboxd->starter, "", 1) == -1)
		log_debug("nobody waits for our start");
	(void)close(sandboxd->starter);
	sandboxd->starter = -1;
}

/* Every child is ready, VMs are known, the accelerator is: serve. */
void
daemon_open_api(void)
{
	struct m_parent_open_api	 m = { 0 };
	struct sandbox			*sb;

	if (sandboxd->api_open || !sandboxd->vmm_known || accel_decide() != 0)
		return;
	if (proc_peer(PROC_FRONT) == NULL)
		return;
	sandboxd->api_open = 1;
	(void)send_parent_open_api(proc_peer(PROC_FRONT), &m);
	detach_done();
	log_info("ready socket=%s driver=qemu accel=%s sandboxes=%u",
	    sandboxd->conf.socket_path, sandboxd->kvm ? "kvm" : "tcg",
	    sandboxd->count);
	if (!sandboxd->host.cgroup_memory)
		log_warnx("this host gives no cgroup v2 memory limit: a VM is "
		    "bounded by its own size only");
	TAILQ_FOREACH(sb, &sandboxd->ages, by_age)
		life_connect(sb);
}

static void
watch_signals(void)
{
	static const struct timeval	 tick = { 0, TICK_MS * 1000 };
	struct event			*ev[4];
	size_t				 i;

	ev[0] = evsignal_new(sandboxd->base, SIGCHLD, on_child, NULL);
	ev[1] = evsignal_new(sandboxd->base, SIGTERM, on_stop, NULL);
	ev[2] = evsignal_new(sandboxd->base, SIGINT, on_stop, NULL);
	ev[3] = event_new(sandboxd->base, -1, EV_PERSIST, on_tick, NULL);
	for (i = 0; i < 4; i++)
		if (ev[i] == NULL ||
		    event_add(ev[i], i == 3 ? &tick : NULL) == -1)
			fatalx("out of memory");
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
}

static void
daemon_init(void)
{
	struct sandboxd	*d = sandboxd;

	make_dir(d->conf.state_dir, 0755);
	take_lock();
	claim_host(&d->conf);
	RB_INIT(&d->sandboxes);
	TAILQ_INIT(&d->ages);
	TAILQ_INIT(&d->old_keys);
	RB_INIT(&d->streams);
	TAILQ_INIT(&d->owners);
	d->started = boottime_now();
	d->nslots = slot_count(d->conf.pool_prefix, d->conf.uid_count);
	d->slots = calloc(d->nslots / 64 + 1, sizeof(*d->slots));
	d->base = event_base_new();
	if (d->slots == NULL || d->base == NULL)
		fatalx("out of memory");
	load_ledger();
	write_instance();
	d->listener = api_socket_listen(&d->conf);
	if (d->listener == -1)
		fatalx("%s: cannot listen", d->conf.socket_path);
}

/*
 * Goes to the background; the caller's process ends when the API is open, with
 * status 0, or when it never will be, with 1.
 */
static void
detach(void)
{
	int	 pair[2];
	char	 byte;
	pid_t	 pid;

	if (pipe2(pair, O_CLOEXEC) == -1)
		fatal("pipe");
	pid = fork();
	if (pid == -1)
		fatal("fork");
	if (pid != 0) {
		(void)close(pair[1]);
		_exit(read(pair[0], &byte, 1) == 1 ? 0 : 1);
	}
	(void)close(pair[0]);
	sandboxd->starter = pair[1];
	(void)setsid();
	if (chdir("/") == -1)
		fatal("/");
}

static int
daemon_run(void)
{
	daemon_init();
	watch_signals();
	/* VMs whose vmm died become ours to reap. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1)
		fatal("subreaper");
	parent_confine();
	proc_start_all();
	(void)event_base_dispatch(sandboxd->base);
	(void)unlink(sandboxd->conf.socket_path);
	proc_stop_all();
	(void)ledger_compact(sandboxd->ledger);
	log_info("stopped");
	return 0;
}

/* 0: good, and printed with -v; 1: its faults are on stderr. */
static int
read_config(const char *path, int must_exist, int verbose, int check)
{
	char	 folder[PATH_MAX];

	program_folder(folder, sizeof(folder));
	config_defaults(&sandboxd->conf, folder);
	sandboxd->conf_path = path;
	if ((must_exist || access(path, F_OK) == 0) &&
	    config_parse(&sandboxd->conf, path) == -1)
		return 1;
	if (config_finish(&sandboxd->conf, path) == -1)
		return 1;
	if (check && verbose)
		config_print(&sandboxd->conf, stdout);
	return 0;
}

int
main(int argc, char *argv[])
{
	static struct sandboxd	 state = { .listener = -1, .lock = -1,
				    .starter = -1 };
	const char		*path = DEFAULT_CONFIG;
	int			 c, check = 0, foreground = 0, verbose = 0;
	int			 named = 0;

	sandboxd = &state;
	while ((c = getopt(argc, argv, "df:nVv")) != -1)
		switch (c) {
		case 'd':
			foreground = 1;
			break;
		case 'f':
			path = optarg;
			named = 1;
			break;
		case 'n':
			check = 1;
			break;
		case 'V':
			(void)printf("sandboxd %s\n", SBX_VERSION);
			return 0;
		case 'v':
			verbose++;
			break;
		default:
			usage();
		}
	if (argc != optind)
		usage();
	log_init("parent", verbose);
	if (read_config(path, named, verbose, check) != 0)
		return 1;
	if (check) {
		(void)fprintf(stderr, "configuration OK\n");
		return 0;
	}
	if (geteuid() != 0)
		fatalx("must be started by root");
	if (!foreground)
		detach();
	return daemon_run();
}
