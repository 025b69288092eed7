"""Cost of reading 20 sensors in rollouts of humanoids: `python -m benchmarks.sensors [--device cuda] [--batch 4096]`.

Rollouts with and without `sensors=True` in turn; the share of the readings is (with - without) / without, of the medians.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import artigrad as ag

STEPS, ROUNDS = 32, 9
# kinds of sensors
ON_SITE = ("accelerometer", "gyro", "velocimeter", "framepos", "framequat")
ON_JOINTS = ("jointpos", "jointvel")
JOINTS = 6
OF_MODEL = ("e_kinetic", "e_potential", "clock")


def humanoid() -> ag.Model:
    """Return the bundled humanoid with 20 sensors: an IMU and its pose, joints, center of mass, energies, time."""
    b = ag.edit(ag.robots.humanoid())
    model = b.build()
    root = model.bodies[0]
    b.add_site("imu", root)
    for kind in ON_SITE:
        b.add_sensor(f"imu {kind}", kind, "imu")
    moving = [name for i, name in enumerate(model.joints) if model.joint_kind(i).axial][:JOINTS]
    for name in moving:
        for kind in ON_JOINTS:
            b.add_sensor(f"{name} {kind}", kind, name)
    for kind in OF_MODEL:
        b.add_sensor(kind, kind)
    return b.build()


def main() -> None:
    """Print the times and the share of the readings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--batch", type=int, default=4096)
    given = parser.parse_args()
    model = humanoid()
    sim = ag.Simulator(model, device=given.device, dtype=given.dtype)
    rng = np.random.default_rng(0)
    start = model.keyframe()
    q, v = (np.repeat(x[None], given.batch, 0) for x in (start.q, start.v))
    v = v + 0.1 * rng.normal(size=v.shape)
    u = 0.1 * rng.normal(size=(given.batch, STEPS, model.nu))
    q, v, u = (sim.engine.device.array(np.ascontiguousarray(x, sim.real)) for x in (q, v, u))
    state = ag.State(q, v)

    def plain() -> None:
        sim.rollout(state, u)

    def reading() -> None:
        sim.rollout(state, u, sensors=True)

    def seconds(call: Callable[[], None]) -> float:
        began = time.perf_counter()
        call()
        if given.device != "cpu":
            sim.synchronize()
        return time.perf_counter() - began

    for call in (plain, reading) * 2:  # compiled, memory allocated
        seconds(call)
    times = np.array([[seconds(plain), seconds(reading)] for _ in range(ROUNDS)])
    without, with_sensors = np.median(times, 0)
    print(
        f"{model.name}, {len(model.sensors)} sensors, batch {given.batch}, {STEPS} steps, {given.dtype}, {sim.device}"
    )
    print(
        f"rollout {1e3 * without:.2f} ms, with readings {1e3 * with_sensors:.2f} ms: {with_sensors / without - 1:+.1%}"
    )


if __name__ == "__main__":
    main()
