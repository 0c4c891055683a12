FRONT_SRCS	= front.c front_confine.c listen.c conn.c conn_request.c \
		  conn_reply.c api_native.c api_create.c exec.c exec_parse.c \
		  exec_event.c exec_text.c exec_http.c exec_ws.c channel.c \
		  chan_config.c chan_stream.c http.c http_field.c http_lex.c \
		  http_reply.c route.c problem.c
FRONT_OBJS	= $(FRONT_SRCS:%.c=$(B)/obj/sandboxd/%.o)
PROGRAMS	+= $(B)/libexec/front

$(B)/libexec/front: $(FRONT_OBJS) $(LIBCOMMON)
	@mkdir -p $(@D)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -levent_core -ljson-c -lbsd -lmd -lcap
