"""Random models, states and options, and what must hold for all of them: `python -m tests.fuzz --minutes N [--seed S]`."""
