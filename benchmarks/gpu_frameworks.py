"""PyTorch and JAX on the GPU: `python -m benchmarks.gpu_frameworks [--quick] [--out FOLDER]`.

Checks: every function of `artigrad.torch` on CUDA tensors against the CPU, forward and gradients; a recorded loop against
the loop in Python. Times, f32: a rollout beside the native call; a policy of 256 x 256 in the loop of Laikagos, in Python
and recorded; a training loop on ants (32 steps, backward, Adam) beside the cores of the CPU. Memory: 1000 steps of 4096
robots under a policy of a million weights, with gradient. JAX: `benchmarks.gpu_jax`.

Needs an NVIDIA driver, and PyTorch and JAX for CUDA. The failure of a part is reported, and the others continue.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import artigrad as ag
from artigrad import torch as at

from .gpu_jax import SEED, TOLERANCE, Result, calls, check_jax, inputs, time_jax

STEPS = 32
REALS = {"f64": torch.float64, "f32": torch.float32}
TARGETS = {4096: 6.5, 32768: 16.0}  # million robot-steps/s, forward and backward


class Policy(nn.Module):
    """Network from the state to servo targets or torques, with hidden layers of tanh."""

    def __init__(self, model: ag.Model, *widths: int):
        super().__init__()
        torch.manual_seed(SEED)
        sizes = [model.nq - 2 + model.nv, *widths, model.nu]
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.Tanh()]
        self.net = nn.Sequential(*layers)
        self.register_buffer("home", torch.tensor(model.keyframe_control(), dtype=torch.float32))

    def forward(self, q: torch.Tensor, v: torch.Tensor, t: int) -> torch.Tensor:
        return self.home + 0.2 * self.net(torch.cat([q[..., 2:], v], -1))


# -- checks ------------------------------------------------------------------------------------------------------------
def tensors(model: ag.Model, dtype: str, device: str) -> dict[str, torch.Tensor]:
    """Return the inputs of all functions on a device."""
    given = inputs(model, dtype)
    return {k: torch.tensor(x, dtype=REALS[dtype], device=device).requires_grad_() for k, x in given.items()}


def apart(found: Any, expected: Any) -> float:
    """Return the largest difference, relative to the largest entry of the array."""
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        if (a is None) != (b is None):
            return float("inf")
        if a is not None and a.numel():
            scale = max(1.0, float(b.detach().abs().max()))
            worst = max(worst, float((a.detach().cpu().double() - b.detach().cpu().double()).abs().max()) / scale)
    return worst


def check_functions(quick: bool) -> list[Result]:
    out = []
    for name, dtypes in {"laikago": ("f64", "f32"), "hopper": ("f64",), "cartpole": ("f32",)}.items():
        model = getattr(ag.robots, name)()
        for dtype in dtypes:
            sims = {d: ag.Simulator(model, device=d, dtype=dtype) for d in ("cuda", "cpu")}
            given = {d: tensors(model, dtype, d) for d in sims}
            for function, call in calls(at, model).items():
                found = {d: tuple(call(sims[d], given[d])) for d in sims}
                slopes = {
                    d: torch.autograd.grad(
                        sum(y.sin().sum() for y in found[d]), list(given[d].values()), allow_unused=True
                    )
                    for d in sims
                }
                worst = max(apart(found["cuda"], found["cpu"]), apart(slopes["cuda"], slopes["cpu"]))
                good = worst <= TOLERANCE[dtype]
                out.append({"what": f"{name}, {dtype}, {function}: CUDA against CPU", "figure": worst, "good": good})
    return out


def check_recorded(quick: bool) -> list[Result]:
    """Compare the loop in Python with the recorded one, twice, with other weights the second time."""
    model = ag.robots.laikago()
    sim, policy = ag.Simulator(model, device="cuda", dtype="f32"), Policy(model, 64).cuda()
    recorded, worst = (
        at.RecordedLoop(sim, policy, 256, 16, gradient_options=ag.GradientOptions(decay=0.95, clip=1.0)),
        0.0,
    )
    for _ in range(2):
        q, v = (x.clone().requires_grad_() for x in _start(sim, 256))
        found = []
        for loop in (
            recorded((q, v)),
            at.closed_loop(sim, policy, (q, v), 16, gradient_options=ag.GradientOptions(decay=0.95, clip=1.0)),
        ):
            loss = sum(y.sin().mean() for y in loop)
            found.append((*loop, *torch.autograd.grad(loss, (q, v, *policy.parameters()))))
        worst = max(worst, apart(*found))
        with torch.no_grad():
            for w in policy.parameters():
                w.mul_(1.01)
    return [{"what": "recorded loop against closed_loop", "figure": worst, "good": worst <= 1e-5}]


# -- times -------------------------------------------------------------------------------------------------------------
def _start(sim: ag.Simulator, batch: int) -> ag.State:
    device = sim.device
    state = ag.State(
        *(torch.tensor(np.repeat(x[None], batch, 0), dtype=REALS[sim.dtype]) for x in sim.model.keyframe())
    )
    state.v.add_(0.05 * torch.randn(state.v.shape, generator=torch.Generator().manual_seed(SEED), dtype=state.v.dtype))
    return ag.State(state.q.to(device), state.v.to(device))


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """Return the wall-clock time of one call, after two calls to warm up."""
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(rounds):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / rounds


def time_rollouts(quick: bool) -> list[Result]:
    """Time 100 steps, forward and with the gradient of the controls, interleaved with native calls."""
    model, out = ag.robots.laikago(), []
    sim = ag.Simulator(model, device="cuda", dtype="f32")
    for batch in (4096, 32768):
        state = _start(sim, batch)
        home = torch.tensor(model.keyframe_control(), dtype=torch.float32, device="cuda")
        u = home.repeat(batch, 100, 1).requires_grad_()
        q_bar, v_bar = (torch.ones(batch, 101, n, device="cuda") for n in (model.nq, model.nv))

        def native_gradient(state: Any = state, u: Any = u, bars: Any = (q_bar, v_bar)) -> None:
            sim.vjp(sim.rollout(state, u.detach()), q_bar=bars[0], v_bar=bars[1], with_params=False)

        def torch_gradient(state: Any = state, u: Any = u, bars: Any = (q_bar, v_bar)) -> None:
            torch.autograd.grad(tuple(at.rollout(sim, state, u)), u, bars)

        pairs = {
            "forward": (lambda s=state, u=u: sim.rollout(s, u.detach()), lambda s=state, u=u: at.rollout(sim, s, u)),
            "gradient": (native_gradient, torch_gradient),
        }
        for kind, (native, ours) in pairs.items():
            times = np.array(
                [[seconds(f, 2 if quick else 5) for f in (native, ours)] for _ in range(2 if quick else 5)]
            )
            ratio = float(np.median(times[:, 1] / times[:, 0]))
            rate = batch * 100 / float(np.median(times[:, 1])) / 1e6
            what = f"rollout of 100, {batch} Laikagos, {kind}: {rate:.1f} million robot-steps/s; PyTorch of native"
            out.append({"what": what, "figure": ratio, "good": ratio <= 1.05})
    return out


def time_loops(quick: bool) -> list[Result]:
    """Time a policy of 256 x 256 in the loop, 32 steps."""
    model, out = ag.robots.laikago(), []
    sim = ag.Simulator(model, device="cuda", dtype="f32")
    for batch, target in TARGETS.items():
        policy, state = Policy(model, 256, 256).cuda(), _start(sim, batch)
        recorded = at.RecordedLoop(sim, policy, batch, STEPS)
        ways = {
            "in Python": lambda p=policy, s=state: at.closed_loop(sim, p, s, STEPS),
            "recorded": lambda r=recorded, s=state: r(s),
        }
        for way, loop in ways.items():

            def gradient(loop: Callable[[], Any] = loop, policy: nn.Module = policy) -> None:
                torch.autograd.grad(loop().q[:, -1, 0].mean(), list(policy.parameters()))

            for kind, call in (("forward", loop), ("forward and backward", gradient)):
                took = seconds(call, 3 if quick else 10)
                rate = batch * STEPS / took / 1e6
                each = f"{took / STEPS * 1e6:.0f} us a step"
                what = f"256 x 256 in the loop {way}, {batch} Laikagos, {kind}: {each}; million robot-steps/s"
                aimed = way == "recorded" and kind != "forward"
                out.append({"what": what, "figure": rate, "good": rate >= target if aimed else None})
    return out


def time_training(quick: bool) -> list[Result]:
    """Time rollouts of 32 steps, backward and Adam on 4096 ants: the GPU beside the cores of this machine."""
    model, rates = ag.robots.ant(), {}
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    for device in ("cuda", "cpu"):
        sim, policy = ag.Simulator(model, device=device, dtype="f32"), Policy(model, 64, 64).to(device)
        state, adam = _start(sim, 4096), torch.optim.Adam(policy.parameters(), 1e-3)
        loop = (
            at.RecordedLoop(sim, policy, 4096, STEPS, gradient_options=ag.GradientOptions(decay=0.99))
            if device == "cuda"
            else None
        )

        def train(policy: Any = policy, sim: Any = sim, state: Any = state, adam: Any = adam, loop: Any = loop) -> None:
            adam.zero_grad()
            found = (
                at.closed_loop(sim, policy, state, STEPS, gradient_options=ag.GradientOptions(decay=0.99))
                if loop is None
                else loop(state)
            )
            (-found.q[:, -1, 0].mean()).backward()
            adam.step()

        rates[device] = 4096 * STEPS / seconds(train, 2 if device == "cpu" or quick else 10) / 1e6
    gain, cores = rates["cuda"] / rates["cpu"], len(os.sched_getaffinity(0))
    what = f"training, 4096 ants: {rates['cuda']:.2f} million robot-steps/s, {cores} cores {rates['cpu']:.2f}; times as fast"
    return [{"what": what, "figure": gain, "good": gain >= 10.0}]


def memory(quick: bool) -> list[Result]:
    model = ag.robots.laikago()
    sim, policy = ag.Simulator(model, device="cuda", dtype="f32"), Policy(model, 1000, 1000).cuda()
    state, steps = _start(sim, 4096), 100 if quick else 1000
    torch.cuda.reset_peak_memory_stats()
    at.closed_loop(sim, policy, state, steps, gradient_options=ag.GradientOptions(decay=0.99)).q[
        :, -1, 0
    ].mean().backward()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() / 1e9
    weights = sum(w.numel() for w in policy.parameters())
    what = f"peak memory of {steps} steps and back, 4096 robots, {weights / 1e6:.2f} million weights, GB"
    return [{"what": what, "figure": peak, "good": peak <= 8.0}]


PARTS = (check_functions, check_recorded, time_rollouts, time_loops, time_training, memory, check_jax, time_jax)


def main() -> None:
    """Run all parts, print a line for each result, and save them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="rough figures")
    parser.add_argument("--only", nargs="*", default=[part.__name__ for part in PARTS], help="names of parts")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of gpu_frameworks.json")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch sees no GPU here: this benchmark is about PyTorch on an NVIDIA GPU")
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "artigrad": ag.__version__}
    print(", ".join(f"{k} {v}" for k, v in about.items()))
    results: list[Result] = []
    for part in PARTS:
        if part.__name__ not in arguments.only:
            continue
        start = time.perf_counter()
        try:
            found = part(arguments.quick)
        except Exception:
            found = [
                {"what": f"{part.__name__} failed: {traceback.format_exc()}", "figure": float("nan"), "good": False}
            ]
        for row in found:
            mark = {True: "ok  ", False: "MISS", None: "    "}[row["good"]]
            print(f"{mark} {row['what']}: {row['figure']:.3g}", flush=True)
        print(f"     ({part.__name__}: {time.perf_counter() - start:.0f} s)", flush=True)
        results += found
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "gpu_frameworks.json").write_text(json.dumps({"about": about, "results": results}, indent=1))


if __name__ == "__main__":
    main()
