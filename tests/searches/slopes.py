"""Gradients of one step compared with one-sided differences, for searches of states at rest."""

import itertools
from typing import NamedTuple

import numpy as np

import artigrad as ag

STEPS, RATIO = (1e-5, 1e-6, 1e-7, 1e-8), 10.0  # of differences, of which two follow each other by this
EQUAL = 1e-6  # relative error
NEAR = 1e-4  # m, differences see no kink further away
REST = 0.1  # m/s or rad/s, at most
WRONG, UNSETTLED = "wrong gradient", "not at rest"


def settled(sim, state, steps):
    """Return (q, v) after a number of steps, and a mask of those at rest."""
    final = sim.rollout(state, steps=steps).final
    q, v = np.asarray(final.q), np.asarray(final.v)
    return q, v, np.isfinite(q).all(1) & (np.abs(v).max(1) < REST)


def count_places(outcome, found, name):
    """Add the verdicts of the states of a scene to an outcome; failures are findings."""
    for k, (verdict, detail) in enumerate(found):
        outcome.counts[verdict] += 1
        if verdict == WRONG:
            outcome.findings.append(f"{name}, place {k}: {detail}")


def verdicts(sim, q, v):
    """Return (verdict, detail) of each state (n, nq), (n, nv), for velocities after one step times random weights."""
    model, n, nv = sim.model, len(q), sim.model.nv
    weights = np.random.default_rng(1).normal(size=nv)
    gradient = sim.vjp(sim.rollout(ag.State(q, v), steps=1), v_bar=np.tile(weights, (n, 1)))
    exact = np.concatenate([ag.to_tangent(model, q, gradient.q0), gradient.v0], axis=1)
    scale = np.maximum(1.0, np.abs(exact).max(1))[:, None]
    exact, margin = exact / scale, np.ravel(gradient.health.switch_margin) * sim.dt

    def value(d):
        """Return the loss (n, k) of each state displaced by each of d (n, k, 2 nv)."""
        k, d = d.shape[1], d.reshape(-1, 2 * nv)
        moved = ag.State(ag.integrate(model, np.repeat(q, k, 0), d[:, :nv]), np.repeat(v, k, 0) + d[:, nv:])
        return (sim.rollout(moved, steps=1).final.v @ weights).reshape(n, k) / scale

    each = _slopes(value, np.tile(np.eye(2 * nv), (n, 1, 1)))
    off = np.abs(each.limits - exact).max(1).min(0)
    wrong = (off > EQUAL) & each.smooth
    # a slope to every side need not be a gradient: along two directions at once it may be another than their sum
    mixed = np.random.default_rng(2).normal(size=(n, 3, 2 * nv)) * each.smooth[:, None]
    mixed /= np.maximum(np.linalg.norm(mixed, axis=2, keepdims=True), 1e-12)
    both = _slopes(value, mixed)
    sums = np.einsum("nkj,lsnj->lsnk", mixed, np.where(each.smooth, each.limits, 0.0))
    gaps = np.abs(both.limits - sums).max(1).min(0)
    linear = (gaps < 10 * EQUAL).all(1)
    out = []
    for k in range(n):
        j = int(np.argmax(np.where(wrong[k], off[k], 0.0)))
        if wrong[k].any() and linear[k]:
            out.append(
                (WRONG, f"{wrong[k].sum()} of {2 * nv}, direction {j} off by {off[k, j]:.1e}, margin {margin[k]:.1e} m")
            )
        elif wrong[k].any():
            out.append(("slopes that do not add up", f"direction {j} off by {off[k, j]:.1e}"))
        elif (off[k] < EQUAL).all():
            out.append(("equal" if margin[k] > 0.0 else "equal, margin 0", ""))
        elif margin[k] > NEAR:
            out.append(
                ("equal but for kinks beyond the margin", f"{margin[k]:.1e} m, direction {int(np.argmax(off[k]))}")
            )
        else:
            out.append(("equal but for kinks", str(np.flatnonzero(off[k] > EQUAL))))
    return out


class _Slopes(NamedTuple):
    """Limits of one-sided differences, from steps of several sizes (sizes, 2, n, k), and a mask of smooth ones (n, k).

    Smooth: the limits of two successive sizes agree, and both sides do. Otherwise there is a kink within the steps.
    """

    limits: np.ndarray
    smooth: np.ndarray


def _slopes(value, directions):
    here = value(0.0 * directions)
    slopes = [np.stack([(value(h * directions) - here) / h, (here - value(-h * directions)) / h]) for h in STEPS]
    limits = np.array([(RATIO * fine - coarse) / (RATIO - 1.0) for coarse, fine in itertools.pairwise(slopes)])
    smooth = [np.abs(a - b).max(0) + np.abs(a[0] - a[1]) < EQUAL for a, b in itertools.pairwise(limits)]
    return _Slopes(limits, np.any(smooth, axis=0))
