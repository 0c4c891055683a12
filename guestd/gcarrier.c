/* SPDX-License-Identifier: ISC */
/*
 * What carries the byte stream: the virtio-serial port, or in tests a listening
 * socket.  The only file that would change for another one (vsock).
 *
 * With no host connected a port's poll(2) says POLLHUP without end, so it is
 * left out then; the driver's SIGIO tells of the next host, and a slow timer
 * makes up for a lost one.
 */
#include <sys/socket.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guestd.h"

#define PORTS		"/sys/class/virtio-ports"
#define CHECK_US	250000
#define READS_MAX	16	/* in one turn: the port gives 4 KiB each */

static struct {
	int	 fd;
	int	 listener;	/* tests; -1 otherwise */
	int	 connected;
} carrier = { -1, -1, 0 };

static int
port_find(char *path, size_t size)
{
	DIR		*d;
	struct dirent	*e;
	char		 name[256], text[64];
	int		 found = 0;

	d = opendir(PORTS);
	if (d == NULL)
		return 0;
	while (!found && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), PORTS "/%.200s/name",
		    e->d_name);
		if (file_read(AT_FDCWD, name, text, sizeof(text)) <= 0)
			continue;
		text[strcspn(text, "\n")] = '\0';
		if (strcmp(text, GP_PORT_NAME) != 0)
			continue;
		(void)snprintf(path, size, "/dev/%.200s", e->d_name);
		found = 1;
	}
	(void)closedir(d);
	return found;
}

/* The port's name comes from the host a moment after the driver is loaded. */
void
carrier_open_port(void)
{
	struct timespec	 ms = { 0, 1000000 };
	uint64_t	 end = now_us() + GUEST_DEVICE_MS * 1000ULL;
	char		 path[256];

	for (;;) {
		if (port_find(path, sizeof(path))) {
			carrier.fd = open(path,
			    O_RDWR | O_NONBLOCK | O_CLOEXEC);
			if (carrier.fd != -1)
				break;
			/* ENOENT: devtmpfs has not made the node yet. */
			if (errno != ENOENT)
				guest_die("open %s: %s", path,
				    strerror(errno));
		}
		if (now_us() >= end)
			guest_die("no virtio-serial port named %s: start the "
			    "VMM with one", GP_PORT_NAME);
		(void)nanosleep(&ms, NULL);
	}
	(void)fcntl(carrier.fd, F_SETOWN, getpid());
	carrier.connected = 1;
}

void
carrier_open_test(int fd)
{
	int		 listening = 0;
	socklen_t	 len = sizeof(listening);

	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) == 0 &&
	    listening) {
		carrier.listener = fd;
		return;
	}
	carrier.fd = fd;
	carrier.connected = 1;
}

static void
set_async(int on)
{
	(void)fcntl(carrier.fd, F_SETFL, O_NONBLOCK | (on ? O_ASYNC : 0));
}

static int
has_host(void)
{
	struct pollfd	 p = { carrier.fd, POLLIN, 0 };

	return poll(&p, 1, 0) >= 0 && (p.revents & POLLHUP) == 0;
}

static void
carrier_lost(void)
{
	carrier.connected = 0;
	if (carrier.listener != -1) {
		(void)close(carrier.fd);
		carrier.fd = -1;
	} else if (guest.test)
		exit(0);	/* the test has closed its end */
	else {
		set_async(1);
		carrier_check();	/* it may have come back by now */
	}
}

void
carrier_check(void)
{
	if (carrier.connected || carrier.fd == -1 || !has_host())
		return;
	carrier.connected = 1;
	set_async(0);
}

static void
carrier_read(void)
{
	static uint8_t	 buf[65536];
	ssize_t		 n;
	int		 i;

	for (i = 0; i < READS_MAX; i++) {
		n = read(carrier.fd, buf, sizeof(buf));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			return;
		if (n <= 0) {
			carrier_lost();
			return;
		}
		chan_feed(buf, (size_t)n);
	}
}

static void
carrier_write(void)
{
	const uint8_t	*p;
	size_t		 len;
	ssize_t		 n;

	while (carrier.connected && (p = chan_pending(&len), len > 0)) {
		n = write(carrier.fd, p, len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno != EAGAIN)
			carrier_lost();
		if (n <= 0)
			return;
		chan_sent((size_t)n);
	}
}

static void
carrier_event(void *arg, int fd, short revents)
{
	(void)arg;
	(void)fd;
	/* A host that has gone may have left something to read. */
	if (revents & POLLIN)
		carrier_read();
	if (revents & POLLOUT)
		carrier_write();
	if ((revents & (POLLHUP | POLLERR)) && (revents & POLLIN) == 0 &&
	    carrier.connected)
		carrier_lost();
}

static void
accept_event(void *arg, int fd, short revents)
{
	(void)arg;
	(void)revents;
	if (carrier.fd != -1)
		return;
	carrier.fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	carrier.connected = carrier.fd != -1;
}

void
carrier_poll(void)
{
	size_t	 len;

	carrier_write();
	(void)chan_pending(&len);
	if (carrier.connected)
		poll_add(carrier.fd, (short)(POLLIN | (len > 0 ? POLLOUT : 0)),
		    carrier_event, NULL);
	else if (carrier.listener != -1)
		poll_add(carrier.listener, POLLIN, accept_event, NULL);
	else
		poll_by(now_us() + CHECK_US);
}
