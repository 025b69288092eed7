"""Deprecated public names work, warn at the caller's line with the new name, and are listed in the changelog."""

from pathlib import Path

import pytest

import artigrad
from artigrad import deprecation, errors
from artigrad.deprecation import renamed, renamed_arguments
from artigrad.fit.parameters import chosen
from artigrad.model.params import RENAMED


@renamed(old="new")
class Thing:
    new = 1


def test_renamed_attributes_read_and_write_the_new_ones():
    thing = Thing()
    with pytest.warns(DeprecationWarning, match=r"Thing\.old is deprecated .* use new") as caught:
        thing.old = 3
    assert thing.new == 3 and caught[0].filename == __file__
    with pytest.warns(DeprecationWarning):
        assert thing.old == 3
    with pytest.warns(DeprecationWarning):
        assert Thing.old == 1


def test_overrides_under_the_old_name_reach_the_method_of_the_class_above():
    @renamed(old="new")
    class Base:
        def __init_subclass__(cls):
            deprecation.rename_overrides(cls)

        def new(self):
            return ["base"]

    with pytest.warns(DeprecationWarning):

        class Middle(Base):
            def old(self):
                return [*super().old(), "middle"]

        class Last(Middle):
            def old(self):
                return [*super().old(), "last"]

    with pytest.warns(DeprecationWarning):
        assert Last().new() == Last().old() == ["base", "middle", "last"]


def test_renamed_arguments_are_passed_on_and_given_once():
    @renamed_arguments(old="new")
    def f(new=0):
        return new

    with pytest.warns(DeprecationWarning, match=r"f\(old=\.\.\.\) is deprecated .* use new="):
        assert f(old=2) == 2
    with pytest.raises(errors.InputError, match="'old' is the deprecated name of 'new'"):
        f(old=2, new=2)


def test_arguments_by_position_become_keywords():
    @deprecation.keyword_arguments("x", "y")
    def f(a, *, x=0, y=0):
        return a, x, y

    with pytest.warns(
        DeprecationWarning, match=r"with x, y by position is deprecated .* use x=\.\.\., y=\.\.\."
    ) as caught:
        assert f(1, 2, 3) == (1, 2, 3)
    assert caught[0].filename == __file__
    for wrong in (lambda: f(1, 2, 3, 4), lambda: f(1, 2, x=3)):
        with pytest.raises(TypeError):
            wrong()
    sim = artigrad.Simulator(artigrad.robots.pendulum(), threads=1)
    traj = sim.rollout(sim.reset(), steps=2)
    with pytest.warns(DeprecationWarning, match=r"Simulator\.vjp"):
        assert (sim.vjp(traj, traj.q, traj.v).q0 == sim.vjp(traj, q_bar=traj.q, v_bar=traj.v).q0).all()


def test_names_of_modules():
    getattr_ = deprecation.module_getattr("artigrad.errors", {"Old": "InputError", "Older": ".files:as_path"})
    with pytest.warns(DeprecationWarning, match=r"artigrad\.errors\.Old is deprecated .* artigrad\.errors\.InputError"):
        assert getattr_("Old") is errors.InputError
    with pytest.raises(AttributeError, match="has no attribute 'New'"):
        getattr_("New")


def test_environments_and_their_tasks_keep_their_old_names():
    torch = pytest.importorskip("torch")
    import artigrad.envs
    from artigrad.envs import DifferentiableEnv, EnvTask, RandomSource

    with pytest.warns(DeprecationWarning, match="RandomSource"):
        assert artigrad.envs.Draw is RandomSource
    with pytest.warns(DeprecationWarning) as caught:

        class Swing(EnvTask):
            frame_skip, episode, observation_size, seen_size = 2, 3, 2, 1

            def __init__(self):
                self.model = artigrad.robots.pendulum()

            def start(self, draw, count):
                return draw.uniform(0.0, 1.0, count, 1), draw.uniform(0.0, 0.0, count, 1)

            def look(self, sim, q, v, u):
                return q * q

            def observe(self, now):
                return torch.cat([now.q, now.v], -1)

            def reward(self, before, action, after):
                return after.seen[:, 0]

    assert any("use sample_initial_state" in str(w.message) and w.filename == __file__ for w in caught)
    with pytest.warns(DeprecationWarning):
        env = DifferentiableEnv(Swing(), 2, threads=1, clip=1.0)
        env.reset()
        step = env.step(torch.zeros(2, 1))
        assert torch.equal(env.now.seen, env.state.q.square()) and torch.equal(step.last, step.next_observation)
    assert env.max_episode_steps == 3 and Swing.max_episode_steps == 3


def test_settings_of_learning_keep_their_old_names(tmp_path):
    pytest.importorskip("torch")
    from artigrad.learn import Training
    from artigrad.learn.shac import ShacSettings

    with pytest.warns(DeprecationWarning, match="horizon_seconds"):
        assert ShacSettings(span=0.3) == ShacSettings(horizon_seconds=0.3)
    with pytest.warns(DeprecationWarning, match="num_envs"):
        learner = Training("PendulumReach", "ppo", envs=3, threads=1).learner
    assert learner.env.num_envs == learner.settings.num_envs == 3
    with pytest.warns(DeprecationWarning, match="ema_policy"):
        assert learner.played is learner.policy
    with pytest.warns(DeprecationWarning, match=r"artigrad\.learn\.distributed\.Workers"):
        from artigrad.learn.many import Workers
    assert Workers.__module__ == "artigrad.learn.distributed"


def test_parameters_keep_their_old_names():
    model = artigrad.robots.pendulum()
    body, own = model.bodies[0], model.params
    with pytest.warns(DeprecationWarning, match=r"params\.body_weight .* use params\.body_invweight0") as caught:
        assert (own.body_weight == own.body_invweight0).all()
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning):
        assert (own["dof_weight"] == own.dof_invweight0).all() and (
            own.body(body).body_weight == own.body_invweight0[0]
        ).all()
    with pytest.warns(DeprecationWarning, match=r"use dof_invweight0="):
        assert (own.replace(dof_weight=2.0 * own.dof_invweight0).dof_invweight0 == 2.0 * own.dof_invweight0).all()
    with pytest.raises(errors.InputError, match="'body_weight' is the deprecated name of 'body_invweight0'"):
        own.replace(body_weight=own.body_invweight0, body_invweight0=own.body_invweight0)
    with pytest.warns(DeprecationWarning, match="body_invweight0"):
        assert chosen(own, f"body_weight[{body}].turn").field == "body_invweight0"


def test_health_keeps_its_old_name():
    health = artigrad.Health(1.0, 0.0, 2.0)
    with pytest.warns(DeprecationWarning, match=r"Health\.margin .* use switch_margin"):
        assert health.margin == health.switch_margin == 2.0
    with pytest.warns(DeprecationWarning):
        assert health._replace(margin=3.0) == artigrad.Health(1.0, 0.0, 3.0)


def test_builders_keep_their_old_names():
    builder = artigrad.ModelBuilder("arm")
    with pytest.warns(DeprecationWarning, match=r"body\(lifts=\.\.\.\) .* use actuator_gravcomp="):
        builder.add_body(
            "arm", joint="revolute", mass=1.0, inertia=(1.0, 1.0, 1.0), gravity_compensation=1.0, lifts=True
        )
    builder.add_site("tip", "arm")
    builder.add_site("base", "world")
    with pytest.warns(DeprecationWarning, match=r"actuator\(early=\.\.\.\) .* use actearly="):
        builder.add_actuator("drive", "arm", dynamics="filter", early=True)
    with pytest.warns(DeprecationWarning, match=r"actuator\(seen_from=\.\.\.\) .* use refsite="):
        builder.add_actuator("pull", site="tip", seen_from="base", gear=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    model = builder.build()
    assert "actuator_gravcomp" in model.features and model.activations[0].actearly
    with pytest.warns(DeprecationWarning, match=r"Model\.extras .* use features"):
        assert model.extras == model.features
    with pytest.warns(DeprecationWarning, match=r"Model\.lifting .* use actuator_gravcomp"):
        assert model.lifting == model.actuator_gravcomp == (0,)


def test_methods_of_builders_work_without_add():
    class Chain(artigrad.ModelBuilder):
        def add_body(self, name, *given, **options):
            return super().add_body(f"{name}_link", *given, mass=1.0, inertia=(1.0, 1.0, 1.0), **options)

    builder = Chain("arm")
    with pytest.warns(DeprecationWarning, match=r"ModelBuilder\.body is deprecated .* use add_body") as caught:
        builder.body("upper", joint="revolute")
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"ModelBuilder\.couple is deprecated .* use add_joint_coupling"):
        builder.couple("upper_link")
    with pytest.warns(DeprecationWarning, match=r"use set_fluid"):
        builder.fluid(density=2.0)
    model = builder.build()
    assert model.bodies == ("upper_link",) and len(model.equalities) == 1 and model.params.density == 2.0
    old = artigrad.ModelBuilder._renamed
    assert all(callable(getattr(artigrad.ModelBuilder, new)) for new in old.values())


def test_tendons_keep_their_old_names():
    builder = artigrad.ModelBuilder("arm")
    builder.add_body("arm", joint="revolute", mass=1.0, inertia=(1.0, 1.0, 1.0))
    with pytest.warns(DeprecationWarning, match=r"tendon\(weight=\.\.\.\) .* use invweight0="):
        builder.add_fixed_tendon("cable", {"arm": 1.0}, weight=0.25)
    assert builder.build().params.tendon_invweight0 == [0.25]


def test_forward_dynamics_and_integrate_keep_their_old_names():
    import artigrad as ag

    sim = ag.Simulator(ag.robots.pendulum())
    state = sim.state()
    with pytest.warns(DeprecationWarning, match=r"Simulator\.acceleration is deprecated .* use forward_dynamics"):
        assert (sim.acceleration(state) == sim.forward_dynamics(state)).all()
    with pytest.warns(DeprecationWarning, match=r"artigrad\.move is deprecated .* use artigrad\.integrate"):
        assert ag.move is ag.integrate


def test_changelog_lists_renamed_names():
    root = Path(errors.__file__).parent
    text = (root.parent.parent / "CHANGELOG.md").read_text()
    rows = {}
    for file in root.rglob("*.py"):
        for line in file.read_text().splitlines():
            if line.strip().startswith(("@renamed(", "@renamed_arguments(")):
                rows[file.name] = line
    assert len(rows) > 5
    import artigrad.envs
    import artigrad.learn

    for old, new in RENAMED.items():
        assert f"`{old}`" in text and f"`{new}`" in text, (old, new)
    classes = [artigrad.envs.EnvTask, artigrad.envs.EnvState, artigrad.envs.DifferentiableEnv, artigrad.learn.Learner]
    classes += [kind.Settings for kind in artigrad.learn.ALGORITHMS.values()]
    for kind in classes:
        for old, new in kind._renamed.items():
            assert f"`{old}`" in text and f"`{new}`" in text, (kind, old, new)


def test_live_physics_keeps_its_old_name():
    with pytest.warns(DeprecationWarning, match=r"artigrad\.play is deprecated .* use artigrad\.interact"):
        assert artigrad.play is artigrad.interact
    with pytest.warns(DeprecationWarning, match=r"use artigrad\.view\.interact"):
        from artigrad.view import play
    assert play is artigrad.interact
