"""Gait: a quadruped learns to trot by gradients through ten seconds of motion with contact (Degrave et al. 2019).

28.7 kg on four legs of two joints, driven by servo motors; a network of sine and cosine of 1.5 Hz returns their angles. The
paper's motors have 4 N m. To determine if a robot of this weight can walk with these, the cross-entropy method first
searches sinusoids (mean, amplitude and phase for each joint) with 20,000 rollouts; then with stronger motors, until there
is a gait.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from artigrad import GradientOptions, Model, ModelBuilder, Simulator, State
from artigrad.files import write_array, write_text
from artigrad.robots.inertias import box, rod, sphere
from artigrad.tasks import props as looks
from artigrad.tasks.figures import plotting, save_figure

from .experiment import Experiment, Resumable, RunOptions, save_video

TORSO, FEMUR, TIBIA, FOOT = 21.0, 1.0, 0.7, 0.225  # kg: 28.7 in all
LEGS = {"fl": (0.3, 0.2), "fr": (0.3, -0.2), "rl": (-0.3, 0.2), "rr": (-0.3, -0.2)}  # m, hips
THIGH, SHANK, RADIUS = 0.2, 0.15, 0.05  # m
BEND = 0.6  # rad, of hips at home; knees twice as much the other way
DT, SECONDS, RATE = 0.01, 10.0, 1.5  # s, s, Hz
GAIN, SPEED = 30.0, 2 * np.pi  # 1/s, rad/s, of the motors
TORQUES = (4.0, 8.0, 12.0, 16.0, 24.0, 32.0)  # N m
STRONG = 24.0  # torque of motors that carry the robot easily, N m
WALKS = 0.3  # smallest velocity of a gait, m/s
# a trot made by hand, as weights of sine and cosine (2, 8): hips swing, knees an eighth of a turn later, diagonal legs together
TROT = np.repeat([1.0, -1.0, -1.0, 1.0], 2) * np.tile(
    [[0.5, 0.6 * np.cos(np.pi / 4)], [0.0, 0.6 * np.sin(np.pi / 4)]], 4
)
HEIGHT = 0.12  # height of a torso on the floor, m


def quadruped(torque: float) -> Model:
    """Build a torso with four legs of two hinges about y, spherical feet, and a floor."""
    b = ModelBuilder("gait")
    height = THIGH * np.cos(BEND) + SHANK * np.cos(BEND) + RADIUS
    b.add_body("torso", joint="free", mass=TORSO, inertia=box(TORSO, 0.7, 0.3, 0.1), position=(0.0, 0.0, height))
    b.add_box("torso", (0.35, 0.15, 0.05), name="torso", friction=0.5, group=1, touches=2)
    looks.box(b, "torso", (0.35, 0.15, 0.05), (0.0, 0.0, 0.0), looks.ORANGE)
    for leg, (x, y) in LEGS.items():
        hip, knee = f"{leg}_hip", f"{leg}_knee"
        femur: dict[str, Any] = {"mass": FEMUR, "com": (0.0, 0.0, -THIGH / 2), "inertia": rod(FEMUR, THIGH, 0.03)}
        b.add_body(hip, "torso", joint="revolute", axis=(0.0, 1.0, 0.0), position=(x, y, 0.0), **femur)
        tibia: dict[str, Any] = {"mass": TIBIA, "com": (0.0, 0.0, -SHANK / 2), "inertia": rod(TIBIA, SHANK, 0.02)}
        b.add_body(knee, hip, joint="revolute", axis=(0.0, 1.0, 0.0), position=(0.0, 0.0, -THIGH), **tibia)
        b.add_body(f"{leg}_foot", knee, position=(0.0, 0.0, -SHANK), mass=FOOT, inertia=sphere(FOOT, RADIUS))
        b.add_sphere(f"{leg}_foot", RADIUS, name=f"{leg}_foot", friction=0.5, group=1, touches=2)
        looks.stick(b, hip, (0.0, 0.0, 0.0), (0.0, 0.0, -THIGH), 0.03)
        looks.stick(b, knee, (0.0, 0.0, 0.0), (0.0, 0.0, -SHANK), 0.025, looks.BLUE)
        looks.ball(b, f"{leg}_foot", RADIUS, rgba=looks.DARK)
        for joint in (hip, knee):
            b.add_servo_motor(joint, joint, gain=GAIN, max_force=torque, max_velocity=SPEED)
    b.add_plane(name="floor", friction=0.5, group=2, touches=1)
    looks.floor(b, 0.0)
    b.add_keyframe("home", q=[0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0, *[BEND, -2 * BEND] * 4])
    return b.build()


def walked(sim: Simulator, q: np.ndarray) -> np.ndarray:
    """Return the mean velocity along x of trajectories q (B, T+1, nq), m/s; 0 if the torso touched the floor or turned
    over."""
    seconds = (q.shape[1] - 1) * sim.options.dt
    return np.where(upright(q).all(1), (q[:, -1, 0] - q[:, 0, 0]) / seconds, 0.0)


def upright(q: np.ndarray) -> np.ndarray:
    """Return True where the torso is above the floor and not turned over, (B, T+1)."""
    return (q[..., 2] > HEIGHT) & (q[..., 4] ** 2 + q[..., 5] ** 2 < 0.25)


def unsafe(q: Any) -> Any:
    """Return a penalty (B, T+1) on low or tilted torsos: zero for a walk, more than the gain of a fall."""
    low = (2 * HEIGHT - q[..., 2]).clamp(min=0.0) / HEIGHT
    return 2 * low.square() + 4 * (q[..., 4].square() + q[..., 5].square())


# -- is there a gait? ----------------------------------------------------------------------------------------------------
def sinusoids(x: np.ndarray, steps: int, dt: float) -> np.ndarray:
    """Return angles (B, steps, 8) for mean, amplitude, sine and cosine of the phase of each joint, and a frequency, Hz."""
    rate = np.clip(RATE + x[:, -1:], 0.5, 4.0)
    middle, size, s, c = np.moveaxis(x[:, :-1].reshape(len(x), 8, 4), 2, 0)
    phase = 2 * np.pi * rate * np.arange(steps) * dt
    wave = np.sin(phase[:, :, None] + np.arctan2(s, c)[:, None])
    return np.tile([BEND, -2 * BEND], 4) + 0.3 * middle[:, None] + 0.4 * size[:, None] * wave


def search(torque: float, motions: int, how: RunOptions, *, seed: int = 0, batch: int = 500) -> dict[str, Any]:
    """Search the fastest walk by the cross-entropy method with a number of rollouts."""
    sim = Simulator(quadruped(torque), dt=DT)
    rng, steps = np.random.default_rng(seed), round(SECONDS / DT)
    mean, spread = np.zeros(33), np.ones(33)
    mean[1:-1:4], mean[2:-1:4] = 0.5, np.repeat([1.0, -1.0, -1.0, 1.0], 2)  # initial guess: a trot
    best, speed, curve = mean, 0.0, []
    start = sim.reset(batch=batch)
    for k in range(motions // batch):
        x = mean + spread * rng.normal(size=(batch, 33))
        traj = sim.rollout(start, sinusoids(x, steps, DT))
        found = walked(sim, traj.q)
        order = np.argsort(-found + (~upright(traj.q)).mean(1))  # among falls, later ones first
        elite = x[order[: batch // 10]]
        first = int(found.argmax())
        if found[first] > speed:
            best, speed = x[first], float(found[first])
        mean, spread = elite.mean(0), np.maximum(elite.std(0), 0.05)
        curve.append(round(speed, 4))
        how.watch((k + 1) * batch, motions, f"{torque:g} N m: {speed:.2f} m/s")
    fine = Simulator(quadruped(torque), dt=DT / 10)
    again = fine.rollout(fine.reset(batch=1), np.repeat(sinusoids(best[None], steps, DT), 10, 1))
    return {
        "torque": torque,
        "motions": motions,
        "speed": round(speed, 4),
        "speed_at_a_tenth_of_dt": round(float(walked(fine, again.q)[0]), 4),
        "curve": curve,
        "x": best.tolist(),
    }


# -- by gradients --------------------------------------------------------------------------------------------------------
class Gait(Experiment):
    """A network 2-128-128-8 with a skip connection on sine and cosine; mean velocity over ten seconds, by Adam, from a
    hand-made trot. Learning rates are small and the best evaluation is kept: the clipped gradient through this much contact
    is useful for a short time only."""

    name = "gait"
    summary = "a quadruped learns to trot; first, whether its motors can at all (Degrave 2019)"
    updates, rate, motions = 500, 2.5e-5, 20_000
    decay, clip = 0.98, 1.0

    def run(self, how: RunOptions) -> dict[str, Any]:
        scan = self._scan(how)
        enough = scan[-1]["torque"]
        out: dict[str, Any] = {"scan": scan, "least_torque_with_a_gait": enough}
        for torque in dict.fromkeys((TORQUES[0], enough, STRONG)):
            out[f"{torque:g} N m"] = self._train(how, torque)
        return out

    def _scan(self, how: RunOptions) -> list[dict[str, Any]]:
        """Return the results of the search for increasing torques until there is a gait; saved for resumption."""
        file, motions = how.folder / "scan.json", self.motions if how.iterations is None else 20 * how.iterations
        scan: list[dict[str, Any]] = json.loads(file.read_text()) if how.resume and file.exists() else []
        for torque in TORQUES[len(scan) :]:
            if scan and scan[-1]["speed_at_a_tenth_of_dt"] >= WALKS:
                break
            scan.append(search(torque, motions, how, batch=min(500, motions)))
            write_text(file, json.dumps(scan))
        return scan

    def _train(self, how: RunOptions, torque: float) -> dict[str, Any]:
        import torch

        import artigrad.torch as at

        from .networks import PerSeedMLP, clip_each

        sim = Simulator(quadruped(torque), dt=DT, device=how.device)
        steps = round(SECONDS / DT)
        bank = PerSeedMLP((2, 128, 128, 8), how.seeds, skip=True, first_seed=how.first_seed).to(
            how.device, torch.float64
        )
        with torch.no_grad():  # skip connection: a trot
            bank.weights[-1] += torch.tensor(TROT).to(bank.weights[-1])
        method = torch.optim.Adam(bank.parameters(), lr=self.rate)
        best = torch.nn.ParameterDict({"speed": torch.zeros(how.seeds), "u": torch.zeros(how.seeds, steps, 8)})
        best.requires_grad_(False).double()
        training = Resumable(how, f"gait-{torque:g}", {"bank": bank, "method": method, "best": best})

        angle = 2 * np.pi * RATE * DT * torch.arange(steps, dtype=torch.float64, device=how.device)
        wave = torch.stack([angle.sin(), angle.cos()], -1).expand(how.seeds, steps, 2)
        home, state = torch.tensor([BEND, -2 * BEND] * 4, device=how.device), sim.model.keyframe()
        start = tuple(torch.tensor(x, device=how.device).expand(how.seeds, -1).contiguous() for x in state)
        for k in training.iterations(self.updates):
            method.param_groups[0]["lr"] = self.rate * (1 - 0.8 * k / self.updates)
            u = home + 0.8 * bank(wave).tanh()
            states: Any = at.rollout(sim, start, u, gradient_options=GradientOptions(self.decay, self.clip))
            q, v = states
            loss = -v[..., 0].mean(1) + unsafe(q).mean(1)  # by the torso's velocity, so that every step contributes
            method.zero_grad()
            loss.sum().backward()
            norm = clip_each(bank, 1.0)
            method.step()
            speed = walked(sim, q.detach().cpu().numpy())
            better = torch.tensor(speed) > best["speed"]
            best["speed"][better], best["u"][better] = torch.tensor(speed)[better], u.detach().cpu()[better]
            training.note(f"{torque:g} N m: {best['speed'].max():.2f} m/s", speed, loss.detach().cpu(), norm.cpu())
        kept, fastest = best["u"].cpu().numpy(), int(best["speed"].argmax())
        write_array(how.folder / f"gait-{torque:g}.npy", kept[[fastest]].astype(np.float32))
        fine = Simulator(quadruped(torque), dt=DT / 10)
        again = fine.rollout(fine.reset(batch=how.seeds), np.repeat(kept, 10, 1))
        record = np.array(training.record).reshape(-1, 3, how.seeds)
        return {
            "weights": bank.per_seed,
            "evaluations": len(record),
            "speed": [round(float(x), 4) for x in best["speed"]],
            "speed_at_a_tenth_of_dt": [round(float(x), 4) for x in walked(fine, again.q)],
            "curve": np.round(record[:, 0], 4).tolist(),
            "largest_gradient": float(record[:, 2].max()) if len(record) else 0.0,
        }

    def draw(self, numbers: dict[str, Any], folder: Path) -> list[Path]:
        files = []
        plt = plotting()
        if plt is not None:
            figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
            torques = [s["torque"] for s in numbers["scan"]]
            left.plot(torques, [s["speed"] for s in numbers["scan"]], "o-", label="steps of 10 ms")
            left.plot(torques, [s["speed_at_a_tenth_of_dt"] for s in numbers["scan"]], "s--", label="the same at 1 ms")
            left.set(
                xlabel="torque of the motors / N m", ylabel="speed / (m/s)", title="sinusoids, cross-entropy method"
            )
            left.legend(frameon=False)
            for k, key in enumerate(key for key in numbers if key.endswith(" N m")):
                curve = np.maximum.accumulate(np.array(numbers[key]["curve"]), axis=0)
                right.plot(curve, color=f"C{k}", alpha=0.3, lw=1)
                right.plot(np.median(curve, axis=1), color=f"C{k}", lw=2, label=key)
            right.set(xlabel="evaluations", ylabel="best speed / (m/s)", title="a network, by gradients")
            right.legend(frameon=False)
            for axis in (left, right):
                axis.grid(alpha=0.2)
            files.append(folder / "curves.png")
            save_figure(figure, files[0])
            plt.close(figure)
        kept = [(max(numbers[key]["speed"]), key) for key in numbers if key.endswith(" N m")]
        torque = float(max(kept)[1].split()[0])
        sim = Simulator(quadruped(torque), dt=DT)
        u = np.load(folder / f"gait-{torque:g}.npy")[0, :400].astype(float)
        start: State = sim.reset()
        return files + save_video(sim.rollout(start, u), folder)
