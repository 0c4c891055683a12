/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "state.h"

static const char *const states[STATE_COUNT] = {
	"none", "creating", "running", "paused", "deleting", "failed", "deleted"
};
static const char *const disconnects[ON_DISCONNECT_COUNT] = {
	"", "delete", "keep"
};

const char *
state_name(unsigned int s)
{
	return s < STATE_COUNT ? states[s] : "unknown";
}

const char *
on_disconnect_name(unsigned int d)
{
	return d < ON_DISCONNECT_COUNT ? disconnects[d] : "unknown";
}

enum sandbox_state
state_by_name(const char *name)
{
	unsigned int	 s;

	for (s = STATE_NONE + 1; s < STATE_COUNT; s++)
		if (strcmp(states[s], name) == 0)
			return (enum sandbox_state)s;
	return STATE_NONE;
}

enum on_disconnect
on_disconnect_by_name(const char *name)
{
	unsigned int	 d;

	for (d = 0; d < ON_DISCONNECT_COUNT; d++)
		if (strcmp(disconnects[d], name) == 0)
			break;
	return (enum on_disconnect)d;
}
