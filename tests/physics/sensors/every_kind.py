"""A model with a sensor of every kind, and states with nonzero readings."""

import numpy as np

import artigrad as ag
from artigrad.model import tangent

DATA = "found force torque dist pos normal tangent linvel angvel"
SITE = ("velocimeter", "gyro", "magnetometer", "accelerometer", "force", "torque")
FRAMES = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
SENSORS = (
    '<jointpos joint="hinge"/><jointvel joint="hinge"/><ballquat joint="ball"/><ballangvel joint="ball"/>'
    + "".join(f'<{kind} objtype="site" objname="imu"/>' for kind in FRAMES)
    + "".join(f'<{kind} objtype="site" objname="imu" reftype="site" refname="palm"/>' for kind in FRAMES)
    + "".join(f'<{kind} site="imu"/>' for kind in SITE)
    + '<framelinacc objtype="site" objname="imu"/><frameangacc objtype="site" objname="palm"/><gyro site="palm" cutoff=".5"/>'
    + "".join(f'<subtree{what} body="arm"/>' for what in ("com", "linvel", "angmom"))
    + '<touch site="palm"/><rangefinder site="eye" data="dist dir origin point depth"/>'
    + '<insidesite site="palm" objtype="body" objname="hand"/><clock/><e_potential/><e_kinetic/>'
    + "".join(
        f'<tendon{what} tendon="path"/>' for what in ("pos", "vel", "actuatorfrc", "limitpos", "limitvel", "limitfrc")
    )
    + "".join(f'<jointlimit{what} joint="{joint}"/>' for what in ("pos", "vel", "frc") for joint in ("hinge", "ball"))
    + '<actuatorpos actuator="pull"/><actuatorvel actuator="pull"/><actuatorfrc actuator="pull"/>'
    + '<jointactuatorfrc joint="hinge"/>'
    + f'<contact subtree1="arm" num="2" data="{DATA}"/><contact geom1="fist" reduce="netforce" data="found force torque pos"/>'
    + "".join(f'<{kind} geom1="lump" geom2="stone" cutoff="3"/>' for kind in ("distance", "normal", "fromto"))
)
TEXT = f"""<mujoco><option magnetic="0.1 -0.5 0.3"/>
    <asset><mesh name="stone" vertex="-.1 0 0  .2 0 0  0 .3 0  0 0 .2  .1 .1 .3"/></asset>
    <worldbody><geom name="floor" type="plane" size="3 3 1"/><site name="hook" pos="0 0 1.4"/>
      <geom name="stone" type="mesh" mesh="stone" pos="-.6 -.5 .3" contype="0" conaffinity="0"/>
    <body name="arm" pos="0 0 .5"><joint name="hinge" axis="0 1 .1" damping=".1" range="-5 .5" solreflimit=".02 1"/>
      <geom name="lump" type="box" size=".1 .08 .12" pos=".1 .1 0"/><site name="imu" pos=".2 .1 0" euler="10 20 30"/>
      <site name="eye" pos="0 0 .3" euler="175 5 0"/>
      <geom name="drum" type="cylinder" size=".06 .2" pos=".1 0 .3" euler="90 0 0"/>
      <body name="hand" pos=".4 0 -.2"><joint name="ball" type="ball" range="0 1" solreflimit=".2 1"/>
        <geom name="fist" size=".1" pos=".1 0 -.22" condim="6"/><site name="palm" pos=".1 0 -.2" size=".3" euler="5 10 15"/>
      </body></body></worldbody>
    <contact><exclude body1="arm" body2="hand"/></contact>
    <tendon><spatial name="path" stiffness="3" damping=".2" range="0 1.3" limited="true" solreflimit=".03 1">
      <site site="hook"/><geom geom="drum"/><site site="palm"/></spatial></tendon>
    <actuator><motor name="pull" tendon="path" gear="2"/><motor joint="hinge"/></actuator>
    <sensor>{SENSORS}</sensor></mujoco>"""


def states(model, batch, seed=0):
    """States near the keyframe, and controls."""
    rng = np.random.default_rng(seed)
    q = tangent.integrate(
        model, np.tile(model.keyframe().q, (batch, 1)), 0.02 + 0.05 * rng.uniform(size=(batch, model.nv))
    )
    return ag.State(q, 0.1 * rng.normal(size=(batch, model.nv))), rng.normal(size=(batch, model.nu))
