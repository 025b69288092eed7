"""The broad phase finds the contacts of a loop over all pairs, in the same order and with the same bits."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.physics.constraints.soft import soft_problem

KINDS = ("sphere", "capsule")


def scattered(rng: np.random.Generator, count: int, size: float) -> str:
    """Balls and capsules of all sizes, margins and masks in a cube over a floor and a plate, some in trees of two links."""
    out = '<geom type="plane" size="0 0 1"/><geom type="box" size="2 2 .05" pos="0 0 -.4" margin=".02"/>'
    for k in range(count):
        place = " ".join(f"{x:.3f}" for x in rng.uniform(-size, size, 3))
        shape = f'type="{KINDS[k % 2]}" size="{" ".join(f"{x:.3f}" for x in rng.uniform(0.05, 0.2, 3))}"'
        masks = f'contype="{1 + k % 2}" conaffinity="3" margin="{0.03 * (k % 3)}"'
        arm = f'<body pos=".3 0 0"><joint axis="0 1 0"/><geom size=".1" {masks}/></body>' if k % 4 == 0 else ""
        out += f'<body pos="{place}"><freejoint/><geom {shape} {masks}/>{arm}</body>'
    return f'<mujoco><option gravity="0 0 -2"/><worldbody>{out}</worldbody></mujoco>'


def motion(text: str, steps: int = 4, **options: object) -> tuple[np.ndarray, ...]:
    """Return a rollout and its gradients, of a model loaded again."""
    model = ag.load(text)
    sim = ag.Simulator(model, threads=1, max_contacts=600, **options)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    state = ag.State(sim.state().q, 0.5 * rng.normal(size=model.nv))
    trajectory = sim.rollout(state, np.zeros((steps, model.nu)))
    found = sim.vjp(trajectory, q_bar=rng.normal(size=model.nq), v_bar=rng.normal(size=model.nv))
    assert found.params is not None
    return trajectory.q, trajectory.v, found.q0, found.v0, found.params.flat


def same(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_broad_phase_changes_no_bits(seed: int, monkeypatch: pytest.MonkeyPatch):
    text = scattered(np.random.default_rng(seed), 30, 0.4 + 0.3 * seed)
    model = ag.load(text)
    assert "sweep" in soft_problem.soft_features(model)
    swept = motion(text)
    monkeypatch.setattr(soft_problem, "NEAR_EACH", 1)  # more are near than there is room for
    crowded = motion(text)
    monkeypatch.setattr(soft_problem, "MANY_PAIRS", 10**9)
    assert "sweep" not in soft_problem.soft_features(ag.load(text))
    visited = motion(text)
    assert same(swept, visited)
    assert same(crowded, visited)


def test_broad_phase_in_f32_and_on_numpy(monkeypatch: pytest.MonkeyPatch):
    text = scattered(np.random.default_rng(5), 6, 0.2)
    monkeypatch.setattr(soft_problem, "MANY_PAIRS", 10)
    swept, numpy = motion(text, dtype="f32"), motion(text, 1, backend="numpy")
    monkeypatch.setattr(soft_problem, "MANY_PAIRS", 10**9)
    assert same(swept, motion(text, dtype="f32"))
    np.testing.assert_allclose(numpy[1], motion(text, 1)[1], rtol=0, atol=1e-9)


def test_broad_phase_with_one_body_that_is_lost(monkeypatch: pytest.MonkeyPatch):
    """A body that diverges does not change the contacts of others."""
    text = scattered(np.random.default_rng(6), 30, 0.4)
    model = ag.load(text)

    def lost() -> np.ndarray:
        v = np.zeros(model.nv)
        v[:3] = 1e308
        sim = ag.Simulator(ag.load(text), threads=1, max_contacts=600)
        with pytest.warns(RuntimeWarning):
            return sim.rollout(ag.State(sim.state().q, v), np.zeros((6, 0))).v

    swept = lost()
    assert not np.isfinite(swept).all()
    assert np.isfinite(swept[:, 12:]).any()
    monkeypatch.setattr(soft_problem, "MANY_PAIRS", 10**9)
    assert np.array_equal(swept, lost(), equal_nan=True)


def test_a_step_of_a_crowded_scene_is_mujocos():
    for seed in (8, 9):
        text = scattered(np.random.default_rng(seed), 40, 0.6)
        m = mujoco.MjModel.from_xml_string(text)
        m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations, m.opt.ls_tolerance = 0.0, 100, 200, 1e-15
        d, model = mujoco.MjData(m), ag.load(text)
        d.qvel[:] = np.random.default_rng(seed).normal(size=m.nv)
        start = ag.State(d.qpos.copy(), d.qvel.copy())
        mujoco.mj_step(m, d)
        assert d.ncon > 20
        ours = ag.Simulator(model, threads=1, max_contacts=600).step(start)
        np.testing.assert_allclose(ours.v, d.qvel, rtol=0, atol=1e-6 * np.abs(d.qvel).max())
