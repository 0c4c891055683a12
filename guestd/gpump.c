/* SPDX-License-Identifier: ISC */
/*
 * Bytes between a command's pipes (or pty) and its stream.  A pipe is read only
 * while its stream has credit and the queue has room, so that a host that stops
 * reading stops the command and nothing else.
 */
#include <sys/ioctl.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guestd.h"

#define IN_SIZE	(GP_WINDOW + 1)		/* the window and a pty's VEOF */

/* Output of children that outlive their command; slots are used in turn. */
static struct {
	int		 fd[GUEST_DISCARD_MAX];
	unsigned int	 count;
	unsigned int	 oldest;
} discard;

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static int
may_read(struct stream *s, int i)
{
	if (s->out_fd[i] < 0 || s->killed || s->lost)
		return 0;
	if (s->state != STREAM_RUNNING && s->state != STREAM_DRAINING)
		return 0;
	if (s->state == STREAM_DRAINING && !s->tty && s->drain[i] == 0)
		return 0;
	if (s->state == STREAM_RUNNING && s->hold_us > now_us())
		return 0;
	return s->out_credit > GP_FRAME_COST && chan_data_room() != NULL;
}

static void
out_ended(struct stream *s, int i)
{
	close_fd(&s->out_fd[i]);
	chan_put(GP_EOF, (uint16_t)(GP_STDOUT + i), s->id, NULL, 0);
}

/* One read; returns 1 when there may be more. */
static int
pump_out(struct stream *s, int i)
{
	size_t	 max = GP_PAYLOAD_MAX;
	ssize_t	 n;

	if (s->out_credit - GP_FRAME_COST < max)
		max = s->out_credit - GP_FRAME_COST;
	if (s->state == STREAM_DRAINING && !s->tty && (size_t)s->drain[i] < max)
		max = (size_t)s->drain[i];
	n = read(s->out_fd[i], chan_data_room(), max);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0 && s->tty && s->state == STREAM_RUNNING) {
		/*
		 * EIO: the command has closed its terminal.  It may open it
		 * again, and closing our end now would send it SIGHUP, which
		 * kills cat(1) between its last close and its exit.
		 */
		s->hold_us = now_us() + GUEST_TTY_QUIET_MS * 1000;
		return 0;
	}
	if (n <= 0) {
		out_ended(s, i);
		return 0;
	}
	chan_data_put(s->id, (uint16_t)(GP_STDOUT + i), (size_t)n);
	s->out_credit -= (uint64_t)n + GP_FRAME_COST;
	s->out_bytes[i] += (uint64_t)n;
	if (s->state == STREAM_DRAINING) {
		s->drain[i] -= (int)n;
		s->quiet_us = now_us();
	}
	return (size_t)n == max;
}

static void
out_event(void *arg, int fd, short revents)
{
	struct stream	*s = arg;
	int		 i = fd == s->out_fd[0] ? 0 : 1;

	(void)revents;
	/* The rest of the turn may have ended it or used up the room. */
	while (s->out_fd[i] == fd && may_read(s, i) && pump_out(s, i))
		continue;
}

static int
stdin_fd(const struct stream *s)
{
	return s->tty ? s->out_fd[0] : s->in_fd;
}

/* Returns what was taken, 0 when the pipe is full. */
static size_t
stdin_write(struct stream *s, const uint8_t *p, size_t len)
{
	ssize_t	 n;

	do
		n = write(stdin_fd(s), p, len);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN)
		return 0;
	if (n == -1) {
		/* Nobody reads any more; what is left goes nowhere. */
		n = (ssize_t)len;
		if (!s->tty)
			close_fd(&s->in_fd);
	}
	stream_owe(s, (size_t)n);
	return (size_t)n;
}

void
pump_stdin(struct stream *s)
{
	size_t	 n;

	while (s->in_len > 0) {
		n = stdin_fd(s) < 0 ? s->in_len :
		    stdin_write(s, s->in_buf + s->in_start, s->in_len);
		if (n == 0)
			return;
		s->in_start += n;
		s->in_len -= n;
	}
	if (s->in_eof && !s->tty)
		close_fd(&s->in_fd);
}

/* Takes all of it: credit keeps in_len + len within the window. */
int
pump_stdin_add(struct stream *s, const uint8_t *p, size_t len)
{
	size_t	 n;

	while (s->in_len == 0 && len > 0 && stdin_fd(s) >= 0) {
		n = stdin_write(s, p, len);
		if (n == 0)
			break;
		p += n;
		len -= n;
	}
	if (len == 0)
		return 0;
	if (stdin_fd(s) < 0) {
		stream_owe(s, len);
		return 0;
	}
	if (s->in_buf == NULL)
		s->in_buf = malloc(IN_SIZE);
	if (s->in_buf == NULL)
		return ENOMEM;
	if (s->in_len == 0)
		s->in_start = 0;
	if (len > IN_SIZE - s->in_start - s->in_len) {
		memmove(s->in_buf, s->in_buf + s->in_start, s->in_len);
		s->in_start = 0;
	}
	memcpy(s->in_buf + s->in_start + s->in_len, p, len);
	s->in_len += len;
	return 0;
}

static void
in_event(void *arg, int fd, short revents)
{
	(void)fd;
	(void)revents;
	pump_stdin(arg);
}

void
pump_poll(struct stream *s)
{
	int	 i;

	for (i = 0; i < 2; i++) {
		if (may_read(s, i))
			poll_add(s->out_fd[i], POLLIN, out_event, s);
		else if (s->tty && s->out_fd[i] >= 0)
			s->quiet_us = now_us();
	}
	if (s->state == STREAM_RUNNING && s->hold_us > now_us())
		poll_by(s->hold_us);
	if (s->tty && s->state == STREAM_DRAINING)
		poll_by(s->quiet_us + GUEST_TTY_QUIET_MS * 1000);
	if (s->in_len > 0 && stdin_fd(s) >= 0 && s->state != STREAM_DRAINING)
		poll_add(stdin_fd(s), POLLOUT, in_event, s);
}

/*
 * What is in the pipes now is the command's; what comes later is from a child
 * that it left behind.
 */
void
pump_leader_ended(struct stream *s)
{
	int	 i;

	for (i = 0; i < 2; i++) {
		s->drain[i] = 0;
		if (s->out_fd[i] >= 0 &&
		    ioctl(s->out_fd[i], FIONREAD, &s->drain[i]) == -1)
			s->drain[i] = 0;
	}
	s->quiet_us = now_us();
}

int
pump_drained(const struct stream *s)
{
	if (s->tty)
		return s->out_fd[0] < 0 ||
		    now_us() >= s->quiet_us + GUEST_TTY_QUIET_MS * 1000;
	return (s->out_fd[0] < 0 || s->drain[0] == 0) &&
	    (s->out_fd[1] < 0 || s->drain[1] == 0);
}

static void
discard_event(void *arg, int fd, short revents)
{
	static uint8_t	 nowhere[65536];
	int		*slot = arg;
	ssize_t		 n;

	(void)revents;
	n = read(fd, nowhere, sizeof(nowhere));
	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		close_fd(slot);
}

void
discard_poll(void)
{
	unsigned int	 i, left = 0;

	for (i = 0; i < discard.count; i++) {
		if (discard.fd[i] < 0)
			continue;
		left = i + 1;
		poll_add(discard.fd[i], POLLIN, discard_event, &discard.fd[i]);
	}
	discard.count = left;
}

/* The child shall not die of SIGPIPE nor stop because nobody reads. */
static void
discard_add(int fd)
{
	unsigned int	 i;

	for (i = 0; i < discard.count && discard.fd[i] >= 0; i++)
		continue;
	if (i == GUEST_DISCARD_MAX) {
		i = discard.oldest++ % GUEST_DISCARD_MAX;
		(void)close(discard.fd[i]);
	} else if (i == discard.count)
		discard.count++;
	discard.fd[i] = fd;
}

static int
has_ended(int fd)
{
	struct pollfd	 p = { fd, POLLIN, 0 };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN) == 0 &&
	    (p.revents & POLLHUP) != 0;
}

/* The leader has ended and its output is out. */
void
pump_finish(struct stream *s)
{
	int	 i;

	for (i = 0; i < 2; i++) {
		if (s->out_fd[i] < 0 || s->killed || s->lost)
			continue;
		if (has_ended(s->out_fd[i])) {
			out_ended(s, i);
			continue;
		}
		discard_add(s->out_fd[i]);
		s->out_fd[i] = -1;
	}
}

void
pump_close(struct stream *s)
{
	close_fd(&s->out_fd[0]);
	close_fd(&s->out_fd[1]);
	close_fd(&s->in_fd);
	free(s->in_buf);
	s->in_buf = NULL;
	s->in_len = 0;
}
