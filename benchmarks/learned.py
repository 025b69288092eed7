"""Quality of trained policies: `python -m benchmarks.learned [--results FOLDER] [--episodes N]`.

Reads the results of `benchmarks.learn` (learn-SUITE.json, policies-SUITE.zip), and runs the best policy of each task in
artigrad and in Gymnasium's MuJoCo environment, those of the pendulum also at a tenth of the time step, and those of the
Laikago in MuJoCo. Writes learn.md, learn.json and figures to benchmarks/results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import artigrad as ag
from artigrad.envs import DifferentiableEnv
from artigrad.learn import Player

from .learn import GYM
from .report import Sheet, machine

OUT = Path("benchmarks/results")
BY_HAND = "<!-- what follows is written by hand -->"
PAPER = (0.49, 1.93, 4.28, 7.81, 12.31, 17.78, 24.34)  # Qiao et al. (2021), table 4


def read(folder: Path) -> list[dict[str, Any]]:
    """Return all trainings: job, learning curve, and path of the policy."""
    place, found = Path(tempfile.mkdtemp()), []
    for file in sorted(folder.glob("learn-*.json")):
        suite = file.stem.removeprefix("learn-")
        with zipfile.ZipFile(folder / f"policies-{suite}.zip") as policies:
            policies.extractall(place / suite)
        for one in json.loads(file.read_text()):
            found.append({**one, "suite": suite, "policy": place / suite / f"{one['job']['name']}.pt"})
    return found


def best_score(run: dict[str, Any]) -> float:
    """Return the best mean return of whole episodes without noise over all evaluations."""
    return max(score for _, _, score in run["tries"])


def steps_to(run: dict[str, Any], wanted: float) -> float:
    """Return the environment steps at the first evaluation with a given return."""
    return next((steps for steps, _, score in run["tries"] if score >= wanted), float("inf"))


def transfer(runs: list[dict[str, Any]], episodes: int) -> Sheet:
    """Evaluate the policies of each robot and algorithm, all seeds, in artigrad and in Gymnasium."""
    lines = []
    for task, algorithm in itertools.product(GYM, ("shac", "ppo")):
        mine = [r for r in runs if (r["job"]["task"], r["job"]["algorithm"]) == (task, algorithm)]
        if not mine:
            continue
        players = [Player(r["policy"]) for r in mine]
        here = np.array([p.returns(episodes).mean() for p in players])
        there = np.array([p.gymnasium_returns(episodes).mean() for p in players])
        steps, seconds = (np.median([r["curve"][-1][x] for r in mine]) for x in ("steps", "cpu"))
        figures = [f"{steps / 1e6:.2f} M", f"{seconds:.0f}", str(len(mine))]
        ratios = there / here
        text = f"{np.median(ratios):.3f} ({ratios.min():.3f} to {ratios.max():.3f})"
        lines.append([f"{task}, {algorithm}", *figures, spread(here), spread(there), text])
        print(lines[-1], flush=True)
    columns = ["", "steps", "CPU seconds", "seeds", "in artigrad", "in Gymnasium", "ratio"]
    title = f"Training in artigrad, evaluation in MuJoCo (means of {episodes} episodes; medians and ranges over seeds)"
    return Sheet(title, columns, lines)


def spread(values: Iterable[float]) -> str:
    """Return median, minimum and maximum."""
    values = list(values)
    return f"{np.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def economy(runs: list[dict[str, Any]]) -> Sheet:
    """Return the steps that SHAC and PPO need for 90 % of the final return of PPO, medians over seeds."""
    lines = []
    for task in GYM:
        groups = defaultdict(list)
        for r in runs:
            if r["job"]["task"] == task:
                groups[r["job"]["algorithm"]].append(r)
        if not groups["ppo"] or not groups["shac"]:
            continue
        wanted = 0.9 * float(np.median([best_score(r) for r in groups["ppo"]]))
        steps = {name: float(np.median([steps_to(r, wanted) for r in groups[name]])) for name in ("shac", "ppo")}
        text = ["never" if np.isinf(x) else f"{x / 1e6:.2f} M" for x in steps.values()]
        ratio = "-" if np.isinf(steps["shac"]) else f"{steps['ppo'] / steps['shac']:.1f}"
        lines.append([task, f"{wanted:,.0f}", *text, ratio])
    title = "Steps to nine tenths of the final return of PPO (medians over seeds)"
    return Sheet(title, ["", "return", "SHAC", "PPO", "PPO / SHAC"], lines)


@torch.no_grad()
def finer(path: Path, substeps: int) -> float:
    """Return the return of a pendulum policy with smaller time steps."""
    player = Player(path)
    env = DifferentiableEnv("PendulumReach", 1, dtype="f64", threads=1, **player.options, substeps=substeps)
    observation, total = env.reset(), 0.0
    for _ in range(env.task.max_episode_steps):
        found = env.step(player.policy(observation.float()).double())
        total += float(found.reward)
        if found.terminated:
            break
        observation = found.observation
    return total


def table_4(runs: list[dict[str, Any]]) -> Sheet:
    """Return medians and quartiles over seeds: best and last evaluation, and the best policy at a tenth of the time step."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for r in runs:
        if r["job"]["task"] == "PendulumReach":
            groups[r["job"]["algorithm"], r["job"]["options"]["links"]].append(r)
    if not groups:
        return Sheet("", [], [])
    kinds = {
        "best evaluation": best_score,
        "last evaluation": lambda r: r["tries"][-1][2],
        "best, a tenth of the step": lambda r: finer(r["policy"], 10) if r["policy"].exists() else np.nan,
        "thousand steps": lambda r: r["tries"][-1][0] / 1000,
    }
    lines = []
    for algorithm in dict.fromkeys(name for name, _ in groups):
        for kind, figure in kinds.items():
            cells = []
            for n in range(1, 8):
                found = [x for r in groups[algorithm, n] if not np.isnan(x := figure(r))]
                low, middle, high = np.percentile(found, (25, 50, 75)) if found else (np.nan,) * 3
                cells.append(f"{middle:.0f}" if "thousand" in kind else f"{middle:.2f} ({low:.2f} - {high:.2f})")
            lines.append([f"{algorithm}, {kind}", *cells])
            print(lines[-1], flush=True)
    lines.append(["the paper's", *(f"{x:.2f}" for x in PAPER)])
    lines.append(["at best", *(f"{n * n / 2:.1f}" for n in range(1, 8))])
    seeds = sorted({len(found) for found in groups.values()})
    title = f"n-link pendulum: median return (quartiles) of {' or '.join(map(str, seeds))} seeds"
    return Sheet(title, ["", *(f"n = {n}" for n in range(1, 8))], lines)


def smooth(run: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return steps, and means over each evaluation and the two before it.

    Single evaluations change by a thousand if one robot of four falls.
    """
    steps = np.unique([step for step, _, _ in run["tries"]])
    tries = np.array([np.mean([score for at, _, score in run["tries"] if at == step]) for step in steps])
    return steps, np.array([tries[max(0, k - 2) : k + 1].mean() for k in range(len(tries))])


def first_above(steps: np.ndarray, curve: np.ndarray, goal: float) -> str:
    """Return the steps at which a curve first reaches a value, by linear interpolation between evaluations."""
    above = np.flatnonzero(curve >= goal)
    if not len(above):
        return "never"
    k = above[0]
    at = steps[k] if k == 0 else np.interp(goal, curve[k - 1 : k + 1], steps[k - 1 : k + 1])
    return f"{at:,.0f}"


def figure_5(runs: list[dict[str, Any]]) -> Sheet:
    """Return the returns of ants over steps, medians over seeds, and the steps to the final return of MBPO."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for r in runs:
        if r["suite"] == "figure-5":
            groups[r["job"]["algorithm"]].append(r)
    if "mbpo" not in groups:
        return Sheet("", [], [])
    curves = {a: [smooth(r) for r in sorted(g, key=lambda r: r["job"]["seed"])] for a, g in groups.items()}
    goal, lines = float(np.median([curve[-1] for _, curve in curves["mbpo"]])), []
    for a, found in curves.items():
        steps, middle = found[0][0], np.median([curve for _, curve in found], 0)
        parts = [np.interp(part * steps[-1], steps, middle) for part in (0.25, 0.5, 0.75, 1.0)]
        ends = " ".join(f"{curve[-1]:,.0f}" for _, curve in found)
        each = " ".join(first_above(*one, goal) for one in found)
        reached = first_above(steps, middle, goal)
        lines.append([a, str(len(found)), *(f"{x:,.0f}" for x in parts), ends, reached, each])
    end = curves["mbpo"][0][0][-1]
    columns = ["", "seeds", *(f"{part * end:,.0f} steps" for part in (0.25, 0.5, 0.75, 1.0)), "at the end, each seed"]
    columns += [f"first at {goal:,.0f}", "each seed"]
    return Sheet(
        "Ant with few steps: median return of whole episodes without noise, means of three evaluations", columns, lines
    )


def walking(runs: list[dict[str, Any]]) -> Sheet:
    """Return mean speeds over 10 s of Laikagos with commands of 0.5 and 1.0 m/s."""
    lines = []
    for r in runs:
        if r["job"]["task"] == "Laikago":
            player = Player(r["policy"])
            cells = [f"{place(player, goal):.3f}" for place in (in_artigrad, in_mujoco) for goal in (0.5, 1.0)]
            lines.append([r["job"]["name"], *cells])
            print(lines[-1], flush=True)
    columns = ["mean speed over 10 s, m/s", "0.5, artigrad", "1.0, artigrad", "0.5, MuJoCo", "1.0, MuJoCo"]
    return Sheet("Laikago at a commanded speed", columns, lines)


@torch.no_grad()
def in_artigrad(player: Player, goal: float) -> float:
    env = DifferentiableEnv(player.task, 1, dtype="f64", threads=1)
    env.reset()
    assert env.state is not None
    env.state = env.state._replace(goal=torch.full((1, 1), goal, dtype=torch.float64))
    observation, first = env.task.observe(env.state), float(env.state.q[0, 0])
    steps = env.task.max_episode_steps - 1
    for _ in range(steps):
        found = env.step(player.policy(observation.float()).double())
        if found.terminated:
            return float("nan")
        observation = found.observation
    return (float(env.state.q[0, 0]) - first) / (steps * env.dt)


def in_mujoco(player: Player, goal: float) -> float:
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "laikago.xml"
        ag.save(player.task.model, file)
        model = mujoco.MjModel.from_xml_path(str(file))
    data, task = mujoco.MjData(model), player.task
    model.opt.timestep = task.options["dt"]
    data.qpos[:], data.qvel[:] = task.model.keyframe()
    for _ in range(task.max_episode_steps):
        seen = np.concatenate([data.qpos[2:], data.qvel, [goal]])
        action = torch.as_tensor(player(seen[None]), dtype=torch.float64)
        data.ctrl[:] = task.controls(action)[0]
        mujoco.mj_step(model, data, nstep=task.frame_skip)
        if data.qpos[2] < 0.3:
            return float("nan")
    return float(data.qpos[0]) / data.time


def figure(runs: list[dict[str, Any]], file: Path) -> None:
    """Plot returns over steps and over seconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tasks = [t for t in GYM if any(r["job"]["task"] == t for r in runs)]
    fig, axes = plt.subplots(2, len(tasks), figsize=(3.2 * len(tasks), 5.5), squeeze=False)
    colors = dict(zip(("shac", "ppo"), plt.cm.tab10.colors, strict=False))
    for column, task in enumerate(tasks):
        for row, (over, scale, label) in enumerate((("steps", 1e6, "million steps"), ("seconds", 1.0, "seconds"))):
            ax, named = axes[row, column], set[str]()
            for r in runs:
                if r["job"]["task"] != task:
                    continue
                name = r["job"]["algorithm"]
                steps, seconds, ys = zip(*r["tries"], strict=True)
                xs = steps if over == "steps" else seconds
                ax.plot(np.array(xs) / scale, ys, color=colors[name], lw=1, label=None if name in named else name)
                named.add(name)
            ax.set_xlabel(label)
            ax.set_title(task if row == 0 else "")
            ax.legend(fontsize=7)
    axes[0, 0].set_ylabel("return")
    axes[1, 0].set_ylabel("return")
    fig.tight_layout()
    fig.savefig(file, dpi=110)


def figure_of_samples(runs: list[dict[str, Any]], file: Path) -> None:
    """Plot figure 5: ants over few steps, medians and quartiles over seeds."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6, 4))
    groups: dict[str, list[np.ndarray]] = defaultdict(list)
    for r in runs:
        if r["suite"] == "figure-5":
            steps, curve = smooth(r)
            at = np.linspace(0.0, steps[-1], 51)
            groups[r["job"]["algorithm"]].append(np.interp(at, steps, curve))
    for name, curves in groups.items():
        low, middle, high = np.percentile(curves, (25, 50, 75), axis=0)
        [line] = ax.plot(at / 1e3, middle, label=f"{name}, {len(curves)} seeds")
        ax.fill_between(at / 1e3, low, high, color=line.get_color(), alpha=0.15, lw=0)
    ax.set_xlabel("thousand steps")
    ax.set_ylabel("return of whole episodes without noise")
    ax.legend(fontsize=7)
    fig.tight_layout()
    fig.savefig(file, dpi=110)


def main() -> None:
    """Evaluate, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    runs = read(given.results)
    gym = [r for r in runs if r["suite"] == "gym"]
    sheets = [transfer(gym, given.episodes), economy(gym), table_4(runs), figure_5(runs), walking(runs)]
    sheets = [s for s in sheets if s.lines]
    figure(gym, given.out / "learn.png")
    figure_of_samples(runs, given.out / "learn-figure-5.png")
    page = given.out / "learn.md"
    own = page.read_text().partition(BY_HAND)[2] if page.exists() else ""
    about = machine()
    made = "Tables by `python -m benchmarks.learned` from the results of `python -m benchmarks.learn`"
    made += f", {about['cpu']}, one core each"
    head = f"# Learning\n\n{made}, {about['date']}.\n"
    page.write_text("\n".join([head, "![returns](learn.png)\n", *(s.markdown() for s in sheets), BY_HAND + own]))
    kept = [{"suite": r["suite"], "job": r["job"], "tries": r["tries"]} for r in runs]
    tables = {s.title: {"columns": s.columns, "lines": s.lines} for s in sheets}
    (given.out / "learn.json").write_text(json.dumps({"tables": tables, "runs": kept}))


if __name__ == "__main__":
    main()
