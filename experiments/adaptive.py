"""Adaptive control: a cart swings up one or two poles with unknown masses and lengths (Heiden et al. 2019, figure 5).

The real system is the cart-pole of the DeepMind Control Suite in MuJoCo: its file, forces within 200 N, a control every 40
ms (four steps of 10 ms), episodes of 140 controls. The controller plans by iLQR with a model in artigrad: the same bodies,
joints and integrator, with unknown masses, lengths, inertias, dampings and armatures, 8 parameters for one pole and 14 for
two, all initialized to 2. After each episode, and after 50 and 100 controls of the first, they are fitted by L-BFGS to all
transitions so far.

Two additions to the paper. The rail ends at 1.8 m, which is not part of the model: the fit omits transitions that may have
touched the end, and those beyond 15 rad/s, 40 ms of which are not informative if the parameters are far off. And before the
first fit forces cost more, since plans of an unfitted model are unreliable.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artigrad import InputError, Model, ModelBuilder, Params, Simulator, State
from artigrad.control import MPC, LeastSquares
from artigrad.optimize import minimize
from artigrad.tasks.figures import plotting, save_figure

from .experiment import Experiment, RunOptions, save_video

DT, HOLD, CONTROLS = 0.01, 4, 140  # step (s), steps per control, controls per episode
FORCE, RAIL, FAST = 200.0, 1.8, 15.0  # N, m, rad/s
START = 2.0  # initial value of every parameter
EXPLAINED = 1e-4  # prediction error over one control (rad, m and rates) that needs no new fit
HORIZON, EPISODES = (
    {1: 20, 2: 40},
    {1: 3, 2: 5},
)  # by number of poles: horizon in controls, maximum number of episodes
POSITION, ANGLE, SPEED, EFFORT, CAREFUL = (
    1.0,
    3.0,
    0.1,
    0.003,
    0.3,
)  # weights of the cost; of forces before the first fit
LAST = 5.0  # factor on the weights of the last state
UPRIGHT, WHILE = 0.95, 20  # success: cosine of every pole, over the last controls of an episode


# -- the real system -------------------------------------------------------------------------------------------------------
class Suite:
    """The cart-pole of the DeepMind Control Suite in MuJoCo. `dt` is MuJoCo's step, s; None: the file's."""

    def __init__(self, poles: int, seed: int, dt: float | None = None):
        spec = find_spec("dm_control")
        if spec is None or not spec.submodule_search_locations:
            raise InputError("the real system is dm_control's cartpole: pip install dm_control")
        import mujoco

        self._mujoco = mujoco
        file = mujoco.MjSpec.from_file(
            str(Path(next(iter(spec.submodule_search_locations))) / "suite" / "cartpole.xml")
        )
        parent, look = file.body("pole_1"), file.find_default("pole")
        for k in range(2, poles + 1):  # as `dm_control.suite.cartpole` adds them
            parent = parent.add_body(name=f"pole_{k}", pos=[0, 0, 1])
            parent.add_joint(look, name=f"hinge_{k}")
            parent.add_geom(look, name=f"pole_{k}")
        self.model = file.compile()
        self.gear = float(self.model.actuator_gear[0, 0])
        self.model.actuator_ctrlrange[:] = [-FORCE / self.gear, FORCE / self.gear]
        self.model.opt.timestep = DT if dt is None else dt
        self.steps = round(HOLD * DT / self.model.opt.timestep)
        self.data, self.rng = mujoco.MjData(self.model), np.random.default_rng(seed)

    def reset(self) -> State:
        """Reset to hanging, nearly at rest, as dm_control's swing-up."""
        self._mujoco.mj_resetData(self.model, self.data)
        n = self.model.nv
        self.data.qpos[0] = 0.01 * self.rng.normal()
        self.data.qpos[1] = np.pi + 0.01 * self.rng.normal()
        self.data.qpos[2:] = 0.1 * self.rng.normal(size=n - 2)
        self.data.qvel[:] = 0.01 * self.rng.normal(size=n)
        return self.state

    @property
    def state(self) -> State:
        return State(self.data.qpos.copy(), self.data.qvel.copy())

    def step(self, force: np.ndarray) -> State:
        """Simulate one control."""
        self.data.ctrl[:] = force / self.gear
        self._mujoco.mj_step(self.model, self.data, self.steps)
        return self.state


# -- the model -------------------------------------------------------------------------------------------------------------
def blank(poles: int) -> Model:
    """Build the cart and poles with placeholder parameters."""
    b = ModelBuilder(f"cart with {poles} poles")
    unknown: dict[str, Any] = {"mass": START, "damping": START, "armature": START}
    parent = b.add_body("cart", joint="prismatic", axis=(1, 0, 0), **unknown)
    for k in range(1, poles + 1):
        place = (0, 0, START if k > 1 else 0)
        body: dict[str, Any] = {"com": (0, 0, START), "inertia": (START, START, 0.1)}
        parent = b.add_body(f"pole{k}", parent, joint="revolute", axis=(0, 1, 0), position=place, **body, **unknown)
    b.add_motor("push", "cart")
    return b.build()


class Unknowns:
    """Parameters of a model as a function of their logarithms x: mass, damping, armature of each body, height of the center
    of mass and moment of inertia of each pole, length of each pole that carries another."""

    def __init__(self, model: Model):
        self.model, bodies = model, model.nb
        self.splits = np.cumsum([bodies, bodies, bodies, bodies - 1, bodies - 1])
        self.n = int(self.splits[-1]) + bodies - 2

    def params(self, x: np.ndarray) -> Params:
        own = self.model.params
        mass, damping, armature, height, moment, length = np.split(np.exp(x), self.splits)
        com, inertia, position = (np.array(own[name]) for name in ("com", "inertia", "position"))
        com[1:, 2], inertia[1:, 0], inertia[1:, 1], position[2:, 2] = height, moment, moment, length
        plain = {"mass": mass, "damping": damping, "armature": armature}
        return own.replace(**plain, com=com, inertia=inertia, position=position, unchecked=True)

    def pull_back(self, x: np.ndarray, grad: Params) -> np.ndarray:
        """Return the gradient of x."""
        moment = grad.inertia[1:, 0] + grad.inertia[1:, 1]
        parts = (grad.mass, grad.damping, grad.armature, grad.com[1:, 2], moment, grad.position[2:, 2])
        return np.concatenate(parts) * np.exp(x)


class Transition(NamedTuple):
    """States before and after a control."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    q_next: np.ndarray
    v_next: np.ndarray

    @property
    def informative(self) -> bool:
        """True away from the ends of the rail and below the largest speed."""
        at = max(abs(self.q[0]), abs(self.q_next[0])) + HOLD * DT * max(abs(self.v[0]), abs(self.v_next[0]))
        return bool(at < RAIL and max(np.abs(self.v).max(), np.abs(self.v_next).max()) < FAST)


class Prediction:
    """Squared error of the model's prediction of all transitions: an `optimize.Problem` over x."""

    def __init__(self, sim: Simulator, unknowns: Unknowns, transitions: list[Transition]):
        self.sim, self.unknowns = sim, unknowns
        self.all = Transition(*(np.array(part) for part in zip(*transitions, strict=True)))
        self.scale_q = np.std(self.all.q_next - self.all.q, 0) + 1e-6
        self.scale_v = np.std(self.all.v_next - self.all.v, 0) + 1e-6
        self.lower, self.upper = np.full(unknowns.n, np.log(1e-7)), np.full(unknowns.n, np.log(50.0))

    def predict(self, x: np.ndarray) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an overflow gives a large loss
            return self.sim.rollout(
                State(*self.all[:2]), self.all.u[:, None], hold=HOLD, params=self.unknowns.params(x)
            )

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = [self._gradient(row) for row in x]
        return np.array([loss for loss, _ in rows]), np.array([grad for _, grad in rows])

    def _gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        traj, count = self.predict(x), len(self.all.q)
        r_q, r_v = (traj.final.q - self.all.q_next) / self.scale_q, (traj.final.v - self.all.v_next) / self.scale_v
        loss = 0.5 * float(np.sum(r_q**2) + np.sum(r_v**2)) / count
        if not np.isfinite(loss):
            return 1e6, np.zeros(self.unknowns.n)
        grad = self.sim.vjp(traj, q_bar=r_q / self.scale_q / count, v_bar=r_v / self.scale_v / count)
        assert grad.params is not None
        return loss, self.unknowns.pull_back(x, grad.params)

    def loss(self, x: np.ndarray) -> np.ndarray:
        return self.gradient(x)[0]

    def error(self, x: np.ndarray) -> float:
        """Return the root mean squared error of the prediction over one control; rad, m and their rates."""
        final = self.predict(x).final
        away = np.concatenate([final.q - self.all.q_next, final.v - self.all.v_next], 1)
        return float(np.sqrt(np.mean(away**2)))


# -- the controller --------------------------------------------------------------------------------------------------------
class Upright:
    """Residuals of the cost: cart position, poles from upright modulo turns, velocities, force."""

    def __init__(self, poles: int):
        self.poles, self.effort = poles, CAREFUL

    def stage(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n, lead = self.poles, q.shape[:-1]
        angle = np.cumsum(q[..., 1:], -1)
        r = [POSITION * q[..., :1], ANGLE * np.sin(angle), ANGLE * (1 - np.cos(angle)), SPEED * v, self.effort * u]
        Jx, Ju = np.zeros((*lead, 3 * n + 3, 2 * n + 2)), np.zeros((*lead, 3 * n + 3, 1))
        Jx[..., 0, 0] = POSITION
        for k in range(n):  # the angle of a pole is the sum of those of the hinges up to it
            Jx[..., 1 + k, 1 : k + 2] = (ANGLE * np.cos(angle[..., k]))[..., None]
            Jx[..., 1 + n + k, 1 : k + 2] = (ANGLE * np.sin(angle[..., k]))[..., None]
        for k in range(n + 1):
            Jx[..., 1 + 2 * n + k, n + 1 + k] = SPEED
        Ju[..., -1, 0] = self.effort
        return np.concatenate(r, -1), Jx, Ju

    def final(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r, Jx, _ = self.stage(q, v, np.zeros((*q.shape[:-1], 1)))
        return LAST * r, LAST * Jx


class Pilot:
    """Controller and model of one seed."""

    def __init__(self, poles: int):
        model = blank(poles)
        self.sim = Simulator(model, dt=DT, integrator="rk4", threads=1)
        self.unknowns, self.cost = Unknowns(model), Upright(poles)
        self.x = np.full(self.unknowns.n, np.log(START))
        cost = LeastSquares(model, self.cost.stage, self.cost.final)
        self.control = MPC(
            self.sim, cost, HORIZON[poles], hold=HOLD, iterations=5, first_iterations=100, limits=(-FORCE, FORCE)
        )
        self.transitions: list[Transition] = []
        self.error = float("inf")

    def fit(self) -> None:
        """Fit the parameters if they do not explain the transitions: from their current and from their initial values; keep
        the better fit."""
        problem = Prediction(self.sim, self.unknowns, self.transitions)
        self.error, self.cost.effort = problem.error(self.x), EFFORT
        if self.error > EXPLAINED:
            starts = np.stack([self.x, np.full(self.unknowns.n, np.log(START))])
            found = minimize(problem, starts, method="lbfgs", iterations=400, goal=1e-13, memory=30)
            self.x = found.x[int(found.best.argmin())]
            self.error = problem.error(self.x)

    def episode(self, real: Suite, first: bool) -> dict[str, Any]:
        """Run an episode on the real system and fit the model to its transitions."""
        state, cosines, path = real.reset(), [], []
        self.control.reset()
        for t in range(CONTROLS):
            self.control.params = self.unknowns.params(self.x)
            u = self.control(state)
            after = real.step(u)
            new = Transition(state.q, state.v, u, after.q, after.v)
            self.transitions += [new] if new.informative else []
            state = after
            path.append(state.q)
            cosines.append(np.cos(np.cumsum(state.q[1:])).min())
            if first and t + 1 in (50, 100):
                self.fit()
        self.fit()
        return {"lowest_cosine": float(min(cosines[-WHILE:])), "error": self.error, "q": np.array(path).tolist()}


class AdaptiveControl(Experiment):
    name = "adaptive"
    summary = "a cart swings up poles it does not know, on dm_control's cartpole (Heiden 2019)"
    torch = False

    def run(self, how: RunOptions) -> dict[str, Any]:
        out: dict[str, Any] = {}
        total = how.seeds * (sum(EPISODES.values()) + EPISODES[1] + EPISODES[2])
        for key, dt in (("as_published", None), ("a_tenth_of_the_step", DT / 10)):
            for poles in (1, 2):
                runs: list[dict[str, Any]] = []
                for seed in range(how.seeds):
                    if how.out_of_time and runs:
                        break
                    runs.append(self._seed(poles, seed, dt, how, total))
                out[f"{poles}_{key}"] = self._summary(poles, runs)
        return out

    def _seed(self, poles: int, seed: int, dt: float | None, how: RunOptions, total: int) -> dict[str, Any]:
        pilot, real = Pilot(poles), Suite(poles, seed, dt)
        episodes = []
        for k in range(EPISODES[poles]):
            episodes.append(pilot.episode(real, k == 0))
            self.done += 1
            text = f"{poles} poles, seed {seed}, episode {k + 1}: cosine {episodes[-1]['lowest_cosine']:.3f}"
            how.watch(self.done, total, f"{text}, error {episodes[-1]['error']:.1e}")
        return {"episodes": episodes, "parameters": np.exp(pilot.x).round(6).tolist()}

    done = 0

    @staticmethod
    def _summary(poles: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
        up = [[e["lowest_cosine"] for e in run["episodes"]] for run in runs]
        first = [next((k + 1 for k, c in enumerate(row) if c > UPRIGHT), None) for row in up]
        return {
            "upright_at_episode": first,
            "lowest_cosine": [[round(c, 4) for c in row] for row in up],
            "one_step_error_after_two": [float(f"{run['episodes'][1]['error']:.2g}") for run in runs],
            "controls": [CONTROLS * k if k else None for k in first],
            "parameters": [run["parameters"] for run in runs],
            "motion": [np.round(e["q"], 4).tolist() for e in runs[0]["episodes"]],
        }

    def draw(self, numbers: dict[str, Any], folder: Path) -> list[Path]:
        files = []
        for poles, name in ((1, "single"), (2, "double")):
            motion = numbers[f"{poles}_as_published"]["motion"]
            files += self._film(poles, np.array(motion[-1]), folder, name)
        plt = plotting()
        if plt is None:
            return files
        figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", sharey=True)
        for axis, (poles, name) in zip(axes, ((1, "one pole"), (2, "two poles")), strict=True):
            for key, style in (("as_published", "-"), ("a_tenth_of_the_step", ":")):
                for row in numbers[f"{poles}_{key}"]["lowest_cosine"]:
                    axis.plot(range(1, len(row) + 1), row, style, marker="o", alpha=0.6)
            axis.axhline(UPRIGHT, color="0.5", lw=1, ls="--")
            axis.set(title=name, xlabel="episode", xticks=range(1, EPISODES[poles] + 1))
        axes[0].set_ylabel("lowest cosine of a pole, last 20 controls")
        save_figure(figure, folder / "episodes.png")
        plt.close(figure)
        return [*files, folder / "episodes.png"]

    @staticmethod
    def _film(poles: int, q: np.ndarray, folder: Path, name: str) -> list[Path]:
        """Save the last episode of the first seed as a video, on a cart-pole with visuals."""
        from artigrad.robots import cartpole

        sim = Simulator(cartpole(poles), dt=HOLD * DT)
        traj = sim.rollout(State(q[0], np.zeros(poles + 1)), steps=len(q) - 1)
        traj.kept[0].q[0], traj.kept[0].v[0] = q, 0.0
        return save_video(traj, folder, name)
