"""Comparison of contacts with MuJoCo."""

from itertools import pairwise

import pytest
from benchmarks.agreement import both, shares


@pytest.mark.parametrize(("a", "b"), [("capsule", "box"), ("sphere", "hull 8"), ("ellipsoid", "cylinder")])
def test_single_points_are_mujocos(a, b):
    pairs = both(a, b, 100)
    assert len(pairs) > 15
    assert shares(pairs, 1e-6 if b == "box" else 1e-4) == (1.0, 1.0, 1.0)
    moved = [(ours, other) for (ours, _), (_, other) in pairwise(pairs)]
    assert max(shares(moved, 1e-4)) < 0.1
