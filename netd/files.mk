NETD_SRCS	= $(notdir $(wildcard netd/*.c))
NETD_OBJS	= $(NETD_SRCS:%.c=$(B)/obj/netd/%.o)
PROGRAMS	+= $(B)/libexec/netd

$(B)/libexec/netd: $(NETD_OBJS) $(LIBCOMMON)
	@mkdir -p $(@D)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -levent_core -lnftnl -lmnl -lbsd -lcap
