"""Pairs of shapes with closed forms."""
