"""Kernels: targets agree, loops and branches do what Python's do, elementary functions are accurate, the cache is safe."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from artigrad.compiler import (
    INT,
    INTS,
    PACKED,
    ROBOTS,
    SHARED,
    WORK,
    Kernel,
    Target,
    arctan2,
    carry,
    clamp,
    climb,
    copy,
    disk,
    exp,
    expm1,
    half_angle,
    log,
    loop,
    select,
    sincos,
    sqrt,
    switch,
    tanh,
    widest,
)
from artigrad.compiler.kernel import zeros as aligned_zeros
from artigrad.physics.spatial import Vec3

TARGETS = [Target("f64", 1), Target("f64", widest("f64")), Target("f32", widest("f32")), Target("f64", 1, native=False)]


def call(body, target, x, n=None, **more):
    y = np.zeros_like(x, dtype=target.numpy_dtype)
    signature = {"n": INT, "x": ROBOTS, "y": ROBOTS, "w": WORK}
    signature |= dict.fromkeys(more, INTS)
    kernel = Kernel("test", body, signature, target)
    kernel(len(x), 2, n=x.shape[1] if n is None else n, x=x.astype(target.numpy_dtype), y=y, w=x.shape[1], **more)
    return y


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_loops_branches_and_carries(target):
    def body(n, x, y, w, kind, parent):
        copy(x, w, n)
        for k in loop(n, inwards=True):
            y[k] = switch(kind[k], {0: lambda k=k: w[k] * 2.0, 1: lambda k=k: -w[k]})
        for k in loop(n):
            total = carry(0.0)
            for j in climb(parent, k):
                total.value = total.value + w[j]
            y[k] = y[k] + clamp(total.value, -1.0, 1.5)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(19, 7))
    kind, parent = rng.integers(0, 2, 7).astype(np.int32), np.array([0, 0, 1, 1, 3, 4, 2], np.int32)
    wanted = np.where(kind == 0, 2 * x, -x)
    for k in range(7):
        total, j = np.zeros(19), k
        while j > 0:
            total, j = total + x[:, j], parent[j]
        wanted[:, k] += np.clip(total, -1.0, 1.5)
    tolerance = 1e-12 if target.dtype == "f64" else 1e-5
    np.testing.assert_allclose(call(body, target, x, kind=kind, parent=parent), wanted, atol=tolerance)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_sine_and_cosine(target):
    def body(n, x, y, w):
        s, c = sincos(x[0])
        y[0], y[1] = s, c

    angles = np.concatenate([np.linspace(-20, 20, 2001), [0.0, 1e-300, 1e4, -1e5, np.pi / 2, np.pi]])
    y = call(body, target, np.stack([angles, angles], 1))
    exact = angles.astype(target.numpy_dtype).astype(float)
    tolerance = 4e-16 if target.dtype == "f64" else 2e-7
    np.testing.assert_allclose(y, np.stack([np.sin(exact), np.cos(exact)], 1), atol=tolerance)


def test_nan_is_never_hidden():
    def body(n, x, y, w):
        s, c = sincos(x[0])
        y[0], y[1], y[2], y[3] = s + c, clamp(x[0], -1.0, 1.0), sqrt(x[0]), select(x[0] > 0.0, x[0], x[0] * 1.0)

    for target in TARGETS:
        assert np.isnan(call(body, target, np.full((2, 4), np.nan))).all()


def test_half_angle_is_smooth_across_its_switch():
    def body(n, x, y, w):
        y[0], y[1], y[2] = half_angle(x[0])

    s = np.array([0.0, 1e-30, 1e-8, 0.1, 0.25 - 1e-13, 0.25, 0.25 + 1e-13, 1.0, np.pi**2, 30.0])
    y = call(body, TARGETS[0], np.repeat(s[:, None], 3, 1))
    t = np.sqrt(np.maximum(s, 1e-60))
    k = np.sin(t / 2) / t
    np.testing.assert_allclose(y[:, 0], np.cos(t / 2), atol=1e-15)
    np.testing.assert_allclose(y[:, 1], k, atol=1e-15)
    np.testing.assert_allclose(y[3:, 2], ((np.cos(t / 2) / 2 - k) / np.maximum(s, 1e-60))[3:], atol=1e-14)
    assert abs(y[0, 2] + 1 / 24) < 1e-16
    assert np.ptp(y[4:7], axis=0).max() < 1e-12


@pytest.mark.parametrize("n", [1, 3, 8, 16, 17, 40])
@pytest.mark.parametrize("target", TARGETS[:3], ids=str)
def test_copy_turns_blocks_and_writes_nothing_else(target, n):
    def body(n, x, y, w):
        copy(x, w, n)
        copy(w, y, n)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(21, n + 3)).astype(target.numpy_dtype)
    y = np.full_like(x, 7.0)
    Kernel("turn", body, {"n": INT, "x": ROBOTS, "y": ROBOTS, "w": WORK}, target)(21, 1, n=n, x=x, y=y, w=n)
    np.testing.assert_array_equal(y[:, :n], x[:, :n])
    np.testing.assert_array_equal(y[:, n:], 7.0)


def test_packed_arrays_are_per_robot():
    def body(n, x, p, y):
        for k in loop(n):
            y[k] = x[k] + p[k]

    target = Target("f64", 4)
    kernel = Kernel("packed", body, {"n": INT, "x": ROBOTS, "p": PACKED, "y": ROBOTS}, target)
    x, extra = np.zeros((6, 3)), np.arange(18.0).reshape(6, 3)
    padded = np.concatenate([extra, extra[-1:], extra[-1:]])
    shape = kernel.packed_shape(6, 3)
    from artigrad.compiler.kernel import empty

    packed = empty(shape, np.dtype(float))
    packed[...] = padded.reshape(shape[0], 4, 3).transpose(0, 2, 1)
    y = np.zeros((6, 3))
    kernel(6, 1, n=3, x=x, p=packed, y=y)
    np.testing.assert_array_equal(y, extra)


# -- the cache -----------------------------------------------------------------------------------------------------------
def simple(n, x, y, w):
    for k in loop(n):
        y[k] = x[k] * 3.0 + 1.0


def fresh():
    return Kernel("cached", simple, {"n": INT, "x": ROBOTS, "y": ROBOTS, "w": WORK}, Target())


def run(kernel):
    x, y = np.arange(3.0).reshape(1, 3), np.zeros((1, 3))
    kernel(1, 1, n=3, x=x, y=y, w=1)
    np.testing.assert_array_equal(y, 3 * x + 1)
    return kernel._code.from_disk


def test_code_is_kept_and_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("ARTIGRAD_CACHE", str(tmp_path))
    assert run(fresh()) is False
    assert run(fresh()) is True


@pytest.mark.parametrize("damage", [b"", b"short", None], ids=["empty", "short", "flipped"])
def test_damaged_cache_file_is_recompiled(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("ARTIGRAD_CACHE", str(tmp_path))
    run(fresh())
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data) if damage is None else damage)
    assert run(fresh()) is False
    assert run(fresh()) is True


def test_code_of_another_kernel_is_not_run(tmp_path, monkeypatch):
    """An intact file, under the name of another kernel."""
    monkeypatch.setenv("ARTIGRAD_CACHE", str(tmp_path))
    run(fresh())
    (file,) = tmp_path.iterdir()
    other = Kernel("other", lambda x: None, {"x": ROBOTS}, Target())
    other(1, 1, x=np.zeros((1, 1)))
    (foreign,) = set(tmp_path.iterdir()) - {file}
    file.write_bytes(foreign.read_bytes())
    assert run(fresh()) is False


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    monkeypatch.setenv("ARTIGRAD_CACHE", str(blocker / "cache"))
    assert run(fresh()) is False
    monkeypatch.setenv("ARTIGRAD_CACHE", "off")
    assert run(fresh()) is False
    assert disk.folder() is None


def test_two_processes_at_once(tmp_path):
    code = "import artigrad as ag; s = ag.Simulator(ag.robots.ball()); print(s.rollout(s.reset(), steps=3).final.q[2])"
    env = os.environ | {"ARTIGRAD_CACHE": str(tmp_path)}
    jobs = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE) for _ in range(3)]
    outs = [j.communicate()[0] for j in jobs]
    assert all(j.returncode == 0 for j in jobs)
    assert len(set(outs)) == 1
    assert not [f for f in tmp_path.iterdir() if f.name.startswith("tmp")]


def test_calls_release_the_interpreter():
    """While a kernel runs in one thread, another thread continues."""

    def slow(n, x, y, w):
        for _ in loop(n):
            for k in loop(3):
                y[k] = y[k] * 0.5 + x[k]

    kernel = Kernel("slow", slow, {"n": INT, "x": ROBOTS, "y": ROBOTS, "w": WORK}, Target())
    x, y = np.ones((1, 3)), np.zeros((1, 3))
    kernel(1, 1, n=1, x=x, y=y, w=1)
    job = threading.Thread(target=lambda: kernel(1, 1, n=30_000_000, x=x, y=y, w=1))
    job.start()
    turns = 0
    while job.is_alive():
        turns += 1
    assert turns > 1000


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("native", [True, False])
def test_exponentials_logarithm_and_tangents(dtype, native):
    def body(x, out):
        a, b = x[0], x[1]
        out[0], out[1] = exp(a), log(abs(a) + 1e-3)
        out[2], out[3], out[4] = arctan2(abs(b), abs(a)), tanh(a), expm1(a)

    target = Target(dtype, widest(dtype) if native else 1, native)
    kernel = Kernel("elementary", body, {"x": ROBOTS, "out": ROBOTS}, target)
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.normal(size=(300, 2)) * 10.0 ** rng.uniform(-6, 1.4, size=(300, 1)), [[0.0, 1.0], [1.0, 0.0]]]
    )
    x = np.ascontiguousarray(x, target.numpy_dtype)
    out = np.zeros((len(x), 5), target.numpy_dtype)
    kernel(len(x), 1, x=x, out=out)
    a, b = x.T.astype(float)
    tolerance = 4 * np.finfo(target.numpy_dtype).eps
    base = (np.abs(x[:, 0]) + target.numpy_dtype.type(1e-3)).astype(float)
    every = (np.exp(a), np.log(base), np.arctan2(np.abs(b), np.abs(a)), np.tanh(a), np.expm1(a))
    for k, wanted in enumerate(every):
        np.testing.assert_allclose(out[:, k], wanted, rtol=tolerance * (1 + (30 if k in (0, 4) else 0)), atol=tolerance)
    small = np.abs(a) < 0.1
    np.testing.assert_allclose(out[small, 3:], np.stack(every[3:], 1)[small], rtol=2 * tolerance)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_each_robot_reads_and_adds_where_its_own_index_says(target):
    def body(n, x, table, packed, index, w, y):
        for k in loop(n):
            w[k] = x[k]
        for k in loop(n):
            w.shifted(1).scatter_add(index[k], n - 1, 10.0 * x[k])
        for k in loop(n):
            i = index[k]
            y[k] = w.gather(i, n) + 100.0 * table.shifted(2).gather(i, n) + packed.gather(i, n) + x.gather(i, n)

    rng = np.random.default_rng(0)
    batch, n = 11, 5
    x, table = rng.integers(-9, 9, (batch, n)).astype(float), np.arange(n + 2.0)
    index = rng.uniform(-2, n + 2, (batch, n))
    index[3, 1], index[4, 2] = np.nan, np.inf
    kernel = Kernel(
        "test",
        body,
        {"n": INT, "x": ROBOTS, "table": SHARED, "packed": PACKED, "index": ROBOTS, "w": WORK, "y": ROBOTS},
        target,
    )
    packed = aligned_zeros(kernel.packed_shape(batch, n), target.numpy_dtype)
    packed += np.arange(n)[None, :, None] * 1e3
    y = np.zeros((batch, n), target.numpy_dtype)
    own = {"x": x, "table": table, "index": index}
    kernel(batch, 1, n=n, packed=packed, w=n, y=y, **{k: a.astype(target.numpy_dtype) for k, a in own.items()})
    at = np.clip(np.floor(np.nan_to_num(index, nan=0.0, posinf=99.0)), 0, n - 1).astype(int)
    at_tail = np.clip(at, 0, n - 2) + 1
    w = x.copy()
    for robot in range(batch):
        for k in range(n):
            w[robot, at_tail[robot, k]] += 10 * x[robot, k]
    rows = np.arange(batch)[:, None]
    np.testing.assert_array_equal(y, w[rows, at] + 100 * (at + 2) + 1e3 * at + x[rows, at])


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_each_robot_reads_its_own_row(target):
    def body(n, table, packed, index, y):
        for k in loop(n):
            both = table.gather_row(index[k], 7, Vec3) + packed.gather_row(index[k], 7, Vec3)
            y.put(3 * k, both)

    rng = np.random.default_rng(0)
    batch, n = 19, 4
    table, index = rng.integers(-99, 99, 21).astype(float), rng.integers(-1, 9, (batch, n)).astype(float)
    kernel = Kernel("test", body, {"n": INT, "table": SHARED, "packed": PACKED, "index": ROBOTS, "y": ROBOTS}, target)
    packed = aligned_zeros(kernel.packed_shape(batch, 21), target.numpy_dtype)
    packed += 1e3 * np.arange(21)[None, :, None]
    y = np.zeros((batch, 3 * n), target.numpy_dtype)
    own = {k: a.astype(target.numpy_dtype) for k, a in {"table": table, "index": index}.items()}
    kernel(batch, 1, n=n, packed=packed, y=y, **own)
    rows = (table + 1e3 * np.arange(21)).reshape(7, 3)[np.clip(index, 0, 6).astype(int)]
    np.testing.assert_array_equal(y, rows.reshape(batch, 3 * n))
