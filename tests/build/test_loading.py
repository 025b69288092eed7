"""Quantities derived when a model is built: pairs, inverse weights of tendons."""

import itertools

import mujoco
import numpy as np

import artigrad as ag
from artigrad.build.inverse_weights import mean_inertia, tendon_lengths, tendon_weights

PARTS = ("sphere", "box", "capsule")


def crowded(rng: np.random.Generator) -> str:
    """Trees of bodies with random masks, exclusions and explicit pairs, one of them welded to the world."""
    out, names = '<geom name="floor" type="plane" size="1 1 1"/>', []
    for t in range(4):
        body, tail = "", ""
        for k in range(4):
            joint = ("<freejoint/>" if t else "") if k == 0 else '<joint axis="0 1 0"/>' if k != 2 else ""
            shape = "".join(
                f'<geom name="g{t}{k}{n}" type="{rng.choice(PARTS)}" size=".1 .1 .1" contype="{rng.integers(4)}"'
                f' conaffinity="{rng.integers(4)}"/>'
                for n in range(2)
            )
            body += f'<body name="b{t}{k}" pos="{t} 0 {k}">{joint}{shape}'
            tail += "</body>"
            names.append(f"{t}{k}")
        out += body + tail
    apart = "".join(f'<exclude body1="b{a}" body2="b{b}"/>' for a, b in itertools.pairwise(rng.permutation(names)[:6]))
    own = "".join(f'<pair geom1="g{a}0" geom2="g{b}1"/>' for a, b in itertools.pairwise(rng.permutation(names)[:4]))
    return f"<mujoco><worldbody>{out}</worldbody><contact>{apart}{own}</contact></mujoco>"


def test_pairs_that_may_touch_are_those_that_mujoco_touches():
    """All shapes are at one point, so that all candidate pairs touch."""
    for seed in range(4):
        text = crowded(np.random.default_rng(seed))
        model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
        m.body_pos[:], m.geom_size[m.geom_type != mujoco.mjtGeom.mjGEOM_PLANE] = 0.0, 1.0
        d = mujoco.MjData(m)
        for joint in np.flatnonzero(m.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            d.qpos[m.jnt_qposadr[joint] :][:3] = 0.0
        mujoco.mj_forward(m, d)
        names = [m.geom(k).name for k in range(m.ngeom)]
        touching = {frozenset(names[g] for g in pair) for pair in d.contact.geom.tolist()}
        ours = {frozenset(model.shapes.names[k] for k in pair) for pair in model.shapes.pairs}
        assert touching == ours
        assert len(ours) == len(model.shapes.pairs) > 20


def test_weights_and_lengths_of_tendons_are_mujocos():
    """A fixed tendon, a straight one between two trees, and one that wraps around a sphere."""
    text = """<mujoco><worldbody><site name="w" pos=".1 .3 1"/>
      <body name="a" pos="0 0 1"><freejoint/><geom size=".1 .2 .3" type="box"/><site name="a" pos=".1 .1 .1"/>
        <body pos=".4 0 0"><joint name="j" axis="0 1 0" ref=".3" armature=".1"/><geom size=".1"/>
          <body pos=".4 0 0"><joint name="k" axis="0 0 1"/><geom name="g" size=".1"/><site name="b" pos="0 -.2 .05"/>
          </body></body></body>
      <body pos="2 0 1"><joint type="ball"/><geom type="box" size=".1 .3 .2" pos=".1 0 0"/><site name="c" pos=".2 0 .1"/></body>
      </worldbody><tendon><fixed limited="true" range="-1 1"><joint joint="j" coef="2"/><joint joint="k" coef="-1"/></fixed>
      <spatial limited="true" range="0 1"><site site="a"/><site site="c"/></spatial>
      <spatial limited="true" range="0 1"><site site="w"/><site site="b"/><geom geom="g"/><site site="c"/><pulley divisor="2"/>
        <site site="a"/><site site="b"/></spatial></tendon></mujoco>"""
    model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
    np.testing.assert_allclose(tendon_weights(model), m.tendon_invweight0, rtol=1e-9)
    np.testing.assert_allclose(tendon_lengths(model, model.reference), m.tendon_length0, rtol=1e-12)
    np.testing.assert_allclose(mean_inertia(model, model.reference), m.stat.meaninertia, rtol=1e-12)
