"""The code of docs/ runs as it stands, each page from top to bottom."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def run(page):
    """The names that a page's code leaves behind."""
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL):
        exec(code, names)
    return names


def test_code_of_the_frameworks_page():
    names = run("frameworks.md")
    assert names["mass"].grad.any() and names["u"].grad.any()
    assert names["slope"].shape == (8, 20, 12)
    assert names["there"].observation_action.shape == (16, 27, 8)


def test_code_of_the_page_about_fits(capsys):
    found = run("fit.md")["found"]
    printed = capsys.readouterr().out
    assert abs(found.values["mass[rod2]"] / 0.7 - 1) < 0.02
    assert found.unseen[0] in (DOCS / "fit.md").read_text() and found.unseen[0] in printed
