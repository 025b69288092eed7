"""Costs over orientations: first derivatives compared with differences."""

import numpy as np

import artigrad as ag
from artigrad.control import Goal, Quadratic
from artigrad.control.ik import _Residuals
from artigrad.model import tangent

from .outcome import Outcome

SUMMARY = (
    "Gradients of `control.Quadratic` (full weights, one target or one per control), of the goals of `ik` and of the residuals "
    "of `fit`, over free, ball and hinge joints up to half turns, against central differences."
)
COUNT, SAMPLE = 100_000, 2_000
TOLERANCE = 1e-7
BLOCK = 200  # cases of one model
NEAR_HALF_TURN = 1e-3  # rad: nearer, differences see both ways round


def search(count, seed):
    """Draw and check `count` cases."""
    outcome, rng = Outcome(), np.random.default_rng(seed)
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        kinds = ("cost", "cost", "cost over time", "goal", "fit")
        kind = kinds[(first // BLOCK) % len(kinds)]
        value, gradient, usable = CHECKS[kind](rng, size)
        errors = _errors(value, gradient)
        for k in range(size):
            if not usable[k]:
                outcome.counts["beside a half turn"] += 1
            elif errors[k] < TOLERANCE:
                outcome.counts[f"{kind}: equal to differences"] += 1
            else:
                outcome.counts[f"{kind}: wrong"] += 1
                outcome.findings.append(f"seed {seed}, block {first}, case {k}, {kind}: off by {errors[k]:.1e}")
    return outcome


def _errors(value, gradient):
    """Return the largest error of the gradient of each case (n, k), relative to its largest entry."""
    found = np.empty_like(gradient)
    for k, unit in enumerate(np.eye(gradient.shape[1])):
        fine, coarse = ((value(h * unit) - value(-h * unit)) / (2 * h) for h in (1e-4, 2e-4))
        found[:, k] = (4 * fine - coarse) / 3
    scale = np.maximum(np.abs(gradient).max(1), 1e-2 * np.sqrt(np.abs(value(0 * unit))) + 1e-6)
    return np.abs(found - gradient).max(1) / scale


def robot(joints):
    """Return a chain of bodies with these joints."""
    b, parent = ag.ModelBuilder("chain"), None
    for k, joint in enumerate(joints):
        axis = {"axis": (0.0, 0.6, 0.8)} if joint == "revolute" else {}
        place = {"parent": parent, "position": (0.1, 0.2, 0.1)} if parent else {}
        b.add_body(f"b{k}", joint=joint, mass=1.0, inertia=(0.1, 0.12, 0.15), **place, **axis)
        b.add_site(f"s{k}", f"b{k}", position=(0.3, -0.1, 0.2))
        parent = f"b{k}"
    return b.build()


def _model(rng):
    first = ["free", "spherical", "revolute"][rng.integers(3)]
    return robot((first, *rng.choice(["spherical", "revolute"], rng.integers(3))))


def _positions(rng, model, lead, reach):
    """Return positions whose quaternions are rotated by up to `reach` rad from the keyframe, small rotations included."""
    d = rng.normal(size=(*lead, model.nv))
    for _, j in tangent.quaternions(model):
        axis = d[..., j : j + 3]
        angle = reach * 10.0 ** (-3 * rng.random(lead) ** 2 * (rng.random(lead) < 0.5))
        d[..., j : j + 3] = axis / np.linalg.norm(axis, axis=-1, keepdims=True) * angle[..., None]
    return ag.integrate(model, model.keyframe().q, d)


def _weights(rng, n):
    """Return a number, a diagonal or a matrix, possibly not symmetric."""
    A = rng.normal(size=(n, n))
    return [rng.random(), rng.random(n) * 10.0 ** rng.integers(-3, 3, n), A @ A.T + A - A.T][rng.integers(3)]


def _apart(model, a, b):
    """Return True where no quaternions differ by nearly half a turn, (...)."""
    d = ag.difference(model, a, b)
    turns = [np.linalg.norm(d[..., j : j + 3], axis=-1) for _, j in tangent.quaternions(model)]
    return np.all([np.abs(x - np.pi) > NEAR_HALF_TURN for x in turns], axis=0) if turns else np.ones(d.shape[:-1], bool)


def _cost(rng, size, rows=None):
    model = _model(rng)
    n, lead = 2 * model.nv, (size,) if rows is None else (size, rows)
    target = ag.State(_positions(rng, model, lead[1:], 3.0), rng.normal(size=(*lead[1:], model.nv)))
    q, v = _positions(rng, model, lead, 3.1), rng.normal(size=(*lead, model.nv))
    for i, _ in tangent.quaternions(model):  # either sign is the same rotation
        q[..., i : i + 4] *= rng.choice([-1.0, 1.0], (*lead, 1))
    cost = Quadratic(model, target, Q=_weights(rng, n), R=1.0, final=_weights(rng, n))
    if rows is None:
        return (
            lambda d: cost.value(
                ag.integrate(model, q, np.broadcast_to(d[: model.nv], v.shape)), v + d[model.nv :], None
            ),
            cost.expand(q, v, None).x,
            _apart(model, target.q, q),
        )
    u = np.zeros((size, rows - 1, model.nu))
    at = int(rng.integers(rows - 1))

    def value(d):
        moved = q.copy(), v.copy()
        moved[0][:, at] = ag.integrate(model, q[:, at], np.broadcast_to(d[: model.nv], (size, model.nv)))
        moved[1][:, at] += d[model.nv :]
        return cost.value(*(x[:, :-1] for x in moved), u)[:, at]

    return value, cost.expand(q[:, :-1], v[:, :-1], u).x[:, at], _apart(model, target.q[at], q[:, at])


def _goal(rng, size):
    model = _model(rng)
    sim = ag.Simulator(model, threads=1)
    q, wanted = (_positions(rng, model, (size,), 3.0) for _ in range(2))
    there, body = sim.outputs(ag.State(wanted, np.zeros((size, model.nv)))), model.nb - 1
    goals = [Goal(model.sites[-1], there.site_position[:, -1], weight=3.0)]
    goals.append(Goal(model.bodies[body], rotation=there.body_rotation[:, body], rotation_weight=0.5))
    reach, every = _Residuals(sim, goals, q, False, None), np.arange(size)
    r, J = reach.residuals(q, every)

    def value(d):
        moved = ag.integrate(model, q, np.broadcast_to(d, (size, model.nv)))
        return 0.5 * np.sum(reach.residuals(moved, every, jacobian=False)[0] ** 2, 1)

    angle = 2.0 * np.linalg.norm(r[:, 3:], axis=1)
    return value, np.einsum("bk,bkn->bn", r, J), np.abs(angle - np.pi) > NEAR_HALF_TURN


def _fit(rng, size):
    """Return residuals of positions with the weights of `fit`, and the cotangent for the simulator."""
    model = _model(rng)
    measured, q = (_positions(rng, model, (size,), 3.1) for _ in range(2))
    scale = 10.0 ** rng.uniform(-2, 1, model.nv)

    def value(d):
        moved = ag.integrate(model, q, np.broadcast_to(d, (size, model.nv)))
        return 0.5 * np.sum((tangent.chord(model, measured, moved) / scale) ** 2, 1)

    bar = tangent.chord_vjp(model, measured, q, tangent.chord(model, measured, q) / scale**2)
    return value, tangent.to_tangent(model, q, bar), _apart(model, measured, q)


CHECKS = {
    "cost": _cost,
    "cost over time": lambda rng, size: _cost(rng, size, rows=4),
    "goal": _goal,
    "fit": _fit,
}
