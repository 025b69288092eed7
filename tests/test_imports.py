"""Imports: what `import artigrad` loads, the order of packages, and readability rules of the tree."""

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import artigrad

ROOT = Path(artigrad.__file__).parent
# leftmost first: a package imports from those before it, and from itself without cycles
ORDER = [
    *(
        "errors",
        "arguments",
        "files",
        "_version",
        "deprecation",
        "jobs",
        "compiler",
        "physics.spatial",
        "physics.joints",
        "model",
        "physics",
        "kernels",
        "build",
        "formats",
        "simulate",
    ),
    "robots",
    *("optimize", "control", "fit", "torch", "jax", "envs", "learn", "view", "camera", "tasks", "cli", "__main__"),
]
# imported inside a method, for the user's comfort: trajectories and environments can show themselves, parameters make weights
ON_DEMAND = {("simulate", "view"), ("envs", "view"), ("model", "simulate")}
FILES = sorted(f for f in ROOT.rglob("*.py") if f != ROOT / "__init__.py")


def module_of(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


MODULES = {module_of(f) for f in FILES}


def layer(module: tuple[str, ...]) -> str:
    """Entry of ORDER that a module belongs to: its package, or a package inside it that is listed."""
    inner = ".".join(module[:2])
    return inner if inner in ORDER else module[0]


def imports(file: Path):
    """Return the modules of the package that a module imports, and True if at its top; without type-checking imports."""
    own, tree = module_of(file), ast.parse(file.read_text())
    package = own if file.name == "__init__.py" else own[:-1]
    guarded = {
        n
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for n in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or node in guarded:
            continue
        base = package[: len(package) - node.level + 1] + tuple(node.module.split(".") if node.module else ())
        for alias in node.names:
            target = (*base, alias.name)
            yield (target if target in MODULES else base), node in tree.body


def test_packages_import_leftwards_only():
    assert len(FILES) > 100
    rank = {name: k for k, name in enumerate(ORDER)}
    for file in FILES:
        own = layer(module_of(file))
        for other, _ in imports(file):
            if other and (own, layer(other)) not in ON_DEMAND:
                where = f"{file.relative_to(ROOT)} imports {'.'.join(other)}, which stands to its right"
                assert rank[layer(other)] <= rank[own], where


def test_no_module_imports_itself_round_about():
    graph = {module_of(f): {m for m, at_top in imports(f) if at_top and m in MODULES} for f in FILES}
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join(".".join(m) for m in [*path, module])
        if module not in done:
            path.append(module)
            for other in sorted(graph[module] - {module}):
                visit(other)
            done.add(path.pop())

    for module in sorted(graph):
        visit(module)


def test_the_map_names_every_package_and_every_loose_module():
    text = (ROOT.parent.parent / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"^(\w+)(?:/|\.py)", text, re.MULTILINE))
    assert {module_of(f)[0] for f in FILES} <= named
    assert [name for name in ORDER if name != "_version" and "." not in name] == [
        n for n in re.findall(r"^(\w+)(?:/|\.py)", text, re.MULTILINE) if n in ORDER and n != "_version"
    ]


def test_class_names_are_unique():
    classes = Counter(n.name for f in FILES for n in ast.walk(ast.parse(f.read_text())) if isinstance(n, ast.ClassDef))
    assert not [c for c, n in classes.items() if n > 1]


def test_functions_of_the_physics_have_at_most_six_arguments():
    """`self` is not counted."""
    for package in ("physics",):
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.FunctionDef):
                    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                    names = [n for n in names if n != "self"]
                    if file.stem == "model" or node.name == "__init__":
                        continue
                    assert len(names) <= 6, f"{file.relative_to(ROOT)}: {node.name}({', '.join(names)})"


def test_the_step_is_one_page():
    assert len((ROOT / "physics" / "step.py").read_text().splitlines()) < 120


def test_no_source_file_tests_for_joint_types_by_name():
    """Except the records themselves, and robots."""
    names = "|".join(artigrad.physics.joints.table.JOINTS)
    asked = re.compile(rf'(==|!=|\bin\b) ?\(?"({names})"')
    for file in FILES:
        if layer(module_of(file)) not in ("physics.joints", "robots", "tasks"):
            lines = [line for line in file.read_text().splitlines() if asked.search(line)]
            assert not [line for line in lines if "joint.get(" not in line and "BY_MJCF" not in line], file


def test_words():
    """Words of this project are those of the field."""
    private = r"\b(door|the way back|on the way back|impulses_again|accelerate_again)\b"
    texts = [*FILES, *(ROOT.parent.parent / "docs").rglob("*.md"), ROOT.parent.parent / "README.md"]
    for file in texts:
        found = re.search(private, file.read_text())
        assert not found, f"{file}: {found[0]}"


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


def test_options_of_a_simulator_are_those_of_options():
    """They are in its signature, for completion and type checkers."""
    listed = inspect.signature(artigrad.Simulator.__init__).parameters
    assert set(inspect.signature(artigrad.Options).parameters) <= set(listed)


def test_a_missing_framework_is_one_sentence():
    for package, module, extra in (
        ("torch", "torch", "torch"),
        ("torch", "camera", "torch"),
        ("jax", "jax", "jax"),
        ("torch", "envs", "gym"),
    ):
        code = f"import sys; sys.modules[{package!r}] = None; import artigrad.{module}"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert found.returncode != 0
        assert f"not installed: pip install 'artigrad[{extra}]'" in found.stderr.strip().splitlines()[-1]


def modules_of(call):
    """Modules of artigrad that a call passes through, as in ARCHITECTURE.md."""
    found = set()

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            found.add(path.relative_to(ROOT).as_posix())

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def test_modules_of_a_rollout_and_its_gradient_are_those_that_the_architecture_names():
    page = (ROOT.parent.parent / "ARCHITECTURE.md").read_text()
    section = page.partition("`sim.rollout(state, u)` once")[2].partition("CPU and GPU differ")[0]
    forward, _, backward = section.partition("`sim.vjp(traj")
    staged = forward.partition("The kernel itself")
    named = [set(re.findall(r"`([a-z_/]+\.py)`", text)) for text in (staged[0], staged[0] + backward)]
    sim = artigrad.Simulator(artigrad.robots.ball(floor=True), threads=1)
    state, u, bar = sim.reset(), np.zeros((3, 0)), np.ones(7)
    for _ in range(2):
        sim.vjp(sim.rollout(state, u), q_bar=bar)
    traj = sim.rollout(state, u)
    passed = modules_of(lambda: sim.rollout(state, u)), modules_of(lambda: sim.vjp(traj, q_bar=bar))
    for modules, names, most in zip(passed, named, (11, 17), strict=True):
        assert len(modules) <= most and not modules - names, (sorted(modules), sorted(modules - names))
