"""What the manifests of deploy/kubernetes count on: only who ended is started again, under its old name."""

import pytest

from tests.drill.processes import processes

ARGUMENTS = ("--pause", 0.1, "--steps", 400)


@pytest.mark.drill_all
@pytest.mark.parametrize("lost", ["ps 0", "chief 0"])
def test_a_lost_server_or_coordinator_comes_back_to_the_workers_that_stayed(lost, tmp_path):
    tasks = {"chief": 1, "worker": 2, "ps": 1}
    with processes("parameter_server", tasks, *ARGUMENTS, "--checkpoints", tmp_path) as running:
        running.wait_for("chief 0", "saved after 10 steps")
        running.cluster.kill(lost)
        running.wait("chief 0")
        before = max(running.losses("chief 0"))
        for name in dict.fromkeys([lost, "chief 0"]):
            running.cluster.restart(name)
        running.wait_for("chief 0", "goes on after")
        done = running.went_on_after("chief 0")
        assert done in (before - 5, before)  # it may have died between a loss and its checkpoint
        running.wait_for("chief 0", f"step {done + 10} ")
        assert running.told("worker 1") == ["worker 1 serves"]
