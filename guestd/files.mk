# PID 1 of the guest: static, musl, no other library.
