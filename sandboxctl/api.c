/* SPDX-License-Identifier: ISC */
/*
 * Calls of the API, and what the words of a user stand for.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>
#include <json-c/json.h>

#include "api.h"
#include "client.h"
#include "id.h"
#include "json.h"

#define HEAD_MAX	1024

static int
parse(const char *body, size_t len, struct json_object **out, struct fault *f)
{
	struct json_error	 err;

	if (json_parse(body, len, CTL_VALUES_MAX, out, &err) == 0 &&
	    json_object_is_type(*out, json_type_object))
		return 0;
	return fault_set(f, CTL_ERROR, "%s: sandboxd's answer is no JSON "
	    "object (is this really sandboxd's socket?)", ctl.socket);
}

const char *
api_text(struct json_object *o, const char *name)
{
	struct json_object	*v;

	if (o == NULL || !json_object_object_get_ex(o, name, &v) || v == NULL)
		return "";
	if (json_object_is_type(v, json_type_object) ||
	    json_object_is_type(v, json_type_array))
		return "";
	return json_object_get_string(v);
}

int64_t
api_number(struct json_object *o, const char *name)
{
	struct json_object	*v;

	if (o == NULL || !json_object_object_get_ex(o, name, &v) ||
	    !json_object_is_type(v, json_type_int))
		return -1;
	return json_object_get_int64(v);
}

static enum ctl_exit
exit_for(int status)
{
	if (status == 404)
		return CTL_NOT_FOUND;
	if (status == 408 || status == 504)
		return CTL_TIMEOUT;
	return CTL_ERROR;
}

int
api_problem(int status, const char *body, size_t len, struct fault *f)
{
	struct json_object	*o = NULL;
	struct fault		 ignored;
	const char		*title, *detail, *retry;
	char			 wait[64] = "";

	f->status = status;
	if (len == 0 || parse(body, len, &o, &ignored) == -1) {
		json_object_put(o);
		return fault_set(f, exit_for(status),
		    "sandboxd answered with status %d and no reason", status);
	}
	title = api_text(o, "title");
	detail = api_text(o, "detail");
	retry = api_text(o, "retry_after_s");
	if (retry[0] != '\0')
		(void)snprintf(wait, sizeof(wait), "; try again in %.16s s",
		    retry);
	(void)fault_set(f, exit_for(status), "%.200s%s%.600s%s",
	    title[0] != '\0' ? title : "refused", detail[0] != '\0' ?
	    ": " : "", detail, wait);
	json_object_put(o);
	return -1;
}

static int
send_request(struct client *c, const struct api_call *a, struct fault *f)
{
	char	 head[HEAD_MAX], length[48] = "";
	int	 n;

	if (a->body != NULL)
		(void)snprintf(length, sizeof(length),
		    "Content-Length: %zu\r\n", strlen(a->body));
	n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: sandboxd\r\n"
	    "User-Agent: sandboxctl/" SBX_VERSION "\r\nConnection: close\r\n"
	    "%s%s%s%s%s\r\n", a->method, a->target, a->body != NULL ?
	    "Content-Type: application/json\r\n" : "", length,
	    a->key != NULL ? "Idempotency-Key: " : "",
	    a->key != NULL ? a->key : "", a->key != NULL ? "\r\n" : "");
	if (n < 0 || (size_t)n >= sizeof(head))
		return fault_set(f, CTL_ERROR, "request is too long");
	if (client_send(c, head, (size_t)n, f) == -1)
		return -1;
	return a->body == NULL ? 0 :
	    client_send(c, a->body, strlen(a->body), f);
}

int
api_call(struct api_call *a, struct fault *f)
{
	struct client	*c;
	struct reply	 r;
	int		 ok = -1;

	a->answer = NULL;
	memset(&r, 0, sizeof(r));
	f->status = 0;
	c = client_new(f);
	if (c == NULL)
		return -1;
	c->signals_max = a->signals_max;
	client_set_deadline(c, a->deadline_ms != 0 ? a->deadline_ms :
	    CTL_REQUEST_MS);
	if (send_request(c, a, f) == -1 ||
	    client_read_head(c, &r, f) == -1 ||
	    client_read_body(c, &r, f) == -1)
		goto done;
	a->status = r.status;
	if (r.status < 200 || r.status > 299)
		(void)api_problem(r.status, r.body, r.len, f);
	else if (r.len == 0)
		ok = 0;
	else
		ok = parse(r.body, r.len, &a->answer, f);
done:
	reply_clear(&r);
	client_free(c);
	return ok;
}

static int
bad_list(struct fault *f)
{
	return fault_set(f, CTL_ERROR, "%s: sandboxd's list of sandboxes makes "
	    "no sense (is this really sandboxd's socket?)", ctl.socket);
}

/* Moves one page's sandboxes to the array; *next gets the cursor or "". */
static int
take_page(struct json_object *page, struct json_object *all, char *next,
    struct fault *f)
{
	struct json_object	*list, *o;
	const char		*cursor;
	size_t			 i, n;

	if (!json_object_object_get_ex(page, "sandboxes", &list) ||
	    !json_object_is_type(list, json_type_array))
		return bad_list(f);
	n = json_object_array_length(list);
	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(list, i);
		if (!json_object_is_type(o, json_type_object) ||
		    !id_valid(api_text(o, "sandbox_id")))
			return bad_list(f);
		if (json_object_array_add(all, json_object_get(o)) != 0)
			return fault_set(f, CTL_ERROR, "out of memory");
	}
	cursor = api_text(page, "next");
	if (cursor[0] != '\0' && (!id_valid(cursor) || n == 0))
		return bad_list(f);
	(void)strlcpy(next, cursor, SBX_ID_LEN + 1);
	return 0;
}

int
api_list(struct json_object **out, struct fault *f)
{
	struct json_object	*all;
	char			 target[128], next[SBX_ID_LEN + 1] = "";
	struct api_call		 a = { .method = "GET", .target = target };
	int			 pages, r;

	all = json_object_new_array();
	for (pages = 0; all != NULL && pages < CTL_PAGES_MAX; pages++) {
		(void)snprintf(target, sizeof(target),
		    "/v1/sandboxes?limit=%d%s%s", CTL_PAGE,
		    next[0] != '\0' ? "&after=" : "", next);
		if (api_call(&a, f) == -1)
			goto fail;
		r = take_page(a.answer, all, next, f);
		json_object_put(a.answer);
		if (r == -1)
			goto fail;
		if (next[0] == '\0') {
			*out = all;
			return 0;
		}
	}
	(void)fault_set(f, CTL_ERROR, all == NULL ? "out of memory" :
	    "the list of sandboxes does not end");
fail:
	json_object_put(all);
	return -1;
}

/* Adds to a list of candidates in a message, until it is full. */
static void
add_candidate(struct fault *f, const char *id, const char *name)
{
	size_t	 len = strlen(f->text);
	char	 safe[128];

	if (len + SBX_ID_LEN + 128 > sizeof(f->text)) {
		if (f->text[len - 1] != '.')
			(void)strlcat(f->text, " ...", sizeof(f->text));
		return;
	}
	(void)text_safe(safe, sizeof(safe), name, strlen(name));
	(void)snprintf(f->text + len, sizeof(f->text) - len, "%s%s%s%s%s",
	    f->text[len - 1] == ':' ? " " : ", ", id, safe[0] != '\0' ?
	    " (" : "", safe, safe[0] != '\0' ? ")" : "");
}

static int
matches(struct json_object *o, const char *word, int by_name)
{
	const char	*id = api_text(o, "sandbox_id");

	if (by_name)
		return strcmp(api_text(o, "name"), word) == 0;
	return strncmp(id, word, strlen(word)) == 0 ||
	    strncmp(id + 3, word, strlen(word)) == 0;
}

/* Matches in the list: the number, and the last one's id. */
static unsigned int
find(struct json_object *list, const char *word, int by_name, char *id,
    struct fault *f)
{
	struct json_object	*o;
	unsigned int		 found = 0;
	size_t			 i;

	(void)fault_set(f, CTL_ERROR, "\"%.64s\" may be each of these:", word);
	for (i = 0; i < json_object_array_length(list); i++) {
		o = json_object_array_get_idx(list, i);
		if (!matches(o, word, by_name))
			continue;
		found++;
		(void)strlcpy(id, api_text(o, "sandbox_id"), SBX_ID_LEN + 1);
		add_candidate(f, id, api_text(o, "name"));
	}
	return found;
}

int
api_resolve(const char *word, char *id, struct fault *f)
{
	struct json_object	*list;
	unsigned int		 n;

	if (id_valid(word)) {
		(void)strlcpy(id, word, SBX_ID_LEN + 1);
		return 0;
	}
	/* Names come from users: one never hides behind another's id. */
	if (!name_valid(word))
		return fault_set(f, CTL_NOT_FOUND,
		    "\"%.64s\" is no sandbox's id or name", word);
	if (api_list(&list, f) == -1)
		return -1;
	n = find(list, word, 1, id, f);
	if (n == 0)
		n = find(list, word, 0, id, f);
	json_object_put(list);
	if (n == 0)
		return fault_set(f, CTL_NOT_FOUND, "no sandbox's id begins "
		    "with \"%.64s\", and none has this name", word);
	return n == 1 ? 0 : -1;
}

int
api_delete(const char *id, unsigned int signals_max, struct fault *f)
{
	char		 target[64];
	struct api_call	 a = { .method = "DELETE", .target = target,
			    .signals_max = signals_max };

	(void)snprintf(target, sizeof(target), "/v1/sandboxes/%s", id);
	if (api_call(&a, f) == -1)
		return -1;
	json_object_put(a.answer);
	if (a.status == 202)
		return fault_set(f, CTL_TIMEOUT, "%s: is still being deleted; "
		    "sandboxd goes on with it", id);
	return 0;
}

int
api_show(const char *id, struct json_object **out, struct fault *f)
{
	char		 target[64];
	struct api_call	 a = { .method = "GET", .target = target };

	(void)snprintf(target, sizeof(target), "/v1/sandboxes/%s", id);
	if (api_call(&a, f) == -1)
		return -1;
	if (a.answer == NULL || !id_valid(api_text(a.answer, "sandbox_id"))) {
		json_object_put(a.answer);
		return fault_set(f, CTL_ERROR, "%s: sandboxd's answer names "
		    "no sandbox", id);
	}
	*out = a.answer;
	return 0;
}
