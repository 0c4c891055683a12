/* SPDX-License-Identifier: ISC */
/*
 * The front process: HTTP for clients, channels to guests.  Started by the
 * parent with its end of a socketpair on CHILD_FD; is told who it is to be,
 * takes the listening socket, gives up everything else, and serves.  Trusts the
 * parent and nobody else.  When the parent goes, so does it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "channel.h"
#include "confine.h"
#include "conn.h"
#include "front.h"
#include "listen.h"
#include "log.h"

struct front front = { .listener = -1 };

struct timeval
front_time(unsigned int ms)
{
	return (struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 };
}

void
front_stop(const char *why)
{
	log_info("stopped reason=\"%s\"", why);
	conns_stop();
	exit(0);
}

static void
on_parent_gone(struct ipeer *p, void *arg)
{
	(void)p;
	(void)arg;
	front_stop("parent has gone");
}

static void
on_sigterm(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	front_stop("SIGTERM");
}

/* From here on this process holds nothing but its descriptors. */
static void
start(void)
{
	struct confine		 c;
	struct m_front_ready	 ready = { 0 };

	if (front.listener == -1 || front.setup.root[0] == '\0')
		fatalx("started without its set-up");
	/* The C library reads its time zone file once: let it be now. */
	tzset();
	front_confine(&c, front.setup.uid, front.setup.gid, front.setup.root);
	confine_apply(&c);
	if (send_front_ready(front.parent, &ready) == -1)
		fatalx("cannot say that it is ready");
	ipeer_set_running(front.parent);
	log_debug("ready");
}

static void
on_message(struct ipeer *p, struct msg *m, void *arg)
{
	(void)p;
	(void)arg;
	/* What may come when is msg.def's; the rest never gets here. */
	switch (m->type) {
	case M_PARENT_SETUP_FRONT:
		front.setup = m->body.parent_setup_front;
		log_setverbose(front.setup.verbose);
		break;
	case M_PARENT_GIVE_LISTENER:
		if (front.listener != -1)
			fatalx("a second listener");
		front.listener = msg_take_fd(m);
		break;
	case M_PARENT_START_FRONT:
		start();
		break;
	case M_PARENT_OPEN_API:
		listen_open();
		break;
	case M_PARENT_OPEN_CHANNEL:
		channel_open(&m->body.parent_open_channel, msg_take_fd(m));
		break;
	case M_PARENT_CLOSE_CHANNEL:
		channel_close(&m->body.parent_close_channel);
		break;
	default:
		fatalx("%s is not handled", msg_name(m->type));
	}
}

int
main(int argc, char **argv)
{
	struct sigaction	 ignore = { .sa_handler = SIG_IGN };
	struct event		*term;

	(void)argv;
	log_init("front", 0);
	if (argc != 1)
		fatalx("takes no arguments");
	child_check("front");
	/* ^C in a terminal reaches us as well; the parent decides. */
	if (sigaction(SIGPIPE, &ignore, NULL) == -1 ||
	    sigaction(SIGINT, &ignore, NULL) == -1 ||
	    sigaction(SIGHUP, &ignore, NULL) == -1)
		fatal("sigaction");
	front.base = event_base_new();
	if (front.base == NULL)
		fatalx("event_base_new");
	term = evsignal_new(front.base, SIGTERM, on_sigterm, NULL);
	if (term == NULL || event_add(term, NULL) == -1)
		fatalx("evsignal_new");
	front.parent = ipeer_new(front.base, CHILD_FD, PROC_FRONT, PROC_PARENT,
	    on_message, on_parent_gone, NULL);
	if (front.parent == NULL)
		fatalx("ipeer_new");
	if (event_base_dispatch(front.base) == -1)
		fatalx("event_base_dispatch");
	return 1;
}
