"""Speed: time of a gradient through a robot with a network in the loop (Degrave et al. 2019, table 1, repeated).

A quadruped of 17 bodies and 16 motors, 10 s at steps of 0.01 s. At every step a network of 1,296 or 1,147,904 weights maps
81 sensors to the motor controls; the benchmark computes the gradient of the distance traveled with respect to all weights,
for one robot and for 128.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from artigrad import GradientOptions, Model, ModelBuilder, Simulator
from artigrad.robots.inertias import box, rod, sphere
from artigrad.tasks.figures import plotting, save_figure

from .experiment import Experiment, RunOptions, save_video

DT, STEPS = 0.01, 1000
# gradients of ten seconds of contact would not be finite
CONDITIONED = GradientOptions(decay=0.95, clip=1.0)
NETWORKS = {
    "1,296": (81, 16),
    "1,147,904": (81, 1024, 1024, 16),
}  # weights, and the sizes of layers, which have no biases
ROBOTS = (1, 128)
# seconds of the paper: with gradient on a CPU and a GPU, without on both (i7-5930K, GTX 1080)
PAPER = {
    (1, "1,296"): (8.17, 69.6, 1.06, 9.69),
    (1, "1,147,904"): (13.2, 75.0, 2.04, 9.69),
    (128, "1,296"): (263.0, 128.0, 47.7, 17.8),
    (128, "1,147,904"): (311.0, 129.0, 50.4, 18.3),
}
SHOULDER, LINKS = 0.02, (0.2, 0.15, 0.05)  # m
LEGS = {"fl": (0.3, 0.2), "fr": (0.3, -0.2), "rl": (-0.3, 0.2), "rr": (-0.3, -0.2)}


def quadruped() -> Model:
    """Build a torso and four legs of four hinges: 17 bodies, 16 servo motors of 30 N m, spherical feet, and a floor."""
    b = ModelBuilder("speed")
    b.add_body("torso", joint="free", mass=20.0, inertia=box(20.0, 0.7, 0.3, 0.1), position=(0.0, 0.0, 0.42))
    for leg, (x, y) in LEGS.items():
        above, place = "torso", (x, y, 0.0)
        for name, axis, length, mass in (
            ("abduct", (1.0, 0.0, 0.0), SHOULDER, 0.3),
            ("hip", (0.0, 1.0, 0.0), LINKS[0], 1.0),
            ("knee", (0.0, 1.0, 0.0), LINKS[1], 0.7),
            ("ankle", (0.0, 1.0, 0.0), LINKS[2], 0.2),
        ):
            inertia = sphere(mass, 0.04) if length < 0.1 else rod(mass, length, 0.03)
            body = f"{leg}_{name}"
            b.add_body(
                body,
                above,
                joint="revolute",
                axis=axis,
                position=place,
                mass=mass,
                com=(0.0, 0.0, -length / 2),
                inertia=inertia,
            )
            b.add_servo_motor(body, body, gain=30.0, max_force=30.0, max_velocity=2 * np.pi)
            above, place = body, (0.0, 0.0, -length)
        b.add_sphere(above, 0.05, name=above, position=place, group=1, touches=2)
        b.add_site(f"{leg}_foot", above, position=place)
    b.add_plane(name="floor", group=2, touches=1)
    b.add_keyframe("home", q=[0.0, 0.0, 0.42, 1.0, 0.0, 0.0, 0.0, *[0.0, 0.5, -1.0, 0.5] * 4])
    return b.build()


class Speed(Experiment):
    """Times with and without gradient of the second, compiled run of a loop."""

    name = "speed"
    summary = "time of a gradient through robot and network (Degrave 2019, table 1)"

    def run(self, how: RunOptions) -> dict[str, Any]:
        cells = []
        for robots in ROBOTS:
            for weights in NETWORKS:
                cells.append(self._cell(how, robots, weights))
                how.watch(len(cells), len(ROBOTS) * len(NETWORKS), f"{robots} robots, {weights} weights")
        return {"steps": STEPS, "dt": DT, "sensors": 81, "cells": cells}

    def _cell(self, how: RunOptions, robots: int, weights: str) -> dict[str, Any]:
        import torch

        sim = Simulator(quadruped(), dt=DT, dtype="f32", device=how.device)
        policy = sensing_policy(sim, NETWORKS[weights]).to(how.device)
        steps = STEPS if how.iterations is None else how.iterations
        loop, state = _loop(sim, policy, robots, steps, how.device)
        seconds: dict[str, list[float]] = {"gradient": [], "forward": []}
        for _ in range(3):
            for p in policy.parameters():
                p.grad = None
            began = _now(how.device)
            q = loop(state).q
            (-q[:, -1, 0].mean()).backward()
            seconds["gradient"].append(_now(how.device) - began)
            with torch.no_grad():
                began = _now(how.device)
                loop(state)
                seconds["forward"].append(_now(how.device) - began)
        norm = float(sum(p.grad.square().sum() for p in policy.parameters() if p.grad is not None) ** 0.5)
        if not np.isfinite(norm) or norm == 0:
            raise ArithmeticError(f"the gradient of {robots} robots with {weights} weights has norm {norm}")
        paper = dict(
            zip(("gradient_cpu", "gradient_gpu", "forward_cpu", "forward_gpu"), PAPER[robots, weights], strict=True)
        )
        best = {name: round(min(found[1:]), 3) for name, found in seconds.items()}
        return {"robots": robots, "weights": weights, **best, "gradient_norm": norm, "paper": paper}

    def draw(self, numbers: dict[str, Any], folder: Path) -> list[Path]:
        plt = plotting()
        files = []
        if plt is not None:
            figure, axis = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
            names = [f"{c['robots']} robots\n{c['weights']} weights" for c in numbers["cells"]]
            where = np.arange(len(names))
            kind = "gpu" if numbers.get("device") == "cuda" else "cpu"
            axis.bar(
                where - 0.2,
                [c["paper"][f"gradient_{kind}"] for c in numbers["cells"]],
                0.38,
                color="0.7",
                label="the paper",
            )
            axis.bar(where + 0.2, [c["gradient"] for c in numbers["cells"]], 0.38, color="C0", label="artigrad")
            axis.set(yscale="log", ylabel="seconds with gradient")
            axis.set_xticks(where, names)
            axis.legend(frameon=False)
            files.append(folder / "curves.png")
            save_figure(figure, files[0])
            plt.close(figure)
        sim = Simulator(quadruped(), dt=DT)
        home = sim.model.keyframe().q[7:]
        swing = 0.25 * np.sin(2 * np.pi * 1.5 * DT * np.arange(200))[:, None] * np.repeat([1, -1, -1, 1], 4)
        return files + save_video(sim.rollout(sim.reset(), home + swing), folder)


def sensing_policy(sim: Simulator, sizes: tuple[int, ...]) -> Any:
    """Return a network without biases on 81 sensors: q, v, and for each foot its position relative to the torso, the same
    in world axes, and the direction of its leg."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for n, m in pairwise(sizes):
        layers += [nn.Linear(n, m, bias=False), nn.Tanh()]
    nn.init.normal_(layers[-2].weight, std=0.02)  # type: ignore[arg-type]

    class Sensing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = nn.Sequential(*layers)
            self.home, self.hips, self.lengths = (
                nn.Buffer(torch.tensor(x, dtype=torch.float32))
                for x in (sim.model.keyframe().q[7:], [[*hip, 0.0] for hip in LEGS.values()], LINKS)
            )

        def forward(self, q: Any, v: Any, t: int) -> Any:
            angle = q[..., 7:].unflatten(-1, (4, 4))
            bent = angle[..., 1:].cumsum(-1)
            x, down = (-(self.lengths * f(bent)).sum(-1) for f in (torch.sin, torch.cos))
            down, turned = down - SHOULDER, angle[..., 0]
            leg = torch.stack([x, -down * turned.sin(), down * turned.cos()], -1)
            foot = self.hips + leg
            seen = turn(q[..., None, 3:7], foot)
            direction = leg / leg.norm(dim=-1, keepdim=True)
            return self.home + self.network(torch.cat([q, v, *(y.flatten(-2) for y in (foot, seen, direction))], -1))

    return Sensing()


def turn(quaternion: Any, r: Any) -> Any:
    """Return vectors rotated to world axes."""
    w, u = quaternion[..., :1], quaternion[..., 1:].expand_as(r)
    across = 2.0 * u.cross(r, dim=-1)
    return r + w * across + u.cross(across, dim=-1)


def _loop(sim: Simulator, policy: Any, robots: int, steps: int, device: str) -> tuple[Any, Any]:
    """Return the loop to be timed, recorded on a GPU, and its initial state."""
    import torch

    import artigrad.torch as at

    start = tuple(torch.tensor(x, dtype=torch.float32, device=device) for x in sim.model.keyframe())
    state = tuple(x.expand(robots, -1).contiguous() for x in start)
    if device == "cpu":
        return lambda given: at.closed_loop(sim, policy, given, steps, gradient_options=CONDITIONED, keep=True), state
    return at.RecordedLoop(sim, policy, robots, steps, gradient_options=CONDITIONED), state


def _now(device: str) -> float:
    if device != "cpu":
        import torch

        torch.cuda.synchronize()
    return time.perf_counter()
