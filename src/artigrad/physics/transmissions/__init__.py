"""Lengths and moments of tendons and actuators, each above its adjoint."""
