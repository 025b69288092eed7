"""Compiled kernels: rollouts and their adjoints, functions of one state, Jacobians, constants."""
