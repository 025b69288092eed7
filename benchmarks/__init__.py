"""Benchmarks. Run one from the root of the repository, as `python -m benchmarks.engine`."""
