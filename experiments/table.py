"""Table of the results of experiments, docs/results/experiments.md: `python -m experiments.table FOLDER...`

Each folder has a result.json, as `python -m experiments` writes it; several of one experiment are runs of
other seeds and are put together. Numbers go to docs/results/NAME.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def together(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Runs of other seeds as one: lists of one entry per seed are joined."""
    out = dict(runs[0])
    for run in runs[1:]:
        for key, value in run.items():
            if isinstance(value, list) and len(value) == run["seeds"]:
                out[key] = out[key] + value
        out["seeds"] += run["seeds"]
    return out


def spread(values: Any, digits: int = 3, unit: str = "") -> str:
    """The median, and the least and the largest."""
    v = np.ravel(values)
    return f"{np.median(v):.{digits}g}{unit} ({v.min():.{digits}g} to {v.max():.{digits}g})"


def first_below(curve: Any, goal: float) -> str:
    """After how many updates each seed was below a goal first."""
    found = [int(np.argmax(c < goal)) + 1 if (c < goal).any() else None for c in np.array(curve).T]
    return ", ".join("never" if k is None else str(k) for k in found)


def reach(r: dict[str, Any], goals: tuple[float, float], paper: str) -> list[str]:
    rows = []
    for scene, title in (("paper", "no gravity, 30 N m"), ("gravity", "gravity, 200 N m")):
        s = r[scene]
        below = [f"below {100 * g:g} cm after {first_below(s['last_distance'], g)}" for g in goals]
        ends, fine = (spread(100 * np.array(s[key])) for key in ("test", "test_at_a_tenth_of_dt"))
        last = f"at the end ({s['updates']}) {ends} cm, at a tenth of the step {fine} cm"
        rows.append(f"| `{r['experiment']}`, {title} | {paper} | {'; '.join(below)} updates; {last} |")
    return rows


def gait(r: dict[str, Any]) -> list[str]:
    scan = ", ".join(f"{s['torque']:g} N m: {s['speed']:.2f} ({s['speed_at_a_tenth_of_dt']:.2f})" for s in r["scan"])
    title = f"`gait`, sinusoids by CEM, {r['scan'][0]['motions']:,} motions, m/s (at a tenth of the step)"
    rows = [f"| {title} | hand-tuned 0.7 | {scan} |"]
    for key in (k for k in r if k.endswith(" N m")):
        t = r[key]
        fine = spread(t["speed_at_a_tenth_of_dt"])
        rows.append(
            f"| `gait`, network, {key}, {t['evaluations']} evaluations | 1.17 m/s with 4 N m after 500 | "
            f"{spread(t['speed'])} m/s, at a tenth of the step {fine} m/s |"
        )
    return rows


def pixels(r: dict[str, Any]) -> list[str]:
    up, fine = (spread(100 * np.array(r[key])) for key in ("up", "up_at_a_tenth_of_dt"))
    ours = f"up {up} % of the minute, at a tenth of the step {fine} %"
    when = np.ravel(r["swing_up_seconds"])
    first = f"first up after {when.min():.1f} to {when.max():.1f} s"
    count = " or ".join(f"{n:,}" for n in sorted(set(r["updates"])))
    return [
        f"| `pixels`, {r['weights']:,} weights, {r['seeds']} seeds, {count} updates | stays up for over a minute | "
        f"{ours}; {first}; cart within {max(r['farthest']):.2f} m |"
    ]


def lengths(r: dict[str, Any]) -> list[str]:
    found = "; ".join(" ".join(f"{x:.3f}" for x in row) for row in r["lengths"])
    worst = f"farthest off {100 * max(r['off']):.2f} %"
    return [
        f"| `lengths`, {r['seeds']} seeds | 3, 3, 3 m from 1, 5, 0.5 | {found}; {worst} |",
        f"| `lengths`, rms error of angles, new motions | the graph network fails | physics {spread(r['error'], 2)} rad, "
        f"graph network {spread(r['graph_error'], 2)} rad: {spread(r['times_better'], 3)} times better |",
    ]


def speed(cpu: dict[str, Any] | None, gpu: dict[str, Any] | None) -> list[str]:
    rows = ["", "## Table 1 of Degrave et al., seconds", ""]
    rows += [
        "| robots | weights | | paper CPU | two CPU cores | paper GPU | H200 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for k, cell in enumerate((cpu or gpu or {"cells": []})["cells"]):
        for what, title in (("gradient", "with gradient"), ("forward", "without")):
            ours = [f"{r['cells'][k][what]:.3g}" if r else "-" for r in (cpu, gpu)]
            paper = [cell["paper"][f"{what}_{d}"] for d in ("cpu", "gpu")]
            rows.append(
                f"| {cell['robots']} | {cell['weights']} | {title} | {paper[0]} | {ours[0]} | {paper[1]} | {ours[1]} |"
            )
    return rows


def draw_speed(cpu: dict[str, Any], gpu: dict[str, Any]) -> None:
    """Seconds with gradient, the paper's and ours."""
    from artigrad.tasks.figures import plotting

    plt = plotting()
    if plt is None:
        return
    figure, axis = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    names = [f"{c['robots']} robot{'s' * (c['robots'] > 1)}\n{c['weights']} weights" for c in cpu["cells"]]
    bars = {
        "the paper, CPU": ("0.75", [c["paper"]["gradient_cpu"] for c in cpu["cells"]]),
        "the paper, GPU": ("0.55", [c["paper"]["gradient_gpu"] for c in cpu["cells"]]),
        "artigrad, two cores": ("C0", [c["gradient"] for c in cpu["cells"]]),
        "artigrad, H200": ("C1", [c["gradient"] for c in gpu["cells"]]),
    }
    for k, (title, (color, seconds)) in enumerate(bars.items()):
        axis.bar(np.arange(len(names)) + 0.2 * (k - 1.5), seconds, 0.19, color=color, label=title)
    axis.set(yscale="log", ylabel="seconds with gradient")
    axis.set_xticks(np.arange(len(names)), names)
    axis.legend(frameon=False, ncols=2, fontsize=8)
    figure.savefig(RESULTS / "speed" / "curves.png", dpi=110)
    plt.close(figure)


HEAD = """# Results of the experiments

Made by `python -m experiments.table` from runs of `python -m experiments` on a machine with an H200 and 16 cores.
Other processes used the remaining cores and, except for `speed`, the GPU. Medians over seeds, with the smallest and
the largest value in brackets; a fall counts as a speed of zero. [Experiments](../experiments.md) describes them.

| | paper | artigrad |
| --- | --- | --- |
"""


def main() -> None:
    runs: dict[str, list[dict[str, Any]]] = {}
    for folder in map(Path, sys.argv[1:]):
        r = json.loads((folder / "result.json").read_text())
        name = r["experiment"] + ("-cuda" if r["experiment"] == "speed" and r["device"] == "cuda" else "")
        runs.setdefault(name, []).append(r)
    for name, found in runs.items():
        (RESULTS / name).mkdir(exist_ok=True)
        (RESULTS / name / "result.json").write_text(json.dumps(together(found), indent=1) + "\n")
    kept = {f.parent.name: json.loads(f.read_text()) for f in RESULTS.glob("*/result.json")}
    rows: list[str] = []
    if "reach" in kept:
        rows += reach(kept["reach"], (0.04, 0.01), "4 cm after 100, 1 cm after 150 evaluations")
    if "reach-any" in kept:
        rows += reach(kept["reach-any"], (0.10, 0.05), "10 cm after 576, 5 cm after 2,563 updates")
    for name, table in (("gait", gait), ("pixels", pixels), ("lengths", lengths)):
        rows += table(kept[name]) if name in kept else []
    if "speed" in kept or "speed-cuda" in kept:
        rows += speed(kept.get("speed"), kept.get("speed-cuda"))
    if "speed" in kept and "speed-cuda" in kept:
        draw_speed(kept["speed"], kept["speed-cuda"])
    (RESULTS / "experiments.md").write_text(HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
