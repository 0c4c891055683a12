/* SPDX-License-Identifier: ISC */
/*
 * One QEMU as vmm sees it: the monitor connection and what it says.
 */
#ifndef SBX_QEMU_H
#define SBX_QEMU_H

#include "driver.h"
#include "qmp.h"

struct event;
struct tail;

struct qemu {
	struct vm		*vm;
	int			 report;	/* the jail's, until executed */
	struct event		*report_ev;
	int			 executed;
	int			 monitor;
	struct event		*monitor_ev;
	struct event		*calm_ev;	/* not read until then */
	size_t			 burst;		/* bytes read since */
	struct event		*gone_ev;	/* monitor lost, QEMU not */
	int			 greeted;
	int			 up;
	struct tail		*console;
	struct tail		*err;
	struct qmp_reader	 reader;
};

struct qemu	*qemu_new(struct vm *);
void		 qemu_free(struct qemu *);
/* Tells vm.c when the jail failed before QEMU was executed. */
int		 qemu_watch_report(struct qemu *, struct fault *);
/* Takes the descriptor; shakes hands, then vm_up(). */
int		 qemu_monitor_open(struct qemu *, int, struct fault *);
/* QEMU has ended: what it said last decides about the cause. */
void		 qemu_drain(struct qemu *);

#endif
