CTL_SRCS	= $(notdir $(wildcard sandboxctl/*.c))
CTL_OBJS	= $(CTL_SRCS:%.c=$(B)/obj/sandboxctl/%.o)
PROGRAMS	+= $(B)/sandboxctl

# doctor reads the configuration and the ledger as the parent does.
CTL_OBJS	+= $(B)/obj/sandboxd/ledger_read.o $(B)/obj/sandboxd/config.o \
		   $(B)/obj/sandboxd/conf_value.o $(B)/obj/gen/parse.o

$(B)/sandboxctl: $(CTL_OBJS) $(LIBCOMMON)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ljson-c -lmnl -lbsd -lmd
