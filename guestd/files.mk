# PID 1 of the guest: static, musl, no other library.  musl has no kernel
# headers of its own: it is given the system's by three links.  Its compiler
# wrapper does not know static-pie, so the start files are named here.
GUESTD_SRCS	= $(notdir $(wildcard guestd/*.c))
GUESTD_INC	= $(B)/gen/linux-include
GUESTD_OBJS	= $(GUESTD_SRCS:%.c=$(B)/obj/guestd-musl/%.o) \
		  $(B)/obj/guestd-musl/gproto.o
GUESTD_CFLAGS	= -std=gnu11 -Os -fPIE -fstack-protector-strong \
		  -ftrivial-auto-var-init=zero -fno-common \
		  -fno-strict-aliasing -fno-asynchronous-unwind-tables \
		  -ffunction-sections -fdata-sections
GUESTD_LDFLAGS	= -static -nostartfiles -s \
		  -Wl,-pie,--no-dynamic-linker,-z,text,--gc-sections \
		  -Wl,-z,noexecstack,-z,relro,-z,now
MUSL_LIB	= /usr/lib/$(shell $(CC) -print-multiarch | \
		    sed 's/-gnu/-musl/')
MUSL_START	= $(MUSL_LIB)/rcrt1.o $(MUSL_LIB)/crti.o \
		  $(shell $(CC) -print-file-name=crtbeginS.o)
MUSL_END	= $(shell $(CC) -print-file-name=crtendS.o) $(MUSL_LIB)/crtn.o
PROGRAMS	+= $(B)/guestd

$(GUESTD_INC)/.done:
	@mkdir -p $(@D)
	ln -sfn /usr/include/linux $(@D)/linux
	ln -sfn /usr/include/asm-generic $(@D)/asm-generic
	ln -sfn /usr/include/$$($(CC) -print-multiarch)/asm $(@D)/asm
	@touch $@

$(B)/obj/guestd-musl/%.o: guestd/%.c $(GUESTD_INC)/.done
	@mkdir -p $(@D)
	@echo "MUSL	$<"
	musl-gcc $(WARN) $(GUESTD_CFLAGS) -D_GNU_SOURCE -Icommon \
	    -isystem $(GUESTD_INC) -MMD -MP -c -o $@ $<

$(B)/obj/guestd-musl/gproto.o: common/gproto.c
	@mkdir -p $(@D)
	@echo "MUSL	$<"
	musl-gcc $(WARN) $(GUESTD_CFLAGS) -O2 -Icommon -MMD -MP -c -o $@ $<

$(B)/guestd: $(GUESTD_OBJS)
	@echo "LD	$@"
	musl-gcc $(GUESTD_LDFLAGS) -o $@ $(MUSL_START) $^ $(MUSL_END)

# The same for the host's libc and under sanitizers: what regress/guest drives
# when it is there.
ifeq ($(SAN),1)
PROGRAMS	+= $(B)/regress/guestd-san

$(B)/regress/guestd-san: $(GUESTD_SRCS:%.c=$(B)/obj/guestd/%.o) $(LIBCOMMON)
	@mkdir -p $(@D)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^
endif
