"""Rasterizer compared with pixel-by-pixel tests, and images of simple scenes."""

import numpy as np

from artigrad.model.quaternions import matrix, of_matrix
from artigrad.view.raster import rasterize, weights

WIDTH, HEIGHT = 40, 30


def slowly(points, nearness, faces):
    """Return for each pixel the nearest triangle that covers its center, and its depth."""
    best = np.zeros((HEIGHT, WIDTH))
    for face in faces:
        (ax, ay), (bx, by), (cx, cy) = points[face]
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        if area >= 0:
            continue
        for row in range(HEIGHT):
            for column in range(WIDTH):
                x, y = column + 0.5, row + 0.5
                w0 = ((bx - x) * (cy - y) - (cx - x) * (by - y)) / area
                w1 = ((cx - x) * (ay - y) - (ax - x) * (cy - y)) / area
                w = np.array([w0, w1, 1 - w0 - w1])
                if (w >= 0).all():
                    best[row, column] = max(best[row, column], w @ nearness[face])
    return best


def test_random_triangles_as_slowly():
    rng = np.random.default_rng(0)
    points = rng.uniform(-10, 50, size=(60, 2))
    nearness = rng.uniform(0.1, 1.0, size=60)
    faces = np.arange(60).reshape(20, 3)
    seen = rasterize(points, nearness, faces, WIDTH, HEIGHT)
    picture = np.zeros(WIDTH * HEIGHT)
    picture[seen.pixel] = seen.nearness
    expected = slowly(points, nearness, faces).ravel()
    assert (expected > 0).sum() > 300
    assert np.allclose(picture, expected, rtol=1e-5)
    share = weights(seen, WIDTH)
    assert share.min() > -1e-9 and np.allclose(share.sum(0), 1)
    corner = nearness[faces[seen.planes.face[seen.triangle]]]
    assert np.allclose((share * corner.T).sum(0), seen.nearness, rtol=1e-5)


def test_adjacent_triangles_leave_no_gap_and_do_not_overlap():
    points = np.array([[3.0, 3.0], [35.5, 4.0], [36.0, 26.0], [4.0, 25.0], [20.3, 13.7]])
    faces = np.array([[4, 1, 0], [4, 2, 1], [4, 3, 2], [4, 0, 3]])
    both = rasterize(points, np.ones(5), faces, WIDTH, HEIGHT)
    single = sum(len(rasterize(points, np.ones(5), faces[k : k + 1], WIDTH, HEIGHT).pixel) for k in range(4))
    assert len(both.pixel) == single


def test_nothing_behind_the_camera_or_outside():
    points = np.array([[0.0, 0.0], [0.0, 20.0], [20.0, 0.0]])
    assert len(rasterize(points, np.ones(3), np.array([[0, 1, 2]]), WIDTH, HEIGHT).pixel)
    for shift, near in (((0.0, 0.0), [1.0, 1.0, -1.0]), ((100.0, 0.0), np.ones(3))):
        seen = rasterize(points + shift, np.array(near), np.array([[0, 1, 2]]), WIDTH, HEIGHT)
        assert len(seen.pixel) == 0


def test_quaternions_of_matrices():
    given = np.random.default_rng(1).normal(size=(200, 4))
    given[:4] = np.eye(4)
    given /= np.linalg.norm(given, axis=1, keepdims=True)
    found = of_matrix(np.stack([matrix(g) for g in given]))
    assert np.allclose(np.abs((found * given).sum(1)), 1)
