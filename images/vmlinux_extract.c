/* SPDX-License-Identifier: ISC */
/*
 * vmlinux_extract BZIMAGE OUT: takes the uncompressed kernel out of a
 * distribution's bzImage, at build time.  Booting the ELF by its PVH entry
 * saves the guest the decompression, 240 ms under software emulation.
 *
 * The bzImage is trusted to be a kernel but not to be well formed: every offset
 * and length in it is checked against the file.  Linux boot protocol
 * (Documentation/x86/boot.rst, 2.08 or later) and LZ4's legacy frame
 * (lz4_Frame_format.md), which is what Debian's kernels use.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lz4.h>

#define SETUP_SECTS		0x1f1
#define BOOT_FLAG		0x1fe	/* 0xaa55 */
#define HEADER_MAGIC		0x202	/* "HdrS" */
#define PROTOCOL_VERSION	0x206
#define PAYLOAD_OFFSET		0x248
#define PAYLOAD_LENGTH		0x24c
#define HEADER_END		0x250
#define SECTOR			512
#define PROTOCOL_MIN		0x0208	/* first with a payload */

#define LZ4_LEGACY_MAGIC	0x184c2102U
#define LZ4_BLOCK_MAX		(8 << 20)	/* bytes out of one block */
#define KERNEL_MAX		(512 << 20)	/* bytes; more is no kernel */

#define NOTE_PVH_ENTRY		18	/* XEN_ELFNOTE_PHYS32_ENTRY */

struct span {
	const uint8_t	*p;
	size_t		 len;
};

static const char	*in_path;

static uint32_t
get32(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

/* The whole file, mapped for good: this program ends when it is done. */
static struct span
file_map(const char *path)
{
	struct stat	 st;
	struct span	 s;
	void		*p;
	int		 fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1)
		err(1, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_size < HEADER_END)
		errx(1, "%s: too short for a kernel", path);
	s.len = (size_t)st.st_size;
	p = mmap(NULL, s.len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		err(1, "%s: mmap", path);
	s.p = p;
	(void)close(fd);	/* the mapping stays */
	return s;
}

/* The compressed kernel and, as its last four bytes, its size. */
static struct span
payload_find(struct span file)
{
	struct span	 s;
	size_t		 start, setup;
	unsigned int	 version;

	if (get16(file.p + BOOT_FLAG) != 0xaa55 ||
	    memcmp(file.p + HEADER_MAGIC, "HdrS", 4) != 0)
		errx(1, "%s: no Linux boot header: not an x86 bzImage",
		    in_path);
	version = get16(file.p + PROTOCOL_VERSION);
	if (version < PROTOCOL_MIN)
		errx(1, "%s: boot protocol %u.%02u is older than 2.08 and "
		    "names no payload", in_path, version >> 8, version & 255);
	setup = file.p[SETUP_SECTS] != 0 ? file.p[SETUP_SECTS] : 4;
	start = (setup + 1) * SECTOR + get32(file.p + PAYLOAD_OFFSET);
	s.len = get32(file.p + PAYLOAD_LENGTH);
	if (start > file.len || s.len > file.len - start || s.len < 8)
		errx(1, "%s: payload of %zu bytes at %zu is not inside the "
		    "file of %zu bytes", in_path, s.len, start, file.len);
	s.p = file.p + start;
	return s;
}

/* Names a compression that we do not take apart. */
static const char *
compression_name(const uint8_t *p)
{
	if (p[0] == 0x1f && p[1] == 0x8b)
		return "gzip";
	if (memcmp(p, "\xfd" "7zXZ", 5) == 0)
		return "xz";
	if (get32(p) == 0xfd2fb528U)
		return "zstd";
	if (memcmp(p, "BZh", 3) == 0)
		return "bzip2";
	if (memcmp(p, "\x89" "LZO", 4) == 0)
		return "lzo";
	if (p[0] == 0x5d && p[1] == 0 && p[2] == 0)
		return "lzma";
	return "an unknown";
}

/*
 * All blocks of the frame.  Gives memory that the caller frees and in *len its
 * size, exactly the one promised.
 */
static uint8_t *
lz4_unpack(struct span in, size_t *len)
{
	uint8_t		*buf;
	size_t		 at, end, have, want;
	uint32_t	 block;
	int		 n, room;

	end = in.len - 4;
	want = get32(in.p + end);
	if (want < sizeof(Elf64_Ehdr) || want > KERNEL_MAX)
		errx(1, "%s: says that its kernel has %zu bytes", in_path,
		    want);
	buf = malloc(want);
	if (buf == NULL)
		err(1, "malloc of %zu bytes", want);
	for (at = 4, have = 0; at < end && have < want;) {
		if (end - at < 4)
			errx(1, "%s: LZ4 frame ends inside a block length",
			    in_path);
		block = get32(in.p + at);
		at += 4;
		if (block == LZ4_LEGACY_MAGIC)	/* frames may follow a frame */
			continue;
		if (block > end - at ||
		    block > LZ4_COMPRESSBOUND(LZ4_BLOCK_MAX))
			errx(1, "%s: LZ4 block of %u bytes at %zu is longer "
			    "than its frame", in_path, block, at);
		room = want - have < LZ4_BLOCK_MAX ? (int)(want - have) :
		    LZ4_BLOCK_MAX;
		n = LZ4_decompress_safe((const char *)in.p + at,
		    (char *)buf + have, (int)block, room);
		if (n <= 0)
			errx(1, "%s: LZ4 block at %zu is damaged", in_path, at);
		at += block;
		have += (size_t)n;
	}
	if (have != want || at != end)
		errx(1, "%s: unpacked %zu of %zu bytes, %zu of %zu bytes read",
		    in_path, have, want, at, end);
	*len = have;
	return buf;
}

/* Is there a PVH entry note in this segment?  Names and data pad to 4. */
static int
notes_have_pvh(const uint8_t *p, size_t len)
{
	size_t		 namesz, descsz, step;

	while (len >= sizeof(Elf64_Nhdr)) {
		namesz = get32(p);
		descsz = get32(p + 4);
		if (namesz > len || descsz > len)
			return 0;
		step = sizeof(Elf64_Nhdr) + ((namesz + 3) & ~(size_t)3);
		if (step + descsz > len)
			return 0;
		if (get32(p + 8) == NOTE_PVH_ENTRY && namesz == 4 &&
		    memcmp(p + sizeof(Elf64_Nhdr), "Xen", 4) == 0)
			return 1;
		step += (descsz + 3) & ~(size_t)3;
		if (step > len)
			return 0;
		p += step;
		len -= step;
	}
	return 0;
}

/* A 64-bit x86 ELF that QEMU's microvm can enter; else says why not. */
static void
elf_check(struct span s)
{
	Elf64_Ehdr	 eh;
	Elf64_Phdr	 ph;
	unsigned int	 i;

	memcpy(&eh, s.p, sizeof(eh));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != EM_X86_64)
		errx(1, "%s: what is packed in it is no x86-64 ELF", in_path);
	if (eh.e_phentsize != sizeof(ph) || eh.e_phoff > s.len ||
	    (s.len - eh.e_phoff) / sizeof(ph) < eh.e_phnum)
		errx(1, "%s: the ELF's program headers are outside of it",
		    in_path);
	for (i = 0; i < eh.e_phnum; i++) {
		memcpy(&ph, s.p + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_offset > s.len || ph.p_filesz > s.len - ph.p_offset)
			errx(1, "%s: the ELF's segment %u is outside of it",
			    in_path, i);
		if (ph.p_type == PT_NOTE &&
		    notes_have_pvh(s.p + ph.p_offset, ph.p_filesz))
			return;
	}
	errx(1, "%s: the kernel has no PVH entry (CONFIG_PVH); QEMU's microvm "
	    "cannot start its ELF", in_path);
}

/* make(1) removes the target of a failed command: no renaming needed. */
static void
file_write(const char *path, struct span s)
{
	size_t		 done;
	ssize_t		 n;
	int		 fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd == -1)
		err(1, "%s", path);
	for (done = 0; done < s.len; done += (size_t)n) {
		n = write(fd, s.p + done, s.len - done);
		if (n <= 0)
			err(1, "%s: write", path);
	}
	if (close(fd) == -1)
		err(1, "%s: close", path);
}

int
main(int argc, char *argv[])
{
	struct span	 payload, kernel;
	uint8_t		*buf;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: vmlinux_extract bzImage out\n");
		return 2;
	}
	in_path = argv[1];
	payload = payload_find(file_map(argv[1]));
	if (get32(payload.p) != LZ4_LEGACY_MAGIC)
		errx(1, "%s: the kernel is packed with %s compression; only "
		    "LZ4 (Debian's) is understood", in_path,
		    compression_name(payload.p));
	buf = lz4_unpack(payload, &kernel.len);
	kernel.p = buf;
	elf_check(kernel);
	file_write(argv[2], kernel);
	free(buf);
	return 0;
}
