"""The code of the README runs as it stands."""

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parent.parent / "README.md"


def test_first_example():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert names["grad"].u.shape == (256, 100, 12)
    assert np.isfinite(names["grad"].params.flat).all()


def test_pictures_are_there():
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README.read_text()):
        assert (README.parent / path).stat().st_size > 1000
