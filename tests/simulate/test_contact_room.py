"""The contact buffer is enlarged if max_contacts is None."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.model.options import HardOptions, SoftOptions


def boxes() -> ag.Model:
    """Three boxes on a plane, twelve contacts."""
    b = ag.ModelBuilder("boxes")
    b.add_plane()
    for k in range(3):
        b.add_body(f"b{k}", joint="free", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(k, 0.0, 0.1))
        b.add_box(f"b{k}", (0.1, 0.1, 0.1))
    return b.build()


@pytest.mark.parametrize("law", ["soft", "hard"])
def test_rollouts_enlarge_the_buffer_and_keep_their_bits(law: str, monkeypatch: pytest.MonkeyPatch):
    model = boxes()

    def motion(**options: object) -> tuple[np.ndarray, ...]:
        sim = ag.Simulator(model, law=law, threads=1, **options)  # type: ignore[arg-type]
        start = ag.State(model.keyframe().q, 0.1 * np.random.default_rng(0).normal(size=model.nv))
        trajectory = sim.rollout(start, np.zeros((20, 0)))
        found = sim.vjp(trajectory, q_bar=np.ones(model.nq), v_bar=np.ones(model.nv))
        one = sim.step(trajectory.final)
        return trajectory.q, trajectory.v, found.q0, found.v0, np.asarray(trajectory.violation), one.v

    wanted = motion(max_contacts=64)
    for options in (SoftOptions, HardOptions):
        monkeypatch.setattr(options, "default_max_contacts", 1)
    for x, y in zip(motion(), wanted, strict=True):
        assert np.array_equal(x, y)
    with pytest.raises(ag.ContactError, match="max_contacts=1"):
        motion(max_contacts=1)
