"""DTensor over the devices of two processes: equal to one process, sharded checkpoints, resumed by either.

From two clients to one: lesson 11 itself.
"""

import numpy as np
import pytest

from tests.drill.processes import processes

SMALL = ("--examples", 64, "--digits", 9)
SAME_MODEL_TOLERANCE = 1e-5


def clients(*arguments):
    return processes("multi_client", {"worker": 2}, *arguments, *SMALL, variables="DTENSOR")


def alone(*arguments):
    return processes("multi_client", {"worker": 1}, *arguments, *SMALL)


def losses_of(started, *arguments):
    """Returns the losses that all processes of a run told, and the lines of the first."""
    with started(*arguments) as running:
        assert set(running.wait()) == {0}, running.report()
        told = [running.losses(name) for name in running.names()]
        assert all(each == told[0] for each in told)
        return told[0], running.told("worker 0")


@pytest.mark.drill_all
@pytest.mark.parametrize(
    ("first", "then", "plan"),
    [(alone, clients, "data"), (clients, clients, "model")],
    ids=["one-two", "two-two"],
)
def test_clients_train_as_one_process_and_each_goes_on_from_the_others(tmp_path, first, then, plan):
    expected, _told = losses_of(alone, "--plan", plan, "--steps", 6)
    begun, _told = losses_of(first, "--plan", plan, "--checkpoints", tmp_path, "--steps", 3)
    ended, told = losses_of(then, "--plan", plan, "--checkpoints", tmp_path, "--steps", 6)
    assert told[2] == "goes on after step 3"
    found, steps = begun | ended, range(1, 7)
    assert (sorted(begun), sorted(ended)) == ([1, 2, 3], [4, 5, 6])
    np.testing.assert_allclose(
        [found[step] for step in steps], [expected[step] for step in steps], atol=SAME_MODEL_TOLERANCE
    )


@pytest.mark.drill_all
def test_a_client_that_is_killed_is_named_and_all_go_on(tmp_path):
    arguments = ("--plan", "data", "--checkpoints", tmp_path)
    with clients(*arguments, "--steps", 400, "--hold", 5) as running:
        for name in ("worker 0", "worker 1"):
            running.wait_for(name, "step 5 ")
        running.cluster.kill("worker 1")
        assert running.wait("worker 0") == [1], running.report()
        before, told = running.losses("worker 0"), running.told("worker 0")
    assert told[-3] == "error: worker 1 no longer answers."
    after, told = losses_of(clients, *arguments, "--steps", 9)
    assert told[2] == "goes on after step 4"
    assert sorted(before) == [1, 2, 3, 4, 5]
    assert after[5] == before[5]
