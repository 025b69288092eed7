"""Benchmarks: run one as `python -m benchmarks.engine` from the root of the repository."""
