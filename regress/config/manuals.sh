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
for page in sandboxd.8 sandboxd.conf.5 sandboxctl.8 sandboxd-api.7 guestd.8 \
    guest-protocol.7; do
	[ -e "man/$page" ]
	check $? "manuals: there is $page"
done
echo "1..$n"
exit $status
