#!/bin/sh
# SPDX-License-Identifier: ISC
# The test runner's own test: each way of failing is counted as a failure.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/regress/api"
cp regress/run "$tmp/regress/"
n=0
status=0

is() {	# name want got
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n - runner: $1"
	else
		echo "not ok $n - runner: $1"
		printf '%s\n' "$3" | sed 's/^/# got /'
		status=1
	fi
}

# case_ NAME WANT SCRIPT: the last line and the status of a run of that script.
case_() {
	printf '#!/bin/sh\n%b\n' "$3" > "$tmp/regress/api/x.sh"
	chmod +x "$tmp/regress/api/x.sh"
	out=$(env -u SAN -u B "$tmp/regress/run" 2>&1 < /dev/null)
	code=$?
	is "$1 -> $2" "$2" "$(printf '%s\n' "$out" | tail -n 1), status $code"
}

case_ "two good" "2 passed, 0 failed, status 0" \
    'echo 1..2; echo ok 1 - a; echo ok 2 - b'
case_ "plan at the end" "1 passed, 0 failed, status 0" \
    'echo ok 1 - a; echo 1..1'
case_ "a skip" "1 passed, 0 failed, 1 skipped, status 0" \
    'echo 1..2; echo ok 1; echo "ok 2 - b # SKIP no kvm"'
case_ "all skipped" "0 passed, 0 failed, 1 skipped, status 0" \
    'echo "1..0 # SKIP no root"'
case_ "one bad" "1 passed, 1 failed, status 1" \
    'echo 1..2; echo ok 1; echo not ok 2; exit 1'
case_ "one bad, ending with 0" "0 passed, 1 failed, status 1" \
    'echo 1..1; echo not ok 1'
case_ "bad status" "1 passed, 1 failed, status 1" \
    'echo 1..1; echo ok 1; exit 3'
case_ "signal" "1 passed, 1 failed, status 1" \
    'echo 1..1; echo ok 1; kill -SEGV $$'
case_ "no plan" "1 passed, 1 failed, status 1" 'echo ok 1'
case_ "no output" "0 passed, 1 failed, status 1" ':'
case_ "short of the plan" "1 passed, 1 failed, status 1" \
    'echo 1..2; echo ok 1'
case_ "beyond the plan" "2 passed, 1 failed, status 1" \
    'echo 1..1; echo ok 1; echo ok 2'
case_ "too slow" "1 passed, 1 failed, status 1" \
    '# regress: timeout=1\necho 1..1; echo ok 1; sleep 60'
case_ "a header with an unknown word" \
    "run: api/x.sh: unknown word 'alnoe' after \"# regress:\", status 1" \
    '# regress: alnoe'
rm "$tmp/regress/api/x.sh"
is "no test at all -> status 1" 1 "$(env -u SAN -u B "$tmp/regress/run" \
    < /dev/null > /dev/null; echo $?)"
echo "1..$n"
exit $status
