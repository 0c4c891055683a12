# SPDX-License-Identifier: ISC
# Makes the rules that link unit tests and fuzz targets.  Each source says what
# it is made of in a comment (it may span lines):
#
#	/* objs: sandboxd/http.o gen/parse.o libs: -ljson-c options: -max_len=9 */
#
# objs are linked beside libcommon.a; options are libFuzzer's.  Usage:
# awk -f regress/objs.awk source... > tests.mk

function flush_source(	name, kind, i, n, w, objs, libs, opts, into)
{
	if (source == "")
		return
	name = source
	sub(/\.c$/, "", name)
	kind = name ~ /^regress\/fuzz\// ? "fuzz" : "obj"
	n = split(text, w, /[ \t*]+/)
	into = "skip"
	for (i = 1; i <= n; i++) {
		if (w[i] ~ /^(objs|libs|options):$/)
			into = w[i]
		else if (w[i] == "")
			continue
		else if (into == "objs:")
			objs = objs " $(B)/" kind "/" w[i]
		else if (into == "libs:")
			libs = libs " " w[i]
		else if (into == "options:")
			opts = opts " " w[i]
	}
	printf "$(B)/%s: $(B)/%s/%s.o%s\n", name, kind, name, objs
	printf "$(B)/%s: TEST_LIBS =%s\n", name, libs
	if (kind == "fuzz")
		printf "$(B)/%s: TEST_OPTIONS =%s\n", name, opts
}

FNR == 1 {
	flush_source()
	source = FILENAME
	text = ""
	state = 0
}

state == 0 && /\/\*[ \t]*objs:/ {
	state = 1
	sub(/.*\/\*/, "")
}

state == 1 {
	line = $0
	if (line ~ /\*\//) {
		sub(/\*\/.*/, "", line)
		state = 2
	}
	text = text " " line
}

END { flush_source() }
