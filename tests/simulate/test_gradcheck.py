"""gradcheck: right gradients pass, also near and at kinks of contact; wrong ones fail."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate import gradcheck as module

BALL = """<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("height", [3e-7, 3e-6, 1e-5, -3e-7])
def test_right_beside_a_kink(height):
    model = ag.load(BALL)
    q, v = model.keyframe().q.copy(), np.zeros(6)
    q[2], v[2] = 0.1 + height, 0.0
    rows = ag.gradcheck(model, samples=1, steps=1, show=False, state=ag.State(q, v))
    assert max(row.error for row in rows) < 1e-6


def test_errors_name_the_problem(monkeypatch):
    """At a kink too: a gradient with an error of a thousandth matches neither side."""
    model = ag.load(BALL)
    q = model.keyframe().q.copy()
    q[2] = 0.1 - 3e-7
    true = ag.Simulator.vjp

    def off(self, *args, **kwargs):
        grad = true(self, *args, **kwargs)
        return grad._replace(v0=grad.v0 * 1.001, q0=grad.q0 * 1.001)

    monkeypatch.setattr(module.Simulator, "vjp", off)
    with pytest.raises(ArithmeticError, match=r"q0.*v0"):
        ag.gradcheck(model, samples=1, steps=1, show=False, state=ag.State(q, np.zeros(6)))
