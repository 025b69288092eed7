"""Every function under every transformation of PyTorch: values and derivatives of NumPy, or a refusal with its text.

The table in docs/pytorch.md is that of this file: `python -m tests.torch.test_transformations` prints it.
"""

import warnings
from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import forward_ad, functional
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

import artigrad as ag
import artigrad.torch as at
from artigrad.camera import Camera, RayScene, render
from artigrad.envs import DifferentiableEnv, EnvTask
from tests import transformations as cells
from tests.transformations import (
    DU,
    FIRST_ONLY,
    HESSIAN,
    MASS,
    MODEL,
    NO_GRADIENT,
    PENALTY,
    PRODUCT,
    SECOND,
    SIM,
    STEPS,
    TANGENT,
    X0,
    G,
    J,
    Y,
    page_table,
    reference,
    reference_of,
    table_of_page,
)

TOLERANCE = 1e-9


def tensor(x):
    return torch.tensor(np.array(x, float))


Q, DQ, V, DV, U, A, DA = map(tensor, (cells.Q, cells.DQ, cells.V, cells.DV, cells.U, cells.A, cells.DA))
W1, B1, W2, B2, M = map(tensor, (cells.W1, cells.B1, cells.W2, cells.B2, MASS))
POINT = tensor(X0)
ALONG = tensor(cells.ALONG)
LEAD = tensor([[0.0, 0.0, 0.0], [0.002, -0.003, 0.001]])  # two points


# -- functions of x ------------------------------------------------------------------------------------------------------
def state(x):
    return ag.State(Q + x[0] * DQ, V + x[0] * DV)


def control(x):
    return U + DU * x[1:2]


def params(x):
    return {"mass": M * (1.0 + 0.3 * x[2:])}


def controls(x):
    return control(x).expand(STEPS, MODEL.nu)


def parts(states):
    return torch.cat([states.q[1:].flatten(), states.v[1:].flatten()])


class Policy(nn.Module):
    """Policy whose output weights are x: those of another network, or fast weights."""

    def __init__(self, x):
        super().__init__()
        self.x = x

    def forward(self, q, v, t):
        hidden = torch.tanh(nn.functional.linear(torch.cat([q, v], -1), W1, B1))
        return torch.sin(nn.functional.linear(hidden, (1.0 + self.x[1]) * W2, B2))


def loop_rows(loop):
    return torch.cat([loop.q[1:], loop.v[1:], loop.u], -1).flatten()


class InsideLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(cells.N, 4), nn.Tanh(), nn.Linear(4, MODEL.nu)).double()

    def forward(self, x):
        return loop_rows(at.closed_loop(SIM, self.policy, state(x), STEPS, params=params(x)))


INSIDE, LAYER = InsideLoop(), at.PhysicsLayer(SIM, STEPS, learn=("mass",))
THETA = dict(LAYER.named_parameters())["params.theta.mass"].detach()


def closed_loop_inside(x):
    weights = {"policy.0.weight": W1, "policy.0.bias": B1, "policy.2.weight": (1.0 + x[1]) * W2, "policy.2.bias": B2}
    return functional_call(INSIDE, weights, (x,))


def layer(x):
    return parts(functional_call(LAYER, {"params.theta.mass": THETA + 0.3 * x[2]}, (state(x), controls(x))))


class Hold(EnvTask):
    """Environment of the robot; the observation is the state."""

    def __init__(self):
        self.model, self.options = MODEL, {"dt": SIM.dt}
        self.limit, self.frame_skip, self.max_episode_steps, self.observation_size = 10.0, STEPS, 100, cells.N

    def sample_initial_state(self, random, count):
        return Q.expand(count, -1), V.expand(count, -1)

    def observe(self, state):
        return torch.cat([state.q, state.v], -1)

    def reward(self, before, action, after):
        return after.v[:, 0] - action.square().sum(-1)

    def terminated(self, state):
        return state.q[:, 2] < 0.0


ENV = DifferentiableEnv(Hold(), 1, dtype="f64")
ENV.reset()
ENV_START = ENV.state


def environment(x):
    start = state(x)
    ENV.state = ENV_START._replace(q=start.q[None], v=start.v[None])
    step = ENV.step(control(x)[None])
    return torch.cat([step.next_observation[0], step.reward])


CAMERA = Camera.look_at((0.0, -2.0, 0.6), (0.2, 0.0, 0.1), fov=40.0, width=3, height=2)
SCENE = RayScene.of(MODEL, without=("floor", "belly"))


def camera(x):
    return render(SCENE, CAMERA, at.outputs(SIM, state(x)), soft=1.0).gray.flatten()


FUNCTIONS = {
    "step": lambda x: torch.cat(tuple(at.step(SIM, state(x), control(x), params=params(x)))),
    "rollout": lambda x: parts_by_kind(at.rollout(SIM, state(x), controls(x), params=params(x))),
    "checkpointed rollout": lambda x: torch.cat(
        tuple(at.rollout(SIM, state(x), controls(x), params=params(x), checkpoints=ag.EveryKth(2)))
    ),
    "closed_loop": lambda x: loop_rows(at.closed_loop(SIM, Policy(x), state(x), STEPS, params=params(x))),
    "closed_loop inside": closed_loop_inside,
    "PhysicsLayer": layer,
    "contacts": lambda x: at.contacts(SIM, state(x), control(x), params=params(x)).force.flatten(),
    "outputs": lambda x: torch.cat([y.flatten() for y in at.outputs(SIM, state(x), params=params(x))]),
    "sensors": lambda x: torch.cat(tuple(at.sensors(SIM, state(x), control(x), params=params(x)).values())),
    "mass_matrix": lambda x: at.mass_matrix(SIM, state(x), params=params(x)).flatten(),
    "inverse_dynamics": lambda x: at.inverse_dynamics(SIM, state(x), A + x[0] * DA, params=params(x)),
    "forward_dynamics": lambda x: at.forward_dynamics(SIM, state(x), control(x), params=params(x)),
    "linearize": lambda x: torch.cat([y.flatten() for y in at.linearize(SIM, state(x), control(x), params=params(x))]),
    "environment": environment,
    "camera": camera,
}
parts_by_kind = parts


@cache
def wanted(name):
    """Its reference; the camera's values are its own."""
    if name in cells.VALUES:
        return reference(name)
    if name == "environment":
        return reference_of(environment_in_numpy)
    with torch.no_grad():
        return reference_of(lambda X: np.stack([camera(tensor(x)).numpy() for x in X]))


def environment_in_numpy(X):
    start, u, _ = cells._given(X)
    traj = SIM.rollout(start, np.repeat(u[:, None], STEPS, 1))
    reward = traj.final.v[:, 0] - (u**2).sum(1)
    return np.concatenate([traj.final.q, traj.final.v, reward[:, None]], 1)


# -- transformations -----------------------------------------------------------------------------------------------------
def loss_of(f):
    return lambda x: f(x).sin().sum()


def leaf():
    return POINT.clone().requires_grad_()


def gradient(f, context=nullcontext, **more):
    x = leaf()
    with context():
        loss = loss_of(f)(x)
    return torch.autograd.grad(loss, x, **more)[0]


def backward(f):
    x = leaf()
    loss_of(f)(x).backward()
    return x.grad


def batched_gradients(f):
    x = leaf()
    y = f(x)
    return torch.autograd.grad(y, x, torch.eye(len(y), dtype=y.dtype), is_grads_batched=True)[0]


def gradient_penalty(f):
    """Derivative of |gradient|^2 / 2."""
    x = leaf()
    (g,) = torch.autograd.grad(loss_of(f)(x), x, create_graph=True)
    (g.square().sum() / 2).backward()
    return x.grad


def twice(f):
    x = leaf()
    loss = loss_of(f)(x)
    first = torch.autograd.grad(loss, x, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(loss, x)[0])
    return first


def dual(f):
    with forward_ad.dual_level():
        y = f(forward_ad.make_dual(POINT, ALONG))
        return forward_ad.unpack_dual(y).tangent


def third_order(f):
    return grad(lambda x: hessian(loss_of(f))(x).sum())(POINT)


def exported(f):
    class Module(nn.Module):
        def forward(self, x):
            return f(x)

    return torch.export.export(Module(), (POINT + 0.1,), strict=False).module()(POINT)


def compiled(f, full):
    torch._dynamo.reset()
    return gradient(torch.compile(f, backend="eager", fullgraph=full))


def two(f):
    return vmap(f)(POINT + LEAD)[0]


def scaled(f):
    scaler, x = torch.amp.GradScaler("cpu", init_scale=4.0), leaf()
    optimizer = torch.optim.SGD([x], lr=1.0)
    scaler.scale(loss_of(f)(x)).backward()
    scaler.step(optimizer)
    return POINT - x.detach()


def ensemble(f):
    """A gradient for each of several sets of weights, as of `stack_module_state`."""
    return vmap(grad(loss_of(f)), in_dims=1)((POINT + LEAD).T)[0]


def hooked(f):
    x, seen = leaf(), []
    x.register_hook(seen.append)
    loss_of(f)(x).backward()
    return seen[0]


def product(J, v):
    return J @ v


TRANSFORMATIONS = {
    "call": (Y, lambda f: f(POINT)),
    "no_grad": (Y, lambda f: torch.no_grad()(f)(POINT)),
    "inference_mode": (Y, lambda f: torch.inference_mode()(f)(POINT)),
    "backward": (G, backward),
    "autograd.grad": (G, gradient),
    "autograd.grad twice": (G, twice),
    "hooks of tensors": (G, hooked),
    "is_grads_batched": (J, batched_gradients),
    "create_graph, unused": (G, lambda f: gradient(f, create_graph=True).detach()),
    "gradient penalty": (PENALTY, gradient_penalty),
    "functional.jacobian": (J, lambda f: functional.jacobian(f, POINT)),
    "functional.jacobian, vectorize": (J, lambda f: functional.jacobian(f, POINT, vectorize=True)),
    "functional.jacobian, forward": (
        J,
        lambda f: functional.jacobian(f, POINT, vectorize=True, strategy="forward-mode"),
    ),
    "functional.hessian": (HESSIAN, lambda f: functional.hessian(loss_of(f), POINT)),
    "functional.hessian, vectorize": (HESSIAN, lambda f: functional.hessian(loss_of(f), POINT, vectorize=True)),
    "functional.vjp": (J, lambda f: torch.stack([functional.vjp(f, POINT, e)[1] for e in eye(f)])),
    "functional.jvp": (TANGENT, lambda f: functional.jvp(f, POINT, ALONG)[1]),
    "functional.hvp": (PRODUCT, lambda f: functional.hvp(loss_of(f), POINT, ALONG)[1]),
    "functional.vhp": (PRODUCT, lambda f: functional.vhp(loss_of(f), POINT, ALONG)[1]),
    "forward_ad": (TANGENT, dual),
    "grad": (G, lambda f: grad(loss_of(f))(POINT)),
    "vjp": (J, lambda f: vmap(vjp(f, POINT)[1])(torch.stack(eye(f)))[0]),
    "jvp": (TANGENT, lambda f: jvp(f, (POINT,), (ALONG,))[1]),
    "jacrev": (J, lambda f: jacrev(f)(POINT)),
    "jacrev, chunks": (J, lambda f: jacrev(f, chunk_size=2)(POINT)),
    "jacfwd": (J, lambda f: jacfwd(f)(POINT)),
    "func.linearize": (TANGENT, lambda f: torch.func.linearize(f, POINT)[1](ALONG)),
    "hessian (jacfwd of jacrev)": (HESSIAN, lambda f: hessian(loss_of(f))(POINT)),
    "jacrev of jacrev": (HESSIAN, lambda f: jacrev(jacrev(loss_of(f)))(POINT)),
    "jacrev of jacfwd": (HESSIAN, lambda f: jacrev(jacfwd(loss_of(f)))(POINT)),
    "jacfwd of jacfwd": (HESSIAN, lambda f: jacfwd(jacfwd(loss_of(f)))(POINT)),
    "jvp of grad": (PRODUCT, lambda f: jvp(grad(loss_of(f)), (POINT,), (ALONG,))[1]),
    "grad of jvp": (PRODUCT, lambda f: grad(lambda x: jvp(loss_of(f), (x,), (ALONG,))[1])(POINT)),
    "third order": (Y, third_order),
    "vmap": (Y, two),
    "vmap, chunks": (Y, lambda f: vmap(f, chunk_size=1)(POINT + LEAD)[0]),
    "vmap, other axes": (Y, lambda f: vmap(f, in_dims=1, out_dims=1)((POINT + LEAD).T)[:, 0]),
    "vmap of vmap": (Y, lambda f: vmap(vmap(f))((POINT + LEAD)[None])[0, 0]),
    "vmap of grad": (G, lambda f: vmap(grad(loss_of(f)))(POINT + LEAD)[0]),
    "vmap of grad, other axes": (G, ensemble),
    "vmap of hessian": (HESSIAN, lambda f: vmap(hessian(loss_of(f)))(POINT + LEAD)[0]),
    "grad of vmap": (G, lambda f: grad(lambda x: vmap(f)(x).sin().sum())(POINT + LEAD)[0]),
    "functionalize": (Y, lambda f: torch.func.functionalize(f)(POINT)),
    "make_fx": (Y, lambda f: make_fx(f)(POINT + 0.1)(POINT)),
    "make_fx of grad": (G, lambda f: make_fx(grad(loss_of(f)))(POINT + 0.1)(POINT)),
    "torch.compile": (G, lambda f: compiled(f, False)),
    "torch.compile, fullgraph": (G, lambda f: compiled(f, True)),
    "torch.export": (Y, exported),
    "torch.jit.trace": (Y, lambda f: torch.jit.trace(f, POINT + 0.1, check_trace=False)(POINT)),
    "checkpoint": (G, lambda f: gradient(lambda x: checkpoint(f, x, use_reentrant=False))),
    "checkpoint, reentrant": (G, lambda f: backward(lambda x: checkpoint(f, x, use_reentrant=True))),
    "save_on_cpu": (G, lambda f: gradient(f, torch.autograd.graph.save_on_cpu)),
    "detect_anomaly": (G, lambda f: gradient(f, torch.autograd.detect_anomaly)),
    "autocast": (G, lambda f: gradient(f, lambda: torch.autocast("cpu", enabled=True))),
    "GradScaler": (G, scaled),
}


def eye(f):
    with torch.no_grad():
        return list(torch.eye(len(f(POINT)), dtype=torch.float64))


def expected(name, kind):
    return wanted(name).of_kind(kind)


# -- refusals --------------------------------------------------------------------------------------------------------------
BRANCHES = "data-dependent"  # on whether an episode has ended
FORWARD = ("jacfwd", "functional.jacobian, forward")  # Jacobians by forward mode
OUTSIDE = "runs outside of compiled graphs: leave out fullgraph=True"
OUTSIDE_OF_GRAPHS = ("checkpointed rollout", "closed_loop", "closed_loop inside", "PhysicsLayer", "outputs", "camera")


def refused(name, title):
    """Text of the refusal of a cell, or None."""
    kind = TRANSFORMATIONS[title][0]
    if title == "functionalize":
        return "NYI: Functionalize rule for custom_function_call"  # of PyTorch, for every autograd.Function
    if title == "torch.jit.trace":
        if name in ("closed_loop inside", "PhysicsLayer"):
            return "The stateless API can't be used with Jitted modules"  # of PyTorch, for functional_call
        return "torch.jit.trace would make constants of results: trace with torch.export or torch.compile"
    if title == "jacfwd of jacfwd":
        return "forward mode of forward mode is not available"
    if name == "environment" and ("vmap" in title or title in TRACES):
        return BRANCHES
    if name == "linearize" and (title == "functional.jvp" or title == "third order"):
        return NO_GRADIENT
    if name == "linearize" and kind in (G, J, *SECOND) and title not in FORWARD:
        return NO_GRADIENT
    if name in ("sensors", "checkpointed rollout") and (kind in SECOND or title in ("functional.jvp", "third order")):
        return FIRST_ONLY
    if title == "third order":
        return "derivatives of third order are not available: take differences of second ones"
    if title == "torch.compile, fullgraph" and name in OUTSIDE_OF_GRAPHS:
        return OUTSIDE
    return None


TRACES = ("func.linearize", "make_fx", "make_fx of grad", "torch.compile, fullgraph", "torch.export")


def outcome(name, title):
    """Return the failure of a cell, or None if it is as in the table."""
    kind, run = TRANSFORMATIONS[title]
    scale, text = wanted(name).scale, refused(name, title)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run(lambda x: scale * FUNCTIONS[name](x)).detach().numpy()
    except Exception as error:
        if text is not None and text.lower() in str(error).lower():
            return None
        return f"{title}: {type(error).__name__}: {error}"
    if text is not None:
        return f"{title}: not refused"
    truth = expected(name, kind)
    if found.shape != truth.shape:
        return f"{title}: shape {found.shape} for {truth.shape}"
    error = np.abs(found - truth).max() / max(1.0, np.abs(truth).max())
    return None if error < TOLERANCE else f"{title}: error {error:.1e}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformations(name):
    found = [outcome(name, title) for title in TRANSFORMATIONS]
    assert not any(found), "\n".join(x for x in found if x)


def test_the_page_has_this_table():
    assert table_of_page("pytorch.md") == page_table(FUNCTIONS, TRANSFORMATIONS, refused)


if __name__ == "__main__":
    print(page_table(FUNCTIONS, TRANSFORMATIONS, refused))
