# Kernel, initramfs and the seed template.  The kernel is the distribution's
# own, fetched once into build/kernel (clean removes it) and shared with
# build-san.

KERNEL_DIR	= build/kernel
# Times inside of the images: fixed, so that the same input gives the same
# bytes.
SOURCE_DATE_EPOCH ?= 1704067200

IMAGES		+= $(B)/images/vmlinux $(B)/images/initramfs.cpio \
		   $(B)/templates/seed/rootfs.ext4 \
		   $(B)/templates/seed/template.json

$(B)/images/vmlinux_extract: $(B)/obj/images/vmlinux_extract.o
	@mkdir -p $(@D)
	@echo "LD	$@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -llz4

$(KERNEL_DIR)/package: images/get-kernel images/modules
	@echo "GET	$@"
	images/get-kernel $(KERNEL_DIR)

$(B)/images/vmlinux: $(KERNEL_DIR)/package $(B)/images/vmlinux_extract
	@echo "GEN	$@"
	$(B)/images/vmlinux_extract $(KERNEL_DIR)/vmlinuz $@

$(B)/images/initramfs.cpio: $(B)/guestd $(KERNEL_DIR)/package \
    images/mkinitramfs
	@mkdir -p $(@D)
	@echo "GEN	$@"
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) images/mkinitramfs \
	    $(B)/guestd $(KERNEL_DIR) $@

$(B)/templates/seed/rootfs.ext4: images/mkseed
	@mkdir -p $(@D)
	@echo "GEN	$@"
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) images/mkseed $@

$(B)/templates/seed/template.json: images/seed.json
	@mkdir -p $(@D)
	@echo "GEN	$@"
	cp images/seed.json $@
