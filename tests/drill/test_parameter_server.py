"""Parameter servers in processes of their own: one is lost, and the training goes on. A worker: lesson 11."""

import signal

import pytest

from tests.drill.processes import processes

TASKS = {"chief": 1, "worker": 2, "ps": 1}


@pytest.mark.drill
def test_a_lost_server_ends_the_training_which_then_goes_on(tmp_path):
    arguments = ("--pause", 0.1, "--checkpoints", tmp_path)
    with processes("parameter_server", TASKS, "--steps", 400, *arguments) as running:
        running.wait_for("chief 0", "saved after 10 steps")
        running.cluster.kill("ps 0")
        assert running.wait("chief 0") == [1], running.report()
        told, last = running.told("chief 0"), max(running.losses("chief 0"))
    assert told[-3] == "error: ps 0 no longer answers."
    with processes("parameter_server", TASKS, "--steps", last + 5, *arguments) as running:
        assert running.wait("chief 0") == [0], running.report()
        told = running.told("chief 0")
        assert running.went_on_after("chief 0") in (last - 5, last)  # lost before or after the checkpoint
        assert told[-1] == f"{last + 5} of {last + 5} steps done"


@pytest.mark.drill
def test_who_never_comes_is_named(tmp_path):
    (tmp_path / "sleeps.py").write_text("import time; time.sleep(600)")
    nobody = dict.fromkeys(("ps 0", "worker 0", "worker 1"), tmp_path / "sleeps.py")
    with processes("parameter_server", TASKS, "--wait", 1, others=nobody) as running:
        assert running.wait("chief 0") == [-signal.SIGKILL], running.report()
        assert running.told("chief 0")[0] == "error: Not there in time: worker 0, worker 1, ps 0."


@pytest.mark.drill_all
@pytest.mark.parametrize("lost", ["ps 0", "chief 0"])
def test_a_lost_server_or_coordinator_comes_back_to_the_workers_that_stayed(lost, tmp_path):
    """What the manifests of deploy/kubernetes count on: only who ended is started again, under its name."""
    arguments = ("--pause", 0.1, "--steps", 400, "--checkpoints", tmp_path)
    with processes("parameter_server", TASKS, *arguments) as running:
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
