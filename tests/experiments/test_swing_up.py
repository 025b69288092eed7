"""Pixels: plans for the policy, and the frame buffer of the encoder."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from experiments import pixels, swing_up  # noqa: E402


def test_residuals_have_jacobians():
    rng = np.random.default_rng(0)
    q, v, u = rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
    _, of_state, of_force = swing_up.residuals(q, v, u)
    h = 1e-6
    for k, e in enumerate(h * np.eye(5)):
        dq, dv, du = e[:2], e[2:4], e[4:]
        more, less = swing_up.residuals(q + dq, v + dv, u + du)[0], swing_up.residuals(q - dq, v - dv, u - du)[0]
        slope = of_state[..., k] if k < 4 else of_force[..., 0]
        assert np.allclose((more - less) / (2 * h), slope, atol=1e-8)


def test_plans_reach_upright_and_lqr_stabilizes_it():
    """Plans begin hanging and elsewhere, and have come up or are on their way; LQR brings back what leans by 0.15 rad."""
    torch.manual_seed(0)
    plans = swing_up.PlanDataset(12, updates=5)
    policy = swing_up.SwingUpPolicy()
    plans.round(policy)
    q = plans.rows[:, :2].reshape(-1, 60, 2)  # of each plan that is kept, two thirds of its frames
    assert len(q) > 1 and (q[:, -1, 1].cos() > 0.9).any() and (q[:, 0, 1].cos() < -0.9).any()
    q, v = torch.tensor([[0.2, 0.15]]), torch.zeros(1, 2)
    for _ in range(130):
        u = (torch.cat([q, v], -1) @ plans.upright[:, None]).clamp(-1, 1)
        q, v = swing_up.move(plans.sim32, q, v, u)
    assert q.abs().max() < 0.02 and v.abs().max() < 0.02


def test_frame_buffer_returns_consecutive_frames(monkeypatch):
    """Frame t of robot b shows 10 t + b; a robot that began anew a frame ago has no three."""
    monkeypatch.setattr(pixels, "BUFFER_FRAMES", 8)
    film = pixels.FrameBuffer()
    for t in range(20):
        shown = 10.0 * t + torch.arange(3.0)
        age = torch.tensor([t + 5, t + 5, 1])
        film.add(shown[:, None, None].expand(3, 2, 4), shown[:, None].expand(3, 5), age)
    frames, features, valid = film.sample(200)
    now, before, first = frames[:, :, 0, 0].unbind(1)
    assert torch.equal(now, features[:, 0]) and torch.equal(now - before, torch.full_like(now, 10.0))
    assert torch.equal(before - first, torch.full_like(now, 10.0)) and now.min() >= 140
    assert torch.equal(valid[:, 0] > 0, now % 10 != 2)
