PARENT_SRCS	= sandboxd.c proc.c config.c conf_value.c ledger.c lifecycle.c
PARENT_OBJS	= $(PARENT_SRCS:%.c=$(B)/obj/sandboxd/%.o) $(B)/obj/gen/parse.o
PROGRAMS	+= $(B)/sandboxd

$(B)/gen/parse.c: sandboxd/parse.y
	@mkdir -p $(@D)
	@echo "GEN	$@"
	byacc -o $@ $<

$(B)/sandboxd: $(PARENT_OBJS) $(LIBCOMMON)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -levent_core -ljson-c -lbsd -lmd -lcap
