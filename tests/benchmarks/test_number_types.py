"""Physics source on other number types (`benchmarks/paper/`): the same step and gradient."""

import ctypes
import math
import shutil
import sys

import numpy as np
import pytest
from benchmarks.paper import build, cells, scene, tools, trace

import artigrad as ag

STEPS = 3


@pytest.fixture(scope="module")
def robot():
    return scene.model(1)


@pytest.fixture(scope="module")
def given(robot):
    """State with feet slightly below the floor, so that all four push."""
    found = scene.inputs(robot, STEPS)
    found.q[2] -= 0.012
    return found


def gradient(tool):
    x = tool.forward()
    return x, *tool.backward()


@pytest.fixture(scope="module")
def ours(robot, given):
    x, x_bar, u_bar = gradient(tools.Ours(robot, given))
    assert np.abs(u_bar).max() > 1e-4 and np.abs(x - tools.Ours(robot, given).x0).max() > 1e-4
    return x, x_bar, u_bar


def agree(robot, given, found, ours):
    (x, x_bar, u_bar), (our_x, our_bar, our_u) = found, ours
    np.testing.assert_allclose(x, our_x, atol=1e-12)
    q_bar, our_q = (scene.tangential(robot, given.q, b[: robot.nq]) for b in (x_bar, our_bar))
    np.testing.assert_allclose(q_bar, our_q, atol=1e-9)
    np.testing.assert_allclose(x_bar[robot.nq :], our_bar[robot.nq :], atol=1e-9)
    np.testing.assert_allclose(u_bar, our_u, atol=1e-9)


def test_trace_runs_on_python_numbers(robot, given, ours):
    words = {"select": lambda m, a, b: a if m else b, "sqrt": math.sqrt, "fabs": abs, "round_": round}
    program = trace.trace(tools.simulator(robot))
    step = program.function(**words, floor=math.floor, repeat=tools._repeat)
    x = np.concatenate([given.q, given.v])
    for u in given.u:
        x = step([*x, *u])
    np.testing.assert_allclose(x, ours[0], atol=1e-12)
    assert program.count() > 20_000


def test_trace_in_parts_is_the_whole(robot, given, ours):
    program = trace.trace(tools.simulator(robot))
    before, loop, fixed, after = program.parts()
    assert after.parts() is None
    assert loop.turns == scene.SWEEPS
    known = {*program.inputs, *(c.inside for c in loop.carried), *fixed, *(op.out for op in loop.body)}
    used = {x for op in loop.body for x in op.args if isinstance(x, str)}
    assert used <= known
    assert len(after.outputs) == robot.nq + robot.nv and len(before.inputs) == robot.nq + robot.nv + robot.nu


def test_pytorch(robot, given, ours):
    pytest.importorskip("torch")
    agree(robot, given, gradient(tools.Torch(robot, given)), ours)


def test_casadi(robot, given, ours):
    pytest.importorskip("casadi")
    agree(robot, given, gradient(tools.Casadi(robot, given)), ours)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_printed_cpp(robot, given, ours, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    monkeypatch.setattr(build, "FLAGS", ["-O1", "-shared", "-fPIC"])
    library, _ = build.native("doubles", tools.simulator(robot))
    x0, x, u = np.concatenate([given.q, given.v]), np.empty(robot.nq + robot.nv), given.u
    library.forward(*(ctypes.c_void_p(a.ctypes.data) for a in (x0, u)), ctypes.c_long(STEPS), tools._at(x))
    np.testing.assert_allclose(x, ours[0], atol=1e-12)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_casadi_as_generated_c(robot, given, ours, tmp_path, monkeypatch):
    pytest.importorskip("casadi")
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    monkeypatch.setattr(build, "FLAGS", ["-O0", "-shared", "-fPIC"])
    agree(robot, given, gradient(tools.CasadiC(robot, given, name="casadi")), ours)


@pytest.mark.parametrize(
    ("code", "limit", "why"),
    [
        ("while True: pass", 0.3, "over 0.005 min"),
        ("import time; x = bytearray(400_000_000); time.sleep(60)", 60.0, "over 0.3 GB"),
        ("import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])", 0.3, "over 0.005 min"),
        ("raise ValueError('no such robot')", 60.0, "ValueError: no such robot"),
    ],
    ids=["time", "memory", "time of a child", "error"],
)
def test_failure_of_a_tool_has_the_reason(code, limit, why):
    with pytest.raises(cells.Failed, match=why):
        cells.run([sys.executable, "-c", code], limit=limit, memory_GB=0.3)


def test_cells_beyond_failed_ones_are_skipped():
    """Cells longer than a failed one, or with ten times the code of one that compiled too long."""
    done, failed = cells.Cell("JAX", 1, 50, ready_s=70.0, forward=[1.0]), cells.Cell("CppAD", 1, 500, why="over 8 GB")
    known = [done, failed]
    assert "70 s to be ready" in cells.hopeless(cells.Cell("JAX", 10, 1000), known, 600.0)
    assert cells.hopeless(cells.Cell("JAX", 1, 100), known, 600.0) == ""
    assert cells.hopeless(cells.Cell("CppAD", 1, 1000), known, 600.0) == "as 500 steps: over 8 GB"
    assert cells.hopeless(cells.Cell("CppAD", 1, 100), known, 600.0) == ""


def test_ten_robots_are_one_scene():
    robots = scene.model(10)
    assert robots.nq == 190 and isinstance(robots, ag.Model)
