"""For all tests: Ctrl-C means what it means at a terminal, also where the tests run in the background of a shell."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
