"""Speed of the engine beside MuJoCo and Pinocchio: `python -m benchmarks.engine [--quick] [--out FOLDER]`.

All rows are timed in one run, in rounds: each round times every row once, so that other load affects all of them. Figures
are medians over the rounds; ratios are ratios of medians.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import artigrad as ag

from . import peers, report
from .probe import measure, measure_start
from .rows import DT, FULL, QUICK, Ours, Scale, chain_rows, factor_rows, our_rows, peer_rows, time_rows


def measure_memory(model: ag.Model, scale: Scale, progress: Progress) -> dict[str, Any]:
    """Measure bytes of a stored step, the cost of new memory, and a gradient over many steps."""
    task = progress.add_task("memory", total=2)
    sim = ag.Simulator(model, DT)
    traj = sim.rollout(sim.reset(), steps=99)
    found: dict[str, Any] = {"bytes_per_step": (traj.q.nbytes + traj.v.nbytes) // 100}
    found["rollout_us"] = measure("fresh_memory", scale.rounds)
    progress.advance(task)
    found["long"] = measure("long_gradient", scale.long_steps, scale.long_memory)
    progress.advance(task)
    return found | {"long_steps": scale.long_steps, "long_memory": scale.long_memory}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="under 30 seconds, rough figures")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of engine.json, engine.md")
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else FULL
    console = Console() if sys.stdout.isatty() else Console(width=120)

    about, model = report.machine(), ag.robots.quadruped()
    first = Ours.random(model, 1, 1)
    agreement = peers.check_agreement(model, first.state, first.u[0], DT)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, refresh_per_second=2
    ) as progress:
        start = measure_start("quadruped", scale.starts, progress)
        memory = measure_memory(model, scale, progress)
        robot_rows = peer_rows(model) + our_rows(model, scale)
        rows = robot_rows + factor_rows(model) + chain_rows(scale)
        about |= time_rows(rows, scale, progress)

    by_key = {row.key: row for row in rows}
    reached = report.targets(by_key, start, memory)
    sheets = [
        report.row_sheet("Quadruped, 18 degrees of freedom: us per robot and step (or call)", robot_rows, rows[0]),
        report.factor_sheet(by_key),
        report.chain_sheet(by_key),
        report.start_sheet(start, scale.starts),
        report.memory_sheet(memory),
        report.target_sheet(reached),
    ]
    for sheet in sheets:
        console.print(sheet.rich(), "")
    console.print(", ".join(f"{key} {value}" for key, value in about.items()))
    found = {"machine": about, "rounds": scale.rounds, "largest_difference": agreement}
    found |= {"start_s": start, "memory": memory, "targets": reached}
    report.save(arguments.out, "engine", "The engine", found, rows, sheets)
    console.print(f"saved {arguments.out / 'engine.json'} and engine.md")


if __name__ == "__main__":
    main()
