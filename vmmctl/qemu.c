/* SPDX-License-Identifier: ISC */
/*
 * The monitor of one QEMU: hand-shake, events, loss.  Runs in vmm on bytes of
 * a QEMU that its guest may have taken over; any oddity ends that VM only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "jail.h"
#include "log.h"
#include "qemu.h"
#include "tail.h"

static const char	negotiate[] =
    "{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"query-status\"}\n";

struct qemu *
qemu_new(struct vm *vm)
{
	struct qemu	*q;

	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return NULL;
	q->vm = vm;
	q->report = -1;
	q->monitor = -1;
	return q;
}

static void
report_close(struct qemu *q)
{
	if (q->report_ev != NULL)
		event_free(q->report_ev);
	q->report_ev = NULL;
	if (q->report != -1)
		(void)close(q->report);
	q->report = -1;
}

static void
monitor_close(struct qemu *q)
{
	if (q->monitor_ev != NULL)
		event_free(q->monitor_ev);
	q->monitor_ev = NULL;
	if (q->calm_ev != NULL)
		event_free(q->calm_ev);
	q->calm_ev = NULL;
	if (q->monitor != -1)
		(void)close(q->monitor);
	q->monitor = -1;
}

void
qemu_free(struct qemu *q)
{
	if (q == NULL)
		return;
	report_close(q);
	monitor_close(q);
	if (q->gone_ev != NULL)
		event_free(q->gone_ev);
	tail_free(q->console);
	tail_free(q->err);
	free(q);
}

/* ---- the jail's report ---- */

static int
read_report(struct qemu *q, struct fault *f)
{
	int	 r;

	r = jail_read_report(q->report, f);
	if (r == 1)
		return 0;
	report_close(q);
	q->executed = r == 0;
	log_debug("vm executed id=%s ms=%llu", vm_id(q->vm), vm_age_ms(q->vm));
	return r;
}

static void
on_report(evutil_socket_t fd, short what, void *arg)
{
	struct qemu	*q = arg;
	struct fault	 f;

	(void)fd;
	(void)what;
	if (read_report(q, &f) == -1)
		vm_start_failed(q->vm, &f);
}

int
qemu_watch_report(struct qemu *q, struct fault *f)
{
	q->report_ev = event_new(vmm.base, q->report, EV_READ | EV_PERSIST,
	    on_report, q);
	if (q->report_ev == NULL ||
	    evutil_make_socket_nonblocking(q->report) == -1 ||
	    event_add(q->report_ev, NULL) == -1)
		return fault_set(f, E_HOST_MEMORY, "out of memory");
	return 0;
}

/* ---- the monitor ---- */

/* The monitor is of no use any more: QEMU is ending, or it must. */
static void
monitor_lost(struct qemu *q, const char *why)
{
	vm_ended_because(q->vm, CAUSE_VMM_ERROR, why);
	monitor_close(q);
	vm_kill(q->vm);
}

static void
on_gone(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	monitor_lost(arg, "QEMU closed its monitor and went on running");
}

/* Closed: normally the pidfd follows in a moment and knows more. */
static void
monitor_eof(struct qemu *q)
{
	const struct timeval	 tv = { VM_MONITOR_GONE_MS / 1000,
				    VM_MONITOR_GONE_MS % 1000 * 1000 };

	monitor_close(q);
	if (q->gone_ev == NULL)
		q->gone_ev = evtimer_new(vmm.base, on_gone, q);
	if (q->gone_ev == NULL || evtimer_add(q->gone_ev, &tv) == -1)
		monitor_lost(q, "out of memory");
}

static int
greet(struct qemu *q)
{
	if (q->greeted)
		return -1;
	q->greeted = 1;
	/* Short, on a fresh socket: it fits. */
	return write(q->monitor, negotiate, sizeof(negotiate) - 1) ==
	    (ssize_t)sizeof(negotiate) - 1 ? 0 : -1;
}

static void
guest_panicked(struct qemu *q)
{
	vm_ended_because(q->vm, CAUSE_GUEST_PANIC,
	    "the guest's kernel panicked");
	vm_kill(q->vm);
}

static int
on_message(const struct qmp_msg *m, void *arg)
{
	struct qemu	*q = arg;
	char		 text[192];

	switch (m->kind) {
	case QMP_GREETING:
		return greet(q);
	case QMP_RETURN:
		if (m->status[0] == '\0' || !q->greeted)
			break;
		/* A fresh vmm learns here what it missed. */
		if (strcmp(m->status, "guest-panicked") == 0)
			guest_panicked(q);
		else if (!q->up)
			vm_up(q->vm);
		q->up = 1;
		break;
	case QMP_PANICKED:
		guest_panicked(q);
		break;
	case QMP_SHUTDOWN:
		(void)snprintf(text, sizeof(text), "the guest stopped (%s)",
		    log_vis(m->text, strlen(m->text)));
		vm_ended_because(q->vm, CAUSE_GUEST_STOPPED, text);
		break;
	case QMP_ERROR:
		log_warnx("vm odd id=%s monitor=\"%s\"", vm_id(q->vm),
		    log_vis(m->text, strlen(m->text)));
		return -1;
	case QMP_OTHER:
		break;
	}
	return 0;
}

/* 1: read something; 0: nothing now; -1: closed or broken, and handled. */
static int
monitor_read(struct qemu *q)
{
	char	 buf[4096];
	ssize_t	 n;

	if (q->monitor == -1)
		return -1;
	n = read(q->monitor, buf, sizeof(buf));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		monitor_eof(q);
		return -1;
	}
	q->burst += (size_t)n;
	if (qmp_feed(&q->reader, buf, (size_t)n, on_message, q) != 0) {
		monitor_lost(q, "QEMU's monitor speaks nonsense");
		return -1;
	}
	return 1;
}

/*
 * Events may come without end (a guest whose disk fails causes one for each
 * request): this VM's wait then, in QEMU's memory, and cost nobody else.
 */
static void
on_monitor(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval	 tv = { 0, QMP_BURST_MS * 1000 };
	struct qemu		*q = arg;

	(void)fd;
	(void)what;
	if (monitor_read(q) == -1)
		return;
	if (!evtimer_pending(q->calm_ev, NULL))
		(void)evtimer_add(q->calm_ev, &tv);
	if (q->burst >= QMP_BURST_MAX)
		(void)event_del(q->monitor_ev);
}

static void
on_calm(evutil_socket_t fd, short what, void *arg)
{
	struct qemu	*q = arg;

	(void)fd;
	(void)what;
	q->burst = 0;
	(void)event_add(q->monitor_ev, NULL);
}

int
qemu_monitor_open(struct qemu *q, int fd, struct fault *f)
{
	q->monitor = fd;
	q->monitor_ev = event_new(vmm.base, fd, EV_READ | EV_PERSIST,
	    on_monitor, q);
	q->calm_ev = evtimer_new(vmm.base, on_calm, q);
	if (q->monitor_ev == NULL || q->calm_ev == NULL ||
	    event_add(q->monitor_ev, NULL) == -1)
		return fault_set(f, E_HOST_MEMORY, "out of memory");
	return 0;
}

void
qemu_drain(struct qemu *q)
{
	struct fault	 f;
	int		 turns;

	if (q->report != -1 && read_report(q, &f) == -1)
		vm_start_failed(q->vm, &f);
	for (turns = 0; turns < 64; turns++)
		if (monitor_read(q) != 1)
			break;
	if (q->gone_ev != NULL)
		(void)event_del(q->gone_ev);
}
