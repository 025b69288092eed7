"""Pairs of general convex solids, meshes and height fields."""
