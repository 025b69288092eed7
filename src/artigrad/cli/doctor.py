"""`artigrad doctor`: versions, processor, GPU, cache, and whether this machine computes the reference bits."""

from __future__ import annotations

import hashlib
import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from .. import robots
from .._version import __version__
from ..compiler import disk
from ..compiler.compile import host
from ..compiler.cuda.driver import device
from ..errors import DeviceError
from ..simulate.simulator import Simulator

REQUIRED = ("numpy", "llvmlite", "mujoco", "rich", "typer")
EXTRAS = {
    "plot": "matplotlib",
    "optimize": "scipy",
    "torch": "torch",
    "jax": "jax",
    "gym": "gymnasium",
    "learn": "tensorboard",
    "ray": "ray",
    "meshes": "trimesh",
    "view": "pillow",
}
# bits of `reference_run`, the same on every processor that has fused multiply-adds
REFERENCE = {
    "f64": "4bbe645ad5387705",
    "f32": "795fb8e3db094b6b",
}
STEPS = 40


def doctor() -> None:
    """Show versions, processor, GPU and cache, and compare results with the reference bits; status 1 if they differ."""
    table = Table("", "", show_header=False)
    for name, text in (*_software(), *_hardware()):
        table.add_row(name, text)
    same = True
    for dtype, expected in REFERENCE.items():
        start = time.perf_counter()
        found = reference_run(dtype)
        took, same = time.perf_counter() - start, same and found == expected
        verdict = "reference bits" if found == expected else f"differs from the reference: {found}, not {expected}"
        table.add_row(f"rollout and gradient, {dtype}", f"{verdict}, {took:.2f} s with compilation")
    Console().print(table)
    if not same:
        typer.echo("Results of this machine differ from the reference. Please report this table.")
        raise typer.Exit(1)


def reference_run(dtype: str) -> str:
    """Return a digest of the states and gradients of a quadruped that lands on its feet.

    Args:
        dtype: "f64" or "f32".

    Returns:
        The first 16 hexadecimal digits of the SHA-256 digest of states and gradients, little endian.
    """
    sim = Simulator(robots.quadruped(), dtype=dtype)
    # inverse weights come from NumPy's linear algebra, whose last bits depend on the processor
    rounded: dict[str, Any] = {n: np.float32(sim.params[n]).astype(float) for n in sim.params if "weight" in n}
    params = sim.params.replace(**rounded)
    u = 0.25 * (np.arange(STEPS * sim.model.nu).reshape(STEPS, -1) % 7 - 3)
    traj = sim.rollout(sim.reset(), u, params=params)
    gradient = sim.vjp(traj, q_bar=np.ones(sim.model.nq))
    digest = hashlib.sha256()
    for array in (traj.q, traj.v, gradient.q0, gradient.v0, gradient.u):
        digest.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()[:16]


def _software() -> Iterator[tuple[str, str]]:
    yield "artigrad", __version__
    yield "python", f"{platform.python_version()}, {platform.platform()}"
    for package in REQUIRED:
        yield package, version(package)
    missing = []
    for extra, package in EXTRAS.items():
        try:
            yield f"{package} (extra {extra})", version(package)
        except PackageNotFoundError:
            missing.append(extra)
    yield "extras not installed", ", ".join(missing) or "none"


def _hardware() -> Iterator[tuple[str, str]]:
    fused = "" if host.fused else "; without fused multiply-adds, so that last bits differ from the reference"
    vectors = f"vectors of {8 * host.vector_bytes} bits"
    yield "processor", f"{platform.machine()}, {host.name}, {vectors}, {sys.byteorder} endian{fused}"
    try:
        gpu = device(0)
        driver = f"driver of CUDA {gpu.driver_version // 1000}.{gpu.driver_version % 1000 // 10}"
        yield "GPU", f"{gpu.name}, compute capability {gpu.capability[0]}.{gpu.capability[1]}, {driver}"
    except DeviceError as problem:
        yield "GPU", str(problem)
    where = disk.folder()
    if where is None:
        yield "cache of compiled code", "off"
    else:
        count, size = disk.usage(where)
        yield (
            "cache of compiled code",
            f"{where}: {count} files, {size / 1e6:.0f} MB of at most {disk.LIMIT / 1e6:.0f} MB",
        )
