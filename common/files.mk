# Linked into the daemon's processes and sandboxctl; the linker takes from the
# archive only what a program uses.
COMMON_SRCS	= $(wildcard common/*.c)
COMMON_OBJS	= $(COMMON_SRCS:%.c=$(B)/obj/%.o) $(B)/obj/gen/msg_table.o
LIBCOMMON	= $(B)/libcommon.a
GENERATED	= $(B)/gen/msg_types.h $(B)/gen/msg_send.h

$(B)/gen/msg_types.h $(B)/gen/msg_send.h: $(B)/gen/msg_%.h: \
    common/msg.def common/msggen.awk
	@mkdir -p $(@D)
	@echo "GEN	$@"
	awk -v want=$* -f common/msggen.awk common/msg.def > $@

$(B)/gen/msg_table.c: common/msg.def common/msggen.awk
	@mkdir -p $(@D)
	@echo "GEN	$@"
	awk -v want=table -f common/msggen.awk common/msg.def > $@

$(LIBCOMMON): $(COMMON_OBJS)
	@echo "AR	$@"
	rm -f $@
	$(AR) rcs $@ $^
