VMM_SRCS	= $(notdir $(wildcard vmmctl/*.c))
VMM_OBJS	= $(VMM_SRCS:%.c=$(B)/obj/vmmctl/%.o)
PROGRAMS	+= $(B)/libexec/vmm

$(B)/libexec/vmm: $(VMM_OBJS) $(LIBCOMMON)
	@mkdir -p $(@D)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -levent_core -ljson-c -lbsd -lcap
