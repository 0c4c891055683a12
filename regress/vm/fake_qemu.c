/* SPDX-License-Identifier: ISC */
/*
 * Plays a QEMU that its guest has taken over: static, run by vmm in a real jail
 * in QEMU's place (hostile_vmm.py).  The number after -smp says what it does.
 */
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MONITOR		3	/* vmmctl/qemu_args.h */

int	main(int, char **);

static int
mode_of(int argc, char **argv)
{
	int	 i;

	for (i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "-smp") == 0)
			return atoi(argv[i + 1]);
	return 0;
}

static void
say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) == -1)
		_exit(9);
}

/* A monitor that works, up to the answer to query-status. */
static int
shake_hands(void)
{
	char	 buf[256];
	int	 fd;

	fd = accept(MONITOR, NULL, NULL);
	say(fd, "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n");
	(void)!read(fd, buf, sizeof(buf));
	say(fd, "{\"return\": {}}\r\n");
	say(fd, "{\"return\": {\"status\": \"running\"}}\r\n");
	return fd;
}

static void
flood(int fd, const char *text)
{
	char	 block[4096];
	size_t	 n = strlen(text), i;

	for (i = 0; i < sizeof(block); i++)
		block[i] = text[i % n];
	while (write(fd, block, sizeof(block) / n * n) != -1 ||
	    errno == EAGAIN)
		continue;
}

/* What root could do; each must be refused. */
static void
try_escape(void)
{
	fprintf(stderr, "setuid %d chroot %d mount %d mknod %d unshare %d"
	    " write %d pid %d fds ", setuid(0), chroot("/"),
	    mount("none", "/usr", "tmpfs", 0, NULL),
	    mknod("/x", S_IFCHR | 0600, 0x103), unshare(0x10000000),
	    open("/x", O_WRONLY | O_CREAT, 0600), (int)getpid());
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			fprintf(stderr, "%d,", fd);
}

static void
look_at_kvm(void)
{
	struct stat	 st;
	int		 fd;

	if (stat("/dev/kvm", &st) == -1) {
		fprintf(stderr, "no kvm node");
		return;
	}
	/* Opened, not used. */
	fd = open("/dev/kvm", O_RDWR);
	fprintf(stderr, "kvm node %o own %d opens %d", st.st_mode,
	    st.st_uid == getuid() && st.st_gid == getgid(), fd >= 0);
}

int
main(int argc, char **argv)
{
	int	 i;

	switch (mode_of(argc, argv)) {
	case 0:			/* --version */
		printf("fake version 1.0 \033\n");
		return 0;
	case 1:
		look_at_kvm();
		return 3;
	case 2:
		say(accept(MONITOR, NULL, NULL), "\x01\xff garbage\r\n");
		break;
	case 3:
		flood(accept(MONITOR, NULL, NULL), "x");
		break;
	case 4:			/* silent for ever */
		break;
	case 5:			/* closes its monitor, goes on running */
		(void)close(shake_hands());
		break;
	case 6:
		say(shake_hands(), "{\"event\": \"STOP\"}\r\nnonsense\r\n");
		break;
	case 7:
		for (i = 0; i < 4096; i++)
			(void)!write(2, "\033[31mred\a\xff\n............", 24);
		return 5;
	case 8:
		return 0;
	case 9:			/* children that do not want to die */
		for (i = 0; i < 20 && fork() != 0; i++)
			continue;
		if (i < 20)
			break;
		(void)shake_hands();
		break;
	case 10:
		flood(shake_hands(), "{\"event\": \"RTC_CHANGE\"}\r\n");
		break;
	case 11:
		try_escape();
		return 4;
	case 12:		/* says what only a dying guest should */
		i = shake_hands();
		say(i, "{\"event\": \"SHUTDOWN\", \"data\": {\"reason\": "
		    "\"\\u001b[2Jroot\\n\"}}\r\n");
		return 0;
	case 13:
		return *(volatile int *)8;
	}
	for (;;)
		(void)pause();
}
