"""Pixels: a cart swings a pendulum up and balances it from camera images (Degrave et al. 2019).

A cart of 3.375 kg on a rail, a bar of 4.2 kg, a top of 3.375 kg; images of 288 x 96 with edges blended over a pixel; a
network of a million weights maps the last three frames to the force on the cart, 33 times per second. The training has
three parts:

1. act: the policy learns from plans (`swing_up.py`) with the true state as input. 2. see: the encoder learns positions and
velocities from images of rollouts of the network: half of the robots act on the encoder's output, others on the true state
or at random. The loss includes the resulting error of the policy. 3. both: encoder and policy are trained together, so that
rollouts with the encoder stay close to those with the true state, by gradients through physics, camera and network.

The evaluation uses images only: the fraction of a minute, after the first four seconds, in which the pendulum is up,
starting from hanging.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import artigrad.torch as at
from artigrad import Simulator
from artigrad.camera import Camera, RayScene, render
from artigrad.files import replacing, write_array
from artigrad.tasks.figures import plotting, save_figure

from .experiment import Experiment, Resumable, RunOptions
from .swing_up import DT, HOLD, PlanDataset, SwingUpPolicy, cart_and_pendulum, move, random_states, state_features

AHEAD = 12  # frames that gradients go through
FAR = 3.0  # largest distance of the cart in the image, m
BUFFER_FRAMES = 400  # frames of each robot that eyes learn from
MAX_AGE = 200  # frames after which a robot begins reset
RATE = 1e-3  # initial learning rate of the encoder


class ImageEncoder(nn.Module):
    """Convolutional network from three frames (B, 3, 96, 288) to scaled x, sine, cosine, velocities (B, 5)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n, m, stride in ((3, 16, 4), (16, 32, 2), (32, 32, 2)):
            layers += [nn.Conv2d(n, m, 5, stride, 2), nn.ELU()]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(300), nn.ELU(), nn.Linear(300, 5))

    def forward(self, frames: Tensor) -> Tensor:
        now, before, first = frames.unbind(1)
        return self.layers(torch.stack([now, 5 * (now - before), 5 * (before - first)], 1))


class Pixels(Experiment):
    """Training of policy and encoder in three parts."""

    name = "pixels"
    summary = "a cart swings its pendulum up and balances it from camera images (Degrave 2019)"
    parts = (5, 2500, 60)  # rounds of plans, updates, updates
    robots = (128, 128, 32)
    policy_updates = 1500  # updates of the hands in a round
    batch, updates_a_frame = 256, 2  # of the eyes
    width, height = 288, 96

    def run(self, how: RunOptions) -> dict[str, Any]:
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
        out["weights"] = sum(w.numel() for part in (self.encoder, self.policy) for w in part.parameters())
        return out

    def _prepare(self, device: str) -> None:
        """Create simulator, camera and scene."""
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

    def _train(self, how: RunOptions, seed: int, out: dict[str, Any]) -> None:
        self.encoder, self.policy = ImageEncoder().to(how.device), SwingUpPolicy().to(how.device)
        plans = PlanDataset(self.robots[0], updates=self.policy_updates)
        self.encoder(torch.zeros(1, 3, self.height, self.width, device=how.device))
        encoder_optimizer = torch.optim.Adam(self.encoder.parameters(), RATE)
        joint_optimizer = torch.optim.Adam([*self.encoder.parameters(), *self.policy.parameters()], 2e-5)
        modules = {
            "encoder": self.encoder,
            "policy": self.policy,
            "plans": plans,
            "encoder_optimizer": encoder_optimizer,
            "joint_optimizer": joint_optimizer,
        }
        training = Resumable(how, f"pixels-{seed}", modules)
        first, second, third = self.parts
        pool, few, film = RobotPool(self, self.robots[1]), RobotPool(self, self.robots[2]), FrameBuffer()
        for k in training.iterations(first + second + third):
            if k < first:
                part, (off, up) = "act", plans.round(self.policy)
            elif k < first + second:
                encoder_optimizer.param_groups[0]["lr"] = RATE * (1 - 0.98 * (k - first) / second)
                part, (off, up) = "see", self._train_encoder(encoder_optimizer, pool, film)
            else:
                part, (off, up) = "both", self._train_jointly(joint_optimizer, few)
            training.note(f"seed {seed} {part}: off by {off:.5f}, up {up:.2f}", [off, up])
        for name, dt in (("up", DT), ("up_at_a_tenth_of_dt", DT / 10)):
            up, farthest, when = self.evaluate(dt)
            out[name].append(round(up, 4))
            if dt == DT:
                out["farthest"].append(round(farthest, 3))
                out["swing_up_seconds"].append(when)
        out["updates"].append(len(training.record))
        out["curves"].append([row[1] for row in training.record[::10]])

    def images(self, q: Tensor, v: Tensor) -> Tensor:
        """Return an image of each robot, (B, 96, 288); recomputed in the backward pass."""

        def frame(q: Tensor, v: Tensor) -> Tensor:
            return render(self.scene, self.camera, at.outputs(self.sim, (q, v)), soft=1.0).gray - 0.85

        if torch.is_grad_enabled() and q.requires_grad:
            return checkpoint(frame, q, v, use_reentrant=False, preserve_rng_state=False)
        with torch.no_grad():
            return frame(q, v)

    # -- part 2 --------------------------------------------------------------------------------------------------------------
    def _train_encoder(self, method: torch.optim.Optimizer, pool: RobotPool, film: FrameBuffer) -> tuple[float, float]:
        """Advance every robot by a frame, then train the encoder on stored frames.

        Returns:
          Error of the encoder, and the fraction of the robots acting on its output that are up.
        """
        film.add(pool.frames[0], state_features(pool.q, pool.v), pool.age)
        half, quarter = len(pool.q) // 2, len(pool.q) // 4
        with torch.no_grad():
            seen = self.encoder(torch.stack(pool.frames, 1)[:half])
            u = self.policy(torch.cat([seen, state_features(pool.q, pool.v)[half:]]))
            u[-quarter:] = 2 * torch.rand_like(u[-quarter:]) - 1
            pool.advance(*move(self.sim, pool.q, pool.v, u))
        off = torch.zeros(())
        for _ in range(self.updates_a_frame):
            frames, features, valid = film.sample(self.batch)
            seen = self.encoder(frames)
            off = (valid * (seen - features).square()).mean()
            policy_error = (valid * (self.policy(seen) - self.policy(features)).square()).mean()
            method.zero_grad()
            (off + 0.1 * policy_error).backward()
            method.step()
        return float(off.detach()), pool.up(half)

    # -- part 3 --------------------------------------------------------------------------------------------------------------
    def _train_jointly(self, method: torch.optim.Optimizer, pool: RobotPool) -> tuple[float, float]:
        """Advance robots by AHEAD frames, with the true state and with the encoder, and minimize the difference.

        Returns:
          Loss per robot, and the fraction of robots that are up.
        """
        with torch.no_grad():
            q, v, targets = pool.q, pool.v, []
            for _ in range(AHEAD):
                q, v = move(self.sim, q, v, self.policy(state_features(q, v)))
                targets.append(state_features(q, v))
        q, v, frames, off = pool.q, pool.v, pool.frames, torch.zeros((), device=self.device)
        for goal in targets:
            seen, features = self.encoder(torch.stack(frames, 1)), state_features(q, v)
            q, v = (clipped(x) for x in move(self.sim, q, v, self.policy(seen)))
            off = off + ((state_features(q, v) - goal).square() + (seen - features).square()).sum() / AHEAD
            frames = [self.images(q, v), *frames[:2]]
        method.zero_grad()
        off.backward()
        torch.nn.utils.clip_grad_norm_([w for group in method.param_groups for w in group["params"]], 1.0 * len(q))
        method.step()
        pool.advance(q.detach(), v.detach(), [x.detach() for x in frames], AHEAD)
        return float(off.detach()) / len(q), pool.up(len(q))

    # -- evaluation ----------------------------------------------------------------------------------------------------------
    @torch.no_grad()
    def evaluate(self, dt: float, robots: int = 4) -> tuple[float, float, list[float]]:
        """Evaluate from hanging with images only. A robot that leaves the image is reset to hanging.

        Returns:
          Fraction of a minute, after four seconds, with the pendulum within 25 degrees of upright; largest distance of the
          cart; times at which pendulums were first up, s.
        """
        sim = Simulator(self.sim.model, dt=dt, dtype="f32", device=self.device)
        q = self.hanging(robots)
        v, lost, path = torch.zeros_like(q), torch.zeros_like(q[:, 0], dtype=torch.bool), []
        frames = [self.images(q, v)] * 3
        for _ in range(round(64 / (DT * HOLD))):
            frames = [self.images(q, v), *frames[:2]]
            q, v = move(sim, q, v, self.policy(self.encoder(torch.stack(frames, 1))), round(DT / dt))
            lost = lost | (q[:, 0].abs() > 2 * FAR) | (v.abs() > 100).any(-1)
            q, v = torch.where(lost[:, None], self.hanging(robots), q), torch.where(lost[:, None], 0.0, v)
            path.append(q)
        where = torch.stack(path)
        up = where[..., 1].cos() > np.cos(np.radians(25.0))
        when = [round(float(x) * DT * HOLD, 2) for x in up.float().argmax(0)]
        self.path = where[:, 0].cpu().double().numpy()
        return float(up[round(4 / (DT * HOLD)) :].float().mean()), float(where[..., 0].abs().max()), when

    def hanging(self, robots: int) -> Tensor:
        """Return hanging initial positions with small offsets, (B, 2)."""
        offset = 0.02 * torch.arange(robots, device=self.device)
        return torch.stack([torch.zeros_like(offset), np.pi + offset], -1)

    def draw(self, numbers: dict[str, Any], folder: Path) -> list[Path]:
        files = []
        plt = plotting()
        if plt is not None:
            figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
            for curve in numbers["curves"]:
                axis.plot(10 * np.arange(len(curve)), curve, color="C0", alpha=0.5)
            for end in np.cumsum(self.parts[:2]):
                axis.axvline(end, color="0.5", ls=":")
            axis.set(xlabel="updates: act, see, both", ylabel="fraction of robots that are up")
            files.append(folder / "curves.png")
            save_figure(figure, files[0])
            plt.close(figure)
        write_array(folder / "path.npy", self.path.astype(np.float32))
        return files + self.film(self.path[:300:3], folder)

    @torch.no_grad()
    def film(self, q: np.ndarray, folder: Path) -> list[Path]:
        """Save every third frame that the network received as a GIF."""
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


class RobotPool:
    """Robots that continue from step to step, each with its last three frames. Those that left the range or reached the
    maximum age are reset."""

    def __init__(self, task: Pixels, robots: int):
        self.task = task
        self.age = torch.randint(2, MAX_AGE, (robots,), device=task.device)  # frames since it began
        self.q, self.v, self.frames = self._begin(robots)

    def _begin(self, robots: int) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return new robots, two frames after a random state."""
        q, v = random_states(robots, self.task.device)
        frames = [self.task.images(q, v)]
        for _ in range(2):
            q, v = move(self.task.sim, q, v, torch.zeros_like(q[:, :1]))
            frames.insert(0, self.task.images(q, v))
        return q, v, frames

    def advance(self, q: Tensor, v: Tensor, frames: list[Tensor] | None = None, count: int = 1) -> None:
        """Store the states reached after `count` frames, and the last three frames if they are rendered already."""
        self.age += count
        reset = (self.age > MAX_AGE) | (q[:, 0].abs() > FAR) | (v.abs() > 30).any(-1)
        self.q, self.v, self.frames = q, v, frames or [self.task.images(q, v), *self.frames[:2]]
        which = reset.nonzero().squeeze(-1)
        if len(which):
            q, v, new = self._begin(len(which))
            self.q, self.v = self.q.index_copy(0, which, q), self.v.index_copy(0, which, v)
            self.frames = [x.index_copy(0, which, y) for x, y in zip(self.frames, new, strict=True)]
            self.age[which] = 0

    def up(self, count: int) -> float:
        """Return the fraction of the first `count` robots that are up."""
        return float((self.q[:count, 1].cos() > 0.9).float().mean())


class FrameBuffer:
    """The last frames of all robots, in half precision, with the true features."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, frame: Tensor, features: Tensor, age: Tensor) -> None:
        """Add frames (B, 96, 288), features (B, 5), and ages, frames since each robot was reset, (B,)."""
        if not self.count:
            self.frames = frame.new_zeros((BUFFER_FRAMES, *frame.shape), dtype=torch.float16)
            self.features, self.age = (x.new_zeros((BUFFER_FRAMES, *x.shape)) for x in (features, age))
        row = self.count % BUFFER_FRAMES
        self.frames[row], self.features[row], self.age[row] = frame.half(), features, age
        self.count += 1

    def sample(self, number: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return three consecutive frames (n, 3, 96, 288), features of the last (n, 5), and 1 if all are of one trajectory,
        else 0, (n, 1)."""
        like: dict[str, Any] = {"device": self.age.device}
        newest = self.count - 1
        back = torch.randint(max(1, min(self.count, BUFFER_FRAMES) - 2), (number,), **like)
        robot = torch.randint(self.age.shape[1], (number,), **like)
        rows = [(newest - back - k) % BUFFER_FRAMES for k in range(3)]
        frames = torch.stack([self.frames[row, robot] for row in rows], 1).float()
        whole = (self.age[rows[0], robot] >= 2) & (newest - back >= 2)
        return frames, self.features[rows[0], robot], whole[:, None].float()


def clipped(x: Tensor, limit: float = 1.0) -> Tensor:
    """Return x; the backward pass clips its cotangent to a norm per robot."""
    if x.requires_grad:
        x.register_hook(lambda bar: bar * (limit / bar.norm(dim=-1, keepdim=True).clamp(min=1e-20)).clamp(max=1.0))
    return x
