"""JAX on a GPU, without one: XLA's CPU plays it, kernels of CUDA run thread by thread, and so does a driver of the host."""

import ctypes
import warnings
from ctypes import c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import artigrad as ag
import artigrad.jax as aj
from artigrad.compiler.cuda import array, driver, total
from artigrad.jax import gpu_handler, native_calls, native_params
from tests.compiler.host_device import HostDevice
from tests.family import CALLS, MODEL, inputs, of_all

jax.config.update("jax_enable_x64", True)


class NativeDevice(HostDevice):
    """Device of the host with the functions that native code calls."""

    def __init__(self):
        super().__init__()
        self.calls, self.fails = [], {}
        kinds = {
            "cuCtxPushCurrent_v2": [c_void_p],
            "cuCtxPopCurrent_v2": [c_void_p],
            "cuMemcpy2DAsync_v2": [c_void_p, c_void_p],
            "cuMemsetD8Async": [c_uint64, c_ubyte, c_size_t, c_void_p],
            "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
            "cuLaunchKernel": [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p],
            "cuLaunchHostFunc": [c_void_p, c_void_p, c_void_p],
            "cuStreamSynchronize": [c_void_p],
        }
        self.functions = {k: ctypes.CFUNCTYPE(c_int, *types)(self.entry(k)) for k, types in kinds.items()}

    def entry(self, name):
        def run(*given):
            self.calls.append(name)
            getattr(self, name)(*given)
            return self.fails.get(name, 0)

        return run

    def address(self, name):
        return 77 if name == "context" else ctypes.cast(self.functions[name], c_void_p).value

    def sentence(self, result, doing):
        return f"error {result} while {doing}"

    def pinned(self, size):
        return self.allocate(size, 0)

    def cuCtxPushCurrent_v2(self, context):
        assert context == 77

    def cuCtxPopCurrent_v2(self, context):
        pass

    def cuMemcpy2DAsync_v2(self, about, stream):
        x = (ctypes.c_int64 * 16).from_address(about)
        source, source_pitch, to, pitch, width, height = (x[k // 8] for k in (32, 48, 88, 104, 112, 120))
        assert x[2] == x[9] == 2 and width <= min(pitch, source_pitch)
        for k in range(height):
            ctypes.memmove(to + k * pitch, source + k * source_pitch, width)

    def cuMemsetD8Async(self, pointer, value, size, stream):
        ctypes.memset(pointer, value, size)

    def cuMemcpyDtoHAsync_v2(self, host, pointer, size, stream):
        ctypes.memmove(host, pointer, size)

    def cuLaunchKernel(self, function, grid, y, z, block, by, bz, shared, stream, places, extra):
        assert (y, z, by, bz, shared, extra) == (1, 1, 1, 1, 0, None)
        words = ctypes.cast(places, ctypes.POINTER(ctypes.c_int64))[0]
        for thread in range(grid * block):
            self.code[function][1](words, thread, grid * block)

    def cuLaunchHostFunc(self, stream, function, data):
        ctypes.CFUNCTYPE(None, c_void_p)(function)(data)

    def cuStreamSynchronize(self, stream):
        pass


def forget():
    for kept in (array._copy_rows, total._loaded):
        kept.cache_clear()
    for module in (native_calls, native_params):
        for kept in vars(module).values():
            if hasattr(kept, "cache_clear"):
                kept.cache_clear()


@pytest.fixture
def gpu(monkeypatch):
    device, serves, register = NativeDevice(), native_calls.serves, gpu_handler.register
    monkeypatch.setattr(driver, "device", lambda number: device)
    monkeypatch.setattr(gpu_handler._GpuHandler, "_stream", lambda self: "ptr null")  # XLA's CPU has none
    monkeypatch.setattr(native_calls, "serves", lambda call, on_host: serves(call, call.sim.checks.on_host))
    monkeypatch.setattr(gpu_handler, "register", lambda: register("cpu"))
    forget()
    yield device
    forget()


def results(call, given):
    def there_and_back(*given):
        out, back = jax.vjp(lambda *x: tuple(call(*x)), *given)
        return out, back(jax.tree.map(jnp.cos, out))

    return jax.jit(there_and_back)(*given)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "linearize"])
def test_numbers_are_those_of_the_cpu(gpu, name):
    cpu, there = (of_all(name, aj, ag.Simulator(MODEL, device=device)) for device in ("cpu", "cuda"))
    x = inputs((3,))
    given = [jnp.asarray(x[k]) for k in cpu[1]]
    (a, a_bars), (b, b_bars) = results(cpu[0], given), results(there[0], given)
    for here, found in zip((*a, *a_bars), (*b, *b_bars), strict=True):
        np.testing.assert_allclose(found, here, rtol=1e-10, atol=1e-10 * float(np.abs(here).max(initial=1e-2)))


def test_none_of_the_usual_ones_goes_through_python(gpu):
    sim, x = ag.Simulator(MODEL, device="cuda"), inputs((2,))
    text = jax.jit(lambda q, v, u: aj.rollout(sim, (q, v), u)).lower(x["q"], x["v"], x["us"]).as_text()
    assert gpu_handler.LAUNCH in text and gpu_handler.CHECK in text and "callback" not in text


def test_linearize_scan_and_vmap(gpu):
    x = {k: jnp.asarray(y) for k, y in inputs((3,)).items()}
    found = []
    for device in ("cpu", "cuda"):
        sim = ag.Simulator(MODEL, device=device)

        def scanned(q, v, u, sim=sim):
            last, _ = jax.lax.scan(lambda s, u: (aj.step(sim, s, u), None), ag.State(q, v), u)
            return jnp.sin(last.q).sum() + jnp.sin(last.v).sum()

        slopes = jax.jit(jax.vmap(jax.grad(scanned, (0, 2)), (0, None, 0)))(x["q"], x["v"][0], x["us"])
        found.append((*slopes, *aj.linearize(sim, (x["q"], x["v"]), x["u"])))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sets", ["shared", "own"])
def test_gradients_of_parameters(gpu, sets):
    x = {k: jnp.asarray(y) for k, y in inputs((3,)).items()}
    flat = jnp.asarray(MODEL.params.flat if sets == "shared" else np.tile(MODEL.params.flat, (3, 1)))
    found = []
    for device in ("cpu", "cuda"):
        sim = ag.Simulator(MODEL, device=device)

        def loss(flat, sim=sim):
            final = aj.rollout(sim, (x["q"], x["v"]), x["us"], params=ag.Params.of(MODEL, flat))
            return jnp.sin(final.q).sum() + jnp.sin(final.v).sum()

        found.append(jax.jit(jax.value_and_grad(loss))(flat))
    (a, a_bar), (b, b_bar) = found
    np.testing.assert_allclose(b, a, rtol=1e-12)
    np.testing.assert_allclose(b_bar, a_bar, rtol=1e-8, atol=1e-9 * float(np.abs(a_bar).max()))


def test_errors_name_the_problem(gpu):
    x = {k: jnp.asarray(y) for k, y in inputs((3,)).items()}
    sim = ag.Simulator(MODEL, device="cuda")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        jax.block_until_ready(aj.rollout(sim, (x["q"], x["v"]), x["us"].at[1, 2, 0].set(jnp.nan)))
    assert str(told[0].message) == "u of robot 1 is not finite, in a call of JAX on 'cuda:0'"
    assert "not solved in some step of robot 1" in str(told[1].message)
    small = ag.Simulator(ag.robots.laikago(), max_contacts=2, device="cuda")
    many = [jnp.asarray(y) for y in ag.Simulator(small.model).reset(batch=2)]
    with pytest.raises(Exception, match="max_contacts=2 allows for"):
        jax.block_until_ready(aj.rollout(small, many, steps=5))
    assert "cuStreamSynchronize" in gpu.calls
    gpu.fails["cuLaunchKernel"] = 700
    with pytest.raises(Exception, match="error 700 while running a kernel for JAX"):
        jax.block_until_ready(aj.rollout(sim, (x["q"], x["v"]), x["us"]))


def test_unsolved_step_is_reported(gpu):
    model = ag.robots.laikago()
    sim = ag.Simulator(model, law=ag.SoftOptions(iterations=1), device="cuda")
    q, v = (jnp.asarray(y) for y in ag.Simulator(model).reset(batch=2))
    with pytest.warns(RuntimeWarning, match="was not solved in some step of robot"):
        jax.block_until_ready(aj.rollout(sim, (q, v.at[1].add(-3.0)), steps=3))
