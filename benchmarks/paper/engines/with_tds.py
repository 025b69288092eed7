"""Tiny Differentiable Simulator: its wheel for Python, which would need numbers that can be differentiated."""

import pytinydiffsim_ad  # noqa: F401  (the module of the CppAD build, as its documentation names it)

raise SystemExit("pytinydiffsim_ad is there: write this comparison")
