/* SPDX-License-Identifier: ISC */
/*
 * What is said to a client about its command.  Runs in front.
 */
#include <signal.h>
#include <string.h>

#include "exec_event.h"

void
exec_event_started(struct json_out *out, uint32_t pid)
{
	json_put_object(out);
	json_put_key_string(out, "type", "process_started");
	json_put_key_u64(out, "pid", pid);
	json_put_object_end(out);
}

void
exec_put_result(struct json_out *out, const struct exec_result *r)
{
	json_put_key(out, "exit_code");
	json_put_i64(out, r->exit_code);
	json_put_key(out, "signal");
	if (r->signal != 0)
		json_put_i64(out, r->signal);
	else
		json_put_null(out);
	json_put_key_bool(out, "timed_out", r->timed_out);
	json_put_key_bool(out, "oom_killed", r->oom_killed);
	json_put_key_u64(out, "duration_ms", r->duration_ms);
	json_put_key_u64(out, "stdout_bytes", r->stdout_bytes);
	json_put_key_u64(out, "stderr_bytes", r->stderr_bytes);
	if (r->error[0] != '\0') {
		json_put_key(out, "error");
		json_put_lossy(out, r->error, strlen(r->error));
	}
}

void
exec_event_exited(struct json_out *out, const struct exec_result *r)
{
	json_put_object(out);
	json_put_key_string(out, "type", "process_exited");
	exec_put_result(out, r);
	json_put_object_end(out);
}

void
exec_event_error(struct json_out *out, enum sbx_error error,
    const char *detail)
{
	json_put_object(out);
	json_put_key_string(out, "type", "error");
	json_put_key_string(out, "code", error_code(error));
	json_put_key(out, "detail");
	json_put_lossy(out, detail, strlen(detail));
	json_put_object_end(out);
}

static const struct {
	const char	*name;
	int		 number;
} signals[] = {
	{ "HUP", SIGHUP }, { "INT", SIGINT }, { "QUIT", SIGQUIT },
	{ "ILL", SIGILL }, { "TRAP", SIGTRAP }, { "ABRT", SIGABRT },
	{ "BUS", SIGBUS }, { "FPE", SIGFPE }, { "KILL", SIGKILL },
	{ "USR1", SIGUSR1 }, { "SEGV", SIGSEGV }, { "USR2", SIGUSR2 },
	{ "PIPE", SIGPIPE }, { "ALRM", SIGALRM }, { "TERM", SIGTERM },
	{ "CHLD", SIGCHLD }, { "CONT", SIGCONT }, { "STOP", SIGSTOP },
	{ "TSTP", SIGTSTP }, { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU },
	{ "URG", SIGURG }, { "XCPU", SIGXCPU }, { "XFSZ", SIGXFSZ },
	{ "VTALRM", SIGVTALRM }, { "PROF", SIGPROF }, { "WINCH", SIGWINCH },
	{ "IO", SIGIO }, { "PWR", SIGPWR }, { "SYS", SIGSYS }
};

int
exec_signal_number(const char *name)
{
	size_t	 i;

	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strcmp(signals[i].name, name) == 0)
			return signals[i].number;
	return 0;
}
