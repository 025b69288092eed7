"""PTX of all kernels: allowed instructions only, and accepted by NVIDIA's assembler where it is installed."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler.cuda import array, driver, total
from artigrad.compiler.cuda.ptx import ARCHITECTURES, architecture, ptx
from artigrad.compiler.cuda.total import stage_total
from tests.compiler.host_device import Recorder
from tests.compiler.on_devices import inputs

LEAST = "artigrad_rollout_vjp with the least effort"
DTYPES = {"f32": np.float32, "f64": np.float64}


def kernels(dtype):
    """All kernels of a simulator with contact, by name, after a call of every function."""
    device = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "device", lambda number: device)
        for kept in (array._copy_rows, total._loaded):
            kept.cache_clear()
        model = ag.robots.hopper()
        state, u = inputs(model, 2, 2, DTYPES[dtype])
        sim = ag.Simulator(model, dtype=dtype, device="cuda")
        own = model.params.replace(mass=np.repeat(model.params.mass[None], 2, 0))
        sim.vjp(
            sim.rollout(state, u[0], params=own, wrench=np.zeros((2, 2, model.nb, 6), DTYPES[dtype])), q_bar=state.q
        )
        sim.vjp(sim.rollout(state, u[0]), q_bar=state.q)
        sim.jvp(sim.rollout(state, u[0]), du=u[0])
        sim.outputs_vjp(state, sim.outputs(state))
        sim.forward_dynamics_vjp(state, u[:, 0], sim.forward_dynamics(state, u[:, 0]))
        sim.inverse_dynamics_vjp(state, state.v, sim.inverse_dynamics(state, state.v))
        sim.mass_matrix_vjp(state, sim.mass_matrix(state))
        found = dict(device.staged)
        swept = ag.Simulator(
            model, dtype=dtype, device="cuda", law=ag.HardOptions(solver="gauss_seidel", sweeps=5, gradient="reverse")
        )
        swept.vjp(swept.rollout(state, u), q_bar=state.q)
        found |= {f"{name}_reverse": staged for name, staged in device.staged.items() if "rollout" in name}
        stuck = ag.Simulator(model, dtype=dtype, device="cuda", law=ag.SoftOptions(noslip=2))
        stuck.vjp(stuck.rollout(state, u), q_bar=state.q)
        found |= {f"{name}_noslip": staged for name, staged in device.staged.items() if "rollout" in name}
        for kept in (array._copy_rows, total._loaded):
            kept.cache_clear()
    return found


@pytest.fixture(scope="module", params=DTYPES)
def texts(request):
    """(dtype, PTX by name)"""
    found = kernels(request.param)
    made = {name: ptx(s.ir, (9, 0), 2, None) for name, s in found.items()}
    return request.param, made | {LEAST: ptx(found["artigrad_rollout_vjp"].ir, (9, 0), 0, None)}


def test_all_kernels_are_here(texts):
    names = {name.removeprefix("artigrad_") for name in texts[1]}
    queries = {"outputs", "acceleration", "inverse_dynamics", "mass_matrix"}
    assert queries | {f"{name}_vjp" for name in queries} <= names
    assert {
        "rollout",
        "rollout_vjp",
        "rollout_vjp_reverse",
        "rollout_tangent",
        "constants",
        "constants_vjp",
        "copy_rows",
        "finite",
    } <= names


def test_no_double_precision_in_single_precision(texts):
    dtype, found = texts
    for name, text in found.items():
        if "total" in name:  # sums over robots are made in double precision on purpose
            continue
        other = "f64" if dtype == "f32" else "f32"
        assert f".{other}" not in text, name


def test_every_rounding_is_ours(texts):
    """No operation that the assembler may fuse or approximate, no library call, no thread-local memory."""
    for name, text in texts[1].items():
        for wrong in (r"(add|sub|mul|div|sqrt)\.f(32|64)", r"\.approx", r"\.ftz", r"\.full", r"\bcall\b", r"\.local\b"):
            assert not re.search(wrong, text), (name, wrong)
        assert re.search(r"^\.version 7\.8$", text, re.M) and ".target sm_90\n" in text


def test_memory_is_global(texts):
    for name, text in texts[1].items():
        if name == LEAST:  # tables that LLVM made of a switch are read by generic addresses
            continue
        assert not re.search(r"\b(ld|st)\.(b|u|f|s|v)\d", text), name  # generic addresses


@pytest.mark.skipif(
    shutil.which("ptxas") is None, reason="no ptxas on this machine: the driver's is tried by test_cuda.py"
)
def test_the_assembler_takes_it(texts, tmp_path):
    for name, text in texts[1].items():
        (tmp_path / "k.ptx").write_text(text)
        done = subprocess.run(
            ["ptxas", "-O0", "-arch=sm_90", tmp_path / "k.ptx", "-o", tmp_path / "k.cubin"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"


def test_other_architectures():
    staged = stage_total(4, 8)
    for capability, version in ARCHITECTURES.items():
        text = ptx(staged.ir, capability, 2, None)
        assert f".version {version // 10}.{version % 10}" in text
        assert f".target sm_{capability[0]}{capability[1]}" in text
    assert architecture((12, 0)) == ("sm_90", "+ptx78")  # newer devices read what the newest we know reads


def test_ptx_is_kept_on_disk(tmp_path):
    staged = stage_total(4, 4)
    text = ptx(staged.ir, (9, 0), 2, tmp_path)
    (stored,) = tmp_path.iterdir()
    payload = stored.read_bytes()
    assert ptx(staged.ir, (9, 0), 2, tmp_path) == text
    stored.write_bytes(payload[:-1])
    assert ptx(staged.ir, (9, 0), 2, tmp_path) == text
    assert stored.read_bytes() == payload
