# Kernel, initramfs, blank writable layer and the seed template.
