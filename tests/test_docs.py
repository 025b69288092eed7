"""Code of every documentation page runs unchanged, from top to bottom, in an empty folder.

Blocks of a page share their names. Of shell blocks, `artigrad info` and `artigrad check` are run. Pages that open a browser
get a viewer that ends at once. The API pages list all public names.
"""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import artigrad as ag
from artigrad.cli import app
from artigrad.control import MPC, Goal, Quadratic, ik, ilqr, lqr
from artigrad.model.params import FIELDS
from artigrad.view.browser import Viewer

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "```python" in page.read_text()]

# what a reader of docs/loading.md has at hand
ROBOT_XML = """
<mujoco>
  <worldbody>
    <body><joint name="hip"/><geom type="capsule" size="0.1" fromto="0 0 0 1 0 0"/><site name="imu" pos="1 0 0"/></body>
  </worldbody>
  <sensor><gyro name="imu" site="imu"/></sensor>
  <keyframe><key name="home" qpos="0.1" qvel="0.5"/></keyframe>
</mujoco>"""
ROBOT_URDF = """
<robot name="robot">
  <link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="leg"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hip" type="continuous"><parent link="base"/><child link="leg"/></joint>
</robot>"""

# what the names of a page are to be at its end, beyond its own assertions
ENDS = {
    "frameworks.md": lambda names: (
        names["mass"].grad.any()
        and names["u"].grad.any()
        and names["slope"].shape == (8, 20, 12)
        and names["action"].grad.shape == (16, 8)
    ),
    "loading.md": lambda names: names["grad"].v.any() and names["walker"].nu == 1,
    "index.md": lambda names: names["grad"].u.shape == (200, 12) and names["grad"].params.mass.any(),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).with_suffix("").as_posix())
def test_code_of_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Viewer, "run", lambda viewer, block: viewer.stop() or viewer)
    if page.name == "loading.md":
        Path("robot.xml").write_text(ROBOT_XML)
        Path("robot.urdf").write_text(ROBOT_URDF)
    names: dict = {"__name__": page.stem}
    text = page.read_text()
    for block in BLOCK.finditer(text):
        if block[1] == "sh":
            run_commands(block[2])
        else:  # lines count from the top of the page, so that a traceback points there
            code = "\n" * text[: block.start(2)].count("\n") + block[2]
            exec(compile(code, page, "exec"), names)
    assert ENDS.get(page.name, lambda names: True)(names)


# what a reader's own file may be: links and joints, no sites, no actuators, no limits of effort
PLAIN_URDF = """
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 0.25"/><mass value="2.8"/>
    <inertia ixx="0.07" iyy="0.07" izz="0.003" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="fore"><inertial><origin xyz="0 0 0.2"/><mass value="1.2"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"/>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.6"/>
    <axis xyz="0 1 0"/><dynamics damping="0.1"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/><origin xyz="0 0 0.5"/>
    <axis xyz="0 1 0"/><dynamics damping="0.1"/></joint>
  <joint name="wrist" type="fixed"><parent link="fore"/><child link="tool"/><origin xyz="0 0 0.4"/></joint>
</robot>"""
MAKING = re.compile(r'^model = (?:ag\.robots.*?$|ag\.load\("""(?:.*?)"""\)$)', re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["gradient", "trajectory", "policy"])
def test_tutorial_on_a_plain_urdf(name, tmp_path, monkeypatch):
    """The code of the pages with `ag.load("your.urdf", motors=True)` in place of their robot."""
    monkeypatch.chdir(tmp_path)
    Path("your.urdf").write_text(PLAIN_URDF)
    code = "\n".join(
        block[2] for block in BLOCK.finditer((DOCS / "tutorials" / f"{name}.md").read_text()) if block[1] == "python"
    )
    code, count = MAKING.subn('model = ag.load("your.urdf", motors=True)', code, count=1)
    assert count == 1
    exec(compile(code, name, "exec"), {"__name__": name})


def test_control_on_a_plain_urdf():
    """The calls of the control page on a URDF: a body replaces a site, and controls may be unbounded."""
    sim = ag.Simulator(ag.load(PLAIN_URDF, motors=True), dt=0.01)
    assert ik(sim, Goal("tool", position=(0.3, 0.0, 0.9))).solved
    upright, state = ag.State(np.zeros(2), np.zeros(2)), ag.State(np.array([0.1, -0.1]), np.zeros(2))
    hold, cost = lqr(sim, upright), Quadratic(sim.model, upright, Q=[10, 10, 0.01, 0.01], R=1e-5)
    plan = ilqr(sim, cost, state, np.zeros((50, 2)))
    assert plan.solved and np.abs(plan.q[-1]).max() < 0.02
    for control in (hold, MPC(sim, cost, horizon=30, iterations=2)):
        s = state
        for _ in range(300):
            s = sim.step(s, control(s))
        assert np.abs(s.q).max() < 1e-3


def run_commands(block: str):
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] in (["artigrad", "info"], ["artigrad", "check"]):
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, result.output


def test_all_pages_with_code_are_found():
    assert len(PAGES) >= 9


def test_titles_of_pages_are_those_of_the_navigation():
    root = DOCS.parent
    entries = re.findall(r"^ +- (.+): (\S+\.md)$", (root / "mkdocs.yml").read_text(), re.MULTILINE)
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} <= {page for _, page in entries}
    for title, page in entries:
        text = (DOCS / page if (DOCS / page).exists() else root / page).read_text()
        assert text.startswith(f"# {title}\n"), page


def test_figures_of_results_are_linked():
    text = "".join(page.read_text() for page in (DOCS.parent / "README.md", *DOCS.rglob("*.md")))
    figures = [file for file in (DOCS / "results").rglob("*") if file.suffix in (".html", ".gif", ".png")]
    assert figures
    assert not [file for file in figures if file.relative_to(DOCS).as_posix() not in text]


@pytest.mark.parametrize("page", sorted((DOCS / "extending").glob("*.md")), ids=lambda page: page.stem)
def test_diffs_are_those_of_the_source(page):
    """Each added line is in the file that the diff names, up to white space; "..." ends a line or stands for others."""
    lines = [
        line
        for block in re.findall(r"^```diff\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert lines
    source, missing = "", []
    for line in lines:
        assert line.startswith("+")
        if line.startswith("+++ "):
            source = "".join((DOCS.parent / line[4:]).read_text().split())
        elif "".join(line[1:].partition("...")[0].split()) not in source:
            missing.append(line)
    assert not missing, "\n".join(missing)


def test_cited_theory_equations_exist():
    pages = "\n".join(page.read_text() for page in (DOCS / "theory").glob("*.md"))
    there = set(re.findall(r"\((\d+\.\d+)\)  ", pages)) | set(re.findall(r"^\| (\d+\.\d+) \|", pages, re.MULTILINE))
    cited = set()
    for file in (DOCS.parent / "src").rglob("*.py"):
        for citation in re.findall(r"\(theory\s([^)]*)\)|  \((\d+\.\d+)\)", file.read_text()):
            for chapter, first, last in re.findall(r"(\d+)\.(\d+)(?:-\d+\.(\d+))?", " ".join(citation)):
                cited |= {f"{chapter}.{k}" for k in range(int(first), int(last or first) + 1)}
    assert len(cited) > 50 and cited <= there, cited - there


def test_every_public_name_is_in_the_reference():
    import artigrad.camera
    import artigrad.control
    import artigrad.envs
    import artigrad.jax
    import artigrad.learn
    import artigrad.optimize
    import artigrad.tasks
    import artigrad.torch

    pages = {page.stem: page.read_text() for page in (DOCS / "api").glob("*.md")}
    listed = {name.split(".")[-1] for text in pages.values() for name in re.findall(r"^::: (\S+)", text, re.MULTILINE)}
    assert set(ag.__all__) - listed <= {"robots", "__version__"}
    methods = re.findall(r"^        - (\w+)$", pages["simulator"], re.MULTILINE)
    assert set(methods) == {
        name
        for name in dir(ag.Simulator)
        if not name.startswith("_") and not name.isupper() and name not in ag.Simulator._renamed
    }
    for module, names in (
        ("robots", ag.robots.__all__),
        ("optimize", set(artigrad.optimize.__all__) - {"METHODS"}),
        ("control", set(artigrad.control.__all__) - {"ik", "ilqr", "lqr"}),
        ("tasks", set(artigrad.tasks.__all__) - {"TASKS"}),
        ("torch", artigrad.torch.__all__),
        ("camera", artigrad.camera.__all__),
        ("jax", artigrad.jax.__all__),
        ("envs", artigrad.envs.__all__),
        ("learn", artigrad.learn.__all__),
    ):
        for name in names:
            assert f"artigrad.{module}.{name}" in pages[module], name


def test_the_table_of_parameters_is_that_of_the_source():
    counted = {
        "body": "nb",
        "site": "ns",
        "actuator": "nu",
        "shape": "shapes",
        "vertex": "vertices",
        "height": "heights",
        "dof": "nv",
        "pair": "pairs",
        "equality": "equalities",
        "tendon": "tendons",
        "piece": "pieces",
        "activation": "na",
        "muscle": "muscles",
        "wet": "wet shapes",
    }
    page = (DOCS / "api" / "params.md").read_text()
    for name, (per, shape, meaning) in FIELDS.items():
        sizes = [*([] if per == "world" else [counted[per]]), *map(str, shape)]
        shown = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"
        assert f"| `{name}` | {shown} | {meaning} |" in page
