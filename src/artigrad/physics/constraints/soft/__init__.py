"""Soft law: MuJoCo's convex constraint law, solved by Newton's method with articulated-body passes, and its adjoint."""
