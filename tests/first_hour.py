"""First hour of a user: `python tests/first_hour.py`. Run by `make lowest` with the lowest versions that pyproject.toml allows.

Needs nothing but the default install. Loads, steps, differentiates, saves and checks robots, and calls the command line.
"""

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import mujoco
import numpy as np

import artigrad as ag

ARM = """<mujoco>
<option timestep="0.002"/>
<worldbody>
  <geom type="plane" size="2 2 0.1"/>
  <body pos="0 0 0.5"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/>
    <body pos="0.2 0 0">
      <joint name="elbow" axis="0 1 0" damping="0.1" range="-1 1"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
    </body>
  </body>
</worldbody>
<actuator>
  <position name="servo" joint="elbow" kp="20"/>
  <general joint="elbow" dyntype="filter" dynprm="0.1" gainprm="2"/>
</actuator>
<sensor><jointpos joint="elbow"/><framequat objtype="body" objname="world"/></sensor>
</mujoco>"""


def main():
    print({name: version(name) for name in ("numpy", "llvmlite", "mujoco", "rich", "typer")})
    model = ag.load(ARM)
    sim, u = ag.Simulator(model), np.tile([0.3, 0.1], (200, 1))
    traj = sim.rollout(sim.reset(), u)
    gradient = sim.vjp(traj, q_bar=np.ones(model.nq))
    assert np.isfinite(gradient.u).all() and np.abs(gradient.u).max() > 0
    ag.gradcheck(sim)

    m = mujoco.MjModel.from_xml_string(ARM)
    d = mujoco.MjData(m)
    d.ctrl[:] = u[0]
    for _ in range(200):
        mujoco.mj_step(m, d)
    assert np.abs(traj.q[-1] - d.qpos).max() < 1e-6, (traj.q[-1], d.qpos)

    batch = ag.Simulator(ag.robots.quadruped(), dtype="f32")
    assert np.isfinite(batch.rollout(batch.reset(batch=9), steps=5).q).all()
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "arm.xml"
        ag.save(model, saved)
        again = ag.Simulator(ag.load(saved))
        assert np.abs(again.rollout(again.reset(), u).q[-1] - traj.q[-1]).max() < 1e-9
        traj.save(Path(folder) / "motion.html")
        for command in (["--help"], ["info", str(saved)], ["check", str(saved)]):
            subprocess.run([sys.executable, "-m", "artigrad", *command], check=True, stdout=subprocess.DEVNULL)
    print("passed")


if __name__ == "__main__":
    main()
