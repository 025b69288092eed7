"""Makes the pictures of docs/camera.md: `MUJOCO_GL=egl python docs/images/camera.py`.

The same scene by MuJoCo's renderer and by ours, and how an edge fades.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import torch
from PIL import Image

import artigrad as ag
import artigrad.torch as at
from artigrad.camera import Camera, RayScene, render

HERE = Path(__file__).parent
XML = """
<mujoco>
  <asset><texture name="sky" type="skybox" builtin="flat" rgb1="0.78 0.85 0.93" width="8" height="8"/></asset>
  <visual><headlight ambient="0.4 0.4 0.4" diffuse="0.2 0.2 0.2" specular="0 0 0"/></visual>
  <worldbody>
    <light directional="true" dir="-0.35 0.55 -1" diffuse="0.6 0.6 0.6" specular="0 0 0"/>
    <camera name="side" pos="0.4 -3.4 1.5" xyaxes="1 0.1 0 -0.03 0.3 1" fovy="40"/>
    <geom type="plane" size="3 3 0.1" rgba="0.75 0.78 0.82 1"/>
    <body name="cart" pos="0 0 0.25">
      <joint type="slide" axis="1 0 0"/><geom type="box" size="0.35 0.2 0.1" rgba="0.27 0.52 0.84 1"/>
      <geom type="cylinder" size="0.1 0.03" pos="0.2 -0.22 -0.12" euler="90 0 0" rgba="0.2 0.22 0.26 1"/>
      <geom type="cylinder" size="0.1 0.03" pos="-0.2 -0.22 -0.12" euler="90 0 0" rgba="0.2 0.22 0.26 1"/>
      <body name="pole"><joint axis="0 1 0"/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 1" rgba="0.93 0.94 0.96 1"/>
        <geom size="0.14" pos="0 0 1.05" rgba="0.96 0.55 0.16 1"/></body>
    </body>
    <body pos="-1.1 0.3 0.25"><freejoint/><geom type="ellipsoid" size="0.4 0.25 0.25" rgba="0.16 0.62 0.56 1"/></body>
    <body pos="1.3 0.4 0.3" euler="20 15 40"><freejoint/><geom type="box" size="0.3 0.3 0.3" rgba="0.95 0.72 0.22 1"/></body>
  </worldbody>
</mujoco>"""
WIDTH, HEIGHT = 480, 300


def by_mujoco(q: np.ndarray) -> np.ndarray:
    m = mujoco.MjModel.from_xml_string(XML)
    d = mujoco.MjData(m)
    d.qpos = q
    mujoco.mj_forward(m, d)
    with mujoco.Renderer(m, HEIGHT, WIDTH) as renderer:
        renderer.update_scene(d, camera="side")
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        return renderer.render().copy()


def by_us(model: ag.Model, q: np.ndarray, soft: float, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    sim = ag.Simulator(model)
    bodies = at.outputs(sim, (torch.tensor(q), torch.zeros(model.nv, dtype=torch.float64)))
    camera = Camera.of(model, "side", width=width, height=height)
    return as_bytes(render(RayScene.of(model), camera, bodies, soft=soft).rgb)


def as_bytes(rgb: torch.Tensor) -> np.ndarray:
    return (255 * rgb.detach().clamp(0, 1)).round().byte().numpy()


def main() -> None:
    model = ag.load(XML)
    q = model.keyframe().q
    q[1] = 0.5
    gap = np.full((HEIGHT, 6, 3), 255, np.uint8)
    Image.fromarray(np.concatenate([by_mujoco(q), gap, by_us(model, q, 1.0)], axis=1)).save(HERE / "camera.png")
    small = [by_us(model, q, soft, WIDTH // 6, HEIGHT // 6) for soft in (0.0, 1.0, 4.0)]
    big = [np.repeat(np.repeat(x, 4, 0), 4, 1) for x in small]
    gap = np.full((len(big[0]), 6, 3), 255, np.uint8)
    Image.fromarray(np.concatenate([big[0], gap, big[1], gap, big[2]], axis=1)).save(HERE / "soft.png")


if __name__ == "__main__":
    main()
