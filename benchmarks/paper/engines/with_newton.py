"""Newton: Featherstone with penalty contacts, and a Warp tape over all steps. f32."""

import time

import numpy as np
import warp as wp
from common import DT, FOLDER, Q_BAR, V_BAR, Q, U, V, report

wp.config.quiet = True
import newton  # noqa: E402  (it loads Warp, which shall be quiet)

wp.set_device("cpu")
begin = time.process_time()
builder = newton.ModelBuilder()
shape = builder.default_shape_cfg
shape.mu, shape.ke, shape.kd, shape.kf = 1.0, 4e4, 1e2, 3e2  # with more friction or damping the feet chatter
builder.add_mjcf(str(FOLDER / "masked.xml"))
model = builder.finalize(requires_grad=True)
solvers = [newton.solvers.SolverFeatherstone(model) for _ in U]  # each keeps its mass matrix, for the backward pass
names = [label.rsplit("/", 1)[-1] for label in builder.joint_label]
order = [f"{leg}_{part}" for leg in ("fr", "fl", "rr", "rl") for part in ("hip", "upper", "lower")]
joints = [names.index(name) for name in order]
at_q = [0, 1, 2, 6, 3, 4, 5, *model.joint_q_start.numpy()[joints]]  # its quaternion is x, y, z, w
at_v = [*range(6), *model.joint_qd_start.numpy()[joints]]


def array(values, places):
    """Return q or v in the order of Newton."""
    out = np.empty(len(values), np.float32)
    out[places] = values
    return wp.array(out, dtype=float)


def control(u):
    out = model.control(requires_grad=True)
    wanted = out.joint_target_q.numpy()  # as many as coordinates, the free joint's too
    wanted[at_q[7:]] = u
    out.joint_target_q.assign(wanted)
    return out


states, controls = [model.state(requires_grad=True) for _ in range(len(U) + 1)], [control(u) for u in U]
states[0].joint_q.assign(array(Q, at_q))
states[0].joint_qd.assign(array(V, at_v))
newton.eval_fk(model, states[0].joint_q, states[0].joint_qd, states[0])
# contact pairs are computed once, as in the gradient examples of Newton; how deep they are is found in every step
pipeline = newton.CollisionPipeline(model, broad_phase="explicit", rigid_contact_max=8, requires_grad=False)
contacts = pipeline.contacts()
pipeline.collide(states[0], contacts)
loss = wp.zeros(1, dtype=float, requires_grad=True)
q_bar, v_bar = array(Q_BAR, at_q), array(V_BAR, at_v)


@wp.kernel
def weigh(x: wp.array(dtype=float), bar: wp.array(dtype=float), out: wp.array(dtype=float)):
    k = wp.tid()
    wp.atomic_add(out, 0, x[k] * bar[k])


def forward():
    for solver, now, after, control in zip(solvers, states, states[1:], controls, strict=False):
        now.clear_forces()
        solver.step(now, after, control, contacts, DT)
    return float(states[-1].joint_q.numpy()[2])


def gradient():
    tape = wp.Tape()
    with tape:
        forward()
        wp.launch(weigh, dim=len(Q), inputs=[states[-1].joint_q, q_bar], outputs=[loss])
        wp.launch(weigh, dim=len(V), inputs=[states[-1].joint_qd, v_bar], outputs=[loss])
    tape.backward(loss)
    u_bar = np.stack([control.joint_target_q.grad.numpy()[at_q[7:]] for control in controls])
    tape.zero()
    return u_bar


def bytes_of(x):
    """Return the bytes of the arrays of an object, and of their gradients."""
    arrays = [a for a in vars(x).values() if isinstance(a, wp.array)]
    return sum(a.capacity + (a.grad.capacity if a.requires_grad else 0) for a in arrays)


gradient()
compile_s = time.process_time() - begin
what = "Featherstone, penalty contacts, f32; tape of the rollout"
kept_MB = sum(bytes_of(x) for x in (*states, *controls, *solvers)) / 1e6
report(newton.__version__, forward, gradient, what, compile_s, kept_MB)
