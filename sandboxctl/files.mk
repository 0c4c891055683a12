CTL_SRCS	= $(notdir $(wildcard sandboxctl/*.c))
CTL_OBJS	= $(CTL_SRCS:%.c=$(B)/obj/sandboxctl/%.o)
PROGRAMS	+= $(B)/sandboxctl

# doctor reads the ledger as the parent does.
CTL_OBJS	+= $(B)/obj/sandboxd/ledger_read.o

$(B)/sandboxctl: $(CTL_OBJS) $(LIBCOMMON)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ljson-c -lbsd -lmd
