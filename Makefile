# sandboxd.  The two commands: `make demo` and `make check`.
#
# Each folder has a files.mk that says what it is made of; nothing is built
# outside $(B).  SAN=1 builds everything with AddressSanitizer and
# UndefinedBehaviorSanitizer into its own folder.

VERSION		= 0.1.0

ifeq ($(SAN),1)
B		= build-san
OPT		= -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
		  -fno-omit-frame-pointer
DEFS		= -DSBX_SANITIZER
LDOPT		= -fsanitize=address,undefined
else
B		= build
OPT		= -O2 -D_FORTIFY_SOURCE=3 -fstack-clash-protection \
		  -fcf-protection=full
LDOPT		= -Wl,-z,noexecstack -Wl,-z,separate-code
endif

NCPU		:= $(shell nproc)
MAKEFLAGS	+= --no-print-directory
CC		= gcc
WARN		= -Wall -Wextra -Wshadow -Wstrict-prototypes \
		  -Wmissing-prototypes -Wmissing-declarations -Wpointer-arith \
		  -Wcast-qual -Wsign-compare -Wformat=2 -Wvla -Walloca -Wundef \
		  -Wimplicit-fallthrough=5 -Wwrite-strings -Werror
CFLAGS		= -std=gnu11 -g $(OPT) -fPIE -fstack-protector-strong \
		  -ftrivial-auto-var-init=zero -fno-common -fno-strict-aliasing
CPPFLAGS	= -D_GNU_SOURCE -DLIBBSD_OPENBSD_VIS \
		  -DSBX_VERSION='"$(VERSION)"' $(DEFS) \
		  -iquote common -iquote $(B)/gen
LDFLAGS		= -pie $(LDOPT) -Wl,-z,relro,-z,now,--as-needed

# A line for each file made; V=1 shows the commands.
ifneq ($(V),1)
.SILENT:
endif

all:

include common/files.mk
include sandboxd/files.mk
include vmmctl/files.mk
include netd/files.mk
include guestd/files.mk
include images/files.mk
include sandboxctl/files.mk
include regress/files.mk

all: $(PROGRAMS) $(IMAGES)

# Installs every package that building, running and testing need.
deps:
	./etc/install-packages

$(B)/obj/%.o: %.c $(GENERATED)
	@mkdir -p $(@D)
	@echo "CC	$<"
	$(CC) $(WARN) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<

# Made files (byacc's, the message tables): our warnings are not theirs.
$(B)/obj/gen/%.o: $(B)/gen/%.c $(GENERATED)
	@mkdir -p $(@D)
	@echo "CC	$<"
	$(CC) $(CFLAGS) $(CPPFLAGS) -iquote sandboxd -MMD -MP -c -o $@ $<

# From a fresh clone to a deleted microVM, each step with its time.
demo:
	regress/demo

# Everything: $(RUN) ends with "N passed, N failed".
RUN		= SAN=$(SAN) B=$(B) regress/run
check: deps
	$(MAKE) -j$(NCPU) all tests $(if $(filter 1,$(SAN)),,fuzzers)
	$(RUN)

# Ours against a VMM run by hand; a long series of sandboxes.
bench: all
	regress/bench/run

soak: all
	regress/with-daemon regress/harness 100
	regress/fault/chaos.py 900

clean:
	rm -rf build build-san

.PHONY: all deps demo check bench soak clean
.DELETE_ON_ERROR:

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
