# Fuzz targets: every regress/fuzz/*_fuzz.c as $(B)/regress/fuzz/*, with all that
# it uses compiled once more by clang under its sanitizers, into $(B)/fuzz.
FUZZ_TARGETS	= $(FUZZ_SRCS:%.c=$(B)/%)
FUZZ_CC		= clang
FUZZ_FLAGS	= -std=gnu11 -g -O1 -fno-omit-frame-pointer \
		  -Wno-include-next-absolute-path \
		  -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_CPPFLAGS	= $(filter-out -DSBX_SANITIZER,$(CPPFLAGS)) -DSBX_SANITIZER \
		  -Isandboxd -Ivmmctl -Inetd -Iguestd -Isandboxctl \
		  -Iregress/fuzz
FUZZ_COMMON	= $(COMMON_SRCS:%.c=$(B)/fuzz/%.o) $(B)/fuzz/gen/msg_table.o
SECONDS		?= 60

$(B)/fuzz/%.o: %.c $(GENERATED)
	@mkdir -p $(@D)
	@echo "CLANG	$<"
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(FUZZ_CPPFLAGS) \
	    -MMD -MP -c -o $@ $<

$(B)/fuzz/gen/%.o: $(B)/gen/%.c $(GENERATED)
	@mkdir -p $(@D)
	@echo "CLANG	$<"
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(FUZZ_CPPFLAGS) \
	    -MMD -MP -c -o $@ $<

$(B)/fuzz/libcommon.a: $(FUZZ_COMMON)
	@echo "AR	$@"
	rm -f $@
	$(AR) rcs $@ $^

# The options file beside a target is what regress/run gives to it.
$(FUZZ_TARGETS): $(B)/fuzz/libcommon.a
	@mkdir -p $(@D)
	@echo "LD	$@"
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) \
	    $(B)/fuzz/libcommon.a $(TEST_LIBS) -Wl,--as-needed -levent_core \
	    -ljson-c -lbsd -lmd -lcap
	echo "$(TEST_OPTIONS)" > $@.options

# Seeds of the internal messages are made from their table.
$(B)/gen/seeds/messages: common/msg.def regress/fuzz/msgseeds.py \
    regress/lib/msg.py
	@mkdir -p $(@D)
	@echo "GEN	$@"
	regress/fuzz/msgseeds.py $(@D)
	touch $@

$(B)/regress/fuzz/msg_fuzz $(B)/regress/fuzz/imsg_fuzz: $(B)/gen/seeds/messages

# The configuration's test cases are good seeds.
$(B)/gen/seeds/configurations: $(wildcard regress/config/*.conf) \
    etc/sandboxd.conf
	@mkdir -p $(@D)/conf
	@echo "GEN	$@"
	cp $^ $(@D)/conf
	touch $@

$(B)/regress/fuzz/conf_fuzz: $(B)/gen/seeds/configurations

fuzzers: $(FUZZ_TARGETS)

# Each target, SECONDS long; what it finds stays in $(B)/fuzz/corpus.
fuzz: fuzzers
	FUZZ_SECONDS=$(SECONDS) FUZZ_KEEP=1 B=$(B) regress/run fuzz

-include $(shell find $(B)/fuzz -name '*.d' 2>/dev/null)

.PHONY: fuzzers fuzz
