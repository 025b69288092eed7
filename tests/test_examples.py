"""Every example runs to its assertion."""

import ast
import json
import runpy
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    """Its cells run in order, and the last expression of a cell has a notebook representation."""
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    names: dict = {"__name__": "__main__"}
    shown = []
    for cell in (c for c in notebook["cells"] if c["cell_type"] == "code"):
        assert cell["outputs"] == [] and cell["execution_count"] is None  # kept without results
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path, "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), path, "eval"), names))
    html = [x._repr_html_() for x in shown if hasattr(x, "_repr_html_")]
    assert any("<table" in text for text in html) and any("<iframe" in text for text in html)


def test_they_are_there():
    assert NOTEBOOKS
    assert len(EXAMPLES) >= 3
