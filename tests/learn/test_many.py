"""One policy by several processes: gradients are averaged, and a worker that is killed changes nothing but time."""

import os
import signal
import sys

import pytest
import torch

import artigrad as ag

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
from artigrad.learn import Player  # noqa: E402
from artigrad.learn.many import Workers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"envs": 2, "span": 0.05, "critic_passes": 1, "hidden": (8,), "critic_hidden": (8,)}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    path = os.pathsep.join(p for p in sys.path if p)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
    yield
    ray.shutdown()


def weights(workers):
    return [torch.cat([x.flatten() for x in s["parts"]["policy"].values()]) for s in workers.states]


def test_a_killed_worker_changes_nothing(tmp_path):
    calm = Workers("Hopper", "shac", 2, every=2, **SMALL)
    calm.run(4)
    first, second = weights(calm)
    assert torch.equal(first, second)  # the same weights, of different robots
    assert not torch.equal(calm.states[0]["moment"][0], calm.states[1]["moment"][0])
    calm.close()
    struck = Workers("Hopper", "shac", 2, every=2, **SMALL)
    struck.run(2)
    os.kill(struck.processes()[1], signal.SIGKILL)
    struck.run(2)
    assert struck.lost >= 1 and struck.steps == calm.steps
    assert torch.equal(weights(struck)[0], first)
    struck.save(tmp_path / "policy.pt")
    assert Player(tmp_path / "policy.pt")(torch.zeros(11)).shape == (3,)
    struck.close()


def test_what_is_wrong_is_said():
    with pytest.raises(ag.InputError, match="workers train by"):
        Workers("Hopper", "sac")
    with pytest.raises(ag.InputError, match="count"):
        Workers("Hopper", "shac", 0)
