"""Options of laws: defaults of a Simulator, options of its model, and the deprecated keywords."""

import copy
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest

import artigrad as ag

FILE = """<mujoco><option impratio="4" noslip_iterations="3"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 1"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def model():
    return ag.load(FILE)


def test_options_that_are_not_given_are_those_of_the_file(model):
    law = ag.Simulator(model, law=ag.SoftOptions(iterations=7)).options.law
    assert (law.name, law.iterations, law.impratio, law.noslip) == ("soft", 7, 4.0, 3)
    assert ag.Simulator(model, law=ag.SoftOptions(impratio=1.0)).options.law.impratio == 1.0
    assert ag.Simulator(model, law="soft").options == ag.Simulator(model).options == model.options


def test_options_of_another_simulator_are_taken_whole(model):
    given = ag.Options(law=ag.SoftOptions(iterations=9)).law
    assert ag.Simulator(model, law=given).options.law == ag.SoftOptions(iterations=9)
    assert ag.Simulator(model, law=pickle.loads(pickle.dumps(given))).options.law == given
    assert ag.Simulator(model, law=copy.deepcopy(given)).options.law == given


def test_the_hard_law_has_its_own_options(model):
    options = ag.Simulator(model, law=ag.HardOptions(softness=0.1), cone="elliptic").options
    assert options.law == ag.HardOptions(softness=0.1) != ag.HardOptions() and options.cone == "elliptic"
    assert options.contact_limit == 64 and ag.Simulator(model).options.contact_limit == 512
    assert ag.Simulator(model, law="hard").options.law == ag.HardOptions() != ag.SoftOptions()
    assert repr(options.law) == "HardOptions(softness=0.1)"
    assert len({ag.HardOptions(), ag.HardOptions(softness=1e-6), ag.SoftOptions()}) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"solver": "newton"}, "solver is one of hybrid, gauss_seidel"),
        ({"gradient": "reverse"}, "choose that solver"),
        ({"sweeps": 0}, "sweeps is a whole number, at least 1"),
        ({"slop": -1.0}, "slop is a number, zero or more"),
    ],
)
def test_options_of_the_hard_law_are_checked(given, message):
    with pytest.raises(ag.InputError, match=message):
        ag.HardOptions(**given)


def test_options_cannot_be_changed_and_are_keywords():
    with pytest.raises(AttributeError):
        ag.SoftOptions().noslip = 3
    with pytest.raises(TypeError):
        ag.HardOptions("hybrid")


def test_keywords_of_earlier_versions_warn_with_the_new_spelling(model):
    with pytest.warns(DeprecationWarning, match=r"law=ag\.HardOptions\(softness=0\.1\)") as caught:
        sim = ag.Simulator(model, law="hard", softness=0.1)
    assert sim.options.law == ag.HardOptions(softness=0.1) and caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"law=ag\.SoftOptions\(noslip=0\)"):
        assert ag.Simulator(model, noslip=0).options.law == ag.SoftOptions(
            impratio=4.0, noslip_tolerance=sim_tolerance(model)
        )
    with pytest.warns(DeprecationWarning):
        assert ag.Options(iterations=7) == ag.Options(law=ag.SoftOptions(iterations=7))
    with pytest.warns(DeprecationWarning):
        assert model.options.changed({"impratio": 2.0}).law.noslip == 3
    with pytest.warns(DeprecationWarning):
        assert replace(ag.Options(law="hard"), softness=0.3).law == ag.HardOptions(softness=0.3)
    with pytest.warns(DeprecationWarning, match=r"use options\.law\.impratio"):
        assert model.options.impratio == 4.0
    with pytest.warns(DeprecationWarning, match=r"options\.law\.name"):
        assert model.options.law == "soft"
    assert ag.Simulator(model, law="hard", softness=None).options.law == ag.HardOptions()


def sim_tolerance(model):
    return model.options.law.noslip_tolerance


def test_an_option_of_the_other_law_is_refused(model):
    with pytest.raises(
        ag.InputError, match=r"softness is an option of law='hard'.* law=ag\.HardOptions\(softness=\.\.\.\)"
    ):
        ag.Simulator(model, softness=0.1)
    with pytest.raises(ag.InputError, match="there is no option 'sweep'; options are dt, law, "):
        ag.Simulator(model, sweep=20)


def test_values_of_options_make_the_same_options(model):
    for options in (model.options, ag.Options(law=ag.HardOptions(softness=0.2), max_contacts=3)):
        assert ag.Options.of_values(options.values()) == options
    old = {f.name: getattr(law, f.name) for law in (ag.SoftOptions, ag.HardOptions) for f in fields(law)}
    assert ag.Options.of_values(old | {"law": "hard", "softness": 0.2}) == ag.Options(law=ag.HardOptions(softness=0.2))


def test_trajectories_of_other_options_of_a_law_are_refused(model, tmp_path):
    sim = ag.Simulator(model, law=ag.SoftOptions(iterations=50))
    sim.rollout(sim.state(), steps=2).save(tmp_path / "traj.npz")
    assert np.array_equal(sim.read(tmp_path / "traj.npz").q, sim.rollout(sim.state(), steps=2).q)
    with pytest.raises(ag.InputError, match=r"law=ag\.SoftOptions\(.*iterations=50"):
        ag.Simulator(model).read(tmp_path / "traj.npz")
