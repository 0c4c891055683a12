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

# The manual's list of messages comes from the same table.
$(B)/man/msg.5: man/msg.5.in common/msg.def common/msggen.awk
	@mkdir -p $(@D)
	@echo "GEN	$@"
	awk -v want=mdoc -f common/msggen.awk common/msg.def > $@.list
	sed -e '/^@LIST@$$/{r $@.list' -e 'd;}' man/msg.5.in > $@
	rm -f $@.list

all: $(B)/man/msg.5

$(LIBCOMMON): $(COMMON_OBJS)
	@echo "AR	$@"
	rm -f $@
	$(AR) rcs $@ $^
