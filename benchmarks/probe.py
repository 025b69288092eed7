"""Measurements that need a new process: start-up, stored bytes, memory of a long gradient, cost of new memory.

`measure("name", ...)` runs `python -m benchmarks.probe name ...` and returns the printed result.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

STARTED = time.monotonic()  # the same clock in all processes
ROOT = Path(__file__).resolve().parent.parent


def measure(probe: str, *arguments: Any, env: dict[str, str] | None = None) -> dict[str, float]:
    """Run a probe in a new process."""
    import json

    command = [sys.executable, "-m", "benchmarks.probe", probe, *map(str, arguments), repr(time.monotonic())]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout))


def measure_start(robot: str, times: int, progress: Progress) -> dict[str, float]:
    """Return medians: seconds to the first gradient with an empty and a filled cache, and of the import alone."""
    import os
    import tempfile
    from statistics import median

    cold: list[dict[str, float]] = []
    warm: list[dict[str, float]] = []
    task = progress.add_task("first gradient", total=2 * times)
    with tempfile.TemporaryDirectory() as bytecode:  # as an installed package has it
        own = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": bytecode}
        measure("first_gradient", robot, env=own)
        for _ in range(times):
            with tempfile.TemporaryDirectory() as folder:
                for found in (cold, warm):
                    found.append(measure("first_gradient", robot, env=own | {"ARTIGRAD_CACHE": folder}))
                    progress.advance(task)
    both = {key: median(run[key] for run in cold + warm) for key in ("import", "python")}
    return {"cold": median(run["gradient"] for run in cold), "warm": median(run["gradient"] for run in warm)} | both


def first_gradient(robot: str, called: float) -> dict[str, float]:
    """Return seconds from the start of the process to the first gradient, and of `import artigrad` alone."""
    start = time.monotonic()
    import artigrad as ag

    imported = time.monotonic()
    model = getattr(ag.robots, robot)()
    sim = ag.Simulator(model)
    traj = sim.rollout(sim.reset(), [model.keyframe_control()] * 100)
    sim.vjp(traj, q_bar=traj.final.q)
    done = time.monotonic()
    return {"python": STARTED - called, "import": imported - start, "gradient": done - called}


def long_gradient(steps: int, memory: str) -> dict[str, float]:
    """Return seconds and peak memory of one gradient over many steps of a quadruped that hardly moves.

    The peak is relative to the process after a short gradient, the controls and their gradient. It is read from VmHWM:
    ru_maxrss of a child process begins at the peak of its parent.
    """
    import numpy as np

    import artigrad as ag

    model = ag.robots.quadruped()
    sim = ag.Simulator(model)
    weightless = model.params.replace(gravity=[0.0, 0.0, 0.0])
    state = sim.reset()
    u = np.empty((steps, model.nu))
    np.random.default_rng(0).standard_normal(out=u)
    u *= 1e-6

    def gradient(u: Any, checkpoints: Any) -> Any:
        traj = sim.rollout(state, u, params=weightless, checkpoints=checkpoints)
        return sim.vjp(traj, q_bar=np.ones(model.nq), v_bar=np.ones(model.nv))

    gradient(u[:100], ag.EveryStep())
    before, start = resident("VmRSS"), time.perf_counter()
    grad = gradient(u, ag.Binomial(memory=memory))
    seconds = time.perf_counter() - start
    beyond = resident("VmHWM") - before - grad.u.nbytes
    return {"seconds": seconds, "beyond_MB": beyond / 1e6, "controls_MB": u.nbytes / 1e6, "before_MB": before / 1e6}


def stored(robot: str) -> dict[str, float]:
    """Return the bytes that a trajectory stores per step beside the controls, from 1000 and 3000 steps."""
    import tracemalloc

    import numpy as np

    import artigrad as ag

    model = getattr(ag.robots, robot)()
    sim, few, many = ag.Simulator(model), 1000, 3000
    u = np.tile(model.keyframe_control(), (many, 1))
    kept = [sim.rollout(sim.reset(), u[:few])]  # referenced, so that its memory is not reused
    tracemalloc.start()
    sizes = []
    for steps in (few, many):
        before, _ = tracemalloc.get_traced_memory()
        kept.append(sim.rollout(sim.reset(), u[:steps]))
        after, _ = tracemalloc.get_traced_memory()
        sizes.append(after - before)
    return {"bytes_per_step": round((sizes[1] - sizes[0]) / (many - few)), "controls": u[0].nbytes}


def fresh_memory(rounds: int) -> dict[str, float]:
    """Return microseconds per robot and step of a rollout (64 robots, 200 steps) with recycled and with new arrays.

    It runs in a new process: malloc keeps larger arrays freed before, which hides the cost.
    """
    import numpy as np

    import artigrad as ag
    from artigrad.simulate import buffers

    robots, steps = 64, 200
    sim = ag.Simulator(ag.robots.quadruped(), threads=1)
    state = sim.reset(batch=robots)
    smallest = {"recycled": buffers.SMALLEST, "fresh": 1 << 60}
    seconds: dict[str, list[float]] = {name: [] for name in smallest}
    for _ in range(rounds + 1):
        for name, buffers.SMALLEST in smallest.items():
            start = time.perf_counter()
            sim.rollout(state, steps=steps)
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(s[1:])) / (robots * steps) * 1e6 for name, s in seconds.items()}


def torch_gradient(steps: int) -> dict[str, float]:
    """Return seconds and peak memory of the gradient of a Laikago's rollout through artigrad.torch."""
    import torch

    import artigrad as ag
    from artigrad.torch import rollout

    model = ag.robots.laikago()
    sim = ag.Simulator(model)
    q, v = map(torch.tensor, sim.reset())
    home = torch.tensor(model.keyframe_control())

    def gradient(u: Any) -> None:
        q_all, v_all = rollout(sim, (q, v), u)
        (q_all.square().sum() + v_all.square().sum()).backward()

    gradient(home.repeat(100, 1).requires_grad_())
    u = home.repeat(steps, 1).requires_grad_()
    before, start = resident("VmRSS"), time.perf_counter()
    gradient(u)
    return {"seconds": time.perf_counter() - start, "beyond_MB": (resident("VmHWM") - before) / 1e6}


def plain_torch(steps: int) -> dict[str, float]:
    """Return the same with every operation on autograd's tape (`benchmarks.plain_torch`)."""
    from .plain_torch import gradient

    seconds, tape = gradient(steps)
    return {"seconds": seconds, "MB_per_step": tape / 1e6}


def closed_loop(steps: int) -> dict[str, float]:
    """Return seconds and peak memory of the gradient of 128 Laikagos with a network of a million weights in the loop."""
    import torch
    from torch import nn

    import artigrad as ag
    from artigrad import torch as at

    class Policy(nn.Module):
        def __init__(self, home: Any):
            super().__init__()
            self.net = nn.Sequential(
                nn.Linear(37, 1000), nn.Tanh(), nn.Linear(1000, 1000), nn.Tanh(), nn.Linear(1000, 12)
            )
            self.home = home

        def forward(self, q: Any, v: Any, t: int) -> Any:
            return self.home + 0.1 * torch.tanh(self.net(torch.cat([q, v], -1)))

    torch.set_num_threads(1)  # where other work has the second core, two threads wait for each other
    model = ag.robots.laikago()
    sim = ag.Simulator(model, dtype="f32", threads=1)
    policy = Policy(torch.tensor(model.keyframe_control(), dtype=torch.float32))
    state = tuple(map(torch.tensor, sim.reset(batch=128)))
    at.closed_loop(sim, policy, state, 3).q.sum().backward()
    before, start = resident("VmRSS"), time.perf_counter()
    loop = at.closed_loop(sim, policy, state, steps, gradient_options=ag.GradientOptions(decay=0.99))
    loop.q[..., -1, 0].sum().backward()
    seconds = time.perf_counter() - start
    kept = sum(x.numel() * x.element_size() for x in loop)
    weights = sum(w.numel() for w in policy.parameters())
    beyond = (resident("VmHWM") - before) / 1e6
    return {"seconds": seconds, "beyond_MB": beyond, "states_MB": kept / 1e6, "weights": weights}


def resident(which: str) -> int:
    """Return the resident memory of this process, bytes: VmRSS now, VmHWM peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{which}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {which}")


PROBES: dict[str, tuple[Callable[..., dict[str, float]], tuple[Callable[[str], Any], ...]]] = {
    "stored": (stored, (str,)),
    "long_gradient": (long_gradient, (int, str)),
    "fresh_memory": (fresh_memory, (int,)),
    "torch_gradient": (torch_gradient, (int,)),
    "plain_torch": (plain_torch, (int,)),
    "closed_loop": (closed_loop, (int,)),
    "first_gradient": (first_gradient, (str, float)),  # it takes the time of the call
}


def main() -> None:
    """Run the probe named on the command line and print what it found."""
    import json

    name, *arguments = sys.argv[1:]
    probe, kinds = PROBES[name]
    print(json.dumps(probe(*(kind(text) for kind, text in zip(kinds, arguments, strict=False)))))


if __name__ == "__main__":
    main()
