# SPDX-License-Identifier: ISC
# Turns msg.def into one of several files, chosen with -v want=:
#	types	msg_types.h: enum msg_type, one struct for each message, the union
#	table	msg_table.c: names, permits and field tables
#	send	msg_send.h: one typed sender for each message
#	mdoc	the message list of msg(5)
# Any fault in msg.def ends the build with the line's number.

function die(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
	failed = 1
	exit 1
}

function proc(name) {
	if (name !~ /^(parent|front|vmm|netd)$/)
		die("no such process: " name)
	return "PROC_" toupper(name)
}

/^#[^#]/ || /^#$/ || /^[ \t]*$/ { next }

/^## / {
	if (n == 0)
		die("description before the first message")
	note[n] = note[n] (note[n] == "" ? "" : "\n") substr($0, 4)
	next
}

$1 == "message" {
	if (NF != 7)
		die("message NAME from to phase fd answers")
	if ($2 in seen)
		die("message " $2 " stands twice")
	if (index($2, toupper($3) "_") != 1)
		die($2 " does not start with its sender")
	if ($5 !~ /^(setup|run|any|answer)$/)
		die("bad phase " $5)
	if ($6 !~ /^(fd|-)$/)
		die("fd or -")
	seen[$2] = ++n
	name[n] = $2
	from[n] = proc($3)
	to[n] = proc($4)
	from_word[n] = $3
	to_word[n] = $4
	phase[n] = $5
	hasfd[n] = ($6 == "fd")
	answers[n] = $7
	nfields[n] = 0
	next
}

$1 ~ /^(u8|u16|u32|u64|id)$/ && NF == 2 {
	f = ++nfields[n]
	kind[n, f] = $1
	field[n, f] = $2
	max[n, f] = $1 == "id" ? 19 : 0
	next
}

$1 ~ /^(str|bytes)$/ && NF == 3 {
	f = ++nfields[n]
	kind[n, f] = $1
	field[n, f] = $2
	max[n, f] = $3 + 0
	size[n] += $3
	if (size[n] > 15000)
		die(name[n] " does not fit in a message")
	next
}

{ die("cannot read this line") }

function banner() {
	print "/* Made from msg.def by msggen.awk; do not edit. */"
}

function types(   i, f, k) {
	banner()
	print "#ifndef SBX_MSG_TYPES_H\n#define SBX_MSG_TYPES_H\n"
	print "#include <stdint.h>\n"
	print "enum msg_type {\n\tM_NONE = 0,"
	for (i = 1; i <= n; i++)
		printf "\tM_%s,\n", name[i]
	print "\tM_COUNT\n};\n"
	for (i = 1; i <= n; i++) {
		printf "struct m_%s {\n", tolower(name[i])
		for (f = 1; f <= nfields[i]; f++) {
			k = kind[i, f]
			if (k == "bytes")
				printf "\tuint16_t %s_len;\n\tuint8_t %s[%d];\n",
				    field[i, f], field[i, f], max[i, f]
			else if (k == "str" || k == "id")
				printf "\tchar %s[%d];\n", field[i, f], max[i, f] + 1
			else
				printf "\tuint%s_t %s;\n", substr(k, 2), field[i, f]
		}
		if (nfields[i] == 0)
			print "\tuint8_t nothing;"
		print "};\n"
	}
	print "union msg_body {"
	for (i = 1; i <= n; i++)
		printf "\tstruct m_%s %s;\n", tolower(name[i]), tolower(name[i])
	print "};\n\n#endif"
}

function table(   i, f, s, m, a, k) {
	banner()
	print "#include <stddef.h>\n\n#include \"msg.h\"\n"
	for (i = 1; i <= n; i++) {
		if (nfields[i] == 0)
			continue
		s = "struct m_" tolower(name[i])
		printf "static const struct msg_field f_%s[] = {\n", tolower(name[i])
		for (f = 1; f <= nfields[i]; f++) {
			k = kind[i, f]
			m = k == "bytes" ? \
			    "offsetof(" s ", " field[i, f] "_len)" : "0"
			printf "\t{ \"%s\", MF_%s, %d, offsetof(%s, %s), %s },\n",
			    field[i, f], toupper(k), max[i, f], s, field[i, f], m
		}
		print "};"
	}
	print "\nconst struct msg_info msg_infos[M_COUNT] = {"
	for (i = 1; i <= n; i++) {
		m = tolower(name[i])
		printf "\t[M_%s] = { \"M_%s\", %s, %s, MP_%s, %d, %d, %s, sizeof(struct m_%s) },\n",
		    name[i], name[i], from[i], to[i], toupper(phase[i]), hasfd[i],
		    nfields[i], nfields[i] ? "f_" m : "NULL", m
	}
	print "};\n"
	print "const struct msg_pair msg_pairs[] = {"
	for (i = 1; i <= n; i++) {
		if (answers[i] == "-")
			continue
		k = split(answers[i], a, ",")
		for (f = 1; f <= k; f++) {
			if (!(a[f] in seen) || phase[seen[a[f]]] != "answer") {
				printf "msg.def: %s: no answer %s\n", name[i], a[f] > "/dev/stderr"
				failed = 1
				exit 1
			}
			printf "\t{ M_%s, M_%s },\n", name[i], a[f]
		}
	}
	print "\t{ M_NONE, M_NONE }\n};"
}

function send(   i, m) {
	banner()
	print "#ifndef SBX_MSG_SEND_H\n#define SBX_MSG_SEND_H\n"
	print "#include \"imsg.h\"\n"
	for (i = 1; i <= n; i++) {
		m = tolower(name[i])
		if (phase[i] == "answer") {
			printf "static inline int\nanswer_%s(struct ipeer *p, uint64_t req, uint16_t flags,\n    const struct m_%s *b%s)\n{\n\treturn ipeer_answer(p, req, flags, M_%s, b, %s);\n}\n\n",
			    m, m, hasfd[i] ? ", int fd" : "", name[i], hasfd[i] ? "fd" : "-1"
		} else if (answers[i] != "-") {
			printf "static inline int\nrequest_%s(struct ipeer *p, const struct m_%s *b%s,\n    unsigned int ms, ipeer_answer_cb cb, void *arg)\n{\n\treturn ipeer_request(p, M_%s, b, %s, ms, cb, arg);\n}\n\n",
			    m, m, hasfd[i] ? ", int fd" : "", name[i], hasfd[i] ? "fd" : "-1"
		} else {
			printf "static inline int\nsend_%s(struct ipeer *p, const struct m_%s *b%s)\n{\n\treturn ipeer_send(p, M_%s, b, %s);\n}\n\n",
			    m, m, hasfd[i] ? ", int fd" : "", name[i], hasfd[i] ? "fd" : "-1"
		}
	}
	print "#endif"
}

function mdoc(   i, f) {
	print ".Bl -tag -width Ds"
	for (i = 1; i <= n; i++) {
		printf ".It Dv M_%s\n", name[i]
		printf "%s to %s, %s%s.\n", from_word[i], to_word[i],
		    phase[i] == "answer" ? "an answer" : \
		    (phase[i] == "any" ? "any time" : "phase " phase[i]),
		    hasfd[i] ? ", with one descriptor" : ""
		if (note[i] != "") {
			# mdoc wants each sentence on its own line.
			gsub(/[.] /, ".\n", note[i])
			print note[i]
		}
		for (f = 1; f <= nfields[i]; f++) {
			if (f == 1)
				print "Fields:"
			printf ".Va %s\n.Pq %s%s%s\n", field[i, f], kind[i, f],
			    max[i, f] && kind[i, f] != "id" ? " " max[i, f] : "",
			    f < nfields[i] ? "" : ""
		}
		if (answers[i] != "-") {
			s = answers[i]
			gsub(",", ", M_", s)
			printf "Answered by M_%s.\n", s
		}
	}
	print ".El"
}

END {
	if (failed)
		exit 1
	if (want == "types")
		types()
	else if (want == "table")
		table()
	else if (want == "send")
		send()
	else if (want == "mdoc")
		mdoc()
	else
		die("want what?")
}
