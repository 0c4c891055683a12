# Entry points of the tests.
include regress/fuzz/files.mk
