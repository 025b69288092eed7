"""The soft law: MuJoCo's convex constraint law, solved by Newton's method on articulated-body passes, and its adjoint."""
