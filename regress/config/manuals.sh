#!/bin/sh
# SPDX-License-Identifier: ISC
# Every manual page passes mandoc's lint, and every program has a page.
n=0
status=0
check() {	# result name
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		status=1
	fi
}

for page in man/*.[1-9]; do
	out=$(mandoc -Tlint -Wwarning "$page" 2>&1)
	check $? "manuals: $page has no fault for mandoc"
	[ -z "$out" ] || echo "$out" | sed 's/^/# /'
	# A title that is not the file's name shows up wrong everywhere.
	name=$(basename "$page")
	sect=${name##*.}
	name=$(echo "${name%.*}" | tr 'a-z' 'A-Z')
	grep -q "^\.Dt $name $sect\$" "$page"
	check $? "manuals: $page is titled $name $sect"
	# What it refers to of ours has to be there.
	for ref in $(sed -n 's/^\.Xr \([a-z.-]*\) \([0-9]\).*/\1.\2/p' "$page" |
	    grep -E '^(sandbox|guest)' | sort -u); do
		[ -e "man/$ref" ]
		check $? "manuals: $page refers to $ref, which exists"
	done
done
# A line of the log begins with fixed words; sandboxd(8) lists them, by the first
# or by both.
verbs=$(sed -n 's/.*log_info("\([^"]*\)".*/\1/p' sandboxd/*.c vmmctl/*.c \
    netd/*.c | sed -e 's/\( \|:\)*[^ ]*[=%:].*//' -e '/^$/d' | sort -u)
for verb in $(echo "$verbs" | tr ' ' '_'); do
	grep -q -E "^\.It Li (.* , )?(${verb%%_*}|$(echo "$verb" | tr _ ' '))( ,|\$)" \
	    man/sandboxd.8
	check $? "manuals: sandboxd(8) lists the log's $verb"
done
[ "$(echo "$verbs" | wc -l)" -gt 10 ]
check $? "manuals: the log's verbs were found"
for page in sandboxd.8 sandboxd.conf.5 sandboxctl.8 sandboxd-api.7 guestd.8 \
    guest-protocol.7; do
	[ -e "man/$page" ]
	check $? "manuals: there is $page"
done
echo "1..$n"
exit $status
