"""Random models, states and options, and their checks: `python -m tests.fuzz --minutes N [--seed S]`."""
