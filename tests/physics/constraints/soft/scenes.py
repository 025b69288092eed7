"""Scenes for the soft law, as MJCF: every type of row, a hand, closed loops."""

import mujoco
from benchmarks.parity import tight

import artigrad as ag

CONES = ("pyramidal", "elliptic")
INTEGRATORS = ("Euler", "implicitfast", "implicit", "RK4")


def _free(place, shape):
    return f'<body pos="{place}"><freejoint/>{shape}</body>'


def _ball(condim, more=""):
    return f'<geom type="sphere" size=".1" condim="{condim}" friction=".7 .01 .002" {more}/>'


BALLS = (
    _free("0 0 .098", _ball(1))
    + _free(".5 0 .097", _ball(3, 'solimp=".6 .97 .01 .3 3"'))
    + _free("1 0 .098", _ball(4, 'name="own" solref="-900 -30"'))
    + _free("1.5 0 .11", _ball(6, 'margin=".02" gap=".005" solref=".03 .8"'))
)
STICK = '<geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>'
EVERY_ROW = f"""
<mujoco><option cone="{{cone}}" impratio="{{impratio}}" timestep=".002" integrator="{{integrator}}"><flag {{flags}}/></option>
<worldbody><geom name="floor" type="plane" size="5 5 1" friction=".7 .01 .002"/>{BALLS}
  <body name="a" pos="2 0 1">
    <joint name="s" type="ball" limited="true" range="0 23" margin=".05" damping=".1" frictionloss=".05"/>{STICK}
    <body name="b" pos=".3 0 0">
      <joint name="h" axis="0 1 0" range="-30 30" frictionloss=".2" armature=".01" damping=".3"/>{STICK}
      <site name="tip" pos=".3 0 0" euler="10 20 30"/></body></body>
  <body pos="6 0 1"><joint type="ball" limited="true" range="0 3" margin=".02" frictionloss=".05"/>{STICK}
    <body pos=".3 0 0"><joint axis="0 1 0" range="-2 1" frictionloss=".2" solreflimit=".03 .9"/>{STICK}</body></body>
  <body name="c" pos="2.6 0.05 1"><joint name="x" type="slide" axis="1 0 0" frictionloss="1"/>
    <joint name="y" type="slide" axis="0 1 0"/><joint name="r" axis="0 0 1"/>
    <geom size=".05"/><site name="hub" euler="10 20 30"/></body>
  <body name="e" pos="3 0 1"><freejoint/><geom size=".05"/></body>
  <body name="f" pos="3.3 0 1"><freejoint/><geom size=".06"/></body>
  <body pos="4 0 1"><freejoint/><geom size=".1"/></body>
  <body pos="4 0.02 1.19"><freejoint/><geom size=".1" condim="6" friction="1 .01 .01"/></body>
  <body pos="4.5 0 1"><freejoint/><geom type="capsule" size=".05 .2"/></body>
  <body pos="4.5 0.09 1.05"><joint type="free" frictionloss="2"/><geom type="capsule" size=".05 .2" euler="30 40 0"/></body>
</worldbody>
<contact>
  <pair geom1="own" geom2="floor" condim="4" friction=".6 .7 .01 .002 .003" solreffriction=".04 1.2" solref=".03 1"/>
</contact>
<equality>
  <connect body1="b" body2="c" anchor=".3 0 0"/><connect body1="e" anchor="0 0.1 0"/>
  <weld body1="e" body2="f" torquescale="2.5" solref=".05 .7" solimp=".5 .9 .1 .4 2"/><weld site1="tip" site2="hub"/>
  <joint joint1="x" joint2="h" polycoef="0.01 .2 .3 0.1 .05"/><joint joint1="y" polycoef=".02 0 0 0 0"/>
</equality>
<actuator>
  <position joint="h" kp="50" kv="5"/><position joint="x" kp="50" kv="20" forcerange="-1 1"/>
  <velocity joint="r" kv="3" gear="2"/>
</actuator></mujoco>"""


def every_row(cone="pyramidal", integrator="Euler", impratio=2, flags=""):
    """A scene with contacts of all condims, both kinds of pairs, limits, dry friction and all equalities."""
    return EVERY_ROW.format(cone=cone, integrator=integrator, impratio=impratio, flags=flags)


def hand(cone="pyramidal", integrator="Euler"):
    """Five fingers of four joints with limits, dry friction and servos, around a ball; fingers touch it and each other."""
    joint = '<joint axis="{}" range="{}" frictionloss=".02" armature=".001" damping=".02" name="{}"/>'
    fingers, servos = "", ""
    for k in range(5):
        x, names = 0.03 * (k - 2), [f"f{k}_{j}" for j in range(4)]
        spread = joint.format("0 0 1", "-15 15", names[0])
        bends = [joint.format("1 0 0", "-5 95", name) for name in names[1:]]
        link = '<geom type="capsule" size=".008" fromto="0 0 0 0 .035 0" mass=".02"/>'
        fingers += f'<body pos="{x} .05 0">{spread}{bends[0]}{link}<body pos="0 .035 0">{bends[1]}{link}'
        fingers += f'<body pos="0 .035 0">{bends[2]}{link}</body></body></body>'
        servos += "".join(f'<position joint="{name}" kp="1" kv=".05" ctrlrange="-1 2"/>' for name in names)
    return f"""<mujoco><option cone="{cone}" timestep=".002" integrator="{integrator}"/><worldbody>
    <body pos="0 0 .2" euler="180 0 0"><geom type="capsule" size=".02" fromto="-.05 .02 0 .05 .02 0"/>{fingers}</body>
    <body pos="0 -.07 .155"><freejoint/><geom size=".03" mass=".1" friction="1 .005 .0001" condim="4"/></body></worldbody>
    <actuator>{servos}</actuator></mujoco>"""


def loops(cone="pyramidal", integrator="Euler"):
    """A four-bar linkage closed by connect, whose coupler carries a welded arm; it stands on the floor."""
    bar = '<geom type="capsule" size=".02" fromto="0 0 0 {} 0 {}" mass=".3"/>'
    hinge = '<joint axis="0 1 0" damping=".05" armature=".002" name="{}"/>'
    return f"""<mujoco><option cone="{cone}" timestep=".002" integrator="{integrator}"/><worldbody>
    <geom type="plane" size="3 3 1"/>
    <body name="base" pos="0 0 .3"><freejoint/><geom type="capsule" size=".03" fromto="-.2 0 0 .2 0 0" mass="1"/>
      <body name="crank" pos="-.15 0 0">{hinge.format("crank")}{bar.format("0", "-.15")}
        <body name="coupler" pos="0 0 -.15">{hinge.format("coupler")}{bar.format(".3", "0")}</body></body>
      <body name="rocker" pos=".15 0 0">{hinge.format("rocker")}{bar.format("0", "-.15")}</body></body>
    <body name="arm" pos="0 0.05 .15"><freejoint/><geom type="capsule" size=".02" fromto="0 0 0 0 .2 0" mass=".2"/></body>
    </worldbody>
    <contact><exclude body1="coupler" body2="rocker"/></contact>
    <equality><connect body1="coupler" body2="rocker" anchor=".3 0 0"/><weld body1="coupler" body2="arm"/></equality>
    <actuator><motor joint="crank" gear="2"/></actuator></mujoco>"""


def obstacles(cone="pyramidal", integrator="Euler"):
    """A capsule and a box on balls fixed to the world: the first shape of these pairs moves, the second does not."""
    ball = '<geom type="sphere" size=".1" pos="{}" condim="{}" friction=".6 .01 .01"/>'
    bar = '<geom type="capsule" size=".05 .2" euler="90 5 0" contype="0"/>'
    brick = '<geom type="box" size=".1 .1 .1" euler="3 2 0" contype="0"/>'
    return f"""<mujoco><option cone="{cone}" timestep=".002" integrator="{integrator}"/><worldbody>
    {ball.format("0 -.1 0", 3)}{ball.format("0 .1 .01", 6)}{ball.format(".5 0 0", 3)}
    {_free("0.02 0 .148", bar)}{_free(".5 .01 .198", brick)}</worldbody></mujoco>"""


def both(text, **options):
    """The scene here and in MuJoCo."""
    return ag.Simulator(ag.load(text), threads=1, **options), tight(mujoco.MjModel.from_xml_string(text))
