"""Images of solids, and their gradients compared with central differences."""

import numpy as np
import pytest
import torch

import artigrad as ag
import artigrad.torch as at
from artigrad.camera import Camera, RayScene, RaySolid, render, rendering
from artigrad.camera.ray_kinds import KINDS

SIZES = {
    "plane": (1.5, 1.2),
    "sphere": (0.35,),
    "capsule": (0.2, 0.3),
    "ellipsoid": (0.4, 0.25, 0.2),
    "cylinder": (0.25, 0.3),
    "box": (0.25, 0.3, 0.2),
}
H = 1e-6


def model(kind="box", rng=None):
    """One free shape."""
    b = ag.ModelBuilder(kind)
    b.add_body("thing", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1))
    if kind == "hull":
        corners = np.random.default_rng(4).normal(size=(10, 3)) * 0.3
        b.add_visual("thing", "mesh", mesh=(corners, np.zeros((0, 3), int)))
    else:
        b.add_visual("thing", kind, size=SIZES[kind], rgba=(0.9, 0.5, 0.2, 1.0))
    return b.build()


def tensor(*x):
    return torch.tensor(x, dtype=torch.float64)


@pytest.mark.parametrize("soft", [0.0, 1.5])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_pixels(kind, soft):
    rng = np.random.default_rng(1)
    sim = ag.Simulator(model(kind))
    start = RayScene.of(sim.model)
    turn = np.array([0.9, 0.3, 0.2, -0.1]) if kind == "plane" else rng.normal(size=4)
    q = torch.tensor(np.concatenate([rng.normal(size=3) * 0.1, turn / np.linalg.norm(turn)]))
    texture = torch.tensor(rng.uniform(size=(4, 8, 3)))
    inputs = [q, start.solids[0].size, tensor(0.3, -0.4, 1.9), tensor(0.02, 0.0, 0.0), tensor(0.0)[0] + 45.0, texture]
    weight, weight_alpha = torch.tensor(rng.normal(size=(24, 32, 3))), torch.tensor(rng.normal(size=(24, 32)))

    def pixels(q, size, eye, target, fov, texture):
        scene = start.replace("thing", size=size, **({} if kind == "hull" else {"texture": texture}))
        camera = Camera.look_at(eye, target, fov=fov, width=32, height=24, up=(0.0, 1.0, 0.0))
        bodies = at.outputs(sim, (q, torch.zeros(6, dtype=torch.float64)))
        rgb, alpha, depth = render(scene, camera, bodies, soft=soft)
        covered = alpha > 0.5
        return (rgb * weight).sum(-1) + (alpha + torch.where(covered, depth, 0.0)) * weight_alpha

    xs = [x.clone().requires_grad_() for x in inputs]
    seen = pixels(*xs)
    assert (seen.detach() != 0).double().mean() > 0.1
    for k, x in enumerate(inputs):
        if kind == "hull" and k == 5:
            continue
        d = torch.tensor(rng.normal(size=tuple(x.shape)))
        two = [pixels(*(y + s * H * d if j == k else y for j, y in enumerate(inputs))) for s in (1, -1)]
        differences = (two[0] - two[1]) / (2 * H)
        # beside a pixel through which a sharp edge or a seam just passed
        smooth = differences.abs() < (1e3 if soft == 0 else 1e9)
        (bar,) = torch.autograd.grad(seen[smooth].sum(), xs[k], retain_graph=True)
        wanted, found = differences[smooth].sum(), (bar * d).sum()
        assert abs(found - wanted) < 1e-6 * max(1.0, differences[smooth].abs().sum()), (k, found, wanted)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "hull"])
def test_rays_hit_the_expected_shapes(kind):
    """A ray from above through the center hits the top, one beside it nothing; depth is the distance along the axis."""
    top = {"plane": 0.0, "sphere": 0.35, "capsule": 0.5, "ellipsoid": 0.2, "cylinder": 0.3, "box": 0.2}[kind]
    scene = RayScene.of(model(kind))
    camera = Camera.look_at((0.0, 0.0, 2.0), (0.0, 0.0, 0.0), fov=90.0, width=31, height=31, up=(0.0, 1.0, 0.0))
    seen = render(scene, camera, (torch.zeros(1, 3).double(), torch.eye(3).double()[None]))
    assert seen.alpha[15, 15] == 1 and abs(seen.depth[15, 15] - (2.0 - top)) < 1e-9
    assert seen.alpha[0, 0] == 0 and torch.equal(seen.rgb[0, 0], scene.background)


def test_nearer_solids_hide_others():
    eye = torch.eye(3).double()
    red, blue = tensor(1.0, 0.0, 0.0), tensor(0.0, 0.0, 1.0)
    near = RaySolid("near", "sphere", -1, tensor(0.3), tensor(0.0, 0.0, 1.0), eye, red)
    far = RaySolid("far", "box", -1, tensor(0.5, 0.5, 0.5), tensor(0.0, 0.0, 0.0), eye, blue)
    camera = Camera.look_at((0.0, 0.0, 3.0), (0.0, 0.0, 0.0), width=21, height=21, up=(0.0, 1.0, 0.0))
    light = {"background": tensor(0.0, 0.0, 0.0), "light": tensor(0.0, 0.0, 1.0), "ambient": tensor(0.3)[0]}
    for solids in ((near, far), (far, near)):
        for soft in (0.0, 0.5):
            rgb = render(RayScene(solids, **light), camera, soft=soft).rgb
            assert rgb[10, 10, 0] > 0.9 and rgb[10, 10, 2] < 0.01  # the ball
            assert rgb[10, 5, 2] > 0.5 and rgb[10, 5, 0] < 0.01  # the box beside it
    glass = RaySolid("near", "sphere", -1, tensor(0.3), tensor(0.0, 0.0, 1.0), eye, red, opacity=0.5)
    rgb = render(RayScene((glass, far), **light), camera).rgb
    assert 0.3 < rgb[10, 10, 0] < 0.6 and 0.3 < rgb[10, 10, 2] < 0.6


def test_a_soft_edge_tells_where_a_ball_is():
    """Sharp edges of a uniform shape in flat light have no gradient; soft ones have one towards the target."""
    scene = RayScene.of(model("sphere"))
    camera = Camera.look_at((0.0, 0.0, 4.0), (0.0, 0.0, 0.0), width=32, height=32, up=(0.0, 1.0, 0.0))
    turn = torch.eye(3).double()[None]
    wanted = render(scene, camera, (tensor(0.2, -0.1, 0.0)[None], turn), soft=3.0).alpha
    x = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    assert not render(scene, camera, (x, turn)).alpha.requires_grad
    method = torch.optim.LBFGS([x], max_iter=60, line_search_fn="strong_wolfe")

    def loss():
        method.zero_grad()
        off = (render(scene, camera, (x, turn), soft=3.0).alpha - wanted).square().sum()
        off.backward()
        return off

    method.step(loss)
    assert torch.allclose(x[0], tensor(0.2, -0.1, 0.0), atol=1e-3)


def test_batches_and_shares(monkeypatch):
    """Batch elements have the images of single robots, also with different cameras and sizes and in chunks; gradients too."""
    sim, rng = ag.Simulator(model("capsule")), np.random.default_rng(0)
    q = torch.tensor(np.tile([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (2, 3, 1)))
    q[..., :3] += torch.tensor(rng.normal(size=(2, 3, 3)) * 0.1)
    size, eye = (
        torch.tensor(rng.uniform(0.1, 0.3, size=(2, 3, 2))),
        torch.tensor([0.0, -2.0, 0.5]) + torch.rand(3, 3).double(),
    )

    def take(q, size, eye):
        x = q.clone().requires_grad_()
        camera = Camera.look_at(eye, (0.0, 0.0, 0.0), width=12, height=8)
        bodies = at.outputs(sim, (x, torch.zeros(*x.shape[:-1], 6, dtype=torch.float64)))
        rgb = render(RayScene.of(sim.model).replace("thing", size=size), camera, bodies, soft=1.0).rgb
        (bar,) = torch.autograd.grad((rgb**2).sum(), x)
        return rgb.detach(), bar

    rgb, bar = take(q, size, eye)
    assert rgb.shape == (2, 3, 8, 12, 3)
    for i in range(2):
        for j in range(3):
            alone = take(q[i, j], size[i, j], eye[j])
            assert torch.allclose(alone[0], rgb[i, j], atol=1e-12) and torch.allclose(alone[1], bar[i, j], atol=1e-12)
    monkeypatch.setattr(rendering, "IMAGE_MEMORY", 1.0)
    shares = take(q, size, eye)
    assert torch.allclose(shares[0], rgb, atol=1e-12) and torch.allclose(shares[1], bar, atol=1e-12)


XML = """
<mujoco><worldbody>
  <camera name="still" pos="0 -3 1" xyaxes="1 0 0 0 0.3 1" fovy="40"/>
  <body name="arm"><joint axis="0 1 0"/><geom name="bar" type="capsule" size="0.1" fromto="0 0 0 1 0 0"/>
    <camera name="wrist" pos="1 0 0.3" quat="0.7 0 0.7 0"/></body>
</worldbody></mujoco>"""


def test_cameras_of_a_file(tmp_path):
    """They have the poses of the file, move with their bodies, and are saved."""
    robot = ag.load(XML)
    ag.save(robot, tmp_path / "robot.xml")
    for m in (robot, ag.load(tmp_path / "robot.xml"), ag.scene([robot, robot])):
        names = [c.name for c in m.cameras]
        assert [n.split("/")[-1] for n in names] in (["still", "wrist"], ["still", "wrist"] * 2)
    sim = ag.Simulator(robot)
    camera = Camera.of(robot, "wrist", width=6, height=4)
    assert camera.fov == 45.0 and robot.bodies[camera.body] == "arm"
    q = torch.tensor([0.3], dtype=torch.float64)
    bodies = at.outputs(sim, (q, torch.zeros(1).double()))
    turned = bodies.body_rotation[0] @ camera.rotation
    there = Camera(bodies.body_position[0] + bodies.body_rotation[0] @ camera.position, turned, camera.fov, 6, 4)
    scene = RayScene.of(robot)
    assert torch.allclose(render(scene, camera, bodies).rgb, render(scene, there, bodies).rgb)
    with pytest.raises(ag.InputError, match="no camera fixed to a body 'nose'; it has: still, wrist"):
        Camera.of(robot, "nose")


def test_shapes_are_seen_with_their_parameters():
    """A model without visuals: sizes in `params` have gradients."""
    b = ag.ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_sphere("ball", 0.3, name="ball")
    b.add_plane(name="floor")
    m = b.build()
    size = torch.tensor(m.params.shape_size).requires_grad_()
    scene = RayScene.of(m, {"shape_size": size})
    camera = Camera.look_at((0.0, -3.0, 0.5), (0.0, 0.0, 0.3), width=20, height=12)
    alpha = render(scene, camera, (tensor(0.0, 0.0, 1.0)[None], torch.eye(3).double()[None]), soft=1.0).alpha
    (bar,) = torch.autograd.grad(alpha.sum(), size)
    assert bar[m.shape("ball"), 0] > 0


def test_invalid_input_is_refused():
    scene, camera = RayScene.of(model("box")), Camera.look_at((0.0, -2.0, 0.0), (0.0, 0.0, 0.0))
    with pytest.raises(ag.InputError, match="move with bodies"):
        render(scene, camera)
    with pytest.raises(ag.InputError, match="same dtype"):
        render(scene, camera, (torch.zeros(1, 3), torch.eye(3)[None]))
    with pytest.raises(ag.InputError, match="0 rows"):
        render(scene, camera, (torch.zeros(0, 3).double(), torch.zeros(0, 3, 3).double()))
    with pytest.raises(ag.InputError, match="another up"):
        Camera.look_at((0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
    with pytest.raises(ag.InputError, match="there are: thing"):
        scene.replace("nose", opacity=0.5)
    with pytest.raises(ag.InputError, match="nothing to see"):
        RayScene.of(ag.robots.pendulum())
    with pytest.raises(ag.InputError, match="nonnegative"):
        render(scene, camera, (torch.zeros(1, 3).double(), torch.eye(3).double()[None]), soft=-1.0)


def test_a_height_field_is_refused_unless_it_is_left_out():
    b = ag.ModelBuilder("hill")
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_sphere("ball", 0.1, name="ball")
    b.add_height_field("world", np.zeros((3, 3)), (1.0, 1.0), name="ground")
    with pytest.raises(ag.InputError, match="does not see height fields, and 'hill' has 'ground'"):
        RayScene.of(b.build())
    assert RayScene.of(b.build(), without=["ground"]).names == ("ball",)
