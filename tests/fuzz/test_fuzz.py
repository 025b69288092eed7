"""Small fuzzer runs with fixed seeds; and the fuzzer itself, which must find and shrink faults."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

from . import draw
from .checks import _saved, gradients
from .report import report
from .run import outcome, run
from .shrink import shrink


@pytest.mark.parametrize(
    ("checks", "seed", "cases"),
    [
        (("gradients", "mujoco"), 11, 4),
        (("gradients", "mujoco"), 1, 4),
        (("energy",), 24, 10),
        (("backends",), 3, 2),
        (("bits",), 5, 2),
    ],
)
def test_random_models(checks, seed, cases):
    counts, findings = run(seed, themes=1, per_theme=cases, checks=checks, tell=lambda _: None)
    assert not findings, "\n\n".join(findings)
    assert all(counts[name, "ok"] >= cases / 2 for name in checks), counts


def some_case(kinds=frozenset({"floor"}), seed=3):
    return draw.case(np.random.default_rng(seed), draw.Theme({"law": "soft", "dt": 1e-3}, kinds, True))


def test_rare_parts_and_states_are_drawn():
    """Side sites, servos of rotations, a contact that nothing moves, and solids on each other at the first step."""
    kinds = frozenset({"floor", "each other", "tendon", "servo", "idle", "solid"})
    drawings = [
        draw._Drawing(np.random.default_rng(k), draw.Theme({"law": ag.SoftOptions()}, kinds, True)) for k in range(8)
    ]
    assert {drawing.state for drawing in drawings} == {"moving", "settled", "aligned"}
    for drawing in drawings:
        drawing.parts()
        case = drawing.finished()
        names = {call.args[0] for call in case.calls if call.args}
        assert {"t0 outside", "t0 inside", "gimbal rate", "site servo", draw.IDLE} <= names
        assert len(case.state.act) == case.model.na >= 2
        pairs = {frozenset(x.split(":")[0] for x in pair) for pair in touching(case)}
        assert frozenset({"world", draw.IDLE}) in pairs
        assert (frozenset({"world", f"{draw.ALIGNED}0"}) in pairs) == (drawing.state == "aligned")


def touching(case):
    """Pairs of shapes that overlap, by MuJoCo."""
    loaded, m = _saved(case)
    d = mujoco.MjData(m)
    d.qpos[:] = case.state_of(loaded.model).q
    mujoco.mj_forward(m, d)
    return [[m.geom(g).name for g in contact.geom] for contact in d.contact]


def test_a_wrong_gradient_is_found(monkeypatch):
    right = ag.Simulator.vjp

    def wrong(self, *args, **options):
        grad = right(self, *args, **options)
        return grad._replace(v0=grad.v0 * 1.001)

    monkeypatch.setattr(ag.Simulator, "vjp", wrong)
    assert gradients(some_case()).startswith("gradient of v0[")


def test_a_finding_is_made_small():
    """A fault of balls is reduced to a body and a ball."""

    def check(case):
        balls = [call for call in case.calls if call.method == "sphere"]
        return "has a ball" if balls and case.model.nb else None

    cases = (some_case(frozenset({"floor", "limit", "dry", "weld"}), seed) for seed in range(99))
    small = shrink(next(case for case in cases if check(case)), lambda case: outcome(case, check)[1])
    assert [call.method for call in small.calls] == ["body", "sphere"]
    exec(compile(small.code(), "pasted", "exec"), {})


def test_results_are_written():
    counts = {("gradients", "ok"): 3, ("gradients", "failed"): 1, ("mujoco", "slow"): 2, ("mujoco", "odd"): 5}
    page = report(counts, ["seed 0, theme 1: wrong"], 60.0, 0)
    assert "| gradients | 3 | 1 | 0 |  |" in page and "| mujoco | 0 | 0 | 7 | odd |" in page
    assert "- minutes: 60, seed 0" in page and "- findings: **1**" in page and "theme 1: wrong" in page
    assert "- findings: **none**" in report({}, [], 1.0, 0)
