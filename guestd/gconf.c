/* SPDX-License-Identifier: ISC */
/*
 * CONFIG: what makes one sandbox differ from another of its template.  Applied
 * in full; the first failure is told to the host.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <linux/random.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guestd.h"

#define ENTROPY_MAX	64

struct conf {
	char		 hostname[65];
	char		 address[32];
	char		 dns[SBX_DNS_MAX * 64];
	int		 dns_count;
	char		 machine_id[34];
	struct net_config net;
	uint64_t	 time_ns;
	uint8_t		 entropy[ENTROPY_MAX];
	size_t		 entropy_len;
};

static int
copy_string(const struct gp_record *r, char *buf, size_t size)
{
	if (r->len == 0 || r->len >= size ||
	    memchr(r->data, '\0', r->len) != NULL ||
	    memchr(r->data, '\n', r->len) != NULL)
		return EINVAL;
	memcpy(buf, r->data, r->len);
	buf[r->len] = '\0';
	return 0;
}

static int
take_ip(const struct gp_record *r, uint32_t *ip, int *prefix)
{
	char		 text[32], *slash, *end;
	struct in_addr	 in;
	long		 n;

	if (copy_string(r, text, sizeof(text)) != 0)
		return EINVAL;
	if (prefix != NULL) {
		slash = strchr(text, '/');
		if (slash == NULL)
			return EINVAL;
		*slash++ = '\0';
		n = strtol(slash, &end, 10);
		if (end == slash || *end != '\0' || n < 1 || n > 32)
			return EINVAL;
		*prefix = (int)n;
	}
	if (inet_pton(AF_INET, text, &in) != 1)
		return EINVAL;
	*ip = in.s_addr;
	return 0;
}

static int
take_mac(const struct gp_record *r, struct net_config *net)
{
	char		 text[18];
	unsigned int	 b[6];
	int		 i;

	if (r->len != 17 || copy_string(r, text, sizeof(text)) != 0 ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3],
	    &b[4], &b[5]) != 6)
		return EINVAL;
	for (i = 0; i < 6; i++)
		net->mac[i] = (uint8_t)b[i];
	net->have_mac = 1;
	return 0;
}

static int
take_dns(const struct gp_record *r, struct conf *c)
{
	char		 text[64];
	uint8_t		 in[16];
	size_t		 len = strlen(c->dns);

	if (c->dns_count >= SBX_DNS_MAX ||
	    copy_string(r, text, sizeof(text)) != 0 ||
	    (inet_pton(AF_INET, text, in) != 1 &&
	    inet_pton(AF_INET6, text, in) != 1))
		return EINVAL;
	c->dns_count++;
	(void)snprintf(c->dns + len, sizeof(c->dns) - len, "nameserver %s\n",
	    text);
	return 0;
}

static int
take_machine_id(const struct gp_record *r, struct conf *c)
{
	if (r->len != 32 || copy_string(r, c->machine_id, 33) != 0 ||
	    strspn(c->machine_id, "0123456789abcdef") != 32)
		return EINVAL;
	memcpy(c->machine_id + 32, "\n", 2);
	return 0;
}

static int
take_numbers(const struct gp_record *r, struct conf *c)
{
	switch (r->tag) {
	case GP_CONFIG_MTU:
		if (r->len != 2 || gp_get_u16(r->data) < 68)	/* RFC 791 */
			return EINVAL;
		c->net.mtu = gp_get_u16(r->data);
		return 0;
	case GP_CONFIG_TIME:
		if (r->len != 8)
			return EINVAL;
		c->time_ns = gp_get_u64(r->data);
		return 0;
	}
	if (r->len == 0 || r->len > ENTROPY_MAX)
		return EINVAL;
	memcpy(c->entropy, r->data, r->len);
	c->entropy_len = r->len;
	return 0;
}

static int
take_record(const struct gp_record *r, struct conf *c)
{
	switch (r->tag) {
	case GP_CONFIG_HOSTNAME:
		return copy_string(r, c->hostname, sizeof(c->hostname));
	case GP_CONFIG_ADDRESS:
		if (take_ip(r, &c->net.address, &c->net.prefix) != 0)
			return EINVAL;
		(void)copy_string(r, c->address, sizeof(c->address));
		c->address[strcspn(c->address, "/")] = '\0';
		return 0;
	case GP_CONFIG_GATEWAY:
		return take_ip(r, &c->net.gateway, NULL);
	case GP_CONFIG_MAC:
		return take_mac(r, &c->net);
	case GP_CONFIG_DNS:
		return take_dns(r, c);
	case GP_CONFIG_MACHINE_ID:
		return take_machine_id(r, c);
	case GP_CONFIG_MTU:
	case GP_CONFIG_TIME:
	case GP_CONFIG_ENTROPY:
		return take_numbers(r, c);
	}
	return EINVAL;
}

/*
 * A fresh file in the place of whatever was there: a link, dangling or not, is
 * replaced and not followed.
 */
static int
file_replace(const char *path, const char *text, mode_t mode)
{
	static const char	 tmp[] = "/etc/.sandboxd-new";
	size_t			 len = strlen(text);
	int			 fd, error = 0;

	(void)unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    mode);
	if (fd == -1)
		return errno;
	if (write(fd, text, len) != (ssize_t)len)
		error = ENOSPC;
	(void)close(fd);
	if (error == 0 && rename(tmp, path) == -1)
		error = errno;
	if (error != 0)
		(void)unlink(tmp);
	return error;
}

static int
set_hostname(const struct conf *c)
{
	char	 hosts[512], line[80];
	int	 error;

	if (sethostname(c->hostname, strlen(c->hostname)) == -1)
		return errno;
	(void)snprintf(line, sizeof(line), "%s\n", c->hostname);
	(void)snprintf(hosts, sizeof(hosts), "127.0.0.1\tlocalhost\n"
	    "::1\tlocalhost ip6-localhost ip6-loopback\n%s\t%s\n",
	    c->address[0] != '\0' ? c->address : "127.0.1.1", c->hostname);
	error = file_replace("/etc/hostname", line, 0644);
	return error != 0 ? error : file_replace("/etc/hosts", hosts, 0644);
}

static int
set_time(const struct conf *c)
{
	struct timespec	 ts;

	ts.tv_sec = (time_t)(c->time_ns / 1000000000);
	ts.tv_nsec = (long)(c->time_ns % 1000000000);
	return clock_settime(CLOCK_REALTIME, &ts) == -1 ? errno : 0;
}

/* The kernel's generator takes it at once, not at its next turn. */
static int
add_entropy(const struct conf *c)
{
	struct {
		struct rand_pool_info	 head;
		uint8_t			 bytes[ENTROPY_MAX];
	} pool;
	int	 error = 0;

	pool.head.entropy_count = (int)c->entropy_len * 8;
	pool.head.buf_size = (int)c->entropy_len;
	memcpy(pool.head.buf, c->entropy, c->entropy_len);
	if (ioctl(guest.random_fd, RNDADDENTROPY, &pool) == -1 ||
	    ioctl(guest.random_fd, RNDRESEEDCRNG) == -1)
		error = errno;
	explicit_bzero(&pool, sizeof(pool));
	return error;
}

struct outcome {
	int	 error;
	char	*text;
	size_t	 size;
};

static void
outcome_add(struct outcome *o, const char *what, int error)
{
	if (error == 0 || o->error != 0)
		return;
	o->error = error;
	(void)snprintf(o->text, o->size, "%s: %s", what, strerror(error));
}

static void
apply(const struct conf *c, struct outcome *o)
{
	const char	*what = "network";
	int		 error;

	if (c->entropy_len > 0)
		outcome_add(o, "entropy", add_entropy(c));
	if (c->time_ns != 0)
		outcome_add(o, "clock", set_time(c));
	if (c->hostname[0] != '\0')
		outcome_add(o, "hostname and /etc/hosts", set_hostname(c));
	if (c->dns_count > 0)
		outcome_add(o, "/etc/resolv.conf",
		    file_replace("/etc/resolv.conf", c->dns, 0644));
	if (c->machine_id[0] != '\0')
		outcome_add(o, "/etc/machine-id",
		    file_replace("/etc/machine-id", c->machine_id, 0444));
	if (c->net.have_mac || c->net.mtu != 0 || c->net.address != 0) {
		error = net_apply(&c->net, &what);
		outcome_add(o, what, error);
	}
}

int
conf_apply(const uint8_t *p, size_t len, char *text, size_t size)
{
	static struct conf	 c;
	struct gp_record	 r;
	struct outcome		 o = { 0, text, size };
	char			 what[16];
	int			 more;

	memset(&c, 0, sizeof(c));
	while ((more = gp_record_next(&p, &len, &r)) == 1) {
		(void)snprintf(what, sizeof(what), "record 0x%02x", r.tag);
		outcome_add(&o, what, take_record(&r, &c));
	}
	if (more == -1)
		outcome_add(&o, "records", EINVAL);
	/* Half of an identity is worse than none. */
	if (o.error == 0 && !guest.test)
		apply(&c, &o);
	explicit_bzero(c.entropy, sizeof(c.entropy));
	return o.error;
}
