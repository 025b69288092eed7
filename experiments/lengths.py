"""Lengths: link lengths of a pendulum estimated from a camera (Heiden et al. 2019).

A three-link pendulum, 100 x 100 gray pixels, 20 frames per second. An encoder (2 x 256) maps two frames to angles and
velocities; the physics, whose three lengths are learned with it, predicts one second; a decoder (2 x 256) renders the
prediction. Losses on the encoder, the physics and the decoder. The true lengths are 3, 3, 3 m; the initial guess is 1, 5,
0.5.

The baseline is a graph network in place of the physics: one node per link, messages between adjacent links, one step of
0.05 s, trained on the same 800 frames. Both are evaluated on held-out trajectories.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from artigrad import Model, ModelBuilder, Simulator
from artigrad.robots.inertias import rod
from artigrad.tasks import props as looks
from artigrad.tasks.figures import plotting, save_figure

from .experiment import Experiment, Resumable, RunOptions, save_video

DT, FINE, AHEAD = 0.05, 10, 20  # s between frames, steps of the simulator in that time, frames ahead
TRUE, GUESS = (3.0, 3.0, 3.0), (1.0, 5.0, 0.5)  # m
PIXELS = 100
MOTIONS, FRAMES, HELD_OUT = 20, 40, 20  # 800 frames to learn from
BATCH = 64


def pendulum(lengths: Any = TRUE) -> Model:
    """Build three rods of 1 kg/m, hinged about y, hanging at q = 0."""
    b = ModelBuilder("lengths")
    above, end = "world", (0.0, 0.0, 0.0)
    for k, length in enumerate(lengths, 1):
        center = (0.0, 0.0, -length / 2)
        b.add_body(
            f"rod{k}",
            above,
            joint="revolute",
            axis=(0.0, 1.0, 0.0),
            position=end,
            mass=length,
            com=center,
            inertia=rod(length, length, 0.1),
            damping=1.0,
        )
        looks.stick(
            b, f"rod{k}", (0.0, 0.0, 0.0), (0.0, 0.0, -length), 0.25, (looks.ORANGE, looks.BLUE, looks.WHITE)[k - 1]
        )
        above, end = f"rod{k}", (0.0, 0.0, -length)
    return b.build()


class Lengths(Experiment):
    """Estimation of the three lengths by Adam, with encoder and decoder."""

    name = "lengths"
    summary = "physics between an encoder and a decoder finds the lengths of a pendulum from images (Heiden 2019)"
    updates, graph_updates = 4000, 3000

    def run(self, how: RunOptions) -> dict[str, Any]:
        import torch

        data = recordings()
        sets = [tuple(x[part].to(how.device) for x in data) for part in (slice(0, MOTIONS), slice(MOTIONS, None))]
        out: dict[str, Any] = {"lengths": [], "off": [], "error": [], "graph_error": []}
        for seed in how.each_seed:
            torch.manual_seed(seed)
            found = self._physics(how, seed, sets)
            baseline = self._graph(how, seed, sets)
            out["lengths"].append(found["lengths"])
            out["off"].append(round(max(abs(x / y - 1) for x, y in zip(found["lengths"], TRUE, strict=True)), 5))
            out["error"].append(found["error"])
            out["graph_error"].append(baseline)
            out["curve"] = found["curve"]
        out["times_better"] = [round(g / e, 1) for g, e in zip(out["graph_error"], out["error"], strict=True)]
        return out

    def _physics(self, how: RunOptions, seed: int, sets: Any) -> dict[str, Any]:
        import torch

        (pictures, q, v), (_, held_q, held_v) = sets
        net = layers().to(how.device)
        sim = Simulator(pendulum(GUESS), dt=DT / FINE)
        log_lengths = torch.nn.Parameter(torch.tensor(GUESS, dtype=torch.float64).log())
        groups = [{"params": net.parameters(), "lr": 1e-3}, {"params": [log_lengths], "lr": 5e-3}]
        method = torch.optim.Adam(groups, fused=how.device == "cpu")  # one pass over 8 million weights, not nine
        holder = torch.nn.ParameterDict({"log_lengths": log_lengths})
        training = Resumable(how, f"lengths-{seed}", {"net": net, "lengths": holder, "method": method})
        rng = np.random.default_rng(seed)
        true = torch.cat([q, v], -1).double().cpu()
        for k in training.iterations(self.updates):
            frames = min(
                AHEAD, 2 + k * (AHEAD - 2) * 2 // self.updates
            )  # near ones first: far ahead, wrong lengths are out of phase
            for group, rate in zip(method.param_groups, (1e-3, 2e-2), strict=True):
                group["lr"] = rate * (1 - 0.95 * k / self.updates)
            m, t = rng.integers(MOTIONS, size=BATCH), rng.integers(1, FRAMES - AHEAD, size=BATCH)
            first, last = pictures[m, t], pictures[m, t + frames]
            guessed = net["encoder"](torch.cat([pictures[m, t - 1], first], -1)).double().cpu()
            path = unroll(sim, guessed, log_lengths.exp(), frames)
            shown = torch.cat([path[:, -1, :3].float().to(how.device), q[m, t]])
            drawn = 40 * (net["decoder"](angles(shown)) - torch.cat([last, first])).square().mean()
            wanted = true[m[:, None], t[:, None] + np.arange(frames + 1)]
            losses = (
                off(guessed, wanted[:, 0]),
                off(path, wanted[:, 1:]),
                drawn.cpu(),
            )
            method.zero_grad()
            sum(losses).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            method.step()
            now = log_lengths.detach().exp()
            training.note(
                f"seed {seed}: " + " ".join(f"{x:.3f}" for x in now), now, [float(x.detach()) for x in losses]
            )
        with torch.no_grad():
            first = torch.cat([held_q[:, 1], held_v[:, 1]], -1).double().cpu()
            path = unroll(sim, first, log_lengths.exp(), AHEAD)[..., :3]
        error = float((path - held_q[:, 2 : AHEAD + 2].double().cpu()).square().mean().sqrt())
        lengths = [round(float(x), 4) for x in log_lengths.detach().exp()]
        return {"lengths": lengths, "error": error, "curve": np.round([row[:3] for row in training.record], 4).tolist()}

    def _graph(self, how: RunOptions, seed: int, sets: Any) -> float:
        """Train the baseline; return the root mean squared error of its angles over one second on held-out trajectories."""
        import torch

        (_, q, v), (_, held_q, held_v) = sets
        net = graph_network().to(how.device)
        method = torch.optim.Adam(net.parameters(), lr=1e-3)
        x, y = (torch.stack([torch.cat([q, v], -1)[:, s].reshape(-1, 6)], 0)[0] for s in (slice(0, -1), slice(1, None)))
        training = Resumable(how, f"graph-{seed}", {"net": net, "method": method})
        for _ in training.iterations(self.graph_updates):
            rows = torch.randint(len(x), (128,), device=x.device)
            loss = (net(x[rows]) - y[rows]).square().mean()
            method.zero_grad()
            loss.backward()
            method.step()
            training.note(f"seed {seed}, graph network: {float(loss.detach()):.2g}", [float(loss.detach())])
        with torch.no_grad():
            state = torch.cat([held_q[:, 1], held_v[:, 1]], -1)
            path = []
            for _ in range(AHEAD):
                state = net(state)
                path.append(state[:, :3])
        return float((torch.stack(path, 1) - held_q[:, 2 : AHEAD + 2]).square().mean().sqrt())

    def draw(self, numbers: dict[str, Any], folder: Path) -> list[Path]:
        files = []
        plt = plotting()
        if plt is not None:
            figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
            left.plot(np.array(numbers["curve"]))
            left.axhline(TRUE[0], color="0.5", ls=":")
            left.set(xlabel="updates", ylabel="length / m", title="three lengths from images")
            right.boxplot([numbers["error"], numbers["graph_error"]], tick_labels=["physics", "graph network"])
            right.set(
                yscale="log", ylabel="rms error of angles, one second / rad", title="motions that neither has seen"
            )
            files.append(folder / "curves.png")
            save_figure(figure, files[0])
            plt.close(figure)
        sim = Simulator(pendulum(numbers["lengths"][0]), dt=DT / FINE)
        return files + save_video(
            sim.rollout(type(sim.reset())(np.array([1.2, 0.8, -0.6]), np.zeros(3)), steps=400), folder
        )


def recordings() -> Any:
    """Return images (trajectories, frames, 10000), angles and velocities (trajectories, frames, 3); the last trajectories
    are held out."""
    import torch

    import artigrad.torch as at
    from artigrad.camera import Camera, RayScene, render

    model = pendulum()
    sim = Simulator(model, dt=DT / FINE)
    rng = np.random.default_rng(0)
    count = MOTIONS + HELD_OUT
    start = torch.tensor(rng.uniform(-1.0, 1.0, (count, 3))), torch.tensor(0.5 * rng.normal(size=(count, 3)))
    states = at.rollout(sim, start, steps=FRAMES * FINE)
    q, v = (x[:, ::FINE][:, :FRAMES] for x in states)
    size: dict[str, Any] = {"width": PIXELS, "height": PIXELS, "dtype": torch.float32}
    camera = Camera.look_at((0.0, -24.0, -2.0), (0.0, 0.0, -2.0), fov=48.0, **size)
    with torch.no_grad():
        bodies = at.outputs(sim, (q, v))
        places = bodies.body_position.float(), bodies.body_rotation.float()
        grey = render(RayScene.of(model, dtype=torch.float32), camera, places, soft=1.0).alpha
    return grey.flatten(-2), torch.as_tensor(q).float(), torch.as_tensor(v).float()


def layers() -> Any:
    """Return encoder and decoder, with two hidden layers of 256 each."""
    from torch import nn

    encoder = nn.Sequential(nn.Linear(2 * PIXELS**2, 256), nn.ELU(), nn.Linear(256, 256), nn.ELU(), nn.Linear(256, 6))
    decoder = nn.Sequential(nn.Linear(6, 256), nn.ELU(), nn.Linear(256, 256), nn.ELU(), nn.Linear(256, PIXELS**2))
    return nn.ModuleDict({"encoder": encoder, "decoder": decoder})


def graph_network() -> Any:
    """Return a network with one node per link and two rounds of messages between adjacent links, which predicts the change
    of the state (B, 6) in a frame."""
    import torch
    from torch import nn

    def mlp(n: int, m: int) -> nn.Module:
        return nn.Sequential(nn.Linear(n, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU(), nn.Linear(64, m))

    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.leave = mlp(6, 32), mlp(32, 2)
            self.message, self.update = mlp(64, 32), mlp(96, 32)

        def forward(self, state: Any) -> Any:
            q, v = state[:, :3], state[:, 3:]
            which = torch.eye(3, device=q.device).expand(len(q), 3, 3)
            h = self.enter(torch.cat([torch.stack([q.sin(), q.cos(), v], -1), which], -1))
            zero = torch.zeros_like(h[:, :1])
            for _ in range(2):
                down = torch.cat([zero, self.message(torch.cat([h[:, :-1], h[:, 1:]], -1))], 1)
                up = torch.cat([self.message(torch.cat([h[:, 1:], h[:, :-1]], -1)), zero], 1)
                h = h + self.update(torch.cat([h, down, up], -1))
            return state + self.leave(h).movedim(-1, -2).flatten(1)

    return Graph()


def unroll(sim: Simulator, state: Any, lengths: Any, frames: int) -> Any:
    """Return angles and velocities (B, frames, 6) of the next frames of a pendulum with these lengths."""
    import torch

    import artigrad.torch as at

    zero = torch.zeros_like(lengths)
    down = torch.stack([zero, zero, -lengths], -1)
    across = lengths * (lengths**2 + 3 * 0.1**2) / 12
    params = {
        "position": torch.cat([torch.zeros(1, 3).to(down), down[:-1]]),
        "com": down / 2,
        "mass": lengths,
        "inertia": torch.stack([across, across, lengths * 0.1**2 / 2, zero, zero, zero], -1),
    }
    states: Any = at.rollout(sim, (state[..., :3], state[..., 3:]), steps=frames * FINE, params=params)
    return torch.cat([states.q[..., FINE::FINE, :], states.v[..., FINE::FINE, :]], -1)


def angles(q: Any) -> Any:
    """Return the input of the decoder."""
    import torch

    return torch.cat([q.sin(), q.cos()], -1)


def off(x: Any, y: Any) -> Any:
    """Return the mean squared error, linear for large errors."""
    import torch

    return torch.nn.functional.smooth_l1_loss(x, y)
