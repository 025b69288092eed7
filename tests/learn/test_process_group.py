"""Two processes without Ray, as `benchmarks.learn` has them."""

import pytest
from benchmarks.learn import job, run

from artigrad.learn import Player

pytestmark = pytest.mark.filterwarnings("ignore")


def test_two_processes_train_one_policy(tmp_path):
    small = {
        "num_envs": 2,
        "horizon_seconds": 0.05,
        "critic_iterations": 1,
        "hidden": (8,),
        "critic_hidden": (8,),
        "tries": 1,
        "robots": 1,
    }
    one = job("CartpoleSwingUp", "shac", steps=60, processes=2, ema_decay=0.5, **small) | {"out": str(tmp_path)}
    found = run(one, None)
    assert [x["steps"] for x in found["curve"][:2]] == [20.0, 40.0]  # of five steps and two robots each
    assert found["curve"][-1]["steps"] == 60.0 and len(found["tries"]) >= 1
    (tmp_path / "policy.pt").write_bytes(found["policy"])
    assert Player(tmp_path / "policy.pt")([0.0] * 5).shape == (1,)
