"""Small seeded sample of every random search."""

import importlib

import pytest

from .__main__ import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sample_has_no_findings(name):
    module = importlib.import_module(f"tests.searches.{name}")
    outcome = module.search(module.SAMPLE, seed=0)
    assert sum(outcome.counts.values()) >= module.SAMPLE
    assert not outcome.findings
