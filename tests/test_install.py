"""A wheel and a source archive install completely: the package imports, simulates and differentiates."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTRAS = (
    "torch",
    "jax",
    "jaxlib",
    "gymnasium",
    "scipy",
    "cma",
    "matplotlib",
    "PIL",
    "imageio_ffmpeg",
    "tensorboard",
    "ray",
    "optax",
)
USE = """
import sys
sys.modules |= dict.fromkeys({extras!r})  # as in an environment where pip installed no extra: imports of them fail
import importlib
import numpy as np, artigrad as ag
assert {folder!r} in ag.__file__, ag.__file__
exec(compile({readme!r}, "README.md", "exec"), {{"__name__": "readme"}})
sim = ag.Simulator(ag.robots.pendulum(2))
traj = sim.rollout(sim.reset(), steps=3)
traj.save("motion.html")
traj.show(block=False).stop()
def said(call):
    try:
        call()
    except (ImportError, ag.InputError) as problem:
        return str(problem)
for module, extra in (("torch", "torch"), ("jax", "jax"), ("envs", "gym"), ("learn", "learn"), ("camera", "torch")):
    assert f"pip install 'artigrad[{{extra}}]'" in (said(lambda: importlib.import_module(f"artigrad.{{module}}")) or ""), module
assert "pip install 'artigrad[view]'" in said(lambda: traj.save("motion.gif"))
from artigrad.cli import app
from typer.testing import CliRunner
told = CliRunner().invoke(app, ["run", "throw", "--method", "lbfgs", "--out", "thrown"])
assert told.exit_code == 1 and "pip install 'artigrad[optimize]'" in " ".join(told.output.split()), told.output
from pathlib import Path
assert not Path("thrown").exists()
"""


def test_the_lowest_versions_are_those_that_are_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = dict(re.fullmatch(r"([a-z]+)>=([0-9.]+)(?:,<.*)?", text).groups() for text in project["dependencies"])
    tested = dict(line.split("==") for line in (ROOT / "tests" / "lowest.txt").read_text().split())
    assert tested.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert f"{tested[name]}.".startswith(f"{bound}."), f"{name}: {tested[name]} is tested, {bound} is allowed"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build a wheel and a source archive in a copy of the project."""
    copy, out = tmp_path_factory.mktemp("copy") / "artigrad", tmp_path_factory.mktemp("out")
    copy.mkdir()
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    make = "from setuptools import build_meta as b; b.build_wheel({0!r}); b.build_sdist({0!r})".format(str(out))
    subprocess.run([sys.executable, "-c", make], cwd=copy, check=True, capture_output=True)
    return out


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_package_is_complete(built, kind, tmp_path):
    if kind == "wheel":
        (file,) = built.glob("*.whl")
        with zipfile.ZipFile(file) as archive:
            archive.extractall(tmp_path)
        where = tmp_path
    else:
        (file,) = built.glob("*.tar.gz")
        with tarfile.open(file) as archive:
            archive.extractall(tmp_path, filter="data")
        (inner,) = tmp_path.iterdir()
        where = inner / "src"
    done = use(where, tmp_path)
    assert done.returncode == 0, done.stderr


def use(where, folder):
    """Run what a user does first, with the package in `where` and without extras."""
    paths = [str(where), *(p for p in sys.path if "site-packages" in p)]
    readme = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    code = f"import sys; sys.path[:0] = {paths!r}\n" + USE.format(folder=str(where), extras=EXTRAS, readme=readme)
    return subprocess.run([sys.executable, "-S", "-c", code], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("missing", ["view/player.js", "physics/step.py"])
def test_a_wheel_without_a_file_is_seen(built, missing, tmp_path):
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "artigrad" / missing).unlink()
    assert use(tmp_path, tmp_path).returncode != 0
