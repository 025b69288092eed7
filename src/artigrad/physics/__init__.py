"""The physics of a step, each function above its adjoint. `step.py` is the page to read first."""
