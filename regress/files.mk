# Unit tests: every regress/unit/*_test.c, linked with the objects that it names
# (regress/objs.awk), as $(B)/regress/unit/*.
UNIT_SRCS	= $(wildcard regress/unit/*_test.c)
UNIT_TESTS	= $(UNIT_SRCS:%.c=$(B)/%)
FUZZ_SRCS	= $(wildcard regress/fuzz/*_fuzz.c)

include regress/fuzz/files.mk

$(B)/gen/tests.mk: regress/objs.awk $(UNIT_SRCS) $(FUZZ_SRCS)
	@mkdir -p $(@D)
	awk -f regress/objs.awk $(UNIT_SRCS) $(FUZZ_SRCS) /dev/null > $@.$$$$ && \
	    mv $@.$$$$ $@

include $(B)/gen/tests.mk

$(B)/obj/regress/%.o: private CPPFLAGS += -Isandboxd -Ivmmctl -Inetd -Iguestd \
    -Isandboxctl -Iregress/unit

$(UNIT_TESTS): $(LIBCOMMON)
	@mkdir -p $(@D)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBCOMMON) \
	    $(TEST_LIBS) -levent_core -ljson-c -lbsd -lmd -lcap

tests: $(UNIT_TESTS)

.PHONY: tests
