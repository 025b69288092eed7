"""Pair groups: many pairs between two links are skipped while their bounding boxes are apart, with unchanged results."""

import re

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler.cuda import array, driver, total
from artigrad.compiler.cuda.ptx import ptx
from artigrad.physics.collision import candidates
from artigrad.physics.constraints.soft.soft_problem import soft_features
from tests.compiler.host_device import Recorder

STEPS = 60
HEIGHTS = (0.33, 0.37, 0.45, 1.0, 3.0)  # from near to never


def pair_group(margin=0.01):
    """A plate with four balls over four boxes, and a ball beside it over a plane: 16 pairs in a group, and others."""
    b = ag.ModelBuilder("pair_group")
    b.add_body("plate", joint="free", mass=2.0, inertia=(0.02, 0.03, 0.04))
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.add_sphere("ball", 0.1, group=1, touches=2)
    b.add_plane(group=2, touches=1)
    for x in (-0.2, 0.2):
        for y in (-0.1, 0.1):
            b.add_sphere("plate", 0.05, position=(x, y, -0.05), group=4, touches=8)
            b.add_box("world", (0.1, 0.1, 0.1), position=(1.0 + x, y, 0.1), group=8, touches=4, margin=margin)
    return b.build()


def starts(model):
    q = np.zeros((len(HEIGHTS), model.nq))
    q[:, 3] = q[:, 10] = 1.0
    q[:, 0], q[:, 2], q[:, 9] = 1.0, HEIGHTS, 0.11
    return ag.State(q, np.tile(np.linspace(-0.5, 0.5, model.nv), (len(q), 1)))


def test_pair_groups_change_neither_motion_nor_gradient(monkeypatch):
    saved_geometry = []
    for least in (candidates.GROUP_SIZE, 1000):
        monkeypatch.setattr(candidates, "GROUP_SIZE", least)
        model = pair_group()
        assert ("pair_group" in soft_features(model)) == (least < 1000)
        sim, start = ag.Simulator(model), starts(model)
        trajectory = sim.rollout(start, steps=STEPS)
        bars = sim.vjp(trajectory, q_bar=np.ones_like(start.q))
        saved_geometry.append((trajectory.q, bars.q0, bars.v0, bars.params.flat))
    lowest = saved_geometry[0][0][:, :, 2].min(axis=1)
    assert (lowest[:2] > 0.2).all() and (lowest[3:] > 0.5).all()  # some came to rest on boxes, some were never near
    for one, other in zip(*saved_geometry, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_pair_groups_do_not_depend_on_other_lanes(dtype):
    model = pair_group()
    sim, start = ag.Simulator(model, dtype=dtype), starts(model)
    together = sim.rollout(start, steps=STEPS)
    for k in range(len(HEIGHTS)):
        one = sim.rollout(ag.State(start.q[k], start.v[k]), steps=STEPS)
        np.testing.assert_array_equal(together.q[k], one.q)


def test_bounding_boxes_include_margins():
    """Contact at a distance: a pair group within its margin only."""
    model = pair_group(margin=0.1)
    sim = ag.Simulator(model, 0.001)
    q = starts(model).q[0]
    q[2] = 0.2 + 0.1 + 0.08
    falling = sim.rollout(ag.State(q, np.zeros(model.nv)), steps=1).final.v[2]
    assert falling > -9.81e-3 * 0.5


def test_numpy_agrees_with_native():
    model = pair_group()
    with np.errstate(all="ignore"):
        native, slow = (
            ag.Simulator(model, backend=backend).rollout(starts(model), steps=2).q for backend in ("native", "numpy")
        )
    np.testing.assert_allclose(slow, native, rtol=1e-12, atol=1e-12)


def test_pair_groups_are_staged_for_a_gpu():
    device, model = Recorder(), pair_group()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "device", lambda number: device)
        for kept in (array._copy_rows, total._loaded):
            kept.cache_clear()
        sim = ag.Simulator(model, dtype="f32", device="cuda")
        sim.rollout(ag.State(*(x.astype(np.float32) for x in starts(model))), steps=1)
        for kept in (array._copy_rows, total._loaded):
            kept.cache_clear()
    assert not re.search(r"\.local\b|\bcall\b", ptx(device.staged["artigrad_rollout"].ir, (9, 0), 1, None))


def test_adhesion_acts_across_the_gap_of_a_pair_group(monkeypatch):
    balls = "".join(
        f'<geom type="sphere" size=".05" gap=".2" pos="{x} {y} 0"/>' for x in (-0.2, 0.2) for y in (-0.1, 0.1)
    )
    boxes = "".join(f'<geom type="box" size=".1 .1 .1" pos="{x} {y} 0"/>' for x in (-0.2, 0.2) for y in (-0.1, 0.1))
    text = f"""<mujoco><worldbody>{boxes}<body name="plate" pos="0 0 .33"><freejoint/>{balls}</body></worldbody>
      <actuator><adhesion body="plate" ctrlrange="0 1" gain="5"/></actuator></mujoco>"""
    falls = []
    for least in (candidates.GROUP_SIZE, 1000):
        monkeypatch.setattr(candidates, "GROUP_SIZE", least)
        sim = ag.Simulator(ag.load(text), 0.001)
        falls += [sim.rollout(sim.reset(), [[u]]).final.v[2] for u in (0.0, 1.0)]
    free, pulled, *others = falls
    assert pulled < free - 1e-4
    np.testing.assert_allclose((free, pulled), others, rtol=1e-12)
