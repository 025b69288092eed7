"""The code of docs/frameworks.md runs as it stands, from top to bottom."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "frameworks.md"


def test_code_of_the_frameworks_page():
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(code, names)
    assert names["mass"].grad.any() and names["u"].grad.any()
    assert names["slope"].shape == (8, 20, 12)
    assert names["there"].observation_action.shape == (16, 27, 8)
