"""Checks of every case. A check returns a sentence about a failure, or None; it raises `Skip` if it is not applicable."""

import tempfile
import warnings
from pathlib import Path

import mujoco
import numpy as np
from benchmarks.parity import axes_meet, tight

import artigrad as ag
from artigrad.formats.names import Names
from artigrad.formats.save import INTEGRATORS
from artigrad.model.params import EXTRAS, FIELDS, Params
from artigrad.model.quaternions import matrix
from artigrad.simulate.gradcheck import STRUCTURAL, _on_an_edge, _scales

from ..beside import _agree, _contacts, _their_contacts
from .draw import IDLE

STEPS = (1e-4, 1e-5, 1e-6)
TOLERANCE = 2e-5
NEAR_A_KINK = 1e-6  # m/s
SHARED = 1e-5  # m/s: below this margin rounding decides how redundant rows of the hard law share a force
ROUNDED = 1e-4  # with hulls and tendons: MuJoCo's compiler rounds vertices, and finds weights of tendons by iteration


class Skip(Exception):
    """Exception with the reason why a check is not applicable to a case."""


# -- gradients -----------------------------------------------------------------------------------------------------------
def gradients(case):
    """Compare gradients of a random loss of all states with central differences.

    Entry by entry for states and controls; along a direction for each field of the parameters, and entry by entry where
    that fails.
    """
    check = _Differences(case)
    wrong = [line for what in ("q0", "v0", "u", *check.suspects(case.rng)) for line in check.wrong(what)]
    return "; ".join(wrong[:3]) or None


class _Differences:
    def __init__(self, case):
        self.sim, self.state, self.u, rng = case.sim, case.state, case.controls, case.rng
        model, steps = case.model, len(self.u)
        self.q_bar, self.v_bar = rng.normal(size=(steps + 1, model.nq)), rng.normal(size=(steps + 1, model.nv))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            traj = self.sim.rollout(self.state, self.u)
            grad = self.sim.vjp(traj, q_bar=self.q_bar, v_bar=self.v_bar)
        told = [str(w.message) for w in told if "touch where no joint can move them" not in str(w.message)]
        if told:
            raise Skip(f"warned: {told[0]}"[:60])
        if (traj.violation > 0).any() or (grad.health.violation > 0).any():
            raise Skip("contact was not solved, which is reported")
        if grad.health.switch_margin.min() < NEAR_A_KINK:
            raise Skip("beside a kink, which is reported")
        self.grad, self.floor = grad, max(1e-3, 1e-2 * float(np.abs(grad.v0).max(initial=0.0)))

    def value(self, what):
        if what in ("q0", "v0", "u"):
            found = {"q0": (self.state.q, self.grad.q0), "v0": (self.state.v, self.grad.v0), "u": (self.u, self.grad.u)}
            return found[what]
        return self.sim.params[what], self.grad.params[what]

    def losses(self, what, moves):
        """Return losses of the case with one input changed, a row per change."""
        x, n = self.value(what)[0], len(moves)
        given = {"q0": self.state.q, "v0": self.state.v, "u": self.u}
        q, v, u = (np.repeat(given[k][None], n, 0) for k in given)
        moved, params = np.repeat(x[None], n, 0) + moves.reshape(n, *x.shape), None
        if what in given:
            q, v, u = (moved if k == what else a for k, a in zip(given, (q, v, u), strict=True))
        else:
            params = self.sim.params.replace(unchecked=True, **{what: moved})
        return self.loss(q, v, u, params)

    def loss(self, q, v, u, params):
        state = ag.State(q, v, np.repeat(self.state.act[None], len(q), 0))
        traj = self.sim.rollout(state, u, params=params)
        return np.sum(traj.q * self.q_bar, (1, 2)) + np.sum(traj.v * self.v_bar, (1, 2))

    def slopes(self, what, entries, steps):
        """Return (forward, backward) differences along some entries."""
        size = self.value(what)[0].size
        moves = np.zeros((len(entries), size))
        moves[np.arange(len(entries)), entries] = steps
        here, up, down = np.split(
            self.losses(what, np.concatenate([np.zeros((1, size)), moves, -moves])), [1, 1 + len(entries)]
        )
        return (up - here) / steps, (here - down) / steps

    def suspects(self, rng):
        """Return fields of the parameters along a direction of which differences do not agree, from one batch."""
        model, params, rows, slopes, names = self.sim.model, self.sim.params, [], [], []
        for what in FIELDS:
            entries, scale = self.entries(what)
            if len(entries):
                start = model.param_slots[what][0] + entries
                along = np.zeros(model.param_size)
                along[start] = scale * rng.choice([-1.0, 1.0], len(entries))
                rows += [params.flat + h * along for h in (2e-5, -2e-5, 1e-5, -1e-5)]
                slopes.append(self.grad.params.flat[start] * along[start])
                names.append(what)
        q, v, u = (np.repeat(x[None], len(rows), 0) for x in (self.state.q, self.state.v, self.u))
        far_up, far_down, up, down = self.loss(q, v, u, Params(model, np.array(rows))).reshape(-1, 4).T
        found = (4 * (up - down) / 2e-5 - (far_up - far_down) / 4e-5) / 3
        for what, d, parts in zip(names, found, slopes, strict=True):
            if not abs(d - parts.sum()) < 0.5 * TOLERANCE * max(np.abs(parts).max(), self.floor):
                yield what

    def entries(self, what):
        """Return the entries of an input that central differences apply to, and the size of a change of each."""
        x = np.ravel(self.value(what)[0])
        usable, plain = np.isfinite(x), np.where(np.isfinite(x), x, 0.0)
        if what in ("q0", "v0", "u"):
            return np.flatnonzero(usable), np.ones(usable.sum())
        usable &= ~_on_an_edge(self.sim, what, plain)
        if what in STRUCTURAL:
            usable &= x > 0
        usable &= all(kind in self.sim.model.features or what not in names for kind, names in EXTRAS.items())
        scale = _scales(self.sim, self.state, what, plain)
        return np.flatnonzero(usable), np.where(scale > 0, scale, 1.0)[usable]

    def wrong(self, what):
        """Return sentences on entries that are wrong."""
        g = np.ravel(self.value(what)[1])
        entries, scale = self.entries(what)
        if not len(entries):
            return
        g = g[entries]
        central = {}
        for h in STEPS:
            coarse, fine = (np.mean(self.slopes(what, entries, k * h * scale), axis=0) for k in (2, 1))
            central[h] = (4 * fine - coarse) / 3
        found = np.array(list(central.values()))
        off = np.abs(found - g).min(0)
        largest = max(float(np.abs(found).max()), self.floor)
        bad = off > TOLERANCE * largest
        if bad.any():
            yield from self.sure(what, entries[bad], scale[bad], g[bad], found[:, bad])

    def sure(self, what, entries, scale, g, found):
        """Return those of the suspected entries where differences of all sizes and from both sides agree."""
        sides = np.array([self.slopes(what, entries, h * scale) for h in (1e-6, 1e-7)])
        central = np.concatenate([found[1:], sides.mean(1)])
        off = np.abs(central - g).min(0)
        smooth = (np.ptp(central, axis=0) < 0.2 * off) & (np.abs(sides[:, 0] - sides[:, 1]).min(0) < 0.2 * off)
        for k in np.flatnonzero(smooth):
            yield f"gradient of {what}[{entries[k]}] is {g[k]:.6g}, differences say {central[0, k]:.6g}"


# -- physics -------------------------------------------------------------------------------------------------------------
def mujoco_step(case):
    """Compare one step of the saved model in MuJoCo with one of the loaded model.

    A file has joints in the order of its tree. MuJoCo steps without contacts that no joint can move, as it multiplies their
    rounding by a stiffness of 1e15.
    """
    sim, u = case.sim, case.controls[:1]
    if sim.options.law.name != "soft" or sim.options.integrator not in INTEGRATORS:
        raise Skip("MuJoCo has no such law or integrator")
    if not case.model.nv:
        raise Skip("nothing moves")
    without = case.changed(calls=tuple(c for c in case.calls if c.method == "body" or c.args[:1] != (IDLE,)))
    loaded, _ = _saved(case)
    ours = sim.rollout(case.state, u)
    if ours.violation[0] > 0:
        return f"one step has a violation of {ours.violation[0]:.1e}"
    start = case.state_of(loaded.model)
    again = loaded.step(start, u[0])
    q, v = _ordered(case.model, loaded.model, ours.final)
    change = max(np.abs(v - start.v).max(), 9.81 * sim.dt)  # at rest, of what forces cancel
    off = np.abs(again.v - v).max() / change
    if not off < 1e-6:
        return f"the saved model, loaded again, steps differently: by {off:.1e} of the change of velocities"
    other, m = _saved(without)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = start.q, start.v, u[0]
    if m.na:
        d.act[:] = start.act
    mujoco.mj_forward(m, d)
    touching = _contacts(other, other.rollout(start.map(lambda x: x[None]), u[None])), _their_contacts(m, d, Names(m))
    if not _agree(touching[0][0], touching[1]) and _different_contacts(m, d, *touching):
        raise Skip("MuJoCo has other points of solids")
    if axes_meet(m, d, 1e-3):
        raise Skip("two shapes have one center")
    mujoco.mj_step(m, d)
    allowed = ROUNDED if m.nmesh or m.nwrap else 1e-6
    off = np.abs(v - d.qvel).max() / change
    if not off < allowed:
        return f"velocities differ from MuJoCo's by {off:.1e} of their change"
    off = np.abs(q - d.qpos).max()
    return f"positions differ from MuJoCo's by {off:.1e}" if not off < allowed else None


def _saved(case):
    """Return a simulator of the saved model, and MuJoCo's model of it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        path = Path(folder) / "case.xml"
        warnings.filterwarnings("ignore", message=".*no contact between|the file has the joints|.*vertices of hulls")
        ag.save(case.model, path)
        m = tight(mujoco.MjModel.from_xml_path(str(path)))
        return ag.Simulator(ag.load(path, strict=False), threads=1), m


def _ordered(model, like, state):
    """Return a state in the joint order of another model."""
    q, v = state.q, state.v
    rows = [(model.joints.index(name), like.joint_kind(i)) for i, name in enumerate(like.joints)]
    q = [q[model.joint_q[i] : model.joint_q[i] + kind.nq] for i, kind in rows]
    return np.concatenate(q), np.concatenate([v[model.joint_v[i] : model.joint_v[i] + kind.nv] for i, kind in rows])


def _different_contacts(m, d, ours, theirs):
    """Return whether all contacts that differ are those of solids, of which MuJoCo may have other points."""
    box, plane, sphere, capsule = (
        int(getattr(mujoco.mjtGeom, f"mjGEOM_{x}")) for x in ("BOX", "PLANE", "SPHERE", "CAPSULE")
    )
    closed = {(plane, sphere), (plane, capsule), (sphere, sphere), (sphere, capsule), (capsule, capsule), (sphere, box)}
    kinds = {
        frozenset(Names(m).geom[g] for g in c.geom): tuple(sorted(m.geom_type[c.geom].tolist())) for c in d.contact
    }
    for pair in ours[0].keys() | theirs.keys():
        if kinds.get(pair) in closed and not _agree(
            {pair: ours[0].get(pair, np.zeros((0, 4)))}, {pair: theirs.get(pair)}
        ):
            return False
    return True


DRIVES = ("motor", "position_servo", "velocity_servo", "actuator", "muscle", "spatial_tendon")
DRIVES += ("connect", "weld", "joint_coupling")


def energy(case):
    """Check that the energy of a passive robot never exceeds its first value, from a state without active rows.

    Rows dissipate energy or store it. A step may have an error that vanishes with dt.
    """
    case = case.changed(calls=tuple(filter(None, map(_left_alone, case.calls))))
    model, state = case.model, case.state
    if not model.nv:
        raise Skip("nothing moves")
    sim = ag.Simulator(
        model, dt=1e-4, threads=1, **({"integrator": "euler"} if model.options.law.name == "soft" else {})
    )
    traj = sim.rollout(state, steps=400)
    if model.shapes.pairs and (sim.contacts(traj).force[0] != 0).any():
        raise Skip("touches from the beginning")
    for i in model.shapes.limited:
        low, high = model.params.limit[i] + model.params.limit_margin[i] * np.array([1.0, -1.0])
        if np.isfinite(high) and not (model.joint_kind(i).axial and low <= state.q[model.joint_q[i]] <= high):
            raise Skip("beyond a limit from the beginning, or on a ball joint with one")
    out = sim.outputs(ag.State(traj.q, traj.v))
    total = out.kinetic_energy + out.potential_energy
    allowed = 0.02 * (out.kinetic_energy.max() + np.ptp(out.potential_energy)) + 1e-6
    gained = float((total - total[0]).max())
    return (
        f"energy grows by {gained:.2e} J, of {out.kinetic_energy.max():.2e} J in motion"
        if not gained <= allowed
        else None
    )


def _left_alone(call):
    """Return the call without actuation and holding, with the floor a centimeter lower."""
    if call.method in DRIVES:
        return None
    if call.method != "plane":
        return call
    normal = matrix(np.array(call.options.get("rotation", (1.0, 0.0, 0.0, 0.0))))[:, 2]
    lower = np.array(call.options.get("position", np.zeros(3))) - 0.01 * normal
    return call._replace(options=call.options | {"position": lower.tolist()})


# -- bits ----------------------------------------------------------------------------------------------------------------
def _results(sim, state, u, rng_seed=0, **how):
    """Return states and gradients of a rollout; those of parameters, which are sums over a batch, separately."""
    traj = sim.rollout(state, u, **how)
    rng, lead = np.random.default_rng(rng_seed), traj.final.q.shape[:-1]
    q_bar, v_bar, *act_bar = (np.broadcast_to(rng.normal(size=x.shape[-1]), x.shape) for x in traj.final)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grad = sim.vjp(traj, q_bar=q_bar, v_bar=v_bar, act_bar=act_bar[0] if act_bar else None)
    assert lead == grad.q0.shape[:-1]
    return {"final q": traj.final.q, "final v": traj.final.v, "q0": grad.q0, "v0": grad.v0, "u": grad.u}, grad


def bits(case):
    """Check that a robot has the same bits alone and in a batch, in both dtypes, with any checkpoints and threads."""
    for dtype in ("f64", "f32") if case.seed % 3 == 0 else ("f64",):
        sim = ag.Simulator(case.model, dtype=dtype, threads=1)
        rng, count = case.rng, sim.lanes + 2
        state = ag.State(
            ag.integrate(
                case.model, np.repeat(case.state.q[None], count, 0), 0.02 * rng.normal(size=(count, case.model.nv))
            ),
            case.state.v + 0.2 * rng.normal(size=(count, case.model.nv)),
            np.repeat(case.state.act[None], count, 0),
        )
        state.q[0], state.v[0] = case.state.q, case.state.v
        u = np.repeat(case.controls[None], count, 0)
        whole, _ = _results(sim, state, u)
        for k in (0, count - 1):
            alone, _ = _results(sim, state.map(lambda x, k=k: x[k]), u[k])
            for name, x in alone.items():
                if not np.array_equal(whole[name][k], x, equal_nan=True):
                    return f"{dtype}: {name} of robot {k} of {count} differs from the same robot alone"
    sim = case.sim
    every, grad = _results(sim, case.state, case.controls)
    state_bytes = 8 * max(1, case.model.nq + case.model.nv + case.model.na)
    for policy in (ag.EveryKth(2), ag.Binomial(memory=3 * state_bytes)):
        some, other = _results(sim, case.state, case.controls, checkpoints=policy)
        for name, x in (some | {"params": other.params.flat}).items():
            if not np.array_equal((every | {"params": grad.params.flat})[name], x, equal_nan=True):
                return f"{name} differs with {policy}"
    return None


def backends(case):
    """Compare NumPy with native code, where results are unique.

    Redundant hard rows are distinguished by their softness only, and have unbounded forces where a shape is jammed.
    """
    sim, hard, u = case.sim, case.sim.options.law.name == "hard", case.controls[: min(1, case.steps)]
    traj, tolerance = sim.rollout(case.state, u), 1e-4 if hard else 1e-8
    if (traj.violation > 0).any():
        raise Skip("contact was not solved, which is reported")
    weight = 9.81 * case.model.params.mass.sum()
    if hard and case.model.shapes.pairs and (np.abs(sim.contacts(traj).force) > 1e5 * weight).any():
        raise Skip("jammed with 100,000 times its weight")
    results = []
    for sim in (case.sim, ag.Simulator(case.model, backend="numpy")):
        found, grad = _results(sim, case.state, u)
        if hard and grad.health.switch_margin[0] < SHARED:
            raise Skip("beside a kink, which is reported")
        results.append(found | {"params": grad.params.flat})
    for name, x in results[0].items():
        off = np.abs(x - results[1][name]).max(initial=0.0) / max(1.0, np.abs(x).max(initial=0.0))
        if not off < tolerance:
            if _begins_by_rounding(case, u):
                raise Skip("a contact at a distance of zero, which rounding decides")
            if name == "params" and _differ_in_vertices(case.model, *(found[name] for found in results), tolerance):
                raise Skip("vertices of flat faces, each at a kink, of which rounding decides the side")
            return f"{name}: numpy differs from native by {off:.1e}"
    return None


def _begins_by_rounding(case, u):
    """Return whether NumPy and native code differ in contacts at a distance of zero alone."""
    simulators = case.sim, ag.Simulator(case.model, backend="numpy")
    a, b = (np.ravel(sim.contacts(sim.rollout(case.state, u)).gap) for sim in simulators)
    other = np.abs(a - b) > 1e-9
    return other.any() and (np.minimum(np.abs(a), np.abs(b))[other] < 1e-12).all()


def _differ_in_vertices(model, a, b, tolerance):
    """Return whether gradients of the parameters agree but for those of vertices of meshes."""
    others = np.ones(len(a), bool)
    start = model.param_slots["vertex"][0]
    others[start : start + model.params.vertex.size] = False
    return np.abs(a - b)[others].max(initial=0.0) < tolerance * max(1.0, np.abs(a).max(initial=0.0))


CHECKS = {"gradients": gradients, "mujoco": mujoco_step, "energy": energy, "bits": bits, "backends": backends}
