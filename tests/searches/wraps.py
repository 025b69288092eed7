"""Tendons around spheres and cylinders: lengths and moments compared with MuJoCo, gradients with differences."""

import mujoco
import numpy as np

import artigrad as ag

from .outcome import Outcome

SUMMARY = (
    "Tendons around a sphere and a cylinder, with and without a side site: lengths and moments beside MuJoCo; gradients of "
    "lengths and of velocities by state, radius and places of sites beside differences. Side sites outside, inside, at the "
    "surface, on the axis; strings that graze; ends inside, at the surface, at the center, coincident, in line with the center."
)
COUNT, SAMPLE = 20_000, 1_000
LENGTH, MOMENT, GRADIENT = 1e-9, 1e-7, 1e-6  # tolerances: m, relative to the largest entry, relative
INSIDE = 3e-6  # of moments where the string is reflected inside: MuJoCo's iteration stops at 1e-6
BLOCK = 250  # states of four tendons each
SMALL = 0.05  # m, the radius

PATHS = {"ball": "", "drum": "", "sided_ball": 'sidesite="s"', "sided_drum": 'sidesite="s"'}
ROBOT = (
    '<mujoco><option gravity="0 0 0"/><default><geom contype="0" conaffinity="0"/></default><worldbody>'
    f'<body name="shape"><freejoint/><geom name="ball" size="{SMALL}"/>'
    f'<geom name="drum" type="cylinder" size="{SMALL} .02"/></body>'
    + "".join(
        f'<body name="of_{k}"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
        f'<joint type="slide" axis="0 0 1"/><geom size=".01"/><site name="{k}"/></body>'
        for k in "abs"
    )
    + "</worldbody><tendon>"
    + "".join(
        f'<spatial name="{name}"><site site="a"/><geom geom="{name.split("_")[-1]}" {side}/><site site="b"/></spatial>'
        for name, side in PATHS.items()
    )
    + "</tendon><sensor>"
    + "".join(f'<{kind} name="{kind}_{k}" tendon="{k}"/>' for kind in ("tendonpos", "tendonvel") for k in PATHS)
    + "</sensor></mujoco>"
)


def search(count, seed):
    """Draw and check `count` tendons."""
    outcome, rng, model = Outcome(), np.random.default_rng(seed), ag.load(ROBOT)
    sim, m = ag.Simulator(model, threads=1), mujoco.MjModel.from_xml_string(ROBOT)
    for first in range(0, count, BLOCK * len(PATHS)):
        size = min(BLOCK, -(-(count - first) // len(PATHS)))
        kinds, places = zip(*(_draw(rng) for _ in range(size)), strict=True)
        state = _state(rng, np.array(places))
        where = f"seed {seed}, block {first}"
        hollow = [np.linalg.norm(s) < 1.0 + 1e-9 for _, _, s in places]
        _beside_mujoco(outcome, m, sim, state, kinds, hollow, where, rng)
        sines = [
            np.linalg.norm(np.cross(a, b)) / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-9) for a, b, _ in places
        ]
        _beside_differences(outcome, sim, state, kinds, np.array(sines) < 1e-3, where, rng)
    return outcome


# -- draws, in the frame of the shape, radius 1 --------------------------------------------------------------------------
def _direction(rng, like=None):
    x = rng.normal(size=3)
    x = x if like is None else x - like * (x @ like)
    return x / np.linalg.norm(x)


def _tiny(rng):
    return rng.choice([0.0, 1.0, -1.0]) * 10.0 ** rng.uniform(-13, -2)


def _anywhere(rng):
    return _direction(rng) * 10.0 ** rng.uniform(-0.3, 1.0)


def _draw(rng):
    """Return a kind of case, and the positions of a, b and the side site."""
    a, b, s = _anywhere(rng), _anywhere(rng), _anywhere(rng)
    axis = np.array([0.0, 0.0, 1.0])
    kind = rng.choice(
        ["any", "inner", "grazing", "side", "end", "line", "wedge"], p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.1, 0.05]
    )
    if kind in ("inner", "grazing"):
        s = _direction(rng) * rng.random() if kind == "inner" or rng.random() < 0.5 else s
    if kind == "grazing":  # passes the center, or the axis, at about the radius
        normal = _direction(rng, axis)
        along = _direction(rng, normal)
        start = normal * (1.0 + abs(_tiny(rng)) * rng.choice([1.0, -1.0]))
        a, b = start - along * 10.0 ** rng.uniform(-1, 1), start + along * 10.0 ** rng.uniform(-1, 1)
    elif kind == "side":
        s = rng.choice(4)
        s = [_direction(rng) * (1.0 + _tiny(rng)), axis * 3.0 * rng.random(), 0.0 * axis, a * (1.0 + _tiny(rng))][s]
    elif kind == "end":
        which = rng.choice(5)
        a = [
            _direction(rng) * (1.0 + _tiny(rng)),
            _direction(rng) * rng.random(),
            0.0 * axis,
            axis * 2.0,
            b + _tiny(rng),
        ][which]
    elif kind == "line":  # with the center
        a = b * rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-1, 1) + _direction(rng) * _tiny(rng)
    elif kind == "wedge":  # the border between the ways around
        s = -a * (0.3 + rng.random()) + _direction(rng) * _tiny(rng)
    return kind, (a, b, s)


def _state(rng, places):
    """Return states with the shape rotated and translated, half of them without."""
    size = len(places)
    turn = rng.normal(size=(size, 4)) * (rng.random(size) < 0.5)[:, None]
    turn[:, 0] += np.where(np.any(turn, 1), 0.0, 1.0)
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    shift = rng.normal(size=(size, 3)) * np.any(turn[:, 1:], 1)[:, None]
    x = np.empty((size, 3, 3))
    for k in range(size):
        R = np.empty(9)
        mujoco.mju_quat2Mat(R, turn[k])
        x[k] = shift[k] + SMALL * places[k] @ R.reshape(3, 3).T
    return ag.State(np.concatenate([shift, turn, x.reshape(size, 9)], 1), rng.normal(size=(size, 15)))


# -- beside MuJoCo ------------------------------------------------------------------------------------------------------
def _read(m, d, q):
    """Return MuJoCo's lengths and moments."""
    d.qpos[:] = q
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    mujoco.mj_tendon(m, d)
    dense = np.zeros((m.ntendon, m.nv))
    mujoco.mju_sparse2dense(dense, d.ten_J, m.ten_J_rownnz, m.ten_J_rowadr, m.ten_J_colind)
    return d.ten_length.copy(), dense


def _beside_mujoco(outcome, m, sim, state, kinds, hollow, where, rng):
    d, names = mujoco.MjData(m), list(PATHS)
    found = sim.sensors(state)
    moments = [sim.sensors_vjp(state, {f"tendonpos_{n}": np.ones((len(kinds), 1))}).q for n in names]
    moments = np.stack([ag.model.tangent.to_tangent(sim.model, state.q, x) for x in moments], 1)
    for k, kind in enumerate(kinds):
        lengths, J = _read(m, d, state.q[k])
        near = None
        for t, name in enumerate(names):
            long, velocity = found[f"tendonpos_{name}"][k, 0], found[f"tendonvel_{name}"][k, 0]
            scale = np.abs(J[t]).max() + 1e-3
            by = INSIDE if hollow[k] and "sided" in name else MOMENT
            error = max(np.abs(moments[k, t] - J[t]).max(), 0.1 * abs(velocity - J[t] @ state.v[k])) / scale
            if abs(long - lengths[t]) < LENGTH and error < by:
                outcome.counts[f"{kind}: equal to MuJoCo"] += 1
                continue
            if near is None:  # MuJoCo's within what rounding is in other places
                near = [_read(m, d, state.q[k] + 1e-12 * h * rng.normal(size=16)) for h in (0, *[1] * 30)]
            if _within(near, t, long, moments[k, t], scale):
                outcome.counts[f"{kind}: MuJoCo's differ as much within 1e-12 m, ours is one of them"] += 1
            else:
                outcome.counts[f"{kind}: not MuJoCo's"] += 1
                errors = f"length off by {long - lengths[t]:.1e}, moment by {error:.1e}"
                outcome.findings.append(f"{where}, state {k}, {kind}, {name}: {errors}")


def _within(near, t, length, moment, scale):
    """Return True if a length and a moment are among MuJoCo's nearby, or as close as those are to each other."""
    lengths, moments = np.array([x[t] for x, _ in near]), np.array([j[t] for _, j in near])
    off = np.abs(moments - moment).max(1)
    same = off < np.maximum(1e-4 * scale, np.minimum(np.ptp(moments, axis=0).max(), 0.4 * scale))
    return bool(np.any((np.abs(lengths - length) < 1e-5 * SMALL) & same))


# -- beside differences -----------------------------------------------------------------------------------------------------
def _differences(f):
    """Return the derivative of f(h), an array, at 0, and a mask of smooth entries."""
    h = 1e-5
    x = {k: f(k * h) for k in (-2, -1, -0.5, 0, 0.5, 1, 2)}
    coarse, middle, fine = ((x[k] - x[-k]) / (2 * k * h) for k in (2, 1, 0.5))
    bends = [np.abs(x[k] + x[-k] - 2 * x[0]) / (k * h) for k in (2, 0.5)]  # between the slopes of both sides
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    scale = 1.0 + np.abs(second)
    same = np.abs(second - first) < 0.1 * GRADIENT * scale
    for h, within in ((1e-6, 0.3 * GRADIENT), (1e-8, 1e-3)):  # no kink nearer, either
        same &= np.abs((f(h) - f(-h)) / (2 * h) - second) < within * scale
    return second, same & (bends[1] < 0.3 * bends[0] + 0.1 * GRADIENT * scale)


def _beside_differences(outcome, sim, state, kinds, in_line, where, rng):
    """Compare gradients with differences.

    in_line: of each state, True if both ends of a string are in line with the center of a sphere, where the direction
    jumps.
    """
    model, size = sim.model, len(kinds)
    every = [f"{kind}_{n}" for n in PATHS for kind in ("tendonpos", "tendonvel")]
    apart = np.array([["ball" not in n for n in every]]) | ~in_line[:, None]
    step = SMALL * rng.normal(size=(size, model.nv))

    def values(q, params=None):
        read = sim.sensors(ag.State(q, state.v), params=params)
        return np.stack([read[n][:, 0] for n in every], 1) / SMALL

    along, smooth = _differences(lambda h: values(ag.integrate(model, state.q, h * step)))
    for n, name in enumerate(every):
        grad = sim.sensors_vjp(state, {name: np.full((size, 1), 1.0 / SMALL)}).q
        found = np.sum(ag.model.tangent.to_tangent(model, state.q, grad) * step, 1)
        errors = np.abs(found - along[:, n]) / (1.0 + np.abs(along[:, n]))
        for k, kind in enumerate(kinds):
            if not smooth[k, n] or not apart[k, n]:
                outcome.counts["gradients: beside a kink"] += 1
            elif errors[k] < GRADIENT:
                outcome.counts["gradients: equal to differences"] += 1
            else:
                outcome.counts["gradients: wrong"] += 1
                outcome.findings.append(f"{where}, state {k}, {kind}, {name}: gradient off by {errors[k]:.1e}")
    params, names = model.params, ("piece_radius", "site_position")
    d = {n: SMALL * rng.normal(size=params[n].shape) * (n == "site_position" or params[n] != 0) for n in names}
    along, smooth = _differences(
        lambda h: values(state.q, params.replace(unchecked=True, **{n: params[n] + h * x for n, x in d.items()}))
    )
    weight = rng.normal(size=smooth.shape) * (smooth & apart)
    grad = sim.sensors_vjp(state, {n: weight[:, k : k + 1] / SMALL for k, n in enumerate(every)}).params
    error = sum(np.sum(grad[n] * x) for n, x in d.items()) - np.sum(weight * along)
    error /= np.abs(weight * along).sum()
    outcome.counts[
        f"gradients by parameters of a block: {'equal to differences' if abs(error) < GRADIENT else 'wrong'}"
    ] += 1
    if not abs(error) < GRADIENT:
        outcome.findings.append(f"{where}: gradient by parameters off by {error:.1e}")
