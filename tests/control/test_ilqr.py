"""iLQR: solutions of linear problems, optimal motions of others, limits, batches, floating bases."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.control import MPC, LeastSquares, Quadratic, ilqr, lqr

CARTPOLE = ag.Simulator(ag.robots.cartpole(), dt=0.04, threads=1)
UPRIGHT = ag.State(np.zeros(2), np.zeros(2))
SWING = Quadratic(CARTPOLE.model, UPRIGHT, Q=[0.1, 1, 0.01, 0.01], R=1e-3, final=[10, 100, 1, 10])


def slider():
    b = ag.ModelBuilder("slider", gravity=(0, 0, 0))
    b.add_body("block", joint="prismatic", axis=(1, 0, 0), mass=2.0, damping=0.5)
    b.add_motor("push", "block")
    return ag.Simulator(b.build(), dt=0.05, threads=1)


def riccati_by_hand(A, B, Q, R, final, steps):
    P, gains = final, []
    for _ in range(steps):
        K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A + B @ K)
        gains.insert(0, K)
    return np.array(gains), P


def test_linear_problem_takes_one_iteration():
    sim = slider()
    cost = Quadratic(sim.model, ag.State([0.0], [0.0]), Q=[2.0, 0.1], R=0.01, final=[30.0, 3.0])
    start = ag.State([1.0], [0.5])
    plan = ilqr(sim, cost, start, np.zeros((40, 1)), iterations=1)
    A, B = sim.linearize(start)
    gains, P = riccati_by_hand(A, B, cost.Q, cost.R, cost.final, 40)
    np.testing.assert_allclose(plan.gain, gains, rtol=1e-9)
    x = np.array([1.0, 0.5])
    assert plan.cost == pytest.approx(0.5 * x @ P @ x, rel=1e-12)


def test_a_linear_problem_with_an_activation():
    b = ag.ModelBuilder("slider", gravity=(0, 0, 0))
    b.add_body("block", joint="prismatic", axis=(1, 0, 0), mass=2.0, damping=0.5)
    b.add_actuator("push", "block", dynamics="filter", activation_time=(0.2, 0, 0))
    sim = ag.Simulator(b.build(), dt=0.05, threads=1)
    cost = Quadratic(sim.model, ag.State([0.0], [0.0]), Q=[2.0, 0.1], R=0.01, final=[30.0, 3.0])
    start = ag.State([1.0], [0.5], [0.3])
    plan = ilqr(sim, cost, start, np.zeros((40, 1)), iterations=1)
    A, B = sim.linearize(start)
    Q, final = (np.pad(x, (0, 1)) for x in (cost.Q, cost.final))
    gains, P = riccati_by_hand(A, B, Q, cost.R, final, 40)
    np.testing.assert_allclose(plan.gain, gains, rtol=1e-9, atol=1e-12)
    x = np.array([1.0, 0.5, 0.3])
    assert plan.cost == pytest.approx(0.5 * x @ P @ x, rel=1e-12)
    np.testing.assert_allclose(plan.states.act, sim.rollout(start, plan.u).act, atol=1e-12)


def test_trajectory_is_optimal():
    """At the solution the gradient of the cost with respect to the controls, by the simulator's adjoint, is zero."""
    start = ag.State(np.array([0.0, 1.5]), np.zeros(2))
    plan = ilqr(CARTPOLE, SWING, start, np.zeros((30, 1)), iterations=200, tolerance=1e-13)
    assert abs(plan.q[-1, 1]) < 0.1 and plan.solved
    traj = CARTPOLE.rollout(start, plan.u)
    np.testing.assert_allclose(traj.q, plan.q, atol=1e-9)
    x = np.concatenate([traj.q, traj.v], 1)
    bars = x @ SWING.Q
    bars[-1] = x[-1] @ SWING.final
    grad = CARTPOLE.vjp(traj, q_bar=bars[:, :2], v_bar=bars[:, 2:]).u + plan.u @ SWING.R
    scale = np.abs(CARTPOLE.vjp(CARTPOLE.rollout(start, 0.5 * plan.u), q_bar=bars[:, :2], v_bar=bars[:, 2:]).u).max()
    assert np.abs(grad).max() < 1e-4 * scale
    assert (np.diff(plan.costs) <= 0).all()


def test_controls_stay_within_limits():
    start = CARTPOLE.reset("hanging")
    plan = ilqr(CARTPOLE, SWING, start, np.zeros((60, 1)), iterations=300, limits=(-12.0, 12.0))
    assert np.abs(plan.u).max() <= 12.0 and np.abs(plan.u).max() > 11.99
    assert abs(plan.q[-1, 1]) < 0.2
    assert np.abs(plan.gain[np.abs(plan.u[:, 0]) >= 12.0]).max() == 0.0  # no feedback beyond a limit


def test_batch_equals_single_problems():
    """One problem diverges: it ends, the others continue."""
    q = np.array([[0.0, np.pi], [0.3, 2.5], [0.0, 0.3]])
    v = np.zeros((3, 2))
    with np.errstate(all="ignore"):
        v[1] = 1e200
    u = np.zeros((30, 1))
    together = ilqr(CARTPOLE, SWING, ag.State(q, v), u, iterations=40)
    assert not together.solved[1] and np.isinf(together.cost[1]) and together.iterations[1] == 0
    for k in (0, 2):
        alone = ilqr(CARTPOLE, SWING, ag.State(q[k], v[k]), u, iterations=40)
        np.testing.assert_allclose(together.u[k], alone.u, rtol=1e-6, atol=1e-6)
        assert together.iterations[k] == alone.iterations


def test_matches_a_numpy_implementation():
    plans = []
    for backend in ("numpy", "native"):
        sim = ag.Simulator(CARTPOLE.model, dt=0.04, threads=1, backend=backend)
        plans.append(ilqr(sim, SWING, sim.reset("hanging"), np.zeros((6, 1)), iterations=2, limits=(-3, 3)))
    np.testing.assert_allclose(plans[0].u, plans[1].u, rtol=1e-9)
    np.testing.assert_allclose(plans[0].gain, plans[1].gain, rtol=1e-8, atol=1e-10)


def drone():
    """Free body with four rotors that push along its z axis and rotate it about that axis."""
    b = ag.ModelBuilder("drone")
    b.add_body("drone", joint="free", mass=1.0, inertia=(0.01, 0.01, 0.02))
    for k, (x, y) in enumerate(((0.2, 0), (0, 0.2), (-0.2, 0), (0, -0.2))):
        b.add_site(f"rotor{k}", "drone", position=(x, y, 0))
        b.add_actuator(f"rotor{k}", site=f"rotor{k}", gear=(0, 0, 1, 0, 0, 0.05 * (-1) ** k), control_range=(0, 8))
    return ag.Simulator(b.build(), dt=0.02, threads=1)


def test_floating_base():
    """Positions differ on the tangent space: a drone flies to a target and rotates by 2 rad."""
    sim = drone()
    target = ag.State(np.array([1.0, 0.5, 0.7, np.cos(1.0), 0, 0, np.sin(1.0)]), np.zeros(6))
    weights = {"Q": [*[0.1] * 6, *[0.01] * 6], "R": 1e-3, "final": [*[100.0] * 6, *[10.0] * 6]}
    cost = Quadratic(sim.model, target, u_target=9.81 / 4, **weights)
    plan = ilqr(sim, cost, sim.reset(), np.full((60, 4), 9.81 / 4), iterations=200)
    away = ag.difference(sim.model, target.q, plan.q[-1])
    assert np.abs(away).max() < 0.05 and (plan.u >= 0).all() and (plan.u <= 8).all()
    hold = lqr(sim, target, np.full(4, 9.81 / 4), R=0.1)
    state = plan.states.q[-1], plan.states.v[-1]
    for _ in range(150):
        state = sim.step(ag.State(*state), hold(ag.State(*state)))
    assert np.abs(ag.difference(sim.model, target.q, state.q)).max() < 1e-2


def test_unequal_weights_of_a_turn_end_at_an_optimum():
    """At the solution the gradient with respect to the controls, by the simulator's adjoint, is zero."""
    b = ag.ModelBuilder("drone")
    b.add_body("drone", joint="free", mass=1.0, inertia=(0.01, 0.01, 0.02))
    for k, (x, y) in enumerate(((0.2, 0), (0, 0.2), (-0.2, 0), (0, -0.2))):
        b.add_site(f"rotor{k}", "drone", position=(x, y, 0))
        b.add_actuator(f"rotor{k}", site=f"rotor{k}", gear=(0, 0, 1, 0, 0, 0.05 * (-1) ** k))
    sim = ag.Simulator(b.build(), dt=0.02, threads=1)
    m, start = sim.model, sim.reset()
    target = ag.State(ag.integrate(m, start.q, np.array([1.0, 0.5, 0.7, 1.5, -1.0, 1.2])), np.zeros(6))
    weights = {"Q": [*[0.1] * 3, 1, 0.2, 0.05, *[0.01] * 6], "R": 1e-2, "final": [*[5.0] * 3, 20, 4, 1, *[1.0] * 6]}
    cost = Quadratic(m, target, u_target=9.81 / 4, **weights)
    plan = ilqr(sim, cost, start, np.full((40, 4), 9.81 / 4), iterations=300, tolerance=1e-13)
    traj = sim.rollout(start, plan.u)
    stage = cost.expand(traj.q[None, :-1], traj.v[None, :-1], plan.u[None])
    last = cost.expand(traj.q[None, -1], traj.v[None, -1], None)
    x_bar = np.concatenate([stage.x[0], last.x])
    grad = sim.vjp(traj, q_bar=ag.to_ambient(m, traj.q, x_bar[:, :6]), v_bar=x_bar[:, 6:]).u + stage.u[0]
    assert plan.solved and np.abs(grad).max() < 1e-5


def test_weights_act_by_their_symmetric_part():
    model, rng = drone().model, np.random.default_rng(0)
    q, v, u = rng.normal(size=(1, 1, 7)), rng.normal(size=(1, 1, 6)), np.zeros((1, 1, 4))
    q[..., 3:] /= np.linalg.norm(q[..., 3:])
    W = rng.normal(size=(12, 12))
    one, other = (Quadratic(model, ag.State(model.keyframe().q, np.zeros(6)), Q=Q, R=1.0) for Q in (W, (W + W.T) / 2))
    assert one.value(q, v, u) == pytest.approx(other.value(q, v, u), rel=1e-12)
    np.testing.assert_allclose(one.expand(q, v, u).x, other.expand(q, v, u).x)


def test_mpc_moves_along_a_reference():
    """Each plan is that of the cost from the present control on; past its end the reference stays."""
    rows = np.zeros((11, 2))
    rows[:, 0] = np.linspace(0, 0.3, 11)
    cost = Quadratic(CARTPOLE.model, ag.State(rows, 0 * rows), Q=[10, 1, 0.1, 0.1], R=1e-3)
    mpc, state = MPC(CARTPOLE, cost, horizon=20, iterations=50), UPRIGHT
    for k in range(60):
        u = mpc(state)
        if k in (0, 4, 30):
            at = np.minimum(np.arange(k, k + 21), 10)
            own = Quadratic(CARTPOLE.model, ag.State(rows[at], 0 * rows[at]), Q=[10, 1, 0.1, 0.1], R=1e-3)
            np.testing.assert_allclose(ilqr(CARTPOLE, own, state, mpc.plan.u).cost, mpc.plan.cost, rtol=1e-6)
        state = CARTPOLE.step(state, u)
    assert abs(state.q[0] - 0.3) < 0.02
    mpc.reset()
    assert mpc.elapsed == 0


def test_a_target_has_a_row_for_every_control_and_the_last_state():
    rows = np.zeros((30, 2))
    cost = Quadratic(CARTPOLE.model, ag.State(rows, rows), Q=1.0, R=1.0)
    with pytest.raises(ag.InputError, match="30 rows, and 20 controls need 21"):
        ilqr(CARTPOLE, cost, UPRIGHT, np.zeros((20, 1)))
    assert ilqr(CARTPOLE, cost.window(0, 20), UPRIGHT, np.zeros((20, 1)), iterations=2).cost == 0.0
    with pytest.raises(ag.InputError, match="q and v of the target"):
        Quadratic(CARTPOLE.model, ag.State(rows, rows[:5]), Q=1.0, R=1.0)


def test_lqr_refuses_a_state_that_does_not_rest():
    tilted = ag.State(np.array([0.0, 0.6]), np.zeros(2))
    with pytest.raises(ag.InputError, match=r"does not rest .* under these controls"):
        lqr(CARTPOLE, tilted)
    with pytest.raises(ag.InputError, match="does not rest"):
        lqr(CARTPOLE, ag.State(np.zeros(2), np.array([0.5, 0.0])))
    with pytest.raises(ag.InputError, match="one robot"):
        lqr(CARTPOLE, ag.State(np.zeros((3, 2)), np.zeros((3, 2))))
    assert lqr(CARTPOLE, tilted, tolerance=np.inf).spectral_radius < 1
    assert lqr(CARTPOLE, UPRIGHT).spectral_radius < 1


def test_controls_held_for_several_steps():
    """A problem with held controls is that of the longer step; here of a linear motion, with its exact sums."""
    sim = slider()
    start, weights = ag.State([1.0], [0.5]), {"Q": [2.0, 0.1], "R": 0.01, "final": [30.0, 3.0]}
    cost = Quadratic(sim.model, ag.State([0.0], [0.0]), **weights)
    plan = ilqr(sim, cost, start, np.zeros((10, 1)), hold=3, iterations=1)
    A, B = sim.linearize(start)
    A3, B3 = A @ A @ A, A @ A @ B + A @ B + B
    gains, _ = riccati_by_hand(A3, B3, cost.Q, cost.R, cost.final, 10)
    np.testing.assert_allclose(plan.gain, gains, rtol=1e-9)
    np.testing.assert_allclose(plan.q, sim.rollout(start, plan.u, hold=3).q[::3], atol=1e-12)


def test_least_squares_equals_quadratic():
    def stage(q, v, u):
        x = np.concatenate([q, v], -1)
        r = np.concatenate([np.sqrt(np.diag(SWING.Q)) * x, np.sqrt(1e-3) * u], -1)
        Jx = np.concatenate([np.diag(np.sqrt(np.diag(SWING.Q))), np.zeros((1, 4))])
        Ju = np.concatenate([np.zeros((4, 1)), [[np.sqrt(1e-3)]]])
        return r, Jx, Ju

    def final(q, v):
        root = np.sqrt(np.diag(SWING.final))
        return root * np.concatenate([q, v], -1), np.diag(root)

    cost, start = LeastSquares(CARTPOLE.model, stage, final), CARTPOLE.reset("hanging")
    plans = [ilqr(CARTPOLE, c, start, np.zeros((20, 1)), iterations=5) for c in (SWING, cost)]
    np.testing.assert_allclose(plans[0].u, plans[1].u, rtol=1e-7, atol=1e-9)


def test_mpc_swings_up_and_stays():
    control = MPC(CARTPOLE, SWING, 40, iterations=3, limits=(-20, 20))
    rng, state, angles = np.random.default_rng(0), CARTPOLE.reset("hanging"), []
    for _ in range(80):
        state = CARTPOLE.step(state, control(state) + 0.1 * rng.normal(size=1))
        angles.append(state.q[1])
    assert np.abs(angles[-20:]).max() < 0.1


def test_mpc_keeps_its_time_limit():
    """Without time for an iteration it continues with the previous plan."""
    control = MPC(CARTPOLE, SWING, 20)
    state = CARTPOLE.reset("hanging")
    control(state)
    ahead, control.seconds = control.plan.u[1], 0.0
    after = CARTPOLE.step(state, control.plan.u[0])
    np.testing.assert_allclose(control(after), ahead)
    control.reset()
    assert control.plan is None


def test_wrong_arguments_are_reported():
    start = CARTPOLE.reset("hanging")
    with pytest.raises(ag.InputError, match=r"u is \(T, 1\)"):
        ilqr(CARTPOLE, SWING, start, np.zeros((5, 2)))
    with pytest.raises(ag.InputError, match="limit"):
        ilqr(CARTPOLE, SWING, start, np.zeros((5, 1)), limits=(1, -1))
    with pytest.raises(ag.InputError, match="Q is a number"):
        Quadratic(CARTPOLE.model, UPRIGHT, Q=[1, 2], R=1)
    loose = ag.Simulator(ag.robots.chain(2))
    with pytest.raises(ag.InputError, match="no actuators"):
        lqr(loose, loose.reset())
    b = ag.ModelBuilder("two")
    b.add_body("a", joint="prismatic", mass=1.0)
    b.add_body("b", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    b.add_motor("push", "a")
    two = ag.Simulator(b.build())
    with pytest.raises(ag.InputError, match="no feedback stabilizes"):
        lqr(two, two.reset())


def test_lqr_solves_its_equation():
    Q, R = np.diag([1.0, 10.0, 1.0, 1.0]), np.array([[0.1]])
    found = lqr(CARTPOLE, UPRIGHT, Q=Q, R=R)
    A, B = CARTPOLE.linearize(UPRIGHT)
    gains, P = riccati_by_hand(A, B, Q, R, Q, 2000)
    np.testing.assert_allclose(found.gain, gains[0], rtol=1e-8)
    np.testing.assert_allclose(found.value, P, rtol=1e-8)
    state = ag.State([0.2, 0.2], [0.0, 0.0])
    for _ in range(400):
        state = CARTPOLE.step(state, found(state))
    assert np.abs(np.concatenate(state)).max() < 1e-3 and found.spectral_radius < 1
