"""The checks of `make test` detect faults: each runs on a small tree, first intact and then with one fault."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = Path(sys.executable).parent


def run(target, tool, folder, *arguments):
    """Return the exit status of a command of the Makefile in another folder."""
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    (line,) = [line for line in recipe.splitlines() if f"$(BIN)/{tool}" in line and set(arguments) <= set(line.split())]
    words = shlex.split(line.replace("$(BIN)", str(TOOLS)))
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_0-9]+=", word))
    done = subprocess.run(
        words[len(variables) :], cwd=folder, env=os.environ | variables, capture_output=True, text=True
    )
    return done.returncode


DOCUMENTATION_FAULTS = {
    "a link to a page that does not exist": "\n[there](nowhere.md)\n",
    "a link to a heading that does not exist": "\n[there](index.md#nowhere)\n",
    "a link out of the documentation": "\n[there](../nowhere.md)\n",
}


@pytest.fixture
def site(tmp_path):
    """Return a site of one page with the configuration of this project, without the slow API reference."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n[back](#start)\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nnav: [{{Start: index.md}}]\nplugins: []\nhooks: []\nextra_css: []\n"
    )
    assert run("docs", "mkdocs", tmp_path) == 0
    return tmp_path


@pytest.mark.parametrize("fault", DOCUMENTATION_FAULTS)
def test_make_docs_refuses(site, fault):
    page = site / "docs" / "index.md"
    page.write_text(page.read_text() + DOCUMENTATION_FAULTS[fault])
    assert run("docs", "mkdocs", site) != 0


def test_make_docs_refuses_a_page_outside_the_menu(site):
    (site / "docs" / "other.md").write_text("# Other\n")
    assert run("docs", "mkdocs", site) != 0


@pytest.mark.parametrize(
    "tool, arguments, sound, faulty",
    [
        ("ruff", ("check",), "x = 1\n", "import os\n\nx = 1\n"),
        ("ruff", ("format",), "x = 1\n", "x  =  1\n"),
        ("mypy", (), "x: int = 1\n", "x: int = 'one'\n"),
    ],
)
def test_make_lint_refuses(tmp_path, tool, arguments, sound, faulty):
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "module.py"
    file.write_text(sound)
    assert run("lint", tool, tmp_path, *arguments) == 0
    file.write_text(faulty)
    assert run("lint", tool, tmp_path, *arguments) != 0


def test_every_example_ends_in_an_assertion():
    for file in (ROOT / "examples").glob("*.py"):
        assert re.search(r"^ *(assert |\S*assert_close\()", file.read_text(), re.MULTILINE), file.name


def test_ci_runs_the_test_command_and_stops_at_the_first_failure():
    script = (ROOT / ".ci" / "run").read_text()
    assert "set -euo pipefail" in script and re.search(r"^make test$", script, re.MULTILINE)
    prerequisites = re.search(r"^test:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert {"lint", "docs", "browser"} <= set(prerequisites)


STUB = """#!/bin/sh
echo "${0##*/} $*" >> commands.log
case "$*" in "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;; esac
case "${0##*/} $*" in *"$FAIL"*) exit 1 ;; esac
"""
COMMANDS = ("pip install", "ruff check", "ruff format", "mypy", "mkdocs build", "first_hour.py", "pytest")


def make_test(folder, failing):
    """Run `make test` with tools that do nothing, one of which fails; return its exit status and the commands it ran."""
    for name in (".venv/bin/python", "bin/python", "bin/ruff", "bin/mypy", "bin/mkdocs", "bin/chromium"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(STUB)
        file.chmod(0o755)
    (folder / "tests").mkdir()
    for name in ("Makefile", "pyproject.toml", "tests/lowest.txt"):
        (folder / name).write_text((ROOT / name).read_text())
    kept = {k: x for k, x in os.environ.items() if not k.startswith("MAKE")}
    env = kept | {"FAIL": failing, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(["make", "test", "BIN=bin"], cwd=folder, env=env, capture_output=True, text=True)
    return done.returncode, (folder / "commands.log").read_text()


def test_make_test_runs_every_gate(tmp_path):
    status, ran = make_test(tmp_path, "nothing fails")
    assert status == 0
    assert all(command in ran for command in COMMANDS), ran


@pytest.mark.parametrize("gate", COMMANDS)
def test_make_test_stops_at_a_gate_that_fails(tmp_path, gate):
    status, ran = make_test(tmp_path, gate)
    assert status != 0
    assert gate in ran and ran.rstrip().splitlines()[-1].count(gate) == 1, ran
