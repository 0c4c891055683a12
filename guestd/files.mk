# PID 1 of the guest: static, musl, no other library.  musl has no kernel
# headers of its own: it is given the system's by three links.
GUESTD_SRCS	= $(notdir $(wildcard guestd/*.c))
GUESTD_INC	= $(B)/gen/linux-include
GUESTD_OBJS	= $(GUESTD_SRCS:%.c=$(B)/obj/guestd-musl/%.o) \
		  $(B)/obj/guestd-musl/gproto.o
GUESTD_CFLAGS	= -std=gnu11 -Os -fPIE -fstack-protector-strong \
		  -ftrivial-auto-var-init=zero -fno-common \
		  -fno-strict-aliasing -fno-asynchronous-unwind-tables \
		  -ffunction-sections -fdata-sections
PROGRAMS	+= $(B)/guestd

$(GUESTD_INC)/.done:
	@mkdir -p $(@D)
	ln -sfn /usr/include/linux $(@D)/linux
	ln -sfn /usr/include/asm-generic $(@D)/asm-generic
	ln -sfn /usr/include/$$($(CC) -print-multiarch)/asm $(@D)/asm
	@touch $@

$(B)/obj/guestd-musl/%.o: guestd/%.c $(GUESTD_INC)/.done
	@mkdir -p $(@D)
	@echo "CC	$<"
	musl-gcc $(WARN) $(GUESTD_CFLAGS) -D_GNU_SOURCE -Icommon \
	    -isystem $(GUESTD_INC) -MMD -MP -c -o $@ $<

$(B)/obj/guestd-musl/gproto.o: common/gproto.c
	@mkdir -p $(@D)
	@echo "CC	$<"
	musl-gcc $(WARN) $(GUESTD_CFLAGS) -O2 -Icommon -MMD -MP -c -o $@ $<

# Position independent: musl-gcc has no -static-pie, so its start file is named.
MUSL_LIB	= $(subst -gnu,-musl,/usr/lib/$(shell $(CC) -print-multiarch))

$(B)/guestd: $(GUESTD_OBJS)
	@echo "LD	$@"
	musl-gcc -nostartfiles -static -s -Wl,-pie,--no-dynamic-linker,-z,text \
	    -Wl,--gc-sections,-z,noexecstack,-z,relro,-z,now -o $@ \
	    $(MUSL_LIB)/rcrt1.o $(MUSL_LIB)/crti.o $^ $(MUSL_LIB)/crtn.o

# The same for the host's libc and under sanitizers: what regress/guest drives
# when it is there.
ifeq ($(SAN),1)
PROGRAMS	+= $(B)/regress/guestd-san

$(B)/regress/guestd-san: $(GUESTD_SRCS:%.c=$(B)/obj/guestd/%.o) $(LIBCOMMON)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^
endif
