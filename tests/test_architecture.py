"""Statements of ARCHITECTURE.md and docs/design about the source."""

import re
from pathlib import Path

import artigrad as ag

PACKAGE = Path(ag.__file__).parent
ROOT = PACKAGE.parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def modules_with(pattern, *packages):
    """Paths, from the package, of the modules whose source matches a pattern."""
    files = [file for package in packages for file in (PACKAGE / package).rglob("*.py")]
    return {file.relative_to(PACKAGE).as_posix() for file in files if re.search(pattern, file.read_text())}


def test_named_files_exist():
    """Paths from the root of the repository, from the package or the tests, or from a folder inside these."""
    folders = [
        ROOT,
        *(folder for top in (PACKAGE, ROOT / "tests") for folder in (top, *top.rglob("*")) if folder.is_dir()),
    ]
    pages = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {(page.name, path) for page in pages for path in re.findall(r"`([\w./-]+\.py)`", page.read_text())}
    assert len(named) > 80
    assert not [entry for entry in sorted(named) if not any((folder / entry[1]).exists() for folder in folders)]


def test_modules_that_distinguish_devices_are_named():
    found = modules_with(r"isinstance\([^)]*\b(Host|Gpu)\b|target\.cuda", "simulate", "kernels", "physics")
    assert found and not [path for path in sorted(found) if f"`{path}`" not in TEXT]


def test_only_the_table_of_laws_depends_on_a_law():
    """The law's own folder and its options excepted."""
    found = modules_with(
        r"law(\.name)? ?(==|!=)|isinstance\([^)]*(Hard|Soft)Options|\.options\.(hard|soft)\b",
        "physics",
        "kernels",
        "simulate",
    )
    own = ("physics/constraints/soft/", "physics/constraints/hard/")
    assert {path for path in found if not path.startswith(own)} == {"physics/constraints/law.py"}


def test_named_tests_exist():
    """`test_...` and `file.py::test_...` in pages and in the changelog."""
    defined = {
        name for file in (ROOT / "tests").rglob("*.py") for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    files = {file.stem for file in (ROOT / "tests").rglob("test_*.py")}
    named = {
        (page.name, name)
        for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
        for name in re.findall(r"`(?:[\w/]+\.py::)?(test_\w+)(?:\[[^`]*)?`", page.read_text())
    }
    assert len(named) > 10
    assert not [entry for entry in sorted(named) if entry[1] not in defined | files]
