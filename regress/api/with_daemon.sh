#!/bin/sh
# SPDX-License-Identifier: ISC
# regress: timeout=300
# with-daemon's own test: statuses, side by side, a restart, and that it sees
# what is left behind.  Without that every other test's leak check says nothing.
wd=regress/with-daemon
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
status=0

is() {	# name want got
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n - with-daemon: $1"
	else
		echo "not ok $n - with-daemon: $1"
		echo "# got $3, want $2"
		sed 's/^/# /' "$tmp/err"
		status=1
	fi
}

[ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }

$wd true 2> "$tmp/err"
is "a good command -> 0" 0 $?
$wd sh -c 'exit 7' 2> "$tmp/err"
is "exit 7 -> 7" 7 $?
$wd sh -c 'kill -9 $$' 2> "$tmp/err"
is "killed by 9 -> 137" 137 $?
$wd /nonexistent 2> "$tmp/err"
is "no such command -> 120" 120 $?
$wd -c 'no such line' true 2> "$tmp/err"
is "bad configuration -> 120" 120 $?
is "bad configuration -> its line is named" 1 \
    "$(grep -c '/conf:[0-9]*: ' "$tmp/err")"

show='echo $SANDBOXD_TAG $SANDBOXD_UIDS $SANDBOXD_STATE; sleep 2; curl -s -o \
    /dev/null -w "%{http_code}" --unix-socket $SANDBOXD_SOCKET http://x/healthz'
$wd sh -c "$show" > "$tmp/1" 2> "$tmp/err" &
one=$!
$wd sh -c "$show" > "$tmp/2" 2> "$tmp/err2"
is "second of two side by side -> 0" 0 $?
wait $one
is "first of two side by side -> 0" 0 $?
is "each of them answered" "200 200" \
    "$(tail -n 1 "$tmp/1") $(tail -n 1 "$tmp/2")"
same=0
for i in 1 2 4; do
	[ "$(head -n 1 "$tmp/1" | cut -d' ' -f$i)" != \
	    "$(head -n 1 "$tmp/2" | cut -d' ' -f$i)" ] || same=1
done
is "tags, uids and states differ" 0 $same

$wd sh -c "id=\$(\$SANDBOXD_CTL create -q --on-disconnect keep seed) &&
    $wd --stop && $wd --start && \$SANDBOXD_CTL exec \$id -- true" \
    2> "$tmp/err"
is "stop and start -> the sandbox goes on" 0 $?
$wd sh -c 'kill -9 $SANDBOXD_PID; sleep 0.5' 2> "$tmp/err"
is "the daemon was killed -> 120" 120 $?

# What is left behind on purpose, one kind after the other.
$wd sh -c 'set -- $SANDBOXD_UIDS; setsid setpriv --reuid=$(($1 + 20)) \
    --clear-groups sleep 5 > /dev/null 2>&1 &' 2> "$tmp/err"
is "a process of its uids is left -> 120" 120 $?
$wd sh -c 'setsid sleep 5 > /dev/null 2>&1 &' 2> "$tmp/err"
is "an orphan is left -> 120" 120 $?
$wd sh -c 'mkdir -p $SANDBOXD_STATE/vm/x' 2> "$tmp/err"
is "a file is left -> 120" 120 $?
if [ -e /dev/net/tun ] && command -v ip > /dev/null; then
	$wd sh -c 'echo $SANDBOXD_TAG > '"$tmp/tag"'; ip tuntap add \
	    dev sb$SANDBOXD_TAG-0 mode tap' 2> "$tmp/err"
	is "a tap is left -> 120" 120 $?
	ip link del "sb$(cat "$tmp/tag")-0"
fi
$wd sh -c 'mkdir $SANDBOXD_STATE/../m; mount --bind $SANDBOXD_STATE \
    $SANDBOXD_STATE/../m; echo $SANDBOXD_STATE > '"$tmp/state" 2> "$tmp/err"
is "a mount is left -> 120" 120 $?
umount "$(dirname "$(cat "$tmp/state")")/m"
rmdir "$(dirname "$(cat "$tmp/state")")/m" \
    "$(dirname "$(cat "$tmp/state")")" 2> /dev/null
echo "1..$n"
exit $status
