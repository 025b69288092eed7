"""The hard law beside its equations, checked by a separate program, and beside one-sided differences."""

import warnings

import numpy as np

import artigrad as ag

from .outcome import Outcome

SUMMARY = (
    "One step of free spheres, boxes and capsules of 1e-6 to 1e6 kg that lie on, hit, slide on and lean at each other and a "
    "floor, under both cones, with restitution of 0 to 1. From the reported forces, points and normals a separate program "
    "checks the balance of momentum, the conditions of contact and friction (relative to the velocities, 1e-7) and that "
    "impulses do no more work than position correction and weight where something bounces. Gradients are compared with "
    "one-sided differences at 1e-5, 1e-7 and 1e-9: wherever these differ from the gradient, `health.switch_margin` has to be "
    "less than four times the displacement over dt and the change of velocities."
)
COUNT, SAMPLE = 2_000, 30
BLOCK, DT, SOFTNESS, ERP, SLOP, OUT = 10, 1e-3, 1e-6, 0.2, 1e-4, 1.0
CLOSE, DIFFERS = 1e-7, 1e-2
GRAVITY = np.array([0.0, 0.0, -9.81])


def search(count, seed):
    """Draw and check `count` states."""
    outcome, rng = Outcome(), np.random.default_rng(seed)
    for first in range(0, count, BLOCK):
        scene = _scene(rng)
        for k, (what, finding) in enumerate(_check(rng, *scene)):
            if first + k < count:
                outcome.counts[what] += 1
                outcome.findings += [f"seed {seed}, state {first + k}: {finding}"] if finding else []
    return outcome


def _scene(rng):
    """Three bodies in a heap: model, options of contact, masses, inertias."""
    mu, e = rng.uniform(0, 1), rng.choice([0.0, 0.0, rng.uniform(0.2, 1), 1.0])
    b = ag.ModelBuilder("heap")
    b.add_plane(friction=mu, restitution=e, name="floor")
    masses, inertias = 10.0 ** rng.uniform(-6, 6) * 10.0 ** rng.uniform(-1.5, 1.5, 3), []
    for k, m in enumerate(masses):
        inertias.append(m * rng.uniform(0.6, 1.2, 3) * 0.005)
        b.add_body(f"b{k}", joint="free", mass=m, inertia=tuple(inertias[-1]))
        material = {"friction": mu, "restitution": e, "name": f"s{k}"}
        kind = rng.choice(["sphere", "box", "capsule"])
        if kind == "box":
            b.add_box(f"b{k}", (0.1, 0.08, 0.06), **material)
        elif kind == "sphere":
            b.add_sphere(f"b{k}", 0.09, **material)
        else:
            b.add_capsule(f"b{k}", 0.07, 0.1, **material)
    return b.build(), mu, e, masses, np.array(inertias), str(rng.choice(["pyramidal", "elliptic"]))


def _check(rng, model, mu, e, masses, inertias, cone):
    """Yield the outcome of each state, and a finding or None."""
    sim = ag.Simulator(model, dt=DT, law="hard", cone=cone, threads=1)
    q, v = np.zeros((BLOCK, 3, 7)), rng.normal(size=(BLOCK, 3, 6)) * 10.0 ** rng.uniform(-3, 0, (BLOCK, 1, 1))
    q[..., :2], q[..., 2] = rng.uniform(-0.1, 0.1, (BLOCK, 3, 2)), 0.11 + 0.17 * np.arange(3)
    q[..., 3:] = rng.normal(size=(BLOCK, 3, 4)) * 10.0 ** rng.uniform(-3, 0, (BLOCK, 1, 1)) + [1, 0, 0, 0]
    q[..., 3:] /= np.linalg.norm(q[..., 3:], axis=-1, keepdims=True)
    start = sim.rollout(
        ag.State(q.reshape(BLOCK, -1), 0.2 * v.reshape(BLOCK, -1)), steps=int(rng.integers(60, 300))
    ).final
    v[..., 2], v[..., 3:] = -np.abs(v[..., 2]) - 0.1, 6 * v[..., 3:]
    kicked = (rng.random(BLOCK) < 0.5)[:, None] * v.reshape(BLOCK, -1)
    for k in range(BLOCK):
        state = ag.State(start.q[k], start.v[k] + kicked[k])
        traj = sim.rollout(state, steps=1)
        if traj.violation[0] > 1e-8:
            yield "not solved, and reported", None
            continue
        bodies = masses, inertias, mu, e, cone
        finding = _equations(sim, traj, state, bodies) or _gradient(rng, sim, traj, state)
        touches = (sim.contacts(traj).along[0, :, 0] > 0).sum()
        yield ("solved, with contacts" if touches else "solved, in flight"), finding


def _turn(q):
    a, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - a * z), 2 * (x * z + a * y)],
            [2 * (x * y + a * z), 1 - 2 * (x * x + z * z), 2 * (y * z - a * x)],
            [2 * (x * z - a * y), 2 * (y * z + a * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _equations(sim, traj, state, bodies):
    """Momentum, contact, friction and energy from the reported contacts, by Newton's and Euler's equations."""
    masses, inertias, mu, e, cone = bodies
    rows = sim.contacts(traj)
    q, v = state.q.reshape(3, 7), state.v.reshape(3, 6)
    turns = [_turn(x[3:]) for x in q]
    places = sim.contact_names
    touching = [k for k in range(len(places)) if np.abs(rows.force[0, k]).max() > 0]
    force, moment = np.zeros((3, 3)), np.zeros((3, 3))
    sides = {}
    for k in touching:
        sides[k] = [None if name == "floor" else int(name[1:]) for name in places[k][:2]]
        for sign, i in zip((-1, 1), sides[k], strict=True):
            if i is not None:
                force[i] += sign * rows.force[0, k]
                moment[i] += sign * np.cross(rows.point[0, k] - q[i, :3], rows.force[0, k])
    after = np.zeros((3, 6))  # velocities at the end, in the frame of the start
    for i, (m, inertia, R) in enumerate(zip(masses, inertias, turns, strict=True)):
        w = v[i, 3:]
        after[i, :3] = v[i, :3] + DT * (GRAVITY + force[i] / m)
        after[i, 3:] = w + DT * (R.T @ moment[i] - np.cross(w, inertia * w)) / inertia
    scale = 0.1 + np.abs(v).max() + np.abs(traj.final.v).max()
    off = np.abs(after - traj.final.v.reshape(3, 6)).max()
    if off > CLOSE * scale:
        return f"momentum off by {off:.1e}"
    power, bounced = 0.0, False
    for k in touching:
        n, point, along = rows.normal[0, k], rows.point[0, k], DT * rows.along[0, k]

        def velocity(x, k=k, point=point):
            total = np.zeros(3)
            for sign, i in zip((-1, 1), sides[k], strict=True):
                if i is not None:
                    total += sign * (x[i, :3] + np.cross(turns[i] @ x[i, 3:], point - q[i, :3]))
            return total

        soft = SOFTNESS * sum(1 / masses[i] for i in sides[k] if i is not None)
        before, now, gap = velocity(v), velocity(after), rows.gap[0, k]
        rest = -(gap + ERP * SLOP) / DT if gap > 0 else min(-ERP * (gap + SLOP) / DT, OUT)
        g = before @ n
        bounces = e > 0 and gap + DT * g < 0 and g < -1e-2 and -e * g > rest
        w = now @ n + soft * along[0] - rest
        bounced |= bounces
        slip = now - n * (now @ n)
        tangent = DT * (rows.force[0, k] - n * (rows.force[0, k] @ n))
        power += 0.5 * along[0] * (g + now @ n) + 0.5 * tangent @ (before + now)
        power -= along[0] * (max(rest, 0.0) + (1 + mu) * DT * 9.81)  # position correction, weight
        small = CLOSE * scale
        most_of_a_bounce = -e * g - rest if bounces else 0.0
        if along[0] < 0 or not -small < w < most_of_a_bounce + small:
            return f"normal {k} of {places[k]}: velocity {w:.1e}, impulse {along[0]:.1e}, gap {gap:.1e}"
        most = mu * along[0]
        size = np.linalg.norm(tangent) if cone == "elliptic" else np.abs(along[1:]).max()
        sticks, beyond = size < most * (1 - 1e-5), size - most * (1 + 1e-6)
        against = max(tangent @ slip / max(np.linalg.norm(tangent), 1e-300), 0.0)
        wrong = np.linalg.norm(slip + soft * tangent) if sticks else against
        if beyond > 1e-12 * along[0] or wrong > small:
            return f"friction {k}: sticks {sticks}, off by {wrong:.1e} m/s, beyond its bound by {beyond:.1e}"
    if bounced and power > CLOSE * sum(masses) * scale**2:
        return f"impulses do the work {power:.1e} J"
    return None


def _gradient(rng, sim, traj, state):
    """One-sided differences of the velocities along a random direction."""
    nv = sim.model.nv
    bar, d = rng.normal(size=nv), rng.normal(size=2 * nv) / np.sqrt(2 * nv)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad = sim.vjp(traj, v_bar=bar, with_params=False)
    slope = np.concatenate([ag.to_tangent(sim.model, state.q, grad.q0), grad.v0])
    margin, scale = float(grad.health.switch_margin[0]), 1 + np.abs(slope).max()

    def after(h):
        return sim.step(ag.State(ag.integrate(sim.model, state.q, h * d[:nv]), state.v + h * d[nv:])).v @ bar

    here = after(0.0)
    for h in (1e-5, 1e-7, 1e-9):
        for side in (1, -1):
            off = abs((after(side * h) - here) / (side * h) - slope @ d)
            if off > DIFFERS * scale + 3e-8 / h and margin > 4 * (h / DT + h * scale):
                return f"margin {margin:.1e}, off by {off / scale:.1e} at {side * h:g}"
    return None
