"""Reach: a network moves the tip of an arm to a point, by gradients through eight seconds of motion (Degrave et al. 2019).

An arm of 1 m and 32 kg on two joints of two axes each, driven by servo motors (30 1/s, 45 degrees per second). `reach`: one
point; the input of the network is the distance of the tip at every step. `reach-any`: random points; the input is the
position of the point.

The paper's motors have 30 N m. Under gravity they cannot hold the arm, which needs 157 N m when extended. There are
therefore two scenes: the paper's motors without gravity, and gravity with motors of 200 N m; the results include the torque
to hold the arm at the point.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from artigrad import GradientOptions, Model, ModelBuilder, Simulator
from artigrad.files import write_array
from artigrad.robots.inertias import rod
from artigrad.tasks import props as looks
from artigrad.tasks.figures import plotting, save_figure

from .experiment import Experiment, Resumable, RunOptions, save_video

LINK, MASS = 0.5, 16.0  # m and kg, of each of the two
GAIN, SPEED = 30.0, np.radians(45.0)  # 1/s, rad/s
SCENES = {"paper": (0.0, 30.0), "gravity": (9.81, 200.0)}  # m/s^2, N m
DT, STEPS = 0.01, 800
POINT = (0.5, 0.5, 0.5)
RANGE = 2.5  # largest target angle, rad


def arm(gravity: float, torque: float, target: Any = None) -> Model:
    """Build two links, upright at q = 0, each on a joint about x and y. Site `tip`."""
    b = ModelBuilder("arm", gravity=(0.0, 0.0, -gravity))
    middle: dict[str, Any] = {"mass": MASS, "com": (0.0, 0.0, LINK / 2), "inertia": rod(MASS, LINK, 0.05)}
    b.add_universal("upper", **middle)
    b.add_universal("fore", "upper", position=(0.0, 0.0, LINK), **middle)
    b.add_site("tip", "fore", position=(0.0, 0.0, LINK))
    for joint in ("upper:1", "upper", "fore:1", "fore"):
        b.add_servo_motor(joint, joint, gain=GAIN, max_force=torque, max_velocity=SPEED)
    looks.stick(b, "upper", (0.0, 0.0, 0.0), (0.0, 0.0, LINK), 0.05)
    looks.stick(b, "fore", (0.0, 0.0, 0.0), (0.0, 0.0, LINK), 0.04, looks.BLUE)
    if target is not None:
        looks.ball(b, "world", 0.05, target, looks.GOAL)
    return b.build()


def holding_torque(target: Any) -> float:
    """Return the smallest maximum joint torque with which the arm holds its tip at a point under gravity, N m."""
    sim = Simulator(arm(9.81, 1e4), dt=DT)
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, size=(4000, 4))
    for _ in range(60):  # damped least squares towards the point
        states = type(sim.reset())(q, np.zeros_like(q))
        off = sim.sites(states)[:, 0] - np.asarray(target)
        h = 1e-6
        J = np.stack([(sim.sites(type(states)(q + h * e, states.v))[:, 0] - off - target) / h for e in np.eye(4)], -1)
        q = q - np.einsum("bki,bk->bi", J, np.linalg.solve(J @ J.mT + 1e-3 * np.eye(3), off[..., None])[..., 0])
    states = type(states)(q, np.zeros_like(q))
    there = np.linalg.norm(sim.sites(states)[:, 0] - target, axis=1) < 1e-3
    held = np.abs(sim.inverse_dynamics(states, np.zeros_like(q))).max(1)
    return float(held[there].min())


class Reach(Experiment):
    """One point: a network 1-128-128-4 on the distance; the loss is the distance, averaged over time."""

    name = "reach"
    summary = "an arm with servo motors learns to touch a point (Degrave 2019)"
    sizes: tuple[int, ...] = (1, 128, 128, 4)
    batch, updates, rate = 1, 150, 1e-3
    scenes = tuple(SCENES)
    _recorded: Any = None  # recorded loop on a GPU

    def run(self, how: RunOptions) -> dict[str, Any]:
        numbers: dict[str, Any] = {"holding_torque_under_gravity": round(holding_torque(np.array(POINT)), 1)}
        for k, scene in enumerate(self.scenes):  # they share the time limit
            part = replace(how, seconds=how.seconds * (k + 1) / len(self.scenes))
            numbers[scene] = self._scene(part, scene)
        return numbers

    def _scene(self, how: RunOptions, scene: str) -> dict[str, Any]:
        import torch

        from .networks import PerSeedMLP, clip_each

        dtype = "f32" if self.batch > 1 else "f64"
        sim = Simulator(arm(*SCENES[scene]), dt=DT, dtype=dtype, device=how.device)
        bank = PerSeedMLP(self.sizes, how.seeds, shifted=self.batch == 1, first_seed=how.first_seed).to(
            how.device, torch.float64 if dtype == "f64" else torch.float32
        )
        method = torch.optim.Adam(bank.parameters(), lr=self.rate)
        training = Resumable(how, f"{self.name}-{scene}", {"bank": bank, "method": method})
        for k in training.iterations(self.updates):
            method.param_groups[0]["lr"] = self.rate * self.slowing(k)
            targets = self.targets(k, how.seeds, bank.weights[0])
            loss, last = self.distances(sim, bank, targets)
            method.zero_grad()
            loss.sum().backward()
            clip_each(bank, 1.0)
            method.step()
            training.note(f"{scene}: {100 * float(last.median()):.1f} cm", loss.detach().cpu(), last.cpu())
        record = np.array(training.record).reshape(len(training.record), 2, how.seeds)
        out: dict[str, Any] = {
            "weights": bank.per_seed,
            "updates": len(record),
            "mean_distance": record[:, 0].tolist(),
            "last_distance": record[:, 1].tolist(),
        }
        with torch.no_grad():
            for name, dt in (("test", DT), ("test_at_a_tenth_of_dt", DT / 10)):
                finer = Simulator(sim.model, dt=dt, dtype=dtype, device=how.device)
                found = self.distances(finer, bank, self.targets(10**6, how.seeds, bank.weights[0]), round(DT / dt))[1]
                out[name] = [round(float(x), 5) for x in found]
        return out

    def slowing(self, k: int) -> float:
        """Return the factor on the learning rate in iteration k: single large updates disturb an arm that is close."""
        return 1 / (1 + k / 10)

    def targets(self, k: int, seeds: int, like: Any) -> Any:
        """Return the points (seeds, batch, 3) of iteration k."""
        return like.new_tensor(POINT).expand(seeds, self.batch, 3)

    def distances(self, sim: Simulator, bank: Any, targets: Any, fine: int = 1) -> tuple[Any, Any]:
        """Return the mean distances of the tip from its point over eight seconds and over the last one, (seeds,) each.
        `fine` is the factor by which steps are shorter."""
        import torch

        import artigrad.torch as at

        q = targets.new_zeros(*targets.shape[:2], 4)
        policy, options = _policy(bank, targets), GradientOptions(decay=0.95 ** (1 / fine))
        if sim.checks.on_host or not torch.is_grad_enabled():
            path = at.closed_loop(sim, policy, (q, q), STEPS * fine, gradient_options=options).q
        else:
            if self._recorded is None or self._recorded.sim is not sim:
                self._recorded = at.RecordedLoop(sim, policy, len(q.flatten(0, 1)), STEPS, gradient_options=options)
            path = self._recorded((q.flatten(0, 1),) * 2).q.unflatten(0, q.shape[:2])
        return _means(tip_of(path[..., fine::fine, :]), targets)

    def draw(self, numbers: dict[str, Any], folder: Path) -> list[Path]:
        files = []
        plt = plotting()
        if plt is not None:
            figure, axes = plt.subplots(
                1, len(self.scenes), figsize=(5 * len(self.scenes), 3.6), layout="constrained", sharey=True
            )
            for axis, scene in zip(np.atleast_1d(axes), self.scenes, strict=True):
                curve = 100 * np.array(numbers[scene]["last_distance"]).reshape(numbers[scene]["updates"], -1)
                axis.plot(curve, color="C0", alpha=0.4, lw=1)
                axis.plot(np.median(curve, axis=1) if len(curve) else [], color="C0", lw=2)
                for goal in (4, 1) if self.batch == 1 else (10, 5):
                    axis.axhline(goal, color="0.5", ls=":", lw=1)
                title = "no gravity, 30 N m" if scene == "paper" else "gravity, 200 N m"
                axis.set(title=title, xlabel="updates", yscale="log")
                axis.grid(alpha=0.2)
            np.atleast_1d(axes)[0].set_ylabel("distance in the last second / cm")
            files.append(folder / "curves.png")
            save_figure(figure, files[0])
            plt.close(figure)
        return files + self._film(folder)

    def _film(self, folder: Path) -> list[Path]:
        """Save a video of the first seed's network, and its controls for other renderers."""
        import torch

        from .networks import PerSeedMLP

        scene, file = self.scenes[-1], folder / "controls.npy"
        targets = self.targets(7, 1, torch.zeros(1, dtype=torch.float64))[:1, :1]
        sim = Simulator(arm(*SCENES[scene], tuple(targets[0, 0].tolist())), dt=DT)
        trained = folder / f"{self.name}-{scene}.pt"
        if trained.exists():
            kept = torch.load(trained, map_location="cpu", weights_only=True)["bank"]
            bank = PerSeedMLP(self.sizes, 1).double()
            bank.load_state_dict({key: x[:1] for key, x in kept.items()})
            with torch.no_grad():
                write_array(file, self.controls(sim, bank, targets)[0, 0].numpy().astype(np.float32))
        return save_video(sim.rollout(sim.reset(), np.load(file).astype(float)), folder)

    def controls(self, sim: Simulator, bank: Any, targets: Any) -> Any:
        """Return the controls of all steps, (seeds, batch, steps, 4)."""
        import artigrad.torch as at

        q = targets.new_zeros(*targets.shape[:2], 4)
        return at.closed_loop(sim, _policy(bank, targets), (q, q), STEPS).u


class ReachAny(Reach):
    """Random points: a network 3-1024-1024-1024-4 on the position of the point; batches of 128."""

    name = "reach-any"
    summary = "one network for an arm learns to touch any point (Degrave 2019)"
    sizes = (3, 1024, 1024, 1024, 4)
    batch, updates, rate = 128, 2563, 1e-4

    def slowing(self, k: int) -> float:
        return 1.0

    def targets(self, k: int, seeds: int, like: Any) -> Any:
        """Return points within reach, 0.3 to 0.9 m away, with positive x and above the base."""
        rng = np.random.default_rng([k, 1])
        away, z = rng.uniform(0.3, 0.9, (seeds, self.batch)), rng.uniform(0.0, 0.9, (seeds, self.batch))
        angle = rng.uniform(-np.pi / 2, np.pi / 2, (seeds, self.batch))
        flat = np.sqrt(1 - z**2)
        return like.new_tensor(np.stack([away * flat * np.cos(angle), away * flat * np.sin(angle), away * z], -1))

    def distances(self, sim: Simulator, bank: Any, targets: Any, fine: int = 1) -> tuple[Any, Any]:
        import artigrad.torch as at

        u = (RANGE * bank(targets).tanh())[..., None, :].expand(*targets.shape[:2], STEPS * fine, 4)
        q = targets.new_zeros(*targets.shape[:2], 4)
        states = at.rollout(sim, (q, q), u)
        return _means(at.sites(sim, (states.q[..., fine::fine, :], states.v[..., fine::fine, :]))[..., 0, :], targets)

    def controls(self, sim: Simulator, bank: Any, targets: Any) -> Any:
        return (RANGE * bank(targets).tanh())[..., None, :].expand(*targets.shape[:2], STEPS, 4)


def tip_of(q: Any) -> Any:
    """Return tip positions (..., 3) at angles (..., 4), tensors; equal to `artigrad.torch.sites`, but with less overhead in
    a loop of 800 steps."""
    import torch

    s, c = q.sin().unbind(-1), q.cos().unbind(-1)
    x, y, z = LINK * s[3], -LINK * s[2] * c[3], LINK * (1 + c[2] * c[3])
    x, z = c[1] * x + s[1] * z, c[1] * z - s[1] * x
    return torch.stack([x, c[0] * y - s[0] * z, s[0] * y + c[0] * z], -1)


def _policy(bank: Any, targets: Any) -> Any:
    """Return the policy: target angles of the servos from the distance of the tip."""
    from torch import nn

    class Told(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bank = bank

        def forward(self, q: Any, v: Any, t: int) -> Any:
            away = tip_of(q.reshape(*targets.shape[:2], 4)) - targets
            angles = self.bank((away.square().sum(-1, keepdim=True) + 1e-12).sqrt())
            return (RANGE * (angles / RANGE).tanh()).reshape(q.shape)

    return Told()


def _means(tip: Any, targets: Any) -> tuple[Any, Any]:
    """Return the means of the distance over all steps and over those of the last second, (seeds,) each."""
    away = ((tip - targets[..., None, :]).square().sum(-1) + 1e-12).sqrt()
    return away.mean((1, 2)), away[..., -round(1 / DT) :].detach().mean((1, 2))
