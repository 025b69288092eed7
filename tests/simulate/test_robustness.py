"""Threads, forks, interrupts, copies and changed inputs."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import Kernel
from artigrad.simulate.cotangents import Cotangents

MODEL = ag.robots.quadruped()


def test_changed_controls_are_noticed():
    sim = ag.Simulator(MODEL)
    u = np.ones((5, 12))
    traj = sim.rollout(sim.reset(), u)
    u *= 2
    with pytest.raises(ag.InputError, match="changed after the rollout"):
        sim.vjp(traj, q_bar=np.ones(19))


@pytest.mark.filterwarnings("ignore:the motion is not finite")
@pytest.mark.parametrize("steps", [6, 2000])
@pytest.mark.parametrize("change", [lambda u: u[::-1].copy(), lambda u: -u, lambda u: np.roll(u, 1, 1)])
def test_controls_in_another_order_are_noticed(change, steps):
    sim = ag.Simulator(MODEL)
    u = np.tile([1.0, -1.0], (steps, 6)) + np.arange(steps)[:, None] % 2
    traj = sim.rollout(sim.reset(), u)
    u[:] = change(u)
    with pytest.raises(ag.InputError, match="changed after the rollout"):
        sim.vjp(traj, q_bar=np.ones(19))


def test_an_interrupted_gradient_can_be_taken_again(monkeypatch):
    """Snapshots are consumed in a backward pass; the first one is kept."""
    sim = ag.Simulator(MODEL)
    traj = sim.rollout(sim.reset(), steps=40, checkpoints=ag.Binomial(memory=8 * 8 * 37))
    wanted = sim.vjp(traj, q_bar=np.ones(19)).u
    traj, left, segment = sim.rollout(sim.reset(), steps=40, checkpoints=traj.checkpoints), [3], Cotangents.segment

    def stop(self, *given):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        segment(self, *given)

    monkeypatch.setattr(Cotangents, "segment", stop)
    with pytest.raises(KeyboardInterrupt):
        sim.vjp(traj, q_bar=np.ones(19))
    monkeypatch.undo()
    np.testing.assert_array_equal(sim.vjp(traj, q_bar=np.ones(19)).u, wanted)


def test_attributes_bound_to_kernels_cannot_be_set():
    sim = ag.Simulator(MODEL)
    with pytest.raises(AttributeError, match="make another"):
        sim.options = sim.options.changed({"dt": 1e-2})
    sim.threads = 1


def test_states_of_a_trajectory_cannot_be_written():
    sim = ag.Simulator(MODEL)
    traj = sim.rollout(sim.reset(), steps=3)
    with pytest.raises(ValueError, match="read-only"):
        traj.q[0] = 1.0


def test_a_start_state_that_is_changed_later():
    sim = ag.Simulator(MODEL)
    start = sim.reset()
    wanted = sim.vjp(sim.rollout(start, steps=6), q_bar=np.ones(19)).q0
    for policy in (ag.EveryStep(), ag.EveryKth(2), ag.EveryKth(100), ag.Binomial(memory=4 * 37 * 8)):
        state = sim.reset()
        traj = sim.rollout(state, steps=6, checkpoints=policy)
        state.v[:] = 3.0
        np.testing.assert_array_equal(sim.vjp(traj, q_bar=np.ones(19)).q0, wanted)
        np.testing.assert_array_equal(sim.vjp(traj, q_bar=np.ones(19)).q0, wanted)  # and once more


def test_a_trajectory_of_a_simulator_with_other_options():
    traj = ag.Simulator(MODEL, dt=1e-3).rollout(ag.Simulator(MODEL).reset(), steps=2)
    for other in ({"dt": 1e-2}, {"dtype": "f32"}, {"integrator": "explicit"}, {"backend": "numpy"}):
        with pytest.raises(ag.InputError, match="made by a simulator with other"):
            ag.Simulator(MODEL, **other).vjp(traj, q_bar=np.ones(19))


def test_threads_with_different_parameters_do_not_mix():
    sim = ag.Simulator(ag.robots.pendulum(2))
    state = ag.State(np.ones(2), np.ones(2))
    params = [sim.model.params.replace(mass=np.full(2, m)) for m in (1.0, 2.0, 3.0)]
    wanted = [float(sim.outputs(state, params=p).kinetic_energy) for p in params]
    wrong = []

    def work(i):
        for _ in range(300):
            if float(sim.outputs(state, params=params[i]).kinetic_energy) != wanted[i]:
                wrong.append(i)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        jobs = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_can_simulate():
    code = (
        "import os, sys, artigrad as ag\n"
        "sim = ag.Simulator(ag.robots.quadruped(), threads=2)\n"
        "sim.rollout(sim.reset(batch=64), steps=3)\n"
        "pid = os.fork()\n"
        "sim.rollout(sim.reset(batch=64), steps=3)\n"
        "if pid == 0: os._exit(0)\n"
        "sys.exit(os.waitpid(pid, 0)[1])\n"
    )
    env = os.environ | {"PYTHONWARNINGS": "ignore"}
    assert subprocess.run([sys.executable, "-c", code], timeout=60, env=env).returncode == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_an_interrupt_waits_for_the_other_threads(monkeypatch):
    """Ctrl-C during a threaded rollout: no thread still writes to the arrays when the interrupt reaches the caller."""
    sim = ag.Simulator(MODEL, threads=2)
    state = sim.reset(batch=24)
    sim.rollout(state, steps=2)
    running, run = [], Kernel.run

    def watched(self, *arguments):
        running.append(1)
        try:
            run(self, *arguments)
        finally:
            running.pop()

    monkeypatch.setattr(Kernel, "run", watched)
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for delay in (0.01, 0.02, 0.03, 0.05):
            signal.setitimer(signal.ITIMER_REAL, delay)
            with pytest.raises(KeyboardInterrupt):
                for _ in range(1000):
                    sim.rollout(state, steps=3000)
            assert not running
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
@pytest.mark.parametrize("what", ["forward", "backward", "policy"])
def test_an_interrupt_ends_a_long_call(what):
    """Native work is done in slices.

    Ctrl-C ends a long rollout, its gradient, or one under a policy, with most steps undone.
    """
    sim = ag.Simulator(MODEL, threads=1)
    still = ag.Network(((np.zeros((MODEL.nu, MODEL.nq + MODEL.nv)), np.zeros(MODEL.nu)),), ("linear",))
    long = {
        "forward": lambda: sim.rollout(sim.reset(), steps=50_000),
        "backward": lambda: sim.vjp(traj, q_bar=np.ones(19)),
        "policy": lambda: sim.rollout(sim.reset(), steps=50_000, policy=still),
    }
    traj = sim.rollout(sim.reset(), steps=50_000)
    sim.rollout(sim.reset(), steps=20, policy=still)  # compiled
    slices, sliced = [], sim.engine.run_in_slices

    def counted(what, count, robot_steps, run):
        def counted_run(a, b):
            run(a, b)
            slices.append((b - a) / count)

        sliced(what, count, robot_steps, counted_run)

    sim.engine.run_in_slices = counted
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            long[what]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert sum(slices) < 0.9


def test_slices_have_the_bits_of_the_whole(monkeypatch):
    sim, results = ag.Simulator(ag.robots.laikago(), threads=1), []
    u = np.random.default_rng(0).normal(size=(9, 12))
    for seconds in (0.0, 100.0):
        monkeypatch.setattr("artigrad.simulate.engine.SLICE", seconds)
        for policy in (ag.EveryStep(), ag.EveryKth(2)):
            for _ in range(2):  # the pace is known then
                traj = sim.rollout(sim.reset(), u, checkpoints=policy)
                grad = sim.vjp(traj, q_bar=np.ones(19), v_bar=np.ones(18))
            results.append([*traj.final, grad.q0, grad.v0, grad.u, grad.params.flat])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_copies_and_pickles():
    sim = ag.Simulator(MODEL)
    traj = sim.rollout(sim.reset(), steps=3)
    for twin in (pickle.loads(pickle.dumps(sim)), copy.deepcopy(sim)):
        np.testing.assert_array_equal(twin.rollout(twin.reset(), steps=3).q, traj.q)
    params = pickle.loads(pickle.dumps(MODEL.params))
    with pytest.raises(ValueError, match="read-only"):
        params.mass[0] = 1.0
    assert MODEL.params == MODEL.params and MODEL.params != params


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.outputs(None),
        lambda s: s.outputs((np.zeros(19),)),
        lambda s: s.outputs(ag.State(np.zeros((2, 3, 19)), np.zeros((3, 2, 18)))),
        lambda s: s.forward_dynamics(s.reset(), 1.0),
        lambda s: s.outputs_vjp(s.reset(), None),
        lambda s: s.outputs_vjp(s.reset(), ag.Outputs(kinetic_energy=np.nan)),
        lambda s: s.step(s.reset(), 1.0),
        lambda s: s.step(s.reset(), [[1.0], [1.0, 2.0]]),
        lambda s: s.step(s.reset(), wrench=np.zeros(6)),
        lambda s: s.linearize(s.reset(), np.zeros(3)),
        lambda s: s.linearize(s.reset(), "u"),
        lambda s: s.rollout(s.reset(), steps=2.5),
        lambda s: s.rollout(s.reset(), steps=True),
        lambda s: s.rollout(s.reset(), [[10**400] * 12]),
        lambda s: s.rollout(s.reset(), steps=2, checkpoints="64MB"),
        lambda s: s.rollout(s.reset(), steps=2, checkpoints=ag.EveryStep),
        lambda s: s.rollout(s.reset(), np.zeros((2, 12), complex)),
        lambda s: s.rollout(s.reset(), [["1.5"] * 12]),
        lambda s: s.vjp(None),
        lambda s: s.reset(batch=2.5),
        lambda s: s.reset(batch="2"),
        lambda s: ag.Simulator(MODEL, dt="fast"),
        lambda s: ag.Simulator(MODEL, dt=0.0),
        lambda s: ag.Simulator(MODEL, threads=2.5),
        lambda s: ag.EveryKth("3"),
        lambda s: ag.Binomial("1.2.3MB").plan(10, 10),
        lambda s: MODEL.params.replace(mass="heavy"),
        lambda s: MODEL.params.replace(mass=[[1], [1, 2]]),
        lambda s: MODEL.params["weight"],
        lambda s: s.step(s.reset(), params=MODEL.params.replace(mass=np.full(13, np.nan))),
        lambda s: s.step(s.reset(), params=MODEL.params.replace(axis=np.zeros((13, 3)))),
        lambda s: s.step(s.reset(), params=MODEL.params.replace(com=np.full((13, 3), np.inf))),
    ],
)
def test_wrong_arguments_get_a_sentence(call):
    with pytest.raises(ag.InputError):
        call(ag.Simulator(MODEL))


def test_a_model_without_moving_parts():
    b = ag.ModelBuilder("statue")
    b.add_body("stone", mass=2.0, com=(0, 0, 1))
    b.add_site("top", "stone", position=(0, 0, 2))
    sim = ag.Simulator(b.build())
    out = sim.outputs(sim.reset())
    np.testing.assert_allclose(out.site_position, [[0, 0, 2]])
    np.testing.assert_allclose(out.com, [0, 0, 1])
    assert sim.rollout(sim.reset(), steps=3, checkpoints=ag.Binomial(memory="1kB")).final.q.shape == (0,)


def test_the_robot_whose_gradient_is_not_finite_is_named():
    """Shared parameters have a summed gradient: its NaN does not hide the batch element."""
    model = ag.robots.pendulum(1)
    batch = model.param_size
    sim = ag.Simulator(model)
    traj = sim.rollout(sim.reset(batch=batch), steps=3)
    v_bar = np.zeros((batch, model.nv))
    v_bar[5] = 1e308
    v_bar = np.repeat(v_bar[:, None], 4, 1)  # their sum overflows
    with pytest.warns(RuntimeWarning, match=rf"1 of {batch} robots .*robot 5\)"):
        finite = sim.vjp(traj, v_bar=v_bar).health.finite
    assert np.flatnonzero(~finite).tolist() == [5]
