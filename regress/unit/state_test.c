/* SPDX-License-Identifier: ISC */
/* objs: libs: -lbsd */
/*
 * States and what a vanished client means, as words and numbers.  The words
 * are the API's: they may not change.
 */
#include "state.h"
#include "test.h"

TEST_PLAN_AUTO;

int
main(void)
{
	static const char	*const words[] = {
		"creating", "running", "paused", "deleting", "failed", "deleted"
	};
	static const char	*const none[] = {
		"", "none", "Running", "running ", "unknown", "gone"
	};
	unsigned int		 i;

	is_int(STATE_COUNT - 1, sizeof(words) / sizeof(words[0]),
	    "state: all are listed here");
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		is_str(state_name(i + 1), words[i], "state %u: %s", i + 1,
		    words[i]);
		is_int(state_by_name(words[i]), i + 1, "state %s: number",
		    words[i]);
	}
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		is_int(state_by_name(none[i]), STATE_NONE,
		    "state: \"%s\" is none", none[i]);
	is_str(state_name(STATE_COUNT), "unknown", "state: out of range");
	is_str(state_name(~0U), "unknown", "state: far out of range");
	is_str(on_disconnect_name(ON_DISCONNECT_UNSET), "",
	    "disconnect: unset");
	is_str(on_disconnect_name(ON_DISCONNECT_DELETE), "delete",
	    "disconnect: delete");
	is_str(on_disconnect_name(ON_DISCONNECT_KEEP), "keep",
	    "disconnect: keep");
	is_str(on_disconnect_name(99), "unknown", "disconnect: out of range");
	is_int(on_disconnect_by_name("delete"), ON_DISCONNECT_DELETE,
	    "disconnect: by name");
	is_int(on_disconnect_by_name("keep"), ON_DISCONNECT_KEEP,
	    "disconnect: by the other name");
	is_int(on_disconnect_by_name("Delete"), ON_DISCONNECT_COUNT,
	    "disconnect: no such word");
	return done_testing();
}
