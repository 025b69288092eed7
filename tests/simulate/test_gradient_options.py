"""GradientOptions: one record for all calls that differentiate many steps, and its deprecated keywords."""

import numpy as np
import pytest

import artigrad as ag

SIM = ag.Simulator(ag.robots.pendulum(), threads=1)
OPTIONS = {"decay": 0.8, "clip": 0.5, "truncate": 2}


def rolled():
    u = 0.3 * np.ones((4, SIM.model.nu))
    return SIM.rollout(ag.State(np.full(SIM.model.nq, 0.4), np.zeros(SIM.model.nv)), u)


def test_defaults_leave_the_gradient_unchanged():
    traj = rolled()
    plain = SIM.vjp(traj, q_bar=np.ones_like(traj.q))
    same = SIM.vjp(traj, q_bar=np.ones_like(traj.q), gradient_options=ag.GradientOptions())
    np.testing.assert_array_equal(plain.q0, same.q0)
    np.testing.assert_array_equal(plain.params.flat, same.params.flat)


def test_former_keywords_warn_and_give_the_same_gradient():
    traj = rolled()
    want = SIM.vjp(traj, q_bar=np.ones_like(traj.q), gradient_options=ag.GradientOptions(**OPTIONS))
    with pytest.warns(
        DeprecationWarning, match=r"gradient_options=GradientOptions\(clip=..., decay=..., truncate=...\)"
    ) as caught:
        found = SIM.vjp(traj, q_bar=np.ones_like(traj.q), **OPTIONS)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found.q0, want.q0)
    with pytest.raises(ag.InputError, match="pass decay as fields of gradient_options"):
        SIM.vjp(traj, q_bar=np.ones_like(traj.q), decay=0.9, gradient_options=ag.GradientOptions(clip=1.0))


def test_former_keywords_of_frameworks_warn():
    torch = pytest.importorskip("torch")
    import artigrad.torch as at

    state = (torch.zeros(SIM.model.nq, dtype=torch.float64), torch.zeros(SIM.model.nv, dtype=torch.float64))
    policy = torch.nn.Sequential(torch.nn.Linear(SIM.model.nq + SIM.model.nv, SIM.model.nu)).double()
    with pytest.warns(DeprecationWarning, match="gradient_options=GradientOptions"):
        at.closed_loop(SIM, policy, state, 2, decay=0.9)
    with pytest.warns(DeprecationWarning, match="gradient_options=GradientOptions"):
        at.rollout(SIM, state, steps=2, clip=1.0)


@pytest.mark.parametrize(
    "wrong", [{"decay": 1.5}, {"decay": True}, {"clip": 0.0}, {"clip": float("nan")}, {"truncate": 1.5}]
)
def test_wrong_options_are_refused_when_they_are_made(wrong):
    with pytest.raises(ag.InputError, match=next(iter(wrong))):
        ag.GradientOptions(**wrong)
