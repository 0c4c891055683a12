FRONT_SRCS	= front.c listen.c conn.c http.c http_lex.c http_field.c \
		  http_reply.c route.c api_native.c exec.c \
		  channel.c problem.c
FRONT_OBJS	= $(FRONT_SRCS:%.c=$(B)/obj/sandboxd/%.o)
PROGRAMS	+= $(B)/libexec/front

$(B)/libexec/front: $(FRONT_OBJS) $(LIBCOMMON)
	@mkdir -p $(@D)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -levent_core -ljson-c -lbsd -lmd -lcap
