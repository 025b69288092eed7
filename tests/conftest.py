"""Configuration of all tests.

Ctrl-C interrupts them also in the background of a shell. JAX has four CPU devices, for tests of sharding.
"""

import os
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
