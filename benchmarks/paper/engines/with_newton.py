"""Newton: Featherstone with penalty contacts, and Warp's tape over all steps. f32."""

import time

import numpy as np
import warp as wp
from common import DT, FOLDER, Q_BAR, V_BAR, Q, U, report

wp.config.quiet = True
import newton  # noqa: E402  (it loads Warp, which shall be quiet)

wp.set_device("cpu")
builder = newton.ModelBuilder()
builder.default_shape_cfg.mu = 1.0
builder.default_shape_cfg.ke, builder.default_shape_cfg.kd = 2e4, 2e2
builder.add_mjcf(str(FOLDER / "masked.xml"))
model = builder.finalize(requires_grad=True)
solver = newton.solvers.SolverFeatherstone(model)
states = [model.state(requires_grad=True) for _ in range(len(U) + 1)]
q = np.concatenate([Q[:3], Q[4:7], Q[3:4], Q[7:]]).astype(np.float32)
names = [label.rsplit("/", 1)[-1] for label in builder.joint_label]
starts = model.joint_qd_start.numpy()
order = [f"{leg}_{part}" for leg in ("fr", "fl", "rr", "rl") for part in ("hip", "upper", "lower")]
places = [int(starts[names.index(name)]) for name in order]
controls = []
for u in U:
    control = model.control(requires_grad=True)
    target = control.joint_target_q
    wanted = target.numpy()
    offset = len(wanted) - model.joint_dof_count  # targets of a free joint are as many as its coordinates
    wanted[[p + offset for p in places]] = u
    target.assign(wanted)
    controls.append(control)
q_start = model.joint_q_start.numpy()
first = q.copy()
for name, angle in zip(order, Q[7:], strict=True):
    first[q_start[names.index(name)]] = angle
states[0].joint_q.assign(first)
newton.eval_fk(model, states[0].joint_q, states[0].joint_qd, states[0])
contacts = [model.contacts() for _ in U]
loss = wp.zeros(1, dtype=float, requires_grad=True)
q_bar, v_bar = wp.array(Q_BAR, dtype=float), wp.array(V_BAR, dtype=float)


@wp.kernel
def weigh(x: wp.array(dtype=float), bar: wp.array(dtype=float), out: wp.array(dtype=float)):
    k = wp.tid()
    wp.atomic_add(out, 0, x[k] * bar[k])


def forward():
    for now, after, control, touching in zip(states, states[1:], controls, contacts, strict=False):
        now.clear_forces()
        model.collide(now, touching)
        solver.step(now, after, control, touching, DT)
    return float(states[-1].joint_q.numpy()[2])


def gradient():
    tape = wp.Tape()
    with tape:
        forward()
        wp.launch(weigh, dim=19, inputs=[states[-1].joint_q, q_bar], outputs=[loss])
        wp.launch(weigh, dim=18, inputs=[states[-1].joint_qd, v_bar], outputs=[loss])
    tape.backward(loss)
    found = states[0].joint_q.grad.numpy().copy()
    tape.zero()
    return found


begin = time.process_time()
gradient()
compile_s = time.process_time() - begin
size = "finite" if np.isfinite(gradient()).all() else "not finite"
what = f"Featherstone, penalty contacts, f32; tape of the rollout ({size}; its arrays are made beforehand)"
report(newton.__version__, forward, gradient, what, compile_s)
