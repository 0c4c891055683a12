# SPDX-License-Identifier: ISC
"""TAP output for script tests.

    t = tap.Tap()
    t.ok(good, "what: condition -> result", why)
    t.equal(got, want, "...")
    sys.exit(t.done())
"""
import signal
import traceback


def default_signals():
    """Programs that the test starts get the usual signals, also when the
    suite itself runs in the background or under nohup(1)."""
    for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(s) == signal.SIG_IGN:
            signal.signal(s, signal.SIG_DFL)


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, good, name, why=""):
        self.count += 1
        print("%sok %d - %s" % ("" if good else "not ", self.count, name),
              flush=True)
        if not good:
            self.failed += 1
            for line in str(why).splitlines():
                print("# " + line, flush=True)
        return bool(good)

    def equal(self, got, want, name):
        return self.ok(got == want, name, "got  %r\nwant %r" % (got, want))

    def skip(self, name, why):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, why), flush=True)

    def run(self, *functions):
        """Each in turn; an exception is a failed check, not the end."""
        for f in functions:
            try:
                f(self)
            except Exception:	# pylint: disable=broad-except
                self.ok(False, "%s: runs to its end" % f.__name__,
                        traceback.format_exc())

    def done(self):
        print("1..%d" % self.count)
        return 1 if self.failed else 0
