"""Pairs of shapes in closed form."""
