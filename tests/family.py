"""Functions common to PyTorch and JAX, each as a function of all its inputs; a small robot in contact to test them."""

import numpy as np

import artigrad as ag

SENSORS = (
    '<gyro site="imu"/><accelerometer site="imu"/><framepos objtype="site" objname="imu"/><jointpos joint="hinge"/>'
)
ROBOT = f"""<mujoco model="crawler"><worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body name="base" pos="0 0 0.195"><freejoint/><geom name="belly" size="0.2"/>
      <body name="arm" pos="0.3 0 0"><joint name="hinge" axis="0 1 0" damping="0.1" armature="0.01"/>
        <geom name="lump" type="capsule" size="0.05 0.1" pos="0.1 0 0"/><site name="imu" pos="0.2 0.1 0" euler="10 20 30"/>
    </body></body></worldbody>
    <actuator><motor joint="hinge"/></actuator><sensor>{SENSORS}</sensor></mujoco>"""
MODEL = ag.load(ROBOT)
STEPS = 3
FIELDS = ("mass", "com", "friction")

# f: artigrad.torch or artigrad.jax; s: a state; x: other inputs by name; p: params
CALLS = {
    "step": lambda f, sim, s, x, p: f.step(sim, s, x["u"], wrench=x["wrench"], params=p),
    "rollout": lambda f, sim, s, x, p: f.rollout(sim, s, x["us"], wrench=x["wrenches"], params=p),
    "checkpoints": lambda f, sim, s, x, p: f.rollout(
        sim, s, x["us"], wrench=x["wrenches"], params=p, checkpoints=ag.EveryKth(2)
    ),
    "contacts": lambda f, sim, s, x, p: (f.contacts(sim, s, x["u"], wrench=x["wrench"], params=p).force,),
    "outputs": lambda f, sim, s, x, p: tuple(f.outputs(sim, s, params=p)),
    "sites": lambda f, sim, s, x, p: (f.sites(sim, s, params=p),),
    "sensors": lambda f, sim, s, x, p: tuple(f.sensors(sim, s, x["u"], params=p).values()),
    "mass_matrix": lambda f, sim, s, x, p: (f.mass_matrix(sim, s, params=p),),
    "inverse_dynamics": lambda f, sim, s, x, p: (f.inverse_dynamics(sim, s, x["a"], params=p),),
    "forward_dynamics": lambda f, sim, s, x, p: (f.forward_dynamics(sim, s, x["u"], params=p),),
}
READS = {"step": ("u", "wrench"), "rollout": ("us", "wrenches"), "checkpoints": ("us", "wrenches")}
READS |= {"contacts": ("u", "wrench"), "sensors": ("u",), "forward_dynamics": ("u",), "inverse_dynamics": ("a",)}


def inputs(lead=(2,), seed=0):
    """Return arrays by name: states of robots that slide on the floor, with wrenches; and fields of params."""
    rng, m = np.random.default_rng(seed), MODEL
    q = np.array(ag.Simulator(m).reset().q)
    q = ag.integrate(m, np.broadcast_to(q, (*lead, m.nq)), 0.003 * rng.normal(size=(*lead, m.nv)))
    shapes = {
        "v": (m.nv,),
        "u": (m.nu,),
        "us": (STEPS, m.nu),
        "a": (m.nv,),
        "wrench": (m.nb, 6),
        "wrenches": (STEPS, m.nb, 6),
    }
    arrays = {name: 0.3 * rng.normal(size=(*lead, *shape)) for name, shape in shapes.items()}
    return {"q": q} | arrays | {name: np.array(m.params[name]) for name in FIELDS}


def of_all(name, f, sim):
    """Return the call as a function of (q, v, other inputs, fields), and their names."""
    names = ("q", "v", *READS.get(name, ()), *FIELDS)

    def call(*arrays):
        x = dict(zip(names, arrays, strict=True))
        return tuple(CALLS[name](f, sim, ag.State(x["q"], x["v"]), x, {k: x[k] for k in FIELDS}))

    return call, names
