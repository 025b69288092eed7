"""The comparison of the ICML 2021 paper (its tables 1 to 3, figures 3 and 8) with today's tools: `python -m benchmarks.paper`.

scene.py       one Laikago or ten on their feet: what everybody simulates and differentiates
source.py      one step of the library's own physics, on memory and numbers of another kind
trace.py       a staging target that notes every operation of a step; printed as Python for PyTorch, JAX and CasADi
cpp.py         a staging target that prints C++ with the number type as a template parameter, for CppAD and Ceres
tools.py       the rows of the first table: how each tool makes a rollout and its gradient
engines/       the second table: other engines on the same robot, one script each
worker.py      one measurement in a process of its own
__main__.py    the command
"""
