"""Functions of a small robot in contact, of three numbers x, with their derivatives by differences in NumPy; and a table of
functions and transformations, which the documentation has.

x moves the hinge and the velocity, adds to the control, and scales masses (or weights of a policy).
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import artigrad as ag
from tests.family import MODEL

SIM = ag.Simulator(MODEL, dt=0.005)
STEPS = 3
X0 = np.array([0.3, -0.2, 0.1])
ALONG = np.array([0.7, -1.1, 0.4])  # direction of tangents and products
H = 0.01  # between the points that differences are made of
EIGHT = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # of order eight

# kinds of results of a transformation, and refusals of the second ones
Y, J, G, HESSIAN, PRODUCT, TANGENT = "values", "Jacobian", "gradient", "Hessian", "Hessian product", "tangent"
PENALTY = "H g"
SECOND = (HESSIAN, PRODUCT, PENALTY)
FIRST_ONLY = "has first derivatives only: take differences of its gradient for second ones"
NO_GRADIENT = (
    "the Jacobians of linearize have no gradient, which would be a second derivative: take differences of them"
)

_rng = np.random.default_rng(3)
_q = ag.integrate(MODEL, SIM.reset().q, 0.003 * _rng.normal(size=MODEL.nv))
_q[2] -= 0.002
Q, V = _q, 0.3 * _rng.normal(size=MODEL.nv)
DQ = np.zeros(MODEL.nq)
DQ[7] = 0.1
DV, U, A, DA = (_rng.normal(size=n) for n in (MODEL.nv, MODEL.nu, MODEL.nv, MODEL.nv))
DU = 2.0
V[2], DV[2] = -0.2, 0.1
N = MODEL.nq + MODEL.nv
W1, B1 = 0.5 * _rng.normal(size=(4, N)), 0.1 * _rng.normal(size=4)
W2, B2 = 1.0 * _rng.normal(size=(MODEL.nu, 4)), 0.1 * _rng.normal(size=MODEL.nu)
MASS = np.array(MODEL.params.mass)


def _given(X):
    """States, controls and parameters for rows of x."""
    state = ag.State(Q + X[:, :1] * DQ, V + X[:, :1] * DV)
    flat = np.repeat(MODEL.params.flat[None], len(X), 0)
    params = ag.Params(MODEL, flat).replace(mass=MASS * (1.0 + 0.3 * X[:, 2:]))
    return state, U + DU * X[:, 1:2], params


def _rows(*parts):
    return np.concatenate([np.asarray(x).reshape(len(x), -1) for x in parts], 1)


def _step(X):
    state, u, params = _given(X)
    traj = SIM.rollout(state, u[:, None], params=params)
    return _rows(traj.final.q, traj.final.v)


def _rollout(X):
    state, u, params = _given(X)
    traj = SIM.rollout(state, np.repeat(u[:, None], STEPS, 1), params=params)
    return _rows(traj.q[:, 1:], traj.v[:, 1:])


def _layer(X):
    state, u, _ = _given(X)
    flat = np.repeat(MODEL.params.flat[None], len(X), 0)
    params = ag.Params(MODEL, flat).replace(mass=MASS * np.exp(0.3 * X[:, 2:]))
    traj = SIM.rollout(state, np.repeat(u[:, None], STEPS, 1), params=params)
    return _rows(traj.q[:, 1:], traj.v[:, 1:])


def _closed_loop(X, last=lambda x: x):
    state, _, params = _given(X)
    rows = []
    for _ in range(STEPS):
        hidden = np.tanh(np.concatenate(state, 1) @ W1.T + B1)
        u = last(np.einsum("b,bh,uh->bu", 1.0 + X[:, 1], hidden, W2) + B2)
        state = SIM.rollout(state, u[:, None], params=params).final
        rows += [state.q, state.v, u]
    return _rows(*rows)


def _contacts(X):
    state, u, params = _given(X)
    return _rows(SIM.contacts(SIM.rollout(state, u[:, None], params=params)).force)


def _outputs(X):
    state, _, params = _given(X)
    out = SIM.outputs(state, params=params)
    return _rows(*out)


def _sensors(X):
    state, u, params = _given(X)
    return _rows(*SIM.sensors(state, u, params=params).values())


def _inverse_dynamics(X):
    state, _, params = _given(X)
    return _rows(SIM.inverse_dynamics(state, A + X[:, :1] * DA, params=params))


def _linearize(X):
    state, u, params = _given(X)
    return _rows(*SIM.linearize(state, u, params=params))


VALUES = {
    "step": _step,
    "rollout": _rollout,
    "checkpointed rollout": lambda X: _rollout(X)[:, [*_last(MODEL.nq, 0), *_last(MODEL.nv, STEPS * MODEL.nq)]],
    "closed_loop": lambda X: _closed_loop(X, np.sin),
    "closed_loop inside": _closed_loop,
    "PhysicsLayer": _layer,
    "contacts": _contacts,
    "outputs": _outputs,
    "sensors": _sensors,
    "mass_matrix": lambda X: _rows(SIM.mass_matrix(_given(X)[0], params=_given(X)[2])),
    "inverse_dynamics": _inverse_dynamics,
    "forward_dynamics": lambda X: _rows(SIM.forward_dynamics(_given(X)[0], _given(X)[1], params=_given(X)[2])),
    "linearize": _linearize,
}


def _last(n, start):
    return range(start + (STEPS - 1) * n, start + STEPS * n)


@dataclass(frozen=True)
class Reference:
    """Values y (m,) in a unit in which they are of order one (scale), their Jacobian (m, 3), and the gradient and Hessian of
    the loss sum(sin(y))."""

    scale: float
    y: np.ndarray
    jacobian: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray

    def of_kind(self, kind):
        """Return the result of one kind."""
        return {
            Y: lambda: self.y,
            J: lambda: self.jacobian,
            G: lambda: self.gradient,
            HESSIAN: lambda: self.hessian,
            PRODUCT: lambda: self.hessian @ ALONG,
            TANGENT: lambda: self.jacobian @ ALONG,
            PENALTY: lambda: self.hessian @ self.gradient,
        }[kind]()


def reference_of(values):
    """Return derivatives by differences of order eight of values((N, 3)) = (N, m)."""
    scale = 1.0 / max(1.0, np.abs(values(X0[None])).max())
    moves = np.concatenate([s * k * H * np.eye(3) for k in EIGHT for s in (1, -1)])
    weights = np.concatenate([s * c / H * np.eye(3) for c in EIGHT.values() for s in (1, -1)])

    def jacobian(points, function):
        """(N, m, 3) for points (N, 3)."""
        found = function((points[:, None] + moves).reshape(-1, 3)).reshape(len(points), len(moves), -1)
        return np.einsum("nkm,kj->nmj", found, weights)

    def loss(points):
        return np.sin(scale * values(points)).sum(1, keepdims=True)

    at = X0[None]
    hessian = jacobian(at, lambda points: jacobian(points, loss)[:, 0])[0]
    return Reference(scale, scale * values(at)[0], scale * jacobian(at, values)[0], jacobian(at, loss)[0, 0], hessian)


@cache
def reference(name):
    """The function of this name, from NumPy."""
    return reference_of(VALUES[name])


def page_table(functions, transformations, refused):
    """Lines of Markdown: a row for each transformation, a column for each function."""
    notes = []
    lines = ["| | " + " | ".join(f"`{name}`" for name in functions) + " |", "| --- |" + " --- |" * len(functions)]
    for title in transformations:
        cells = []
        for name in functions:
            text = refused(name, title)
            if text is None:
                cells.append("yes")
                continue
            if text not in notes:
                notes.append(text)
            cells.append(f"no ({notes.index(text) + 1})")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f'{k}. "{text}"' for k, text in enumerate(notes, 1))])


def table_of_page(page):
    """The table between the marks of a page of the documentation."""
    text = (Path(__file__).parent.parent / "docs" / page).read_text()
    return text.split("<!-- table -->\n")[1].split("\n<!-- end of table -->")[0].strip()
