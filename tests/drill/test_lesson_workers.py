"""The programs of `workers` in real processes: kills at any moment, and mistakes. Outputs have the rest."""

import random
import time
from pathlib import Path

import pytest

from tests.course import from_lesson

Cluster = from_lesson("workers.launcher", "Cluster")

PLAIN = Path(__file__).parents[2] / "notebooks" / "plain"
WORKER, COORDINATOR = PLAIN / "worker.py", PLAIN / "coordinator.py"
BOTH = ("worker 0", "worker 1")


def run(*command, tasks=None, **options):
    """Returns the report of tasks that end by themselves, and well."""
    with Cluster(command, tasks or {"worker": 2}, **options) as cluster:
        report = cluster.wait()
        assert {report[task].status for task in cluster.ending} == {0}, repr(report)
    return report


@pytest.fixture(scope="module")
def undisturbed():
    return run(WORKER, "--steps", "9")["worker 0"].losses


@pytest.mark.drill_all
@pytest.mark.parametrize("killed", BOTH)
def test_killed_at_any_moment_a_worker_ends_the_other_and_both_go_on_as_undisturbed(
    tmp_path, undisturbed, killed
):
    (survivor,) = set(BOTH) - {killed}
    with Cluster([WORKER, tmp_path, "--steps", "9", "--pause", "1"], {"worker": 2}) as cluster:
        cluster.wait_for(killed, "step 1 ")
        time.sleep(random.uniform(0, 7))
        cluster.kill(killed)
        report, log = cluster.wait(), cluster.log(survivor)
    assert report[survivor].heading() == f"{survivor}: ended by UnavailableError", log
    saved = len(report[survivor].losses) // 3 * 3  # at the end of each epoch of three steps
    again = run(WORKER, tmp_path, "--steps", "9")["worker 0"].losses
    assert min(again) in (saved + 1, saved - 2)  # killed before or after it was saved
    assert {**report[survivor].losses, **again} == undisturbed


@pytest.mark.drill_all
def test_sigterm_to_one_has_both_save_the_same_step_again_and_again(tmp_path, undisturbed):
    losses = {}
    for _time in range(2):
        with Cluster([WORKER, tmp_path, "--steps", "9", "--pause", "0.5"], {"worker": 2}) as cluster:
            cluster.wait_for("worker 1", " loss ")
            cluster.terminate("worker 1")
            report = cluster.wait()
        assert [each.status for each in report.tasks] == [75, 75]
        assert report["worker 0"].lines[1:] == report["worker 1"].lines[1:]
        assert not losses.keys() & report["worker 0"].losses.keys()
        losses |= report["worker 0"].losses
    assert {**losses, **run(WORKER, tmp_path, "--steps", "9")["worker 0"].losses} == undisturbed


@pytest.mark.drill_all
def test_a_coordinator_goes_on_from_the_checkpoint_of_the_last_epoch(tmp_path):
    tasks = {"chief": 1, "worker": 2, "ps": 2}
    for before, after in ((0, 2), (2, 4)):
        lines = run(COORDINATOR, tmp_path, "--epochs", after, tasks=tasks)["chief 0"].lines
        epochs = [int(line.split()[1]) for line in lines if line.startswith("epoch ")]
        assert epochs == [*range(before + 1, after + 1)]


def changed(folder, old, new):
    text = WORKER.read_text()
    assert old in text
    (folder / "changed.py").write_text(text.replace(old, new))
    return folder / "changed.py"


@pytest.mark.drill
def test_a_worker_that_waits_in_vain_is_ended_and_says_where_it_waited(tmp_path):
    short = changed(tmp_path, "dump_traceback_later(300", "dump_traceback_later(20")
    never = tmp_path / "never.py"
    never.write_text("import time\ntime.sleep(600)\n")
    with Cluster([short], {"worker": 2}, others={"worker 1": [never]}) as cluster:
        report = cluster.wait(120, grace_seconds=0)
        assert report["worker 0"].heading() == "worker 0: ended by Timeout"
        assert "changed.py" in cluster.log("worker 0")


@pytest.mark.drill
def test_workers_with_other_folders_are_refused(tmp_path):
    run(WORKER, tmp_path / "kept", "--steps", "3")
    elsewhere = {"worker 1": [WORKER, tmp_path / "elsewhere", "--steps", "6"]}
    with Cluster([WORKER, tmp_path / "kept", "--steps", "6"], {"worker": 2}, others=elsewhere) as cluster:
        report = cluster.wait()
    assert [each.heading() for each in report.tasks] == [f"{task}: ended by AssertionError" for task in BOTH]
