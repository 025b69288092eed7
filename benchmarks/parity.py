"""Single steps of artigrad and MuJoCo from the same state: `python -m benchmarks.parity [--states N] [--out FOLDER]`.

Robots from files, bundled robots, a hand and loops; for both cones and all four integrators, N states along MuJoCo
trajectories: dropped, driven by random controls, pushed into the floor. MuJoCo runs to full precision (Newton without
tolerance; convex collision likewise). The table has the largest difference of velocities after the step, relative to the
largest change of velocity in it; of positions; and of the sum of contact force magnitudes, relative to the larger of weight
and sum. An unsolved step counts as infinite. It uses all cores. States in which axes of capsules intersect exactly, where
rounding decides a normal, are left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import track

import artigrad as ag

from . import report
from .report import Sheet

CONES = {"pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}
INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}
GYM = ("ant", "humanoid", "hopper", "walker2d", "half_cheetah")
SUITE = ("humanoid", "walker", "quadruped", "cheetah", "hopper")


def tight(m: mujoco.MjModel) -> mujoco.MjModel:
    """Set MuJoCo's Newton and convex collision to full precision: with defaults, normals in deep overlap differ by 0.15."""
    m.opt.tolerance, m.opt.iterations, m.opt.solver = 0.0, 60, mujoco.mjtSolver.mjSOL_NEWTON
    m.opt.ls_iterations, m.opt.ls_tolerance = 200, 1e-15
    m.opt.ccd_iterations, m.opt.ccd_tolerance = 200, 1e-12
    return m


class Beside:
    """Robot in both engines: states along MuJoCo trajectories, and differences after one step."""

    def __init__(self, sim: ag.Simulator, m: mujoco.MjModel):
        self.sim, self.m, self.d = sim, m, mujoco.MjData(m)

    def states(
        self, rng: np.random.Generator, count: int, every: int = 7, speed: float = 1.0
    ) -> Iterator[tuple[Any, ...]]:
        """Return states with controls: dropped with random velocities, driven by random controls, some in deep contact."""
        m, d = self.m, self.d
        for k in range(count):
            if k % 10 == 0:
                mujoco.mj_resetData(m, d)
                d.qvel[:] = speed * rng.normal(size=m.nv)
                if k % 30 == 20:
                    mujoco.mj_integratePos(m, d.qpos, 0.3 * rng.normal(size=m.nv), 1.0)
            low, high = np.where(m.actuator_ctrllimited[:, None], m.actuator_ctrlrange, [-1.0, 1.0]).T
            d.ctrl[:] = rng.uniform(low, high)
            m.opt.tolerance = 1e-8  # on the way, to save time
            mujoco.mj_step(m, d, nstep=every)
            yield d.qpos.copy(), d.qvel.copy(), d.ctrl.copy()

    def error(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[float, float, float]:
        """Return relative errors of the change of velocity, of positions, and of contact force magnitudes after one step."""
        m, d = tight(self.m), mujoco.MjData(self.m)
        d.qpos[:], d.qvel[:], d.ctrl[:] = q, v, u
        mujoco.mj_step(m, d)
        if axes_meet(m, d, 1e-9):
            return np.nan, np.nan, np.nan
        traj = self.sim.rollout(ag.State(q, v), u[None])
        if traj.violation[0] != 0.0:
            warnings.warn(f"not solved: {traj.violation[0]:.1e}", stacklevel=2)
            return np.inf, np.inf, np.inf
        change = np.abs(d.qvel - v).max(initial=0.0) + 1e-6
        force = 0.0
        if m.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4 and self.sim.model.shapes.pairs:
            theirs, ours = _contact_force(m, d), np.linalg.norm(self.sim.contacts(traj).force[0], axis=1).sum()
            force = float(abs(ours - theirs) / max(9.81 * m.body_mass.sum(), theirs))
        dv, dq = np.abs(traj.final.v - d.qvel).max(initial=0.0), np.abs(traj.final.q - d.qpos).max(initial=0.0)
        return float(dv / change), float(dq), force


def axes_meet(m: mujoco.MjModel, d: mujoco.MjData, within: float) -> bool:
    """Return True if the axes of two round shapes are closer than this, m: at intersections rounding decides the normal."""
    round_ones = (int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE))
    pairs = [(c.dist, c.geom) for c in d.contact if all(m.geom_type[g] in round_ones for g in c.geom)]
    return any(dist + m.geom_size[geoms, 0].sum() < within for dist, geoms in pairs)


def _contact_force(m: mujoco.MjModel, d: mujoco.MjData) -> float:
    """Return the sum of the magnitudes of all contact forces."""
    total, wrench = 0.0, np.zeros(6)
    for k in range(d.ncon):
        mujoco.mj_contactForce(m, d, k, wrench)
        total += float(np.linalg.norm(wrench[:3]))
    return total


def sources() -> dict[str, Path | ag.Model]:
    """Return the compared models: files of installed packages, and bundled robots."""
    from tests.packages import files

    found = dict(files())
    paths = [f"gymnasium/envs/mujoco/assets/{name}.xml" for name in GYM] + [
        f"dm_control/suite/{name}.xml" for name in SUITE
    ]
    return {name: found[name] for name in paths if name in found} | {
        "artigrad laikago": ag.robots.laikago(),
        "artigrad humanoid": ag.robots.humanoid(),
    }


def scenes() -> dict[str, str]:
    from tests.physics.constraints.soft.scenes import every_row, hand, loops

    return {"every kind of row": every_row(), "hand": hand(), "loops": loops()}


def compare(name: str, source: Any, cone: Any, integrator: Any, states: int) -> list[str]:
    """Return a row of the table."""
    with TemporaryDirectory() as folder:
        if isinstance(source, ag.Model):
            ag.save(source, Path(folder) / "model.xml")
            source = Path(folder) / "model.xml"
        m = (
            mujoco.MjModel.from_xml_path(str(source))
            if isinstance(source, Path)
            else mujoco.MjModel.from_xml_string(source)
        )
    if m.na:  # what is random here is controls, not activations
        m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        name += ", no actuators"
    fields = m.geom_type == mujoco.mjtGeom.mjGEOM_HFIELD
    if fields.any():  # where MuJoCo's own routine is good to a few digits
        m.geom_contype[fields], m.geom_conaffinity[fields] = 0, 0
        name += ", no height field"
    model = ag.load(m, strict=False)
    m.opt.cone, m.opt.integrator = CONES[cone], INTEGRATORS[integrator]
    sim = ag.Simulator(model, cone=cone, integrator=integrator, threads=1, max_contacts=128)
    beside, rng = Beside(sim, m), np.random.default_rng(0)
    errors = np.array([beside.error(*state) for state in beside.states(rng, states)])
    met = errors[~np.isnan(errors[:, 0])]
    return [name, cone, integrator, str(len(met)), *(f"{x:.1e}" for x in met.max(0))]


def main() -> None:
    """Compare, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--states", type=int, default=2000, help="states of each robot, cone and integrator")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of parity.json, .md")
    arguments = parser.parse_args()
    about, robots = report.machine(), sources() | scenes()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(compare, name, source, cone, integrator, arguments.states)
            for (name, source), cone, integrator in product(robots.items(), CONES, INTEGRATORS)
        ]
        lines = [job.result() for job in track(jobs, "robots, cones, integrators")]
    columns = ["robot", "cone", "integrator", "states", "velocities", "positions", "contact forces"]
    sheet = Sheet("The largest differences from MuJoCo after one step", columns, lines)
    Console(width=140).print(sheet.rich())
    report.save(
        arguments.out,
        "parity",
        "Comparison with MuJoCo",
        {"machine": about, "states": arguments.states, "lines": lines},
        [],
        [sheet],
    )


if __name__ == "__main__":
    main()
