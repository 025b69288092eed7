"""Convex hulls: vertices and connectivity."""

import numpy as np
import pytest

from artigrad.model.hulls import hull_of, neighbors_of, triangles

rng = np.random.default_rng(0)
BALL = rng.normal(size=(150, 3))
BALL /= np.linalg.norm(BALL, axis=1, keepdims=True)
GRID = np.array([[x, y, z] for x in range(4) for y in range(3) for z in range(3)], float)
RING = np.array([[np.cos(t), np.sin(t), z] for t in np.arange(40) * np.pi / 20 for z in (-1.0, 1.0)])


@pytest.mark.parametrize("points", [BALL, GRID, RING, rng.normal(size=(200, 3))], ids=["ball", "grid", "ring", "cloud"])
def test_all_points_are_inside_and_climbs_end_at_the_furthest(points):
    faces, hull = triangles(points), hull_of(points)
    a, b, c = (points[faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    assert (np.einsum("fi,pi->fp", normal, points) - np.sum(normal * a, 1)[:, None]).max() < 1e-9
    corners = [k for k, near in enumerate(hull.neighbors) if near]
    for d in rng.normal(size=(100, 3)):
        k, height = int(rng.choice(corners)), points @ d
        while height[best := max(hull.neighbors[k], key=lambda i: height[i])] > height[k]:
            k = best
        assert height[k] > height.max() - 1e-6


def test_faces_go_round_and_flat_ones_are_whole():
    hull = hull_of(RING)
    assert sorted(map(len, hull.faces)) == [4] * 40 + [40] * 2
    edges = [(f[i], f[i - 1]) for f in hull.faces for i in range(len(f))]
    assert len(set(edges)) == len(edges) and all((j, i) in set(edges) for i, j in edges)


def test_few_points_and_flat_ones():
    assert hull_of(np.zeros((1, 3))).faces == ((0,),)
    assert hull_of(np.array([[0.0, 0, 0], [1, 0, 0], [0.5, 0, 0]])).neighbors == ((1,), (0,), ())
    square = hull_of(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.3, 0.3, 0]]))
    assert len(square.faces) == 2 and square.neighbors[4] == ()


def test_flat_area_around_a_bump_stays_triangles():
    outer = [(1.0, 1, 0), (-1, 1, 0), (-1, -1, 0), (1, -1, 0)]
    points = np.array([*outer, *(np.array(outer) * 0.3), (0, 0, 0.1), (0, 0, -1)])
    sides = [(k, (k + 1) % 4) for k in range(4)]
    faces = [f for i, j in sides for f in ((i, j, 4 + i), (j, 4 + j, 4 + i), (4 + i, 4 + j, 8), (j, i, 9))]
    near = neighbors_of(points, np.array(faces))
    assert all(set(near[4 + k]) & {0, 1, 2, 3} and 8 in near[4 + k] for k in range(4))
