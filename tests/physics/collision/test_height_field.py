"""Height fields: contacts compared with MuJoCo's and with exact ones, gradients, targets, motion, files."""

from itertools import combinations, product

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.physics.collision.candidates import contact_names
from artigrad.view.meshes import height_field
from tests.packages import folder

from . import test_gradients

ROWS, COLS, SIZE = 7, 9, (0.8, 0.6, 0.25, 0.3)
WEDGE = np.array([[-1, -1, -1], [1, -1, -1], [0.1, 1.2, -1], [0.2, 0.1, 1.4], [0.5, -0.4, 1.0]]) * 0.1
GEOMS = {
    "sphere": 'type="sphere" size="0.1"',
    "capsule": 'type="capsule" size="0.05 0.15"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.15 0.2"',
    "cylinder": 'type="cylinder" size="0.1 0.15"',
    "box": 'type="box" size="0.1 0.15 0.05"',
    "mesh": 'type="mesh" mesh="wedge"',
}


def text(x):
    return " ".join(f"{float(v):.9g}" for v in np.ravel(x))


def xml(heights, geom, size=SIZE, body='<body name="b"><freejoint/><geom name="b" {geom}/></body>', options=""):
    rows, cols = heights.shape
    return f"""<mujoco>{options}<asset><mesh name="wedge" vertex="{text(WEDGE)}"/>
      <hfield name="h" nrow="{rows}" ncol="{cols}" size="{text(size)}" elevation="{text(heights)}"/></asset>
      <worldbody><geom name="ground" type="hfield" hfield="h" pos="0.1 -0.2 0.05" euler="3 4 20"/>
      {body.format(geom=geom)}</worldbody></mujoco>"""


def scattered(rng, n):
    q = np.zeros((n, 7))
    q[:, :2], q[:, 2] = rng.uniform(-0.7, 0.7, (n, 2)), rng.uniform(0.1, 0.5, n)
    q[:, 3:] = rng.normal(size=(n, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    return q


def collided(sim, q):
    """Return distances, points and normals of all candidate points, one batch element per row."""
    saved_geometry = sim.contacts(sim.rollout(ag.State(q, np.zeros((len(q), 6))), np.zeros((len(q), 1, 0))))
    return saved_geometry.gap[:, 0], saved_geometry.point[:, 0]


@pytest.mark.parametrize("name", ["sphere", "capsule", "ellipsoid", "cylinder"])
def test_contacts_equal_mujocos(name):
    """One contact per prism, in MuJoCo's order; in deep penetration there may be another minimum."""
    rng = np.random.default_rng(0)
    source = xml(rng.uniform(size=(ROWS, COLS)), GEOMS[name])
    m = mujoco.MjModel.from_xml_string(source)
    d, q = mujoco.MjData(m), scattered(rng, 300)
    gap, point = collided(ag.Simulator(ag.load(source)), q)
    deep, shallow = [], []
    for k in range(len(q)):
        d.qpos[:] = q[k]
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_collision(m, d)
        mine = np.flatnonzero(gap[k] < 0)
        assert len(mine) == d.ncon
        for i, c in zip(mine, d.contact, strict=True):
            off = max(abs(gap[k, i] - c.dist), 0.05 * np.abs(point[k, i] - c.pos).max())
            (shallow if gap[k].min() > -0.03 else deep).append(off)
    assert len(shallow) > 30 and max(shallow) < 1e-4  # MuJoCo's own tolerance is 1e-6, its points are a root off
    assert np.mean(np.array(deep) > 1e-4) < 0.05


def least(V, W):
    """Return the exact penetration depth of two convex hulls, by testing all axes of faces and pairs of edges."""
    edges = [[b - a for a, b in combinations(P, 2)] for P in (V, W)]
    axes = [np.cross(a, b) for a in edges[0] for b in edges[1]]
    axes += [np.cross(b - a, c - a) for P in (V, W) for a, b, c in combinations(P, 3)]
    length = np.linalg.norm(axes, axis=1)
    N = np.array(axes)[length > 1e-9] / length[length > 1e-9, None]
    N = np.concatenate([N, -N])
    return ((N @ V.T).max(1) - (N @ W.T).min(1)).min()


@pytest.mark.parametrize("name", ["box", "mesh"])
def test_depths_of_corners_and_edges_are_exact(name):
    """All separating axes of two polyhedra are tested, since MuJoCo's native routine is not exact with prisms."""
    rng = np.random.default_rng(0)
    source = xml(rng.uniform(size=(ROWS, COLS)), GEOMS[name])
    model, m = ag.load(source), mujoco.MjModel.from_xml_string(source)
    d, q = mujoco.MjData(m), scattered(rng, 30)
    gap, _ = collided(ag.Simulator(model), q)
    box = np.array(list(product((-1, 1), repeat=3))) * (0.1, 0.15, 0.05)
    heights, (sx, sy, base) = model.params.height.reshape(ROWS, COLS), model.params.shape_size[0]
    x, y = np.meshgrid(np.linspace(-sx, sx, COLS), np.linspace(-sy, sy, ROWS))
    P, off, depths = np.stack([x, y, heights], -1), [], []
    for k in range(len(q)):
        d.qpos[:] = q[k]
        mujoco.mj_kinematics(m, d)
        W = (box if name == "box" else model.params.vertex) @ d.geom_xmat[1].reshape(3, 3).T + d.geom_xpos[1]
        W = (W - d.geom_xpos[0]) @ d.geom_xmat[0].reshape(3, 3)
        wanted = []
        for r, c, third in product(range(ROWS - 1), range(COLS - 1), ((1, 0), (0, 1))):
            top = np.array([P[r, c], P[r + 1, c + 1], P[r + third[0], c + third[1]]])
            V = np.concatenate([top, top * (1, 1, 0) - (0, 0, base)])
            if (V.max(0) > W.min(0)).all() and (V.min(0) < W.max(0)).all() and (depth := least(V, W)) > 0:
                wanted.append(depth)
        mine = -gap[k][gap[k] < 0]
        assert len(mine) == len(wanted)
        off, depths = [*off, *(mine - wanted)], [*depths, *wanted]
    off, shallow = np.array(off), np.array(depths) < 0.03
    assert len(off) > 30 and off.min() > -1e-6
    assert np.mean(off[~shallow] > 1e-6) < 0.15  # another minimum
    assert off[shallow].max() < (1e-3 if name == "mesh" else 1e-6)


SIZES = {name: size for name, size in test_gradients.SIZES.items() if name != "plane"}


def patches(moving=False, kinds=tuple(SIZES)):
    """One field for each type of solid, far from each other; the field may be on a hinge, and the solid fixed."""
    rng, b, q = np.random.default_rng(1), ag.ModelBuilder("patches"), []
    places = {
        "sphere": 0.167,
        "capsule": 0.373,
        "ellipsoid": 0.231,
        "cylinder": 0.219,
        "box": 0.215,
        "convex_hull": 0.232,
    }
    for k, name in enumerate(kinds):
        z, mask = places[name], {"group": 1 << k, "touches": 1 << k, "friction": 0.6}
        place, over = np.array([3.0 * k, 0.0, 0.0]), np.array([0.08, -0.05, z + 0.02 * moving])
        heights = 0.15 * rng.uniform(size=(5, 6))
        at = {"position": place + np.array([0.05, 0.02, 0.01]), "rotation": (1, 0.02, 0.03, 0.1)}
        rotation = np.array([1, 0.13, 0.21, 0.08]) / np.linalg.norm([1, 0.13, 0.21, 0.08])
        if moving:
            b.add_body(
                f"g{k}", joint="revolute", axis=(0.3, 1, 0.2), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1)
            )
            b.add_height_field(f"g{k}", heights, (0.7, 0.6), 0.2, **at, **mask)
            here = {"position": place + over, "rotation": rotation}
            getattr(b, f"add_{name}")("world", *SIZES[name], **here, **mask)
            q += [0.0]
        else:
            b.add_height_field("world", heights, (0.7, 0.6), 0.2, **at, **mask)
            b.add_body(f"b{k}", joint="free", mass=0.5, inertia=(0.01, 0.02, 0.015))
            getattr(b, f"add_{name}")(f"b{k}", *SIZES[name], position=(0.01, 0.0, 0.02), **mask)
            q += [*(place + over), *rotation]
    model = b.build()
    return model, ag.State(np.array(q), 0.3 * rng.normal(size=model.nv))


@pytest.mark.parametrize(("law", "moving"), [("hard", False), ("soft", True)])
def test_gradients(law, moving):
    model, state = patches(moving)
    hard = {"law": ag.HardOptions(search_distance=0.01, softness=1e-4)}
    sim = ag.Simulator(model, 1e-3, **({"cone": "elliptic"} if law == "soft" else hard))
    touched = {
        name for names, gap in zip(sim.contact_names, touching(sim, state), strict=True) if gap < 0 for name in names
    }
    assert len(touched) == 2 * len(SIZES)
    rows = {r.what: r for r in ag.gradcheck(sim, steps=1, samples=1, tolerance=np.inf, show=False, state=state)}
    for what in ("q0", "v0", "height", "shape_size", "shape_position", "shape_rotation", "vertex"):
        assert rows[what].error < 2e-6, rows[what]
        assert rows[what].largest > 1e-3 or what == "vertex"


def touching(sim, state):
    return sim.contacts(sim.rollout(state, np.zeros((1, 0)))).gap[0]


def test_all_targets_agree():
    model, state = patches(kinds=("capsule", "box"))
    rng = np.random.default_rng(0)
    q = np.repeat(state.q[None], 19, 0)
    q[:, 0::7] += rng.uniform(-0.1, 0.1, (19, 2))
    v, p = np.repeat(state.v[None], 19, 0), model.params
    own = p.replace(height=p.height + 0.01 * rng.uniform(size=(19, p.height.size)))
    q_bar, v_bar = rng.normal(size=q.shape), rng.normal(size=v.shape)

    def run(robots, **options):
        sim = ag.Simulator(model, 1e-3, **options)
        some = ag.Params(model, own.flat[robots])
        traj = sim.rollout(ag.State(q[robots], v[robots]), np.zeros((len(q[robots]), 1, 0)), params=some)
        gradient = sim.vjp(traj, q_bar=q_bar[robots], v_bar=v_bar[robots])
        return np.concatenate([traj.q[:, -1], traj.v[:, -1], gradient.q0, gradient.params.flat], -1)

    pack = run(slice(None))
    for k in (0, 7, 18):
        np.testing.assert_array_equal(run(slice(k, k + 1))[0], pack[k])
    np.testing.assert_allclose(run(slice(0, 3), backend="numpy"), pack[:3], rtol=1e-9, atol=1e-8)


def test_a_ball_rolls_into_a_valley():
    x, y = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 21))
    ball = '<body name="b" pos="0.3 -0.6 0.75"><freejoint/><geom type="sphere" size="0.1"/></body>'
    source = xml(0.5 * (x * x + y * y), "", (1, 1, 0.5, 0.1), ball).replace('euler="3 4 20"', "")
    m = mujoco.MjModel.from_xml_string(source)
    d, model = mujoco.MjData(m), ag.load(source)
    traj = ag.Simulator(model).rollout(model.keyframe(), np.zeros((1000, 0)))
    for t in range(1, 1001):
        mujoco.mj_step(m, d)
        if t == 500:
            assert np.abs(traj.q[t, :3] - d.qpos[:3]).max() < 1e-3
    assert np.linalg.norm(traj.q[-1, :2] - (0.1, -0.2)) < 0.5 and traj.q[-1, 2] < 0.4  # it goes to and fro


def test_height_fields_survive_saving(tmp_path):
    model, state = patches()
    ag.save(model, tmp_path / "patches.xml")
    again = ag.load(tmp_path / "patches.xml")
    ends = []
    for robot in (model, again):
        traj = ag.Simulator(robot, 1e-3).rollout(state, np.zeros((20, 0)))
        ends.append(traj.q[-1])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)  # a file keeps heights in single precision


def test_scenes_omit_fixed_fields_only():
    model, _state = patches(moving=True)
    with pytest.warns(UserWarning, match="height_field and height_field, height_field and plane"):  # as in MuJoCo
        two = ag.scene([model, model])
    np.testing.assert_array_equal(two.params.height, np.tile(model.params.height, 2))
    assert [g[1:] for g in two.shapes.grids if g[1]] == [g[1:] for g in model.shapes.grids if g[1]] * 2


def test_invalid_height_fields_are_refused():
    b = ag.ModelBuilder("bad")
    for heights, size, base, word in (
        (np.zeros(4), (1, 1), 0.1, "rows, columns"),
        (np.zeros((1, 4)), (1, 1), 0.1, "two of each"),
        (np.full((2, 2), np.nan), (1, 1), 0.1, "finite"),
        (np.full((2, 2), -0.2), (1, 1), 0.1, "base"),
        (np.zeros((2, 2)), (0, 1), 0.1, "positive"),
    ):
        with pytest.raises(ag.ModelError, match=word):
            b.add_height_field("world", heights, size, base)


def test_a_shape_larger_than_its_window_is_refused():
    model, state = patches()
    p, size = model.params, model.params.shape_size.copy()
    size[model.shapes.kind.index(2), 0] = 0.3
    with pytest.raises(ag.InputError, match="cells of height field"):
        ag.Simulator(model).rollout(state, np.zeros((1, 0)), params=p.replace(shape_size=size))
    with pytest.raises(ag.InputError, match="down to its base"):
        ag.Simulator(model).rollout(state, np.zeros((1, 0)), params=p.replace(height=p.height - 0.5))


def test_visual_mesh_is_closed():
    mesh = height_field(np.random.default_rng(0).uniform(size=(4, 5)), (1.0, 2.0, 0.5))
    a, b, c = (mesh.vertices[mesh.faces[:, k]].astype(float) for k in range(3))
    area = np.cross(b - a, c - a)
    np.testing.assert_allclose(area.sum(0), 0.0, atol=1e-5)
    assert np.einsum("ij,ij->", a, area) / 6 > 4.0  # volume, by outward normals


def test_names_of_contacts():
    model, _ = patches()
    assert set(contact_names(model)) == {
        (a, b) for a, b in zip(model.shapes.names[::2], model.shapes.names[1::2], strict=True)
    }


@pytest.mark.skipif(folder("dm_control") is None, reason="needs dm_control's files")
def test_a_quadruped_on_terrain_steps_as_in_mujoco():
    m = mujoco.MjModel.from_xml_path(str(folder("dm_control") / "suite" / "quadruped.xml"))
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    model = ag.load(m, strict=False)
    m.opt.ccd_tolerance, m.opt.ccd_iterations = 1e-12, 200  # by default normals are half a degree off
    rng, ground = np.random.default_rng(0), mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_GEOM, "terrain")
    m.hfield_data[:] = 0.04 * rng.uniform(size=m.hfield_data.size)
    params = model.params.replace(height=m.hfield_data.astype(float) * m.hfield_size[0, 2])
    sim, errors, touched = ag.Simulator(model), [], 0
    for _ in range(30):
        d = mujoco.MjData(m)
        d.qpos[:2], d.qpos[2] = rng.uniform(-3, 3, 2), rng.uniform(0.55, 0.7)
        d.qpos[7:23] += 0.2 * rng.normal(size=16)
        d.qvel[:] = 0.5 * rng.normal(size=m.nv)
        traj = sim.rollout(ag.State(d.qpos.copy(), d.qvel.copy()), np.zeros((1, model.nu)), params=params)
        mujoco.mj_step(m, d)
        touched += any(ground in (c.geom1, c.geom2) for c in d.contact)
        errors.append(np.abs(traj.v[-1] - d.qvel).max() / (1 + np.abs(d.qvel).max()))
    assert touched > 20
    assert np.median(errors) < 1e-6 and np.mean(np.array(errors) < 1e-4) > 0.9, np.sort(errors)
