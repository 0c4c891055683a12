/* SPDX-License-Identifier: ISC */
/*
 * doctor: what this host offers and what is left over on it.  Runs as root
 * beside the daemon or without one, and reads only what root alone can write.
 */
#ifndef SBX_DOCTOR_H
#define SBX_DOCTOR_H

#include <stdint.h>
#include <sys/types.h>

#include "ctl.h"

struct config;
struct json_object;

/* One line of the report. */
enum level {
	LEVEL_OK,
	LEVEL_NOTE,	/* works, but know it */
	LEVEL_BAD,	/* sandboxes cannot run */
	LEVEL_LEFT	/* an artefact that no record owns */
};
struct finding {
	enum level	 level;
	const char	*kind;		/* "kernel", "tap", ... */
	char		 text[512];
};
struct report {
	struct finding	*v;
	size_t		 n, size;
};
void	report_add(struct report *, enum level, const char *kind,
	    const char *, ...) __attribute__((format(printf, 4, 5)));
void	report_free(struct report *);

/* A daemon instance, by its state directory. */
struct instance {
	char		 state_dir[SBX_PATH_MAX + 1];
	char		 tag[SBX_TAG_LEN + 1];	/* "": nothing is known */
	char		 socket[SUN_PATH_MAX + 1];
	uint32_t	 uid_first, uid_count;
	pid_t		 pid;			/* 0: no daemon runs */
};
/*
 * Reads instance.json and finds who holds the lock.  0, or -1 with the fault;
 * a state directory that is not there is an instance with an empty tag.
 */
int	instance_read(struct instance *, const char *state_dir, struct fault *);
/* Tags of the daemons that run on this host: fills and returns their number. */
size_t	instance_running_tags(char (*)[SBX_TAG_LEN + 1], size_t max);

/* What the ledger owns. */
struct owned {
	struct owned_one {
		char		 id[SBX_ID_LEN + 1];
		uint32_t	 slot;
	}		*v;
	size_t		 n;
};
/* Adds what the ledger of that directory has now.  0 or -1. */
int	owned_read(struct owned *, const char *state_dir, struct fault *);
int	owned_id(const struct owned *, const char *);
int	owned_slot(const struct owned *, uint32_t);
void	owned_free(struct owned *);

/* doctor_residue.c: what carries the instance's marks and is not owned. */
int	residue_find(const struct instance *, struct report *, struct fault *);
/* What carries a tag whose daemon does not run, but ours. */
void	residue_others(const struct instance *, struct report *);

/* doctor_nft.c: calls back for each table "sandboxd-<tag>" and its taps. */
struct nft_events {
	void	(*table)(const char *tag, void *);
	void	(*tap)(const char *tag, const char *name, void *);
};
int	nft_each(const struct nft_events *, void *);

/* doctor_host.c */
void	host_check(const struct config *, struct report *);
/* The mount point of cgroup v2, "" if there is none. */
void	host_cgroup(char *, size_t);

#endif
