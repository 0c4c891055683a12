# The parent and the HTTP front: two executables.
include sandboxd/parent.mk
include sandboxd/front.mk
