/* SPDX-License-Identifier: ISC */
/*
 * Templates.  Runs in vmm.  Their folders are the operator's, but a template's
 * name comes from a client: it is one path component of a known alphabet, and
 * nothing below leaves the folder.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "id.h"
#include "template.h"

static int
open_beneath(int dir, const char *path, uint64_t flags)
{
	struct open_how	 how;

	memset(&how, 0, sizeof(how));
	how.flags = flags | O_CLOEXEC | O_NOCTTY;
	how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

int
template_parse(const char *text, size_t len, const char *name,
    char *root, size_t size, struct fault *f)
{
	struct json_tokener	*tok;
	struct json_object	*o, *v;
	int			 r = -1;

	tok = json_tokener_new_ex(JSON_DEPTH_MAX);
	if (tok == NULL)
		return fault_set(f, E_HOST_MEMORY, "out of memory");
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT |
	    JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(tok, text, (int)len);
	if (json_object_get_type(o) != json_type_object) {
		(void)fault_set(f, E_START_FAILED,
		    "template %s: template.json is not a JSON object", name);
	} else if (!json_object_object_get_ex(o, "version", &v) ||
	    json_object_get_type(v) != json_type_int ||
	    json_object_get_int(v) != 1) {
		(void)fault_set(f, E_START_FAILED,
		    "template %s: template.json: version is not 1", name);
	} else if (!json_object_object_get_ex(o, "root", &v) ||
	    json_object_get_type(v) != json_type_string ||
	    !name_valid(json_object_get_string(v)) ||
	    strlen(json_object_get_string(v)) !=
	    (size_t)json_object_get_string_len(v) ||
	    strlcpy(root, json_object_get_string(v), size) >= size) {
		(void)fault_set(f, E_START_FAILED,
		    "template %s: template.json: root is not a file's name",
		    name);
	} else {
		r = 0;
	}
	(void)json_object_put(o);
	json_tokener_free(tok);
	return r;
}

static int
read_template(int dir, const char *name, char *root, size_t size,
    struct fault *f)
{
	char	 text[TEMPLATE_JSON_MAX + 1];
	ssize_t	 n;
	int	 fd;

	fd = open_beneath(dir, "template.json", O_RDONLY | O_NONBLOCK);
	if (fd == -1)
		return fault_errno(f, E_NO_TEMPLATE,
		    "template %s: template.json", name);
	n = read(fd, text, sizeof(text));
	(void)close(fd);
	if (n == -1)
		return fault_errno(f, E_START_FAILED,
		    "template %s: template.json", name);
	if (n == (ssize_t)sizeof(text))
		return fault_set(f, E_START_FAILED,
		    "template %s: template.json has over %d bytes", name,
		    TEMPLATE_JSON_MAX);
	return template_parse(text, (size_t)n, name, root, size, f);
}

int
template_open_root(const char *name, struct fault *f)
{
	struct stat	 st;
	char		 root[SBX_NAME_MAX + 1];
	int		 dir, fd = -1;

	if (!name_valid(name))
		return fault_set(f, E_NO_TEMPLATE, "no such template name");
	if (vmm.template_dir == -1)
		vmm.template_dir = open(vmm.cfg.template_dir,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (vmm.template_dir == -1)
		return fault_errno(f, E_NO_TEMPLATE, "template folder %s",
		    vmm.cfg.template_dir);
	dir = open_beneath(vmm.template_dir, name, O_RDONLY | O_DIRECTORY);
	if (dir == -1)
		return fault_errno(f, E_NO_TEMPLATE, "template %s", name);
	if (read_template(dir, name, root, sizeof(root), f) == -1)
		goto done;
	fd = open_beneath(dir, root, O_RDONLY | O_NONBLOCK);
	if (fd == -1) {
		(void)fault_errno(f, E_START_FAILED, "template %s: %s", name,
		    root);
	} else if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    st.st_size == 0 || st.st_size % 512 != 0) {
		(void)fault_set(f, E_START_FAILED,
		    "template %s: %s is not a disk image: no file of whole"
		    " sectors", name, root);
		(void)close(fd);
		fd = -1;
	}
done:
	(void)close(dir);
	return fd;
}
