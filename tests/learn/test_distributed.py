"""Distributed training and jobs on Ray: averaged gradients, jobs on free workers, recovery from killed workers."""

import os
import signal
import sys
from pathlib import Path

import pytest
import torch

import artigrad as ag

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
from artigrad.envs.locomotion import Hopper  # noqa: E402
from artigrad.jobs import over_workers  # noqa: E402
from artigrad.learn import Player  # noqa: E402
from artigrad.learn.distributed import Workers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"num_envs": 2, "horizon_seconds": 0.05, "critic_iterations": 1, "hidden": (8,), "critic_hidden": (8,)}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    path = os.pathsep.join(p for p in sys.path if p)
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - beside other tests they would wait for long
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
    yield
    ray.shutdown()


def weights(workers):
    return [torch.cat([x.flatten() for x in s["modules"]["policy"].values()]) for s in workers.states]


def test_killed_worker_does_not_change_the_policy(tmp_path):
    calm = Workers("Hopper", "shac", 2, keep_every=2, **SMALL)
    calm.run(4)
    first, second = weights(calm)
    assert torch.equal(first, second)  # the same weights, of different robots
    assert not torch.equal(calm.states[0]["env_state"][0], calm.states[1]["env_state"][0])
    calm.close()
    struck = Workers(Hopper(), "shac", 2, keep_every=2, **SMALL)  # a task as an object is as good as its name
    struck.run(2)
    os.kill(struck.process_ids()[1], signal.SIGKILL)
    struck.run(2)
    assert struck.restarts >= 1 and struck.steps == calm.steps
    assert torch.equal(weights(struck)[0], first)
    struck.save(tmp_path / "policy.pt")
    assert Player(tmp_path / "policy.pt")(torch.zeros(11)).shape == (3,)
    struck.close()


def test_jobs_over_workers(tmp_path):
    """Minimization from several initial guesses; the worker of one of them is killed once."""

    def least(job):
        start, mark = job
        if start == 2.0 and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        x = start
        for _ in range(60):
            x -= 0.25 * 2.0 * (x - 3.0)
        return x, os.getpid()

    seen = []
    found = over_workers(least, [(x, str(tmp_path / "mark")) for x in (1.0, 2.0, 5.0)], watch=lambda *x: seen.append(x))
    assert [round(x, 9) for x, _ in found] == [3.0] * 3 and (tmp_path / "mark").exists()
    assert os.getpid() not in [process for _, process in found] and seen == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(ZeroDivisionError) as problem:
        over_workers(lambda x: 1 / x, [1, 0, 2])
    assert "job 1 of 3: 0" in "".join(problem.value.__notes__)
    with pytest.raises(ag.InputError, match="cores"):
        over_workers(least, [], cores=0)


def test_wrong_arguments_are_reported():
    with pytest.raises(ag.InputError, match="workers train by"):
        Workers("Hopper", "sac")
    with pytest.raises(ag.InputError, match="num_workers"):
        Workers("Hopper", "shac", 0)
