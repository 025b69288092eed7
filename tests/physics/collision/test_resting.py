"""Resting solids: gradients of the step equal finite differences."""

import numpy as np
import pytest

import artigrad as ag

from ...searches.slopes import WRONG, verdicts
from .beside_mujoco import ours, tilts

TILTS = (0.0, 1e-15, 1e-12, 1e-9, 9e-9, 2e-8, 1e-7, 1e-6, 1e-5, 1e-4, 4e-4)
STEPS = (1e-5, 1e-6, 1e-7)


def errors(sim, q, v):
    """Largest error of the gradient of each state, for a random combination of the velocities after one step."""
    n, nv = len(q), sim.model.nv
    weights = np.random.default_rng(1).normal(size=nv)
    gradient = sim.vjp(sim.rollout(ag.State(q, v), steps=1), v_bar=np.tile(weights, (n, 1)))
    exact = np.concatenate([ag.to_tangent(sim.model, q, gradient.q0), gradient.v0], axis=1)
    best = np.full(exact.shape, np.inf)
    for h in STEPS:
        ends = []
        for sign in (1.0, -1.0):
            d = sign * h * np.tile(np.eye(2 * nv), (n, 1))
            moved = ag.State(
                ag.integrate(sim.model, np.repeat(q, 2 * nv, axis=0), d[:, :nv]),
                np.repeat(v, 2 * nv, axis=0) + d[:, nv:],
            )
            ends.append((sim.rollout(moved, steps=1).final.v @ weights).reshape(n, 2 * nv))
        best = np.minimum(best, np.abs((ends[0] - ends[1]) / (2 * h) - exact))
    return (best / np.maximum(1.0, np.abs(exact).max(axis=1, keepdims=True))).max(axis=1)


def tilted(model, q, tilts, yaw=0.9):
    """A resting state for each tilt about a horizontal axis."""
    d = np.zeros((len(tilts), model.nv))
    d[:, 3], d[:, 4] = np.cos(yaw) * np.asarray(tilts), np.sin(yaw) * np.asarray(tilts)
    return ag.integrate(model, np.tile(q, (len(tilts), 1)), d)


def settled(text, steps=1500, **options):
    """A simulator, and its resting state."""
    sim = ag.Simulator(ag.load(text), threads=1, **options)
    return sim, sim.rollout(sim.reset(), steps=steps).final


@pytest.mark.parametrize("law", ["soft", "hard"])
def test_upright_cylinder_on_a_plane_has_the_gradient_of_its_step_at_any_tilt(law):
    sim, rest = settled(
        """<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="2 2 .1"/><body pos="0 0 .0499">
        <freejoint/><geom type="cylinder" size=".06 .05" mass="1"/></body></worldbody></mujoco>""",
        law=law,
    )
    q = tilted(sim.model, rest.q, TILTS)
    q[:, 2] = 0.05 - 5e-5
    assert errors(sim, q, np.zeros((len(q), 6))).max() < 1e-6


MESH = """<mujoco><option timestep=".002"/><asset><mesh name="m" vertex="{}"/></asset><worldbody>
    <geom type="mesh" mesh="m" pos="0 0 -.05"/><body pos="0 0 .051"><freejoint/>{}</body></worldbody></mujoco>"""
BLOCK = [[x, y, z] for z in (-0.1, 0.0) for y in (-0.5, 0.5) for x in (-0.5, 0.5)]
# a top of triangles whose edges and corner in the middle are level but for the rounding of files
STAR = [*BLOCK, *([x, y, 1e-9] for x, y in ((0, 0), (0.5, 0), (0, 0.5), (-0.5, 0), (0, -0.5)))]


@pytest.mark.parametrize(
    "geom",
    [
        '<geom size=".05" mass="1"/>',
        '<geom type="capsule" size=".05 .1" euler="90 0 0" mass="1"/>',
        '<geom type="capsule" size=".05 .1" euler="90 0 90" mass="1"/>',
        '<geom type="ellipsoid" size=".06 .07 .05" mass="1"/>',
        '<geom type="cylinder" size=".05 .1" euler="90 0 0" mass="1"/>',
    ],
)
@pytest.mark.parametrize("corners", [BLOCK, STAR], ids=["block", "star"])
def test_edges_inside_a_flat_face_of_a_mesh_change_no_gradient(corners, geom):
    sim, rest = settled(MESH.format(" ".join(map(str, np.ravel(corners))), geom))
    q = tilted(sim.model, rest.q, (0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3))
    assert errors(sim, q, np.zeros((len(q), 6))).max() < 1e-6


@pytest.mark.parametrize("tilt", [0.0, 1e-17, 1e-16, 3e-16, 1e-15, 1e-14, 1e-12, 1e-9])
def test_a_mesh_cube_rests_on_a_box_with_its_lower_face(tilt):
    rng, n, c = np.random.default_rng(0), 400, 0.02
    die = "mesh", [(x, y, z) for z in (-c, c) for y in (-c, c) for x in (-c, c)]
    upright, places = np.tile(np.eye(3), (n, 1, 1)), rng.choice([-0.2, -0.1, 0.0, 0.1, 0.2], (n, 2))
    below, above = np.tile([0.0, 0.0, -0.11], (n, 1)), np.c_[places, np.full(n, -0.0800175)]
    one, other = (upright, below), (tilts(rng, n, tilt), above)
    for a, b, poses in (
        (("box", (0.27, 0.27, 0.01)), die, one + other),
        (die, ("box", (0.27, 0.27, 0.01)), other + one),
    ):
        for contact in ours(a, b, poses, 0.0):
            assert len(contact) == 4 and np.abs(contact.gaps + 1.75e-5).max() < 1e-9


BOXES = """<mujoco><option timestep=".002"/><worldbody><geom type="box" size="{}"/>
    <body pos="0 0 .0995"><freejoint/><geom type="box" size="{}" mass="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("law", ["soft", "hard"])
@pytest.mark.parametrize(
    ("below", "above"),
    [(".05 .05 .05", ".05 .05 .05"), (".05 .08 .05", ".05 .05 .05"), (".05 .05 .05", ".08 .08 .05")],
    ids=["equal", "equal width", "larger on top"],
)
def test_boxes_in_exact_alignment_have_the_gradient_of_both_sides(below, above, law):
    sim, rest = settled(BOXES.format(below, above), steps=300, law=law)
    q = np.tile(rest.q, (3, 1))
    q[:, 0] += [0.0, 1e-17, -1e-16]
    assert errors(sim, q, np.tile(rest.v, (3, 1))).max() < 1e-6


def test_boxes_in_alignment_but_for_rounding_touch_at_four_points():
    rng, n, cube = np.random.default_rng(0), 400, ("box", (0.05, 0.05, 0.05))
    size = 10.0 ** rng.uniform(-18, -10, n)
    c, s, zero = np.cos(size), np.sin(size), np.zeros(n)
    turn = np.moveaxis(np.array([[c, -s, zero], [s, c, zero], [zero, zero, 1 + zero]]), 2, 0)
    turn = np.where(rng.random((n, 1, 1)) < 0.5, turn, np.einsum("nij,njk->nik", tilts(rng, n, 1e-15), turn))
    aside = size[:, None] * rng.choice([-1.0, 0.0, 1.0], (n, 2))
    poses = np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)), turn, np.c_[aside, np.full(n, 0.09995)]
    for contact in ours(cube, cube, poses, 0.0):
        assert len(contact) == 4 and np.abs(contact.gaps + 5e-5).max() < 1e-9
        assert np.abs(np.abs(contact.points[:, :2]) - 0.05).max() < 1e-8


def test_a_tilt_within_rounding_selects_no_other_reference_face_of_two_boxes():
    """Faces in line with an edge only: with the other reference face the boxes have no contact at all."""
    rng, n, box = np.random.default_rng(0), 400, ("box", (0.05, 0.04, 0.03))
    turned = np.tile([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]], (n, 1, 1))
    poses = np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)), tilts(rng, n, 1e-12) @ turned, [[0.0, -0.071, -0.07]] * n
    counts = {len(contact) for contact in ours(box, box, (*poses[:3], np.array(poses[3])), 0.005)}
    assert len(counts) == 1


ON_EACH_OTHER = """<mujoco><option timestep=".002"/><asset><mesh name="block" vertex="{}"/></asset><worldbody><geom {}/>
    <body pos="0 0 {}"><freejoint/><geom {} mass="1"/></body></worldbody></mujoco>"""
EIGHTH = " ".join(str(x / 16) for corner in np.ndindex(2, 2, 2) for x in 2 * np.array(corner) - 1)  # exact in f32


@pytest.mark.parametrize(
    ("below", "above", "height"),
    [
        ('type="box" size=".0625 .0625 .0625"', 'type="mesh" mesh="block"', 0.125),
        ('type="mesh" mesh="block"', 'type="mesh" mesh="block"', 0.125),
        ('type="box" size=".05 .05 .05"', 'type="capsule" size=".05 .05" euler="90 0 0"', 0.1),
        ('type="mesh" mesh="block"', 'type="capsule" size=".05 .0625" euler="90 0 0"', 0.1125),
        ('type="mesh" mesh="block"', 'type="cylinder" size=".05 .0625" euler="90 0 0"', 0.1125),
        ('type="mesh" mesh="block"', 'type="cylinder" size=".05 .1" euler="90 0 30"', 0.1125),
        ('type="cylinder" size=".05 .05"', 'type="sphere" size=".05"', 0.1),
    ],
)
def test_solids_in_exact_alignment_have_the_gradient_of_both_sides(below, above, height):
    sim, rest = settled(ON_EACH_OTHER.format(EIGHTH, below, height - 5e-5, above), steps=400)
    assert errors(sim, rest.q[None], rest.v[None]).max() < 1e-6


def test_parallel_capsules_touch_where_both_ends_move_together():
    """A displacement along the axis moves one end of the contact, whatever rounding makes of the alignment."""
    sim, rest = settled(
        """<mujoco><option timestep=".002"/><worldbody><geom type="capsule" size=".03 .05" euler="90 0 0"/>
        <body pos="0 0 .0599"><joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/><joint axis="1 0 0"/>
        <geom type="capsule" size=".03 .05" euler="90 0 0" mass="1"/></body></worldbody></mujoco>"""
    )
    q, v = np.tile(rest.q, (5, 1)), np.tile(rest.v, (5, 1))
    q[:, 0] += [0.0, 1e-17, -1e-17, 1e-15, -1e-15]
    gradient = sim.vjp(sim.rollout(ag.State(q, v), steps=1), v_bar=np.tile([0.3, 0.5, 0.7], (5, 1)))
    aside = sim.rollout(ag.State(rest.q + np.array([[1e-6, 0, 0], [-1e-6, 0, 0]]), v[:2]), steps=1).final.v @ [
        0.3,
        0.5,
        0.7,
    ]
    assert np.abs(gradient.q0[:, 0] - (aside[0] - aside[1]) / 2e-6).max() < 1e-5


ON_CAN = """<mujoco><option timestep=".002"/><worldbody><geom type="cylinder" size=".05 .05"/><body pos="{} 0 {}">
    <freejoint/>{}</body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("geom", "half", "radius"),
    [
        ('<geom type="ellipsoid" size=".05 .04 .03" mass="1"/>', 0.03, 0.03),
        ('<geom type="capsule" size=".03 .04" mass="1"/>', 0.07, 0.03),
    ],
)
def test_solids_just_over_the_rim_of_a_cylinder_have_its_gradient(geom, half, radius):
    sim = ag.Simulator(ag.load(ON_CAN.format(0, 0.05 + half, geom)), threads=1)
    beyond = np.array([1e-5, 1e-4, 3e-4, 8e-4])  # of the rim, m: the normal leans by at most 0.03 rad
    q = np.tile(sim.reset().q, (len(beyond), 1))
    q[:, 0], q[:, 1] = (0.05 + beyond) * np.cos(0.4), (0.05 + beyond) * np.sin(0.4)
    q[:, 2] += 0.5 * beyond**2 / radius - 2e-4
    v = 0.01 * np.random.default_rng(1).normal(size=(len(beyond), 6))
    assert errors(sim, q, v).max() < 1e-6


UPRIGHT = 'type="cylinder" size=".05 .05"'


@pytest.mark.parametrize("law", ["soft", "hard"])
@pytest.mark.parametrize("turn", [45.0, 85.5])
@pytest.mark.parametrize("kind", ["cylinder", "capsule"])
@pytest.mark.parametrize("stands", [False, True], ids=["lying", "standing"])
def test_lines_across_an_end_from_rim_to_rim_have_the_gradient_of_both_sides(stands, kind, turn, law):
    """The line ends on the rim of the end, so that a search finds two rims, or a rim and the line or its end."""
    line = f'type="{kind}" size=".05 .05" euler="90 0 0"'
    below, above = (line, UPRIGHT) if stands else (UPRIGHT, line)
    sim, rest = settled(
        f"""<mujoco><option timestep=".002"/><worldbody><geom {below}/><body pos="0 0 .09995" euler="0 0 {turn}"><freejoint/>
        <geom {above} mass="1"/></body></worldbody></mujoco>""",
        700,
        law=law,
    )
    tilts, yaws = (1e-9, 1e-8, 1e-7, 2e-7, 1e-6, 1e-5), (0.0, 0.0746, 0.9, 1.15436, 1.5708, 2.406)
    q = np.concatenate([tilted(sim.model, rest.q, tilts, yaw) for yaw in yaws])
    found = [verdict for verdict, _ in verdicts(sim, q, np.tile(rest.v, (len(q), 1)))]
    assert WRONG not in found and sum("equal" in verdict for verdict in found) > 24


@pytest.mark.parametrize("kind", ["capsule", "cylinder"])
def test_a_line_over_two_vertices_of_a_face_has_the_gradient_of_both_sides(kind):
    """At each end two edges of the face meet, with normals to both sides of the line where it tilts."""
    hexagon = [(0.08 * np.cos(t), 0.08 * np.sin(t), z) for z in (-0.08, 0.08) for t in np.arange(6) * np.pi / 3]
    corners = " ".join(f"{x:.17g}" for x in np.ravel(hexagon))
    sim, rest = settled(
        f"""<mujoco><option timestep=".002"/><asset><mesh name="m" vertex="{corners}"/></asset><worldbody>
        <geom type="mesh" mesh="m"/><body pos="0 0 .15995" euler="0 0 90"><freejoint/>
        <geom type="{kind}" size=".08 .08" euler="90 0 0" mass="1"/></body></worldbody></mujoco>""",
        500,
        law="hard",
    )
    ((verdict, detail),) = verdicts(sim, rest.q[None], rest.v[None])
    assert verdict == "equal", detail


def test_a_capsule_level_across_a_cylinder_has_the_gradient_of_one_side_and_no_margin():
    """If a line passes the end of a cylinder, the rim tilts to the other side at its other end."""
    sim, rest = settled(ON_CAN.format(0.01, 0.08, '<geom type="capsule" size=".03 .1" euler="90 0 0" mass="1"/>'), 700)
    weights = np.random.default_rng(1).normal(size=6)
    gradient = sim.vjp(sim.rollout(rest, steps=1), v_bar=weights)
    found = ag.to_tangent(sim.model, rest.q, gradient.q0)[3]

    def after(angle):
        q = ag.integrate(sim.model, rest.q, angle * np.eye(6)[3])
        return sim.step(ag.State(q, rest.v)).v @ weights

    # the gradient of a tilt away from being level, to one side or the other
    sides = [s * (after(2e-6 * s) - after(1e-6 * s)) / 1e-6 for s in (1.0, -1.0)]
    assert abs(sides[0] - sides[1]) > 1e-3 * abs(sides[0])
    assert np.abs(np.array(sides) - found).min() < 1e-5 * abs(found)
    assert gradient.health.switch_margin < 1e-9
    tilts = np.array([1e-5, 1e-4, 1e-3])
    assert errors(sim, tilted(sim.model, rest.q, tilts), np.tile(rest.v, (3, 1))).max() < 1e-6


@pytest.mark.parametrize("geom", ['size=".05"', 'type="ellipsoid" size=".05 .04 .05"', 'type="capsule" size=".05 .02"'])
@pytest.mark.parametrize("at", ["0 0", ".05 .013"], ids=["diagonal", "side"])
def test_borders_of_triangles_of_a_level_field_change_no_gradient(at, geom):
    heights = " ".join(["0.5"] * 36)
    top = 0.17 if "capsule" in geom else 0.15
    sim = ag.Simulator(
        ag.load(f"""<mujoco><option timestep=".002"/><asset><hfield name="f" nrow="6" ncol="6" size=".25 .25 .1 .05"
        elevation="{heights}"/></asset><worldbody><geom type="hfield" hfield="f"/><body pos="{at} {top - 5e-5}"><freejoint/>
        <geom {geom} mass="1"/></body></worldbody></mujoco>"""),
        threads=1,
    )
    q = np.tile(sim.reset().q, (2, 1))
    assert errors(sim, q, np.array([np.zeros(6), np.arange(6) * 1e-3])).max() < 1e-6
