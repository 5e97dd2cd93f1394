"""The fault drill of lesson 11, fault after fault."""

import pytest

from lessons.lesson_11_many_processes.checks_drill import BROKEN, start
from lessons.lesson_11_many_processes.cluster import Cluster


@pytest.fixture(scope="module")
def yesterday(tmp_path_factory):
    """Returns the checkpoints of two workers after six steps."""
    folder = tmp_path_factory.mktemp("yesterday")
    arguments = ["--steps", "6", "--examples", "96", "--checkpoints", str(folder)]
    with Cluster(
        ["-m", "lessons.lesson_11_many_processes.programs.multi_worker", *arguments], {"worker": 2}
    ) as cluster:
        assert not cluster.wait().failed
    return folder


@pytest.mark.drill
def test_each_fault_hides_the_next_and_the_logs_name_it(yesterday):
    machines = {host: dict(settings) for host, settings in BROKEN.items()}
    first = start(machines, yesterday)
    assert first["host0"].lines == ()  # it takes itself for worker 1, and waits for worker 0
    assert first["host1"].lines[0].startswith("error: The cluster has no task 'worker 2'")

    machines["host0"]["index"], machines["host1"]["index"] = 0, 1
    second = start(machines, yesterday)
    for told in second.told:
        assert "worker 1 differs from the others in its newest checkpoint" in told.lines[0]
        assert told.lines[0].endswith("not none.")  # so it is worker 0 that finds none

    machines["host0"]["checkpoints"] = machines["host1"]["checkpoints"]
    third = start(machines, yesterday)
    for told in third.told:
        (line,) = (each for each in told.lines if each.startswith("error"))
        assert "/mnt/nfs/garments are of a run with batch_size = 32; now it is 48." in line

    machines["host0"]["batch"] = machines["host1"]["batch"] = 32
    repaired = start(machines, yesterday)
    assert [told.status for told in repaired.told] == [0, 0]
    for told in repaired.told:
        assert told.lines[1] == "goes on after step 6"
        assert [line.split()[1] for line in told.lines if line.startswith("step")] == ["7", "8", "9"]
