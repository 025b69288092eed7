"""What importing loads, and in which direction modules may depend on each other."""

import ast
import subprocess
import sys
from pathlib import Path

import artigrad

ROOT = Path(artigrad.__file__).parent
# leftmost first: a module may import from its own rank or from those before it
ORDER = [
    ["errors", "_version", "visual", "report", "staging", "buffers", "places"],
    ["spatial"],
    ["params", "state", "options", "model", "tables", "tangent"],
    ["constants", "joints", "prepare"],
    ["kinematics"],
    ["dynamics", "outputs"],
    ["collision"],
    ["contact"],
    ["integrate"],
    ["step"],
    ["rollout", "queries", "jacobian"],
    ["run", "results"],
    ["door", "sensors"],
    ["state_functions"],
    ["simulator", "cuda"],
    ["gradcheck", "io", "robots", "arrays", "fit"],
    ["optimise"],
    ["view"],
    ["tasks"],
    ["cli", "torch", "jax", "envs"],
]
# imported inside a method, for the user's comfort: a trajectory can show and save itself
ON_DEMAND = {("results", "view")}
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}


def imports(file: Path):
    """First names of what a module imports from the package at run time (not for type checking only)."""
    package = list(file.relative_to(ROOT).with_suffix("").parts)
    tree = ast.parse(file.read_text())
    guarded = {
        n
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for n in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node not in guarded:
            base = package[: len(package) - node.level] + (node.module.split(".") if node.module else [])
            names = [base[0]] if base else [alias.name for alias in node.names]
            yield from names


def test_modules_import_leftwards_only():
    files = [f for f in ROOT.rglob("*.py") if f != ROOT / "__init__.py"]
    assert len(files) > 40
    for file in files:
        own = file.relative_to(ROOT).parts[0].removesuffix(".py")
        for other in imports(file):
            if (own, other) in ON_DEMAND:
                continue
            assert RANK[other] <= RANK[own], f"{file.relative_to(ROOT)} imports {other}, which stands to its right"


def test_import_loads_numpy_and_llvmlite_only():
    code = (
        "import sys; before = set(sys.modules); import numpy, llvmlite.binding; base = set(sys.modules)\n"
        "import artigrad\n"
        "new = {m.split('.')[0] for m in set(sys.modules) - base} - {'artigrad'} - set(sys.stdlib_module_names)\n"
        "print(sorted(new))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_every_public_name_has_a_docstring():
    for name in artigrad.__all__:
        thing = getattr(artigrad, name)
        if callable(thing) or name == "robots":
            assert thing.__doc__, name
    for name in artigrad.robots.__all__:
        assert getattr(artigrad.robots, name).__doc__, name
