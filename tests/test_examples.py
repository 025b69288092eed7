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


def test_an_example_whose_assertion_fails_is_seen(tmp_path):
    example = tmp_path / "example.py"
    example.write_text("x = 1\nassert x == 2\n")
    with pytest.raises(AssertionError):
        test_example(example)
    notebook = json.loads(NOTEBOOKS[0].read_text())
    (first, *_) = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    notebook["cells"] = [first | {"source": ["assert 1 == 2\n"]}]
    (tmp_path / "notebook.ipynb").write_text(json.dumps(notebook))
    with pytest.raises(AssertionError):
        test_notebook(tmp_path / "notebook.ipynb")
