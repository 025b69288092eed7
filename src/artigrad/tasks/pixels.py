"""Pixels: a cart learns to swing a pendulum up and to keep it there from what a camera sees (Degrave et al. 2019).

A cart of 3.375 kg on a rail, a bar of 4.2 kg, a top of 3.375 kg; pictures of 288 x 96 with edges that fade over a pixel; a
network of a million weights is told the last three frames and gives the force on the cart, 33 times a second. In three parts:

1. act: the network's hands learn what to do, told the true state, by gradients through half a second of motion and a critic
   for what comes after.
2. see: its eyes learn where things are and how fast, from pictures of random motions and of those that the network itself
   makes.
3. both: eyes and hands together, by the gradients of part 1, now through physics, camera and network.

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
from ..io.builder import ModelBuilder
from ..model.model import Model
from ..robots.inertias import box
from ..simulate.simulator import Simulator
from . import props as looks
from .experiment import Experiment, Resumable, Running, plotting

CART, BAR, TOP = 3.375, 4.2, 3.375  # kg
REACH = 0.9  # m, from the hinge to the middle of the top
FORCE = 200.0  # N
DT, HOLD = 0.01, 3  # s, and steps for which a force is held: 0.03 s a frame
AHEAD = 16  # frames that gradients go through
GAMMA = 0.99
FAR = 3.0  # m: beyond, the cart leaves the picture
SIZES = torch.tensor([1.0, 1.0, 1.0, 3.0, 6.0])  # of what eyes tell: x, sine, cosine, velocities


def cart_and_pendulum() -> Model:
    """The cart slides along x, the pendulum turns about y; q = (0, 0) has it upright."""
    b = ModelBuilder("pixels")
    b.body("cart", joint="prismatic", axis=(1.0, 0.0, 0.0), mass=CART, inertia=box(CART, 0.15, 0.15, 0.15), damping=0.5)
    mass = BAR + TOP
    com = (BAR * REACH / 2 + TOP * REACH) / mass
    inertia = np.array(box(BAR, 0.1, 0.06, 0.7)) + BAR * (REACH / 2 - com) ** 2 * np.array([1, 1, 0])
    inertia += np.array(box(TOP, 0.15, 0.15, 0.15)) + TOP * (REACH - com) ** 2 * np.array([1, 1, 0])
    hinge: dict[str, Any] = {"joint": "revolute", "axis": (0.0, 1.0, 0.0), "damping": 0.1}
    b.body("pendulum", "cart", mass=mass, com=(0.0, 0.0, com), inertia=tuple(inertia), **hinge)
    b.motor("push", "cart", gear=FORCE)
    looks.box(b, "cart", (0.12, 0.1, 0.075), rgba=looks.BLUE)
    looks.box(b, "pendulum", (0.05, 0.03, 0.4), (0.0, 0.0, 0.42), looks.DARK)
    looks.box(b, "pendulum", (0.11, 0.11, 0.11), (0.0, 0.0, REACH), looks.ORANGE)
    b.keyframe("hanging", q=[0.0, np.pi])
    return b.build()


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


def mlp(n: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n, 128), nn.ELU(), nn.Linear(128, 128), nn.ELU(), nn.Linear(128, 1))


def truth(q: Tensor, v: Tensor) -> Tensor:
    """What the eyes should tell."""
    told = torch.stack([q[..., 0], q[..., 1].sin(), q[..., 1].cos(), v[..., 0], v[..., 1]], -1)
    return told / SIZES.to(q)


def cost(q: Tensor, v: Tensor, u: Tensor) -> Tensor:
    """How far the top is from above the middle of the rail, m^2, and a little for speed there, place and force."""
    x, angle = q.unbind(-1)
    away = (x + REACH * angle.sin()).square() + (REACH * angle.cos() - REACH).square()
    calm = torch.exp(-2 * away.detach()) * v.square().sum(-1)
    return away + 0.2 * x.square() + 0.03 * calm + 0.02 * u.square().squeeze(-1)


class Pixels(Experiment):
    """Act, see, both."""

    name = "pixels"
    summary = "a cart swings its pendulum up and keeps it there, from what a camera sees (Degrave 2019)"
    parts = (2000, 1500, 150)  # updates
    robots = (512, 128, 48)
    width, height = 288, 96

    def run(self, how: Running) -> dict[str, Any]:
        self._prepare(how.device)
        out: dict[str, Any] = {
            "up": [],
            "up_at_a_tenth_of_dt": [],
            "farthest": [],
            "updates": [],
            "swing_up_seconds": [],
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
        self.eyes, self.hands, self.critic = (part.to(how.device) for part in (Eyes(), mlp(5), mlp(5)))
        self.eyes(torch.zeros(1, 3, self.height, self.width, device=how.device))
        self.target = mlp(5).to(how.device)
        self.target.load_state_dict(self.critic.state_dict())
        seeing = torch.optim.Adam(self.eyes.parameters(), 5e-4)
        acting = torch.optim.Adam([*self.hands.parameters()], 2e-3, (0.7, 0.95))
        joining = torch.optim.Adam([*self.eyes.parameters(), *self.hands.parameters()], 5e-5, (0.7, 0.95))
        judging = torch.optim.Adam(self.critic.parameters(), 1e-3)
        kept = {"eyes": self.eyes, "hands": self.hands, "critic": self.critic, "target": self.target}
        methods = {"seeing": seeing, "acting": acting, "joining": joining, "judging": judging}
        training = Resumable(how, f"pixels-{seed}", kept | methods)
        first, second, third = self.parts
        pools = [Pool(robots, how.device) for robots in self.robots]
        for k in training.iterations(first + second + third):
            if first <= k < first + second:
                seeing.param_groups[0]["lr"] = 5e-4 * max(0.05, 1 - (k - first) / second)
                off = self._see(seeing, pools[1])
                training.note(f"seed {seed} see: off by {off:.5f}, up {pools[1].up:.2f}", [off, pools[1].up])
                continue
            looking = k >= first
            acting.param_groups[0]["lr"] = 2e-3 * max(0.05, 1 - k / max(first, 1))
            pool = pools[2 if looking else 0]
            spent = self._act(joining if looking else acting, judging, pool, looking)
            training.note(
                f"seed {seed} {'both' if looking else 'act'}: cost {spent:.3f}, up {pool.up:.2f}", [spent, pool.up]
            )
        for name, dt in (("up", DT), ("up_at_a_tenth_of_dt", DT / 10)):
            up, farthest, when = self.minute(dt)
            out[name].append(round(up, 4))
            if dt == DT:
                out["farthest"].append(round(farthest, 3))
                out["swing_up_seconds"].append(when)
        out["updates"].append(len(training.record))
        out.setdefault("curves", []).append([row[1] for row in training.record[::10]])

    # -- pictures ----------------------------------------------------------------------------------------------------------
    def look(self, q: Tensor, v: Tensor) -> Tensor:
        """A frame of each robot, (B, 96, 288); computed once more on the backward pass."""

        def frame(q: Tensor, v: Tensor) -> Tensor:
            return render(self.scene, self.camera, at.outputs(self.sim, (q, v)), soft=1.0).grey - 0.85

        if torch.is_grad_enabled() and q.requires_grad:
            return checkpoint(frame, q, v, use_reentrant=False, preserve_rng_state=False)
        with torch.no_grad():
            return frame(q, v)

    def move(self, q: Tensor, v: Tensor, u: Tensor, sim: Simulator, fine: int = 1) -> tuple[Tensor, Tensor]:
        """The state one frame later."""
        states: Any = at.rollout(sim, (q, v), u[:, None], hold=HOLD * fine)
        return states.q[:, -1], states.v[:, -1]

    # -- part 2 --------------------------------------------------------------------------------------------------------------
    def _see(self, method: torch.optim.Optimizer, pool: Pool) -> float:
        """One update of the eyes: what three frames tell of the last state, in random motions and in those of the pool."""
        with torch.no_grad():
            q, v = random_states(self.robots[1], self.device, wide=True)
            frames: list[Tensor] = []
            for _ in range(3):
                frames.insert(0, self.look(q, v))
                last = truth(q, v)
                q, v = self.move(q, v, 2 * torch.rand_like(q[:, :1]) - 1, self.sim)
            mine, now = pool.begin()
            picture, fresh = self.look(mine, now), (pool.age == 0)[:, None, None]
            pool.frames = [picture, *(torch.where(fresh, picture, x) for x in (pool.frames or [picture] * 3)[:2])]
        told, shown = truth(mine, now), torch.stack(pool.frames, 1)
        seen = self.eyes(torch.cat([torch.stack(frames, 1), shown]))
        known = torch.cat([torch.ones(len(last), device=self.device), (pool.age >= 2).float()])[:, None]
        off = (known * (seen - torch.cat([last, told])).square()).mean()  # of first frames nobody can tell how fast
        method.zero_grad()
        off.backward()
        method.step()
        with torch.no_grad():  # half of them act on what they see, the others on the truth
            half = len(told) // 2
            what = torch.cat([seen[-len(told) :][:half], told[half:]]).detach()
            pool.end(*self.move(mine, now, torch.tanh(self.hands(what)), self.sim), most=230)
        return float(off.detach())

    # -- parts 1 and 3 -------------------------------------------------------------------------------------------------------
    def _act(self, method: torch.optim.Optimizer, judge: torch.optim.Optimizer, pool: Pool, looking: bool) -> float:
        """One update of the hands, with the eyes or with the truth: short of AHEAD frames, by the critic beyond."""
        q, v = pool.begin()
        frames = [self.look(*past) for past in pool.past] if looking else []
        total, costs, told = torch.zeros(len(q), device=self.device), [], []
        for k in range(AHEAD):
            told.append(truth(q, v))
            if looking:
                frames = [self.look(q, v), *frames[:2]]
            seen = self.eyes(torch.stack(frames, 1)) if looking else told[-1]
            u = torch.tanh(self.hands(seen))
            pool.past = [(q.detach(), v.detach()), pool.past[0]]
            q, v = (clipped(x) for x in self.move(q, v, u, self.sim))
            costs.append(cost(q, v, u))
            total = total + GAMMA**k * costs[-1]
        loss = total + GAMMA**AHEAD * torch.nn.functional.softplus(self.target(truth(q, v)).squeeze(-1))
        method.zero_grad()
        loss.sum().backward()
        for group in method.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], 1.0 * len(q))
        method.step()
        self._judge(judge, torch.stack(told).detach(), torch.stack(costs).detach(), truth(q, v).detach())
        pool.end(q.detach(), v.detach())
        return float(torch.stack(costs).detach().mean())

    def _judge(self, method: torch.optim.Optimizer, told: Tensor, costs: Tensor, last: Tensor) -> None:
        """The critic learns what a state costs from there on."""
        with torch.no_grad():
            ahead = torch.nn.functional.softplus(self.target(last).squeeze(-1))
            wanted: list[Tensor] = []
            for c in costs.flip(0):
                ahead = c + GAMMA * ahead
                wanted.insert(0, ahead)
            goals = torch.stack(wanted)
        for _ in range(4):
            found = torch.nn.functional.softplus(self.critic(told).squeeze(-1))
            method.zero_grad()
            torch.nn.functional.smooth_l1_loss(found, goals).backward()
            method.step()
        with torch.no_grad():
            for mine, new in zip(self.target.parameters(), self.critic.parameters(), strict=True):
                mine.lerp_(new, 0.2)

    # -- what came out -------------------------------------------------------------------------------------------------------
    @torch.no_grad()
    def minute(self, dt: float, robots: int = 4) -> tuple[float, float, list[float]]:
        """From hanging, told pictures only: how much of a minute after four seconds the pendulum is within 25 degrees of
        upright, how far the cart went, and when it was up first."""
        sim = Simulator(self.sim.model, dt=dt, dtype="f32", device=self.device)
        q = torch.tensor([[0.0, np.pi]], device=self.device).float().repeat(robots, 1)
        q[:, 1] += 0.02 * torch.arange(robots, device=self.device)
        v, path = torch.zeros_like(q), []
        frames = [self.look(q, v)] * 3
        for _ in range(round(64 / (DT * HOLD))):
            frames = [self.look(q, v), *frames[:2]]
            q, v = self.move(q, v, torch.tanh(self.hands(self.eyes(torch.stack(frames, 1)))), sim, round(DT / dt))
            path.append(q)
        where = torch.stack(path)
        up = where[..., 1].cos() > np.cos(np.radians(25.0))
        when = [round(float(x) * DT * HOLD, 2) for x in up.float().argmax(0)]
        self.path = where[:, 0].cpu().double().numpy()
        return float(up[round(4 / (DT * HOLD)) :].float().mean()), float(where[..., 0].abs().max()), when

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
            figure.savefig(files[0], dpi=110)
            plt.close(figure)
        np.save(folder / "path.npy", self.path.astype(np.float32))
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
        frames[0].save(file, save_all=True, append_images=frames[1:], duration=90, loop=0)
        return [file]


class Pool:
    """Robots that go on from where they were; those that are far away or had their time begin anew."""

    def __init__(self, robots: int, device: str):
        self.device, self.up = device, 0.0
        self.q, self.v = random_states(robots, device)
        self.age = torch.randint(0, 12, (robots,), device=device)
        self.past = [(self.q, self.v)] * 2
        self.frames: list[Tensor] = []

    def begin(self) -> tuple[Tensor, Tensor]:
        """States to go on from."""
        return self.q, self.v

    def end(self, q: Tensor, v: Tensor, most: int = 14) -> None:
        """Where they came to. most: ends after which one begins anew."""
        self.age += 1
        self.up = float((q[:, 1].cos() > 0.9).float().mean())
        anew = (self.age > most) | (q[:, 0].abs() > FAR) | (v.abs() > 30).any(-1)
        fresh = random_states(len(q), self.device)
        self.q, self.v = (torch.where(anew[:, None], new, x) for new, x in zip(fresh, (q, v), strict=True))
        self.age = torch.where(anew, 0, self.age)
        self.past = [
            (torch.where(anew[:, None], self.q, a), torch.where(anew[:, None], self.v, b)) for a, b in self.past
        ]


def random_states(robots: int, device: str, *, wide: bool = False) -> tuple[Tensor, Tensor]:
    """Half of them hanging, nearly at rest; a quarter upright, nearly; the others anyhow. wide: all anyhow."""
    q = torch.stack([torch.randn(robots), np.pi * (2 * torch.rand(robots) - 1)], -1)
    v = torch.randn(robots, 2) * torch.tensor([1.5, 4.0])
    if not wide:
        half, quarter = robots // 2, robots // 4
        q[:half, 1] = np.pi + 0.2 * torch.randn(half)
        q[half : half + quarter, 1] = 0.3 * torch.randn(quarter)
        q[: half + quarter, 0] *= 0.3
        v[: half + quarter] *= 0.2
    return q.to(device), v.to(device)


def clipped(x: Tensor, limit: float = 10.0) -> Tensor:
    """x, whose cotangent is cut down to a norm per robot on its way back."""
    if x.requires_grad:
        x.register_hook(lambda bar: bar * (limit / bar.norm(dim=-1, keepdim=True).clamp(min=1e-20)).clamp(max=1.0))
    return x
