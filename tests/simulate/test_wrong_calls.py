"""Invalid calls: each raises one sentence that names the argument."""

import re

import numpy as np
import pytest

import artigrad as ag
from artigrad.control import Goal, ik
from artigrad.errors import is_whole

MODEL = ag.robots.pendulum(2)
LEGS = ag.robots.laikago()
SIM, WALK = ag.Simulator(MODEL, dt=1e-2), ag.Simulator(LEGS, dt=2e-3)
TRAJ = SIM.rollout(ag.State(np.array([0.3, 0.1]), np.zeros(2)), steps=5)
NAN = float("nan")


def changed(**fields):
    return WALK.step(WALK.reset(), params=LEGS.params.replace(**fields))


def some(field, value):
    return {field: np.full(LEGS.params[field].shape, value)}


WRONG = {
    "threads are no truth": (lambda: ag.Simulator(MODEL, threads=True), "threads is a whole number.*True"),
    "lanes are no fraction": (lambda: ag.Simulator(MODEL, lanes=2.0), r"lanes is one of .* not 2\.0"),
    "a batch is no truth": (lambda: SIM.reset(batch=True), "a batch is a whole number.*True"),
    "u of a step": (lambda: WALK.step(WALK.reset(), np.zeros(5)), r"u of a step of 'laikago' is \(12,\), not \(5,\)"),
    "u of a batch": (
        lambda: WALK.step(WALK.reset(batch=2), np.zeros((3, 12))),
        r"is \(12,\) or \(2, 12\), not \(3, 12\)",
    ),
    "wrench of a step": (
        lambda: WALK.step(WALK.reset(), wrench=np.zeros(6)),
        r"wrench of a step .* \(17, 6\), not \(6,\)",
    ),
    "q and v swapped": (
        lambda: SIM.outputs((np.zeros((4, 3)), np.zeros((4, 2)))),
        r"q \(\.\.\., 2\) and v \(\.\.\., 2\); got \(4, 3\) and \(4, 2\)",
    ),
    "no cotangent": (lambda: SIM.vjp(TRAJ), "vjp needs the cotangent of something"),
    "no direction": (lambda: SIM.jvp(TRAJ), "a direction changes something"),
    "jacobian of numbers": (lambda: SIM.jacobian(SIM.reset(), np.zeros(2)), "name of a site or a body, not ndarray"),
    "cotangents without names": (lambda: SIM.sensors_vjp(SIM.reset(), np.zeros(2)), "by name of the sensor"),
    "mass of nothing": (lambda: changed(mass=0 * LEGS.params.mass), r"params.mass\[0\] is 0.0; a body with an inertia"),
    "nothing to move": (
        lambda: changed(mass=0 * LEGS.params.mass, inertia=0 * LEGS.params.inertia),
        "leave joint '.*' without any mass to move",
    ),
    "negative inertia": (lambda: changed(inertia=-LEGS.params.inertia), r"inertia\[0\] .* moments cannot be negative"),
    "slanted inertia": (lambda: changed(inertia={"trunk": (1, 1, 1, 2, 0, 0)}), "moments cannot be negative"),
    "limits of infinity": (lambda: changed(**some("limit", np.inf)), "the interval is empty"),
    "forces of infinity": (lambda: changed(**some("force_range", np.inf)), "the interval is empty"),
    "negative boxes": (lambda: changed(**some("fluid_box", -1.0)), "fluid_box.*cannot be negative"),
    "a scene of a model": (lambda: ag.scene(MODEL), "a list of one or more Models"),
    "no folder": (lambda: ag.save(MODEL, "/no/such/place/x.xml"), "no folder /no/such/place"),
    "no data": (lambda: ag.fit(SIM, None, ["mass"]), "data is an ag.Recording"),
    "no function": (
        lambda: ag.fit(SIM, ag.Recording(q=np.repeat(TRAJ.q, 9, 0)), [ag.Parameter("a", None, 1.0)]),
        "`set` of parameter 'a' is a function",
    ),
    "no goal": (lambda: ik(SIM, "tip"), r"goals is a Goal\("),
    "a start that is no number": (lambda: ik(SIM, Goal("tip", (0, 0, 1)), [NAN, 0.0]), r"start\[0\] is nan"),
    "q of another robot": (
        lambda: ag.integrate(MODEL, np.zeros(3), np.zeros(2)),
        r"q of 'pendulum-2' .* \(\.\.\., 2\)",
    ),
    "v where q belongs": (lambda: ag.difference(LEGS, np.zeros(19), np.zeros(18)), r"q_to of .* \(\.\.\., 19\)"),
    "words for numbers": (lambda: ag.to_tangent(MODEL, "x", 3), "q of 'pendulum-2' is an array of numbers"),
    "half a link": (lambda: ag.robots.pendulum(1.5), r"n is a whole number, not 1\.5"),
    "a word of links": (lambda: ag.robots.chain("a"), "n is a whole number, not .a."),
    "words in a table": (lambda: ag.robots.arm_dh("x"), r"rows are numbers \(n, 3\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_sentence(name):
    call, sentence = WRONG[name]
    with pytest.raises((ag.InputError, ag.ModelError), match=sentence) as told:
        call()
    assert "\n" not in str(told.value) and not re.search(r"\. [A-Z]", str(told.value))


def test_a_difference_passes_where_a_robot_does_not():
    lower = LEGS.params.inertia - 1e-6 * np.eye(6)[0] - LEGS.params.inertia[:, :1] * np.eye(6)[0]
    WALK.step(WALK.reset(), params=LEGS.params.replace(unchecked=True, inertia=lower))


@pytest.mark.parametrize("name", ["empty.csv", "binary.csv", "half.npz", "words.npz", "other.csv"])
def test_files_that_are_no_trajectories(tmp_path, name):
    path = tmp_path / name
    TRAJ.save(tmp_path / "good.npz")
    whole = (tmp_path / "good.npz").read_bytes()
    path.write_bytes(
        {"empty": b"", "binary": bytes(range(256)), "half": whole[: len(whole) // 2], "words": b"hello"}.get(
            path.stem, b"time,q.rod1\n0,0\n"
        )
    )
    with pytest.raises(ag.InputError, match=f"'{name}' is not (a saved trajectory|of 'pendulum-2')"):
        SIM.read(path)


def test_whole_numbers():
    assert all(is_whole(x, 1) for x in (1, np.int64(3), np.uint8(2)))
    assert not any(is_whole(x, 1) for x in (0, True, 1.0, np.float64(2), "2", None, np.True_))
