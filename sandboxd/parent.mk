PARENT_SRCS	= sandboxd.c claim.c parent_confine.c api_socket.c proc.c setup.c \
		  config.c conf_value.c ledger.c ledger_read.c record.c \
		  table.c owner.c stream.c admit.c request.c health.c \
		  lifecycle.c release.c recover.c accel.c
PARENT_OBJS	= $(PARENT_SRCS:%.c=$(B)/obj/sandboxd/%.o) $(B)/obj/gen/parse.o
PROGRAMS	+= $(B)/sandboxd

$(B)/gen/parse.c: sandboxd/parse.y
	@mkdir -p $(@D)
	byacc -o $@ $<

$(B)/sandboxd: $(PARENT_OBJS) $(LIBCOMMON)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -levent_core -ljson-c -lbsd -lmd -lcap
