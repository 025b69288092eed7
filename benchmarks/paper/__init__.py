"""Comparison with tables 1 to 3 and figures 3 and 8 of the ICML 2021 paper with current tools: `python -m benchmarks.paper`.

scene.py       one Laikago or ten on their feet: the scene that all tools simulate and differentiate
source.py      one step of the physics of this library, on other memory and number types
trace.py       a staging target that records every operation of a step; printed as Python for PyTorch, JAX and CasADi
cpp.py         a staging target that prints C++ with the number type as a template parameter, for CppAD and Ceres
tools.py       the rows of the first table: rollout and gradient by each tool
engines/       the second table: other engines on the same robot, one script each
worker.py      one measurement in a separate process
__main__.py    the command
"""
