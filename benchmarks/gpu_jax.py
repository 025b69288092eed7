"""JAX on the GPU, for `benchmarks.gpu_frameworks`: checks against the CPU, and times beside the native call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import artigrad as ag

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leaves memory for PyTorch

import jax
import jax.numpy as jnp

from artigrad import jax as aj

SEED, STEPS = 0, 100
TOLERANCE = {"f64": 1e-10, "f32": 1e-4}
Result = dict[str, Any]
jax.config.update("jax_enable_x64", True)


def calls(family: Any, model: ag.Model) -> dict[str, Callable[[Any, dict[str, Any]], Any]]:
    """Return each function of `artigrad.torch` or `artigrad.jax`, as a function of all its inputs."""

    def params(x: dict[str, Any]) -> dict[str, Any]:
        return {"mass": x["mass"]}

    found: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
        "step": lambda s, x: family.step(s, (x["q"], x["v"]), x["us"][:, 0], wrench=x["wrench"], params=params(x)),
        "rollout": lambda s, x: family.rollout(s, (x["q"], x["v"]), x["us"], params=params(x)),
        "checkpoints": lambda s, x: family.rollout(s, (x["q"], x["v"]), x["us"], checkpoints=ag.EveryKth(3)),
        "contacts": lambda s, x: (family.contacts(s, (x["q"], x["v"]), x["us"][:, 0]).force,),
        "outputs": lambda s, x: family.outputs(s, (x["q"], x["v"]), params=params(x)),
        "mass_matrix": lambda s, x: (family.mass_matrix(s, (x["q"], x["v"])),),
        "inverse_dynamics": lambda s, x: (family.inverse_dynamics(s, (x["q"], x["v"]), x["a"]),),
        "forward_dynamics": lambda s, x: (family.forward_dynamics(s, (x["q"], x["v"]), x["us"][:, 0]),),
    }
    if not ag.Simulator(model).contact_names:
        del found["contacts"]
    return found


def inputs(model: ag.Model, dtype: str, batch: int = 64) -> dict[str, np.ndarray]:
    """Return states around the keyframe with velocities, controls and wrenches."""
    rng = np.random.default_rng(SEED)
    q, v = (np.repeat(x[None], batch, 0) for x in model.keyframe())
    x = {
        "q": q,
        "v": v + 0.1 * rng.normal(size=v.shape),
        "us": model.keyframe_control() + 0.1 * rng.normal(size=(batch, 8, model.nu)),
        "a": rng.normal(size=v.shape),
        "wrench": 0.1 * rng.normal(size=(batch, model.nb, 6)),
        "mass": np.array(model.params.mass),
    }
    real = np.float64 if dtype == "f64" else np.float32
    return {k: y.astype(np.float64 if k == "mass" else real) for k, y in x.items()}


def apart(found: Any, expected: Any) -> float:
    """Return the largest difference, relative to the largest entry of the array."""
    worst = 0.0
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = max(1.0, float(np.abs(b).max(initial=0.0)))
        worst = max(worst, float(np.abs(np.asarray(a, float) - np.asarray(b, float)).max(initial=0.0)) / scale)
    return worst


def check_jax(quick: bool) -> list[Result]:
    """Compare every function on the GPU with the CPU, forward and backward."""
    out = []
    for name, dtypes in {"laikago": ("f64", "f32"), "hopper": ("f64",), "cartpole": ("f32",)}.items():
        model = getattr(ag.robots, name)()
        for dtype in dtypes:
            given = inputs(model, dtype)
            for function, call in calls(aj, model).items():
                found = {}
                for device in ("cuda", "cpu"):
                    sim = ag.Simulator(model, device=device, dtype=dtype)

                    def there_and_back(x: Any, sim: Any = sim, call: Any = call) -> Any:
                        out, back = jax.vjp(lambda x: tuple(call(sim, x)), x)
                        return out, back(jax.tree.map(jnp.cos, out))

                    place = jax.devices("gpu" if device == "cuda" else "cpu")[0]
                    found[device] = jax.jit(there_and_back)(jax.device_put(given, place))
                worst = apart(found["cuda"], found["cpu"])
                good = worst <= TOLERANCE[dtype]
                out.append(
                    {"what": f"JAX, {name}, {dtype}, {function}: GPU against CPU", "figure": worst, "good": good}
                )
    return out


def seconds(call: Callable[[], Any], wait: Callable[[], Any], rounds: int) -> float:
    """Return the wall-clock time of one call, after one call to warm up."""
    call()
    wait()
    start = time.perf_counter()
    for _ in range(rounds):
        call()
    wait()
    return (time.perf_counter() - start) / rounds


def time_jax(quick: bool) -> list[Result]:
    """Time 100 steps, forward and with the gradient of the controls, interleaved with native calls; and a scan of steps."""
    model, out = ag.robots.laikago(), []
    sim = ag.Simulator(model, device="cuda", dtype="f32")
    for batch in (4096, 32768):
        x = inputs(model, "f32", batch)
        q, v = jnp.asarray(x["q"]), jnp.asarray(x["v"])
        u = jnp.asarray(np.tile(model.keyframe_control().astype(np.float32), (batch, STEPS, 1)))
        bars = ag.State(*(jnp.ones((batch, STEPS + 1, n), jnp.float32) for n in (model.nq, model.nv)))
        last: list[Any] = []

        @jax.jit
        def gradient(u: Any, q: Any = q, v: Any = v, bars: Any = bars) -> Any:
            return jax.vjp(lambda u: aj.rollout(sim, (q, v), u), u)[1](bars)

        @jax.jit
        def steps(u: Any, q: Any = q, v: Any = v) -> Any:
            return jax.lax.scan(lambda s, u: (aj.step(sim, s, u), None), ag.State(q, v), u.transpose(1, 0, 2))[0]

        forward = jax.jit(lambda u, q=q, v=v: aj.rollout(sim, (q, v), u))

        def native_gradient(u: Any = u, q: Any = q, v: Any = v, bars: Any = bars) -> None:
            sim.vjp(sim.rollout((q, v), u), q_bar=bars[0], v_bar=bars[1], with_params=False)

        def ours(call: Any, last: Any = last, u: Any = u) -> Callable[[], None]:
            return lambda: last.__setitem__(slice(None), [call(u)])

        native = {"forward": lambda u=u, q=q, v=v: sim.rollout((q, v), u), "gradient": native_gradient}
        pairs = {
            "forward": (native["forward"], ours(forward), 1.1),
            "gradient": (native["gradient"], ours(gradient), 1.1),
            "forward, a scan of steps": (native["forward"], ours(steps), None),
        }
        for kind, (one, other, target) in pairs.items():
            count = 2 if quick else 5
            times = np.array(
                [
                    [
                        seconds(one, sim.engine.device.synchronize, count),
                        seconds(other, lambda last=last: jax.block_until_ready(last), count),
                    ]
                    for _ in range(count)
                ]
            )
            ratio, rate = float(np.median(times[:, 1] / times[:, 0])), batch * STEPS / np.median(times[:, 1]) / 1e6
            what = f"rollout of 100, {batch} Laikagos, {kind}: {rate:.1f} million robot-steps/s; JAX of native"
            out.append({"what": what, "figure": ratio, "good": None if target is None else ratio <= target})
    return out
