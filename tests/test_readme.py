"""Code of the README and of pages runs unchanged."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parent.parent / "README.md"
TASKS = README.parent / "docs" / "tasks.md"


def test_first_example():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert names["grad"].u.shape == (256, 100, 12)
    assert np.isfinite(names["grad"].params.flat).all()


def test_own_task():
    (code,) = re.findall(r"```python\n(.*?)```", TASKS.read_text(), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert names["run"].ended == "solved"


@pytest.mark.parametrize("page", [README, TASKS])
def test_pictures_are_there(page):
    paths = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
    assert paths and all((page.parent / path).stat().st_size > 1000 for path in paths)
