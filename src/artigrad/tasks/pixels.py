"""Pixels: a cart learns to swing a pendulum up and to keep it there from what a camera sees (Degrave et al. 2019).

A cart of 3.375 kg on a rail, a bar of 4.2 kg, a top of 3.375 kg; pictures of 288 x 96 with edges that fade over a pixel; a
network of a million weights is told the last three frames and gives the force on the cart, 33 times a second. In three parts:

1. act: the network's hands learn what to do, told the true state, from plans (`swing_up.py`).
2. see: its eyes learn where things are and how fast, from pictures of motions that the network itself makes: half of the robots
   act on what they see, others on the truth or at random. What the hands make of an error counts beside the error.
3. both: eyes and hands together, so that motions under what is seen keep to those under the truth, by gradients through
   physics, camera and network.

What is reported is the network of the third part, told nothing but pictures: how much of a minute after the first four seconds
the pendulum is up, from hanging.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import artigrad.torch as at

from ..camera import Camera, RayScene, render
from ..files import replacing, write_array
from ..simulate.simulator import Simulator
from .experiment import Experiment, Resumable, Running, plotting, save_figure
from .swing_up import DT, HOLD, Hands, Lessons, cart_and_pendulum, move, random_states, truth

AHEAD = 12  # frames that gradients go through
FAR = 3.0  # m: beyond, the cart leaves the picture
REMEMBERED = 400  # frames of each robot that eyes learn from
LONGEST = 200  # frames after which a robot begins anew
RATE = 1e-3  # of the eyes' learning, at first


class Eyes(nn.Module):
    """Three frames (B, 3, 96, 288) to x, sine, cosine, velocities (B, 5), each about one in size."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n, m, stride in ((3, 16, 4), (16, 32, 2), (32, 32, 2)):
            layers += [nn.Conv2d(n, m, 5, stride, 2), nn.ELU()]
        self.see = nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(300), nn.ELU(), nn.Linear(300, 5))

    def forward(self, frames: Tensor) -> Tensor:
        now, before, first = frames.unbind(1)
        return self.see(torch.stack([now, 5 * (now - before), 5 * (before - first)], 1))


class Pixels(Experiment):
    """Act, see, both."""

    name = "pixels"
    summary = "a cart swings its pendulum up and keeps it there, from what a camera sees (Degrave 2019)"
    parts = (5, 2500, 60)  # rounds of lessons, updates, updates
    robots = (128, 128, 32)
    lesson = 1500  # updates of the hands in a round
    batch, updates_a_frame = 256, 2  # of the eyes
    width, height = 288, 96

    def run(self, how: Running) -> dict[str, Any]:
        self._prepare(how.device)
        out: dict[str, Any] = {
            "up": [],
            "up_at_a_tenth_of_dt": [],
            "farthest": [],
            "updates": [],
            "swing_up_seconds": [],
            "curves": [],
        }
        for seed in how.each_seed:
            torch.manual_seed(seed)
            self._train(how, seed, out)
        out["weights"] = sum(w.numel() for part in (self.eyes, self.hands) for w in part.parameters())
        return out

    def _prepare(self, device: str) -> None:
        """Robot, camera and what it sees."""
        like: dict[str, Any] = {"dtype": torch.float32, "device": device}
        self.device, model = device, cart_and_pendulum()
        self.sim = Simulator(model, dt=DT, dtype="f32", device=device)
        like |= {"width": self.width, "height": self.height}
        self.camera = Camera.look_at((0.0, 2.0, 0.3), (0.0, 0.0, 0.0), fov=62.0, **like)
        like = {"dtype": torch.float32, "device": device}
        self.scene = RayScene.of(model, **like)
        for name in self.scene.names:
            pattern = torch.tensor([[1.0, 0.4], [0.4, 1.0]], **like)[..., None] * self.scene.solid(name).rgb
            self.scene = self.scene.replace(name, texture=pattern)

    def _train(self, how: Running, seed: int, out: dict[str, Any]) -> None:
        self.eyes, self.hands = Eyes().to(how.device), Hands().to(how.device)
        lessons = Lessons(self.robots[0], updates=self.lesson)
        self.eyes(torch.zeros(1, 3, self.height, self.width, device=how.device))
        seeing = torch.optim.Adam(self.eyes.parameters(), RATE)
        joining = torch.optim.Adam([*self.eyes.parameters(), *self.hands.parameters()], 2e-5)
        kept = {"eyes": self.eyes, "hands": self.hands, "lessons": lessons, "seeing": seeing, "joining": joining}
        training = Resumable(how, f"pixels-{seed}", kept)
        first, second, third = self.parts
        pool, few, film = Pool(self, self.robots[1]), Pool(self, self.robots[2]), Film()
        for k in training.iterations(first + second + third):
            if k < first:
                part, (off, up) = "act", lessons.round(self.hands)
            elif k < first + second:
                seeing.param_groups[0]["lr"] = RATE * (1 - 0.98 * (k - first) / second)
                part, (off, up) = "see", self._see(seeing, pool, film)
            else:
                part, (off, up) = "both", self._join(joining, few)
            training.note(f"seed {seed} {part}: off by {off:.5f}, up {up:.2f}", [off, up])
        for name, dt in (("up", DT), ("up_at_a_tenth_of_dt", DT / 10)):
            up, farthest, when = self.minute(dt)
            out[name].append(round(up, 4))
            if dt == DT:
                out["farthest"].append(round(farthest, 3))
                out["swing_up_seconds"].append(when)
        out["updates"].append(len(training.record))
        out["curves"].append([row[1] for row in training.record[::10]])

    def look(self, q: Tensor, v: Tensor) -> Tensor:
        """A frame of each robot, (B, 96, 288); computed once more on the backward pass."""

        def frame(q: Tensor, v: Tensor) -> Tensor:
            return render(self.scene, self.camera, at.outputs(self.sim, (q, v)), soft=1.0).grey - 0.85

        if torch.is_grad_enabled() and q.requires_grad:
            return checkpoint(frame, q, v, use_reentrant=False, preserve_rng_state=False)
        with torch.no_grad():
            return frame(q, v)

    # -- part 2 --------------------------------------------------------------------------------------------------------------
    def _see(self, method: torch.optim.Optimizer, pool: Pool, film: Film) -> tuple[float, float]:
        """Every robot goes on by a frame; then the eyes learn from frames that were. How far off they are, and how many of
        those that act on what they see are up."""
        film.add(pool.frames[0], truth(pool.q, pool.v), pool.age)
        half, quarter = len(pool.q) // 2, len(pool.q) // 4
        with torch.no_grad():
            seen = self.eyes(torch.stack(pool.frames, 1)[:half])
            u = self.hands(torch.cat([seen, truth(pool.q, pool.v)[half:]]))
            u[-quarter:] = 2 * torch.rand_like(u[-quarter:]) - 1
            pool.go(*move(self.sim, pool.q, pool.v, u))
        off = torch.zeros(())
        for _ in range(self.updates_a_frame):
            frames, told, known = film.draw(self.batch)
            seen = self.eyes(frames)
            off = (known * (seen - told).square()).mean()
            handled = (known * (self.hands(seen) - self.hands(told)).square()).mean()
            method.zero_grad()
            (off + 0.1 * handled).backward()
            method.step()
        return float(off.detach()), pool.up(half)

    # -- part 3 --------------------------------------------------------------------------------------------------------------
    def _join(self, method: torch.optim.Optimizer, pool: Pool) -> tuple[float, float]:
        """Robots go on by AHEAD frames, once told the truth, once what they see, which is to lead to the same."""
        with torch.no_grad():
            q, v, wanted = pool.q, pool.v, []
            for _ in range(AHEAD):
                q, v = move(self.sim, q, v, self.hands(truth(q, v)))
                wanted.append(truth(q, v))
        q, v, frames, off = pool.q, pool.v, pool.frames, torch.zeros((), device=self.device)
        for goal in wanted:
            seen, told = self.eyes(torch.stack(frames, 1)), truth(q, v)
            q, v = (clipped(x) for x in move(self.sim, q, v, self.hands(seen)))
            off = off + ((truth(q, v) - goal).square() + (seen - told).square()).sum() / AHEAD
            frames = [self.look(q, v), *frames[:2]]
        method.zero_grad()
        off.backward()
        torch.nn.utils.clip_grad_norm_([w for group in method.param_groups for w in group["params"]], 1.0 * len(q))
        method.step()
        pool.go(q.detach(), v.detach(), [x.detach() for x in frames], AHEAD)
        return float(off.detach()) / len(q), pool.up(len(q))

    # -- what came out -------------------------------------------------------------------------------------------------------
    @torch.no_grad()
    def minute(self, dt: float, robots: int = 4) -> tuple[float, float, list[float]]:
        """From hanging, told pictures only: how much of a minute after four seconds the pendulum is within 25 degrees of
        upright, how far the cart went, and when it was up first. Who leaves the picture hangs from then on."""
        sim = Simulator(self.sim.model, dt=dt, dtype="f32", device=self.device)
        q = self.hanging(robots)
        v, lost, path = torch.zeros_like(q), torch.zeros_like(q[:, 0], dtype=torch.bool), []
        frames = [self.look(q, v)] * 3
        for _ in range(round(64 / (DT * HOLD))):
            frames = [self.look(q, v), *frames[:2]]
            q, v = move(sim, q, v, self.hands(self.eyes(torch.stack(frames, 1))), round(DT / dt))
            lost = lost | (q[:, 0].abs() > 2 * FAR) | (v.abs() > 100).any(-1)
            q, v = torch.where(lost[:, None], self.hanging(robots), q), torch.where(lost[:, None], 0.0, v)
            path.append(q)
        where = torch.stack(path)
        up = where[..., 1].cos() > np.cos(np.radians(25.0))
        when = [round(float(x) * DT * HOLD, 2) for x in up.float().argmax(0)]
        self.path = where[:, 0].cpu().double().numpy()
        return float(up[round(4 / (DT * HOLD)) :].float().mean()), float(where[..., 0].abs().max()), when

    def hanging(self, robots: int) -> Tensor:
        """Places to start from, one slightly aside of the other, (B, 2)."""
        aside = 0.02 * torch.arange(robots, device=self.device)
        return torch.stack([torch.zeros_like(aside), np.pi + aside], -1)

    def draw(self, numbers: dict[str, Any], folder: Path) -> list[Path]:
        files = []
        plt = plotting()
        if plt is not None:
            figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
            for curve in numbers["curves"]:
                axis.plot(10 * np.arange(len(curve)), curve, color="C0", alpha=0.5)
            for end in np.cumsum(self.parts[:2]):
                axis.axvline(end, color="0.5", ls=":")
            axis.set(xlabel="updates: act, see, both", ylabel="share of robots that are up")
            files.append(folder / "curves.png")
            save_figure(figure, files[0])
            plt.close(figure)
        write_array(folder / "path.npy", self.path.astype(np.float32))
        return files + self.film(self.path[:300:3], folder)

    @torch.no_grad()
    def film(self, q: np.ndarray, folder: Path) -> list[Path]:
        """What the network saw, every third frame, as a film."""
        try:
            from PIL import Image
        except ImportError:
            return []
        at_q = torch.tensor(q, dtype=torch.float32, device=self.device)
        rgb = render(self.scene, self.camera, at.outputs(self.sim, (at_q, torch.zeros_like(at_q))), soft=1.0).rgb
        frames = [Image.fromarray(x) for x in (255 * rgb.clamp(0, 1)).byte().cpu().numpy()]
        file = folder / "motion.gif"
        with replacing(file) as unfinished:
            frames[0].save(unfinished, format="gif", save_all=True, append_images=frames[1:], duration=90, loop=0)
        return [file]


class Pool:
    """Robots that go on from where they were, each with its last three frames. Those that are far away or had their time
    begin anew."""

    def __init__(self, task: Pixels, robots: int):
        self.task = task
        self.age = torch.randint(2, LONGEST, (robots,), device=task.device)  # frames since it began
        self.q, self.v, self.frames = self._begin(robots)

    def _begin(self, robots: int) -> tuple[Tensor, Tensor, list[Tensor]]:
        """New ones, two frames after a random state."""
        q, v = random_states(robots, self.task.device)
        frames = [self.task.look(q, v)]
        for _ in range(2):
            q, v = move(self.task.sim, q, v, torch.zeros_like(q[:, :1]))
            frames.insert(0, self.task.look(q, v))
        return q, v, frames

    def go(self, q: Tensor, v: Tensor, frames: list[Tensor] | None = None, count: int = 1) -> None:
        """Where they came to by so many frames; the last three of these, if they are there already."""
        self.age += count
        anew = (self.age > LONGEST) | (q[:, 0].abs() > FAR) | (v.abs() > 30).any(-1)
        self.q, self.v, self.frames = q, v, frames or [self.task.look(q, v), *self.frames[:2]]
        which = anew.nonzero().squeeze(-1)
        if len(which):
            q, v, new = self._begin(len(which))
            self.q, self.v = self.q.index_copy(0, which, q), self.v.index_copy(0, which, v)
            self.frames = [x.index_copy(0, which, y) for x, y in zip(self.frames, new, strict=True)]
            self.age[which] = 0

    def up(self, count: int) -> float:
        """How many of the first are up."""
        return float((self.q[:count, 1].cos() > 0.9).float().mean())


class Film:
    """The last frames of all robots, in half precision, with the truth."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, frame: Tensor, told: Tensor, age: Tensor) -> None:
        """frame: (B, 96, 288), told: (B, 5), age: frames since each robot began, (B,)."""
        if not self.count:
            self.frames = frame.new_zeros((REMEMBERED, *frame.shape), dtype=torch.float16)
            self.told, self.age = (x.new_zeros((REMEMBERED, *x.shape)) for x in (told, age))
        row = self.count % REMEMBERED
        self.frames[row], self.told[row], self.age[row] = frame.half(), told, age
        self.count += 1

    def draw(self, number: int) -> tuple[Tensor, Tensor, Tensor]:
        """Three frames in a row (n, 3, 96, 288), the truth of the last (n, 5), and whether all are of one motion (n, 1)."""
        like: dict[str, Any] = {"device": self.age.device}
        newest = self.count - 1
        back = torch.randint(max(1, min(self.count, REMEMBERED) - 2), (number,), **like)
        robot = torch.randint(self.age.shape[1], (number,), **like)
        rows = [(newest - back - k) % REMEMBERED for k in range(3)]
        frames = torch.stack([self.frames[row, robot] for row in rows], 1).float()
        whole = (self.age[rows[0], robot] >= 2) & (newest - back >= 2)
        return frames, self.told[rows[0], robot], whole[:, None].float()


def clipped(x: Tensor, limit: float = 1.0) -> Tensor:
    """x, whose cotangent is cut down to a norm per robot on its way back."""
    if x.requires_grad:
        x.register_hook(lambda bar: bar * (limit / bar.norm(dim=-1, keepdim=True).clamp(min=1e-20)).clamp(max=1.0))
    return x
