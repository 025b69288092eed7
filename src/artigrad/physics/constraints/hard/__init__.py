"""The hard law: the papers' mixed complementarity problem, its solvers and both its adjoints."""
