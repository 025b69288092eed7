"""Each pair in many placements (apart, touching, deep, aligned): number, distances, points and normals of contacts equal
MuJoCo's."""

import numpy as np
import pytest

from .beside_mujoco import Theirs, ours, placements, same
from .test_adjoints import resting

MARGIN = 0.02
SHAPES = {
    "plane": ("plane", ()),
    "sphere": ("sphere", (0.1,)),
    "capsule": ("capsule", (0.08, 0.15)),
    "ellipsoid": ("ellipsoid", (0.1, 0.15, 0.2)),
    "cylinder": ("cylinder", (0.1, 0.15)),
    "box": ("box", (0.1, 0.15, 0.2)),
    "plate": ("box", (0.2, 0.3, 0.01)),
}
CLOSED = [
    *(("plane", other) for other in ("sphere", "capsule", "ellipsoid", "cylinder", "box")),
    *(("sphere", other) for other in ("sphere", "capsule", "cylinder", "box")),
    ("capsule", "capsule"),
    ("capsule", "box"),
    ("box", "box"),
    ("box", "plate"),
]


def both(one, other, count, tilt, seed=0, margin=MARGIN, exactly=False):
    """Return (ours, MuJoCo's) of each placement in which either has a contact. exactly: MuJoCo iterates to full
    precision."""
    a, b = SHAPES[one], SHAPES[other]
    poses = placements(np.random.default_rng(seed), count, 0.4, tilt)
    theirs = Theirs(a, b, margin)
    if exactly:
        theirs.m.opt.ccd_iterations, theirs.m.opt.ccd_tolerance = 500, 1e-12
    saved_geometry = ours(*theirs.placed(a, b, poses), margin)
    pairs = [(mine, theirs.contacts(*(x[k] for x in poses))) for k, mine in enumerate(saved_geometry)]
    return [pair for pair in pairs if len(pair[0]) or len(pair[1])]


def hull(count, seed=0):
    """Hull of the given number of vertices on an ellipsoid."""
    v = np.random.default_rng(seed).normal(size=(count, 3))
    return "mesh", v / np.linalg.norm(v, axis=1, keepdims=True) * [0.1, 0.15, 0.2]


def prism(angles):
    """Upright prism with a random outline on an ellipse."""
    return "mesh", [(0.1 * np.cos(t), 0.15 * np.sin(t), z) for t in angles for z in (-0.1, 0.1)]


SHAPES |= {f"hull {n}": hull(n) for n in (8, 60, 500)}
SHAPES["many"] = prism(np.arange(36) * (2 * np.pi / 36) + 0.02 * np.random.default_rng(4).normal(size=36))
SHAPES["prism"] = prism(np.sort(np.random.default_rng(3).uniform(0, 2 * np.pi, 17)))


@pytest.mark.parametrize("tilt", [None, 1e-3])
@pytest.mark.parametrize("name", ["hull 8", "hull 60", "hull 500", "prism"])
def test_hulls_on_planes_equal_mujocos(name, tilt):
    saved_geometry = both("plane", name, 1000 if tilt is None else 300, tilt)
    assert len(saved_geometry) > 50 and max(len(theirs) for _, theirs in saved_geometry) > 2
    # where two faces lie as level as each other, another one may be taken
    assert sum(not same(mine, theirs, 1e-6) for mine, theirs in saved_geometry) < 0.005 * len(saved_geometry)


@pytest.mark.parametrize("tilt", [None, 0.0, 1e-3])
@pytest.mark.parametrize(("one", "other"), CLOSED)
def test_closed_forms_equal_mujocos(one, other, tilt):
    if tilt == 0.0 and (one, other) in (("plane", "cylinder"), ("capsule", "box")):
        tilt = 1e-6  # of what is exactly level or upright MuJoCo asks what rounding left
    saved_geometry = both(one, other, 1000 if tilt is None else 300, tilt)
    assert len(saved_geometry) > 50
    assert sum(not same(mine, theirs, 1e-6) for mine, theirs in saved_geometry) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("cylinder", other) for other in ("cylinder", "box", "hull 60")),
        *(("hull 60", other) for other in ("capsule", "ellipsoid", "box", "hull 60", "many")),
        *(("many", other) for other in ("capsule", "cylinder", "box", "many")),
    ],
)
def test_contacts_of_solids_equal_mujocos(one, other):
    """Points, distances and normals of patches, edges and nearest points, also of faces with many vertices.

    In deep penetration, two searches may end at different overlaps that are nearly the least.
    """
    for tilt in (None, 0.02):
        saved_geometry = both(one, other, 300, tilt, margin=0.0, exactly=True)
        off = [pair for pair in saved_geometry if not same(*pair, 1e-4)]
        assert len(saved_geometry) > 40 and len(off) < 0.06 * len(saved_geometry)
        assert sum(min(*mine.gaps, *theirs.gaps) > -0.01 for mine, theirs in off) <= 2


def reach(shape, R, n):
    """Extent of a shape along n, with more digits than the contacts have."""
    (kind, size), n = shape, (R.astype(np.longdouble).T @ n.astype(np.longdouble))
    size, across = np.asarray(size, np.longdouble), np.sqrt(n[0] ** 2 + n[1] ** 2)
    return {
        "capsule": lambda: size[0] * np.sqrt(n @ n) + size[1] * abs(n[2]),
        "ellipsoid": lambda: np.sqrt(np.sum((size * n) ** 2)),
        "cylinder": lambda: size[0] * across + size[1] * abs(n[2]),
        "box": lambda: np.sum(size * np.abs(n)),
    }[kind]()


@pytest.mark.parametrize(("one", "other"), [("capsule", "cylinder"), ("ellipsoid", "box"), ("cylinder", "cylinder")])
def test_normals_of_curved_solids_have_at_most_the_overlap_of_mujocos(one, other):
    """A search that ends once the overlap is accurate has a normal accurate to the square root."""
    a, b = SHAPES[one], SHAPES[other]
    theirs = Theirs(a, b, 0.0)
    theirs.m.opt.ccd_tolerance, theirs.m.opt.ccd_iterations = 1e-12, 200
    poses = placements(np.random.default_rng(0), 1000, 0.4)
    lesser = []
    for k, mine in enumerate(ours(a, b, poses, 0.0)):
        Ra, ra, Rb, rb = (x[k] for x in poses)
        other_one = theirs.contacts(Ra, ra, Rb, rb)
        if len(mine) != 1 or not same(mine, other_one, 1e-4):
            continue
        overlaps = [
            (reach(a, Ra, n) + reach(b, Rb, -n) - n.astype(np.longdouble) @ (rb - ra))
            / np.sqrt(n.astype(np.longdouble) @ n)
            for n in (mine.normals[0], other_one.normals[0])
        ]
        assert abs(overlaps[0] + mine.gaps[0]) < 1e-14
        if np.abs(mine.normals[0] - other_one.normals[0]).max() > 1e-7:
            lesser.append(overlaps[1] - overlaps[0])
    assert len(lesser) > 50 and min(lesser) > 0


def test_a_capsule_lying_on_a_box_has_two_points():
    lying = np.array([[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]])
    poses = (lying, np.array([[0.02, 0.03, 0.279]]), np.eye(3)[None], np.zeros((1, 3)))
    mine = ours(SHAPES["capsule"], SHAPES["box"], poses, MARGIN)[0]
    theirs = Theirs(SHAPES["capsule"], SHAPES["box"], MARGIN).contacts(*(x[0] for x in poses))
    assert len(mine) == 2 and same(mine, theirs, 1e-9)


def test_a_cylinder_stands_on_three_points_and_lies_on_two():
    floor, cylinder = SHAPES["plane"], SHAPES["cylinder"]
    lying = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    for R, height, count in ((np.eye(3), 0.149, 3), (lying, 0.099, 2)):
        poses = (np.eye(3)[None], np.zeros((1, 3)), R[None], np.array([[0.1, 0.2, height]]))
        mine = ours(floor, cylinder, poses, 0.0)[0]
        assert len(mine) == count
        assert same(mine, Theirs(floor, cylinder, 0.0).contacts(*(x[0] for x in poses)), 1e-9)


CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
UPRIGHT, LYING = np.eye(3), np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
SHAPES |= {"slab": ("box", (0.4, 0.4, 0.1)), "mesh slab": ("mesh", CUBE * [0.4, 0.35, 0.1])}
SHAPES |= {"cube": ("mesh", CUBE * [0.1, 0.12, 0.08]), "five": prism((0.1, 1.2, 2.2, 3.5, 4.9))}
SHAPES["drum"] = ("cylinder", (0.3, 0.1))
# what lies on what, how high, how turned, and how many points it has at most
LYING_FLAT = {
    "cube on slab": ("slab", "cube", 0.18, UPRIGHT, 4),
    "cube on mesh": ("mesh slab", "cube", 0.18, UPRIGHT, 4),
    "box on mesh": ("mesh slab", "box", 0.3, UPRIGHT, 4),
    "prism on slab": ("slab", "five", 0.2, UPRIGHT, 4),
    "cylinder standing": ("slab", "cylinder", 0.25, UPRIGHT, 4),
    "cylinder standing on mesh": ("mesh slab", "cylinder", 0.25, UPRIGHT, 4),
    "cylinder lying": ("slab", "cylinder", 0.2, LYING, 2),
    "capsule on mesh": ("mesh slab", "capsule", 0.18, LYING, 2),
    "box on cylinder": ("drum", "box", 0.3, UPRIGHT, 4),
    "prism on cylinder": ("drum", "five", 0.2, UPRIGHT, 4),
    "box on prism": ("five", "box", 0.3, UPRIGHT, 4),
}


@pytest.mark.parametrize("tilt", [0.0, 1e-4, 3e-3, 0.03])
@pytest.mark.parametrize("name", LYING_FLAT)
def test_aligned_solids_have_the_contact_points_of_mujoco(name, tilt):
    """Points, distances and normals are equal, too.

    Of a cylinder's end, many quadrilaterals have equal area, and rounding decides in MuJoCo: others may be chosen.
    """
    one, other, height, R, most = LYING_FLAT[name]
    a, b, count = SHAPES[one], SHAPES[other], 100
    poses = resting(np.random.default_rng(1), count, height - 0.002, R, tilt)
    theirs = Theirs(a, b, 0.0)
    theirs.m.opt.ccd_iterations, theirs.m.opt.ccd_tolerance = 500, 1e-12
    chosen = name in ("cylinder standing", "cylinder standing on mesh")
    others = 0
    for k, mine in enumerate(ours(*theirs.placed(a, b, poses), 0.0)):
        wanted = theirs.contacts(*(x[k] for x in poses))
        assert len(mine) == len(wanted) <= most
        assert np.abs(mine.normals - wanted.normals[0]).max() < 1e-4
        if not chosen:
            others += not same(mine, wanted, 1e-4)
    assert others <= (2 if "prism" in name else 0)  # areas that are nearly the same
