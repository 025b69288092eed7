"""Conditioned gradients (decay, clip, truncate) and held controls, compared with single steps."""

import numpy as np
import pytest

import artigrad as ag

SIM = ag.Simulator(ag.robots.hopper(), threads=1)
STEPS, HOLD = 6, 2


def thrown(batch=3, seed=0):
    rng, m = np.random.default_rng(seed), SIM.model
    q = np.tile(m.keyframe().q, (batch, 1)) + 0.02 * rng.normal(size=(batch, m.nq))
    u = rng.normal(size=(batch, STEPS, m.nu))
    bars = [rng.normal(size=(batch, STEPS * HOLD + 1, n)) for n in (m.nq, m.nv)]
    return ag.State(q, 0.5 * rng.normal(size=(batch, m.nv))), u, bars


def by_hand(state, u, bars, decay=1.0, clip=None, truncate=None):
    """Return cotangents of the first state and of all controls, from single steps."""
    held = np.repeat(u, HOLD, 1)
    states = [state]
    for t in range(held.shape[1]):
        states.append(SIM.step(states[-1], held[:, t]))
    q_bar, v_bar = (bar[:, -1].copy() for bar in bars)
    u_bar = np.zeros_like(held)
    for t in reversed(range(held.shape[1])):
        if (t + 1) % HOLD == 0:
            if truncate is not None and (t + 1) % (HOLD * truncate) == 0:
                q_bar, v_bar = (bar[:, t + 1].copy() for bar in bars)
            norm = np.sqrt((q_bar**2).sum(1) + (v_bar**2).sum(1))[:, None]
            share = decay * (1.0 if clip is None else np.minimum(1.0, clip / norm))
            q_bar, v_bar = share * q_bar, share * v_bar
        grad = SIM.vjp(SIM.rollout(states[t], held[:, t : t + 1]), q_bar=q_bar, v_bar=v_bar)
        q_bar, v_bar, u_bar[:, t] = grad.q0 + bars[0][:, t], grad.v0 + bars[1][:, t], grad.u[:, 0]
    return q_bar, v_bar, u_bar.reshape(len(u), STEPS, HOLD, -1).sum(2)


OPTIONS = [{}, {"decay": 0.9}, {"clip": 2.0}, {"truncate": 2}, {"decay": 0.8, "clip": 3.0, "truncate": 4}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_as_one_step_at_a_time(options):
    state, u, bars = thrown()
    traj = SIM.rollout(state, u, hold=HOLD)
    assert traj.steps == STEPS * HOLD
    grad = SIM.vjp(traj, q_bar=bars[0], v_bar=bars[1], gradient_options=ag.GradientOptions(**options))
    for found, wanted in zip((grad.q0, grad.v0, grad.u), by_hand(state, u, bars, **options), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_each_robot_by_itself():
    """A batch element with a large gradient does not change those of others."""
    state, u, (q_bar, v_bar) = thrown()
    both = SIM.vjp(
        SIM.rollout(state, u, hold=HOLD), q_bar=q_bar, v_bar=v_bar, gradient_options=ag.GradientOptions(clip=1.0)
    )
    v_bar[0] *= 1e6
    other = SIM.vjp(
        SIM.rollout(state, u, hold=HOLD), q_bar=q_bar, v_bar=v_bar, gradient_options=ag.GradientOptions(clip=1.0)
    )
    np.testing.assert_array_equal(both.u[1:], other.u[1:])
    assert not np.allclose(both.u[0], other.u[0])


def test_frameworks_do_the_same():
    torch = pytest.importorskip("torch")
    from artigrad.torch import closed_loop, rollout

    state, u, bars = thrown()
    options = ag.GradientOptions(decay=0.8, clip=3.0, truncate=4)
    want = SIM.vjp(SIM.rollout(state, u, hold=HOLD), q_bar=bars[0], v_bar=bars[1], gradient_options=options).u
    q, v, given = (torch.tensor(x) for x in (*state, u))
    given.requires_grad_()
    states = rollout(SIM, (q, v), given, hold=HOLD, gradient_options=options)
    sum((x * torch.tensor(bar)).sum() for x, bar in zip(states, bars, strict=True)).backward()
    np.testing.assert_allclose(given.grad, want, rtol=1e-12)

    class Table(torch.nn.Module):
        """Module with the controls as weights."""

        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.tensor(u))

        def forward(self, q, v, t):
            return self.table[:, t // HOLD]

    policy = Table()
    with pytest.warns(DeprecationWarning, match=r"has \d+ control steps, as in Simulator\.rollout"):
        loop = closed_loop(SIM, policy, (q, v), STEPS, hold=HOLD, gradient_options=options)
    sum((x * torch.tensor(bar)).sum() for x, bar in zip(loop[:2], bars, strict=True)).backward()
    np.testing.assert_allclose(policy.table.grad, want, rtol=1e-9, atol=1e-9)


def test_invalid_input_is_refused():
    state, u, _ = thrown()
    traj = SIM.rollout(state, u)
    for wrong in ({"decay": 1.5}, {"clip": 0.0}, {"truncate": 0}):
        with pytest.raises(ag.InputError, match=next(iter(wrong))):
            SIM.vjp(traj, q_bar=state.q, gradient_options=ag.GradientOptions(**wrong))
    with pytest.raises(ag.InputError, match="gradient_options is a GradientOptions"):
        SIM.vjp(traj, q_bar=state.q, gradient_options={"decay": 0.5})
    with pytest.raises(ag.InputError, match="EveryStep"):
        SIM.vjp(
            SIM.rollout(state, u, checkpoints=ag.EveryKth(2)),
            q_bar=state.q,
            gradient_options=ag.GradientOptions(clip=1.0),
        )
    with pytest.raises(ag.InputError, match="hold"):
        SIM.rollout(state, u, hold=0)
