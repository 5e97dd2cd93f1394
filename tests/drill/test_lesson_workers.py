"""The programs of `workers` in real processes; what the lesson's stored outputs show as well, weekly."""

from pathlib import Path

import pytest

from tests.course import from_lesson

BROKEN, SHARED, start_both = from_lesson("workers.checks_drill", "BROKEN", "SHARED", "start_both")
Cluster = from_lesson("workers.launcher", "Cluster")


PLAIN = Path(__file__).parents[2] / "notebooks" / "plain"
WORKER, CLIENT, COORDINATOR = (PLAIN / f"{name}.py" for name in ("worker", "client", "coordinator"))
BOTH = ("worker 0", "worker 1")
REPAIRED = {host: {"index": at, "BATCH": 32, "folder": SHARED} for at, host in enumerate(BROKEN)}


def run(*command, tasks=2, job="worker", **options):
    """Returns the report of tasks that end by themselves."""
    with Cluster(command, {job: tasks}, **options) as cluster:
        report = cluster.wait()
        assert report.failed == (), cluster.log(report.failed[0])
    return report


@pytest.fixture(scope="module")
def undisturbed():
    return run(WORKER, "--steps", "9")["worker 0"].losses


@pytest.mark.drill_all
def test_two_workers_tell_one_loss_and_one_process_the_same_but_for_rounding(undisturbed):
    report = run(WORKER)
    assert report["worker 0"].losses == report["worker 1"].losses
    assert report["worker 0"].losses.items() <= undisturbed.items()
    alone = run(WORKER, tasks=1)["worker 0"].losses
    assert alone == pytest.approx(report["worker 0"].losses, abs=1e-3)


@pytest.mark.drill_all
@pytest.mark.parametrize("killed", BOTH)
def test_a_killed_worker_ends_the_other_and_both_go_on_as_undisturbed(tmp_path, undisturbed, killed):
    (survivor,) = set(BOTH) - {killed}
    with Cluster([WORKER, tmp_path, "--steps", "9", "--pause", "1.5"], {"worker": 2}) as cluster:
        for task in BOTH:
            cluster.wait_for(task, "step 4 ")
        cluster.kill(killed)
        report, log = cluster.wait(), cluster.log(survivor)
    assert report[survivor].heading() == f"{survivor}: ended by UnavailableError", log
    assert "Restart your program to reset" in log or killed == "worker 0"
    again = run(WORKER, tmp_path, "--steps", "9")
    assert again["worker 1"].lines[1] == "goes on after step 3"
    assert {**report[survivor].losses, **again["worker 0"].losses} == undisturbed


@pytest.mark.drill_all
def test_sigterm_to_one_has_both_save_the_same_step_again_and_again(tmp_path, undisturbed):
    losses = {}
    for _time in range(2):
        with Cluster([WORKER, tmp_path, "--steps", "9", "--pause", "0.5"], {"worker": 2}) as cluster:
            cluster.wait_for("worker 1", " loss ")
            cluster.terminate("worker 1")
            report = cluster.wait()
        assert [told.status for told in report.told] == [75, 75]
        assert report["worker 0"].lines[1:] == report["worker 1"].lines[1:]
        assert not losses.keys() & report["worker 0"].losses.keys()
        losses |= report["worker 0"].losses
    assert {**losses, **run(WORKER, tmp_path, "--steps", "9")["worker 0"].losses} == undisturbed


def changed(path, folder, old, new):
    text = path.read_text()
    assert old in text
    (folder / "changed.py").write_text(text.replace(old, new))
    return folder / "changed.py"


@pytest.mark.drill
def test_a_worker_that_waits_in_vain_is_ended_and_says_where_it_waited(tmp_path):
    short = changed(WORKER, tmp_path, "dump_traceback_later(300", "dump_traceback_later(20")
    never = tmp_path / "never.py"
    never.write_text("import time\ntime.sleep(600)\n")
    with Cluster([short], {"worker": 2}, others={"worker 1": [never]}) as cluster:
        report = cluster.wait(120, grace_seconds=0)
        assert report["worker 0"].heading() == "worker 0: ended by Timeout"
        assert "changed.py" in cluster.log("worker 0")


@pytest.mark.drill_all
def test_a_strategy_that_is_made_too_late_says_so(tmp_path):
    late = changed(WORKER, tmp_path, "strategy = tf.", "tf.constant(1.0)\nstrategy = tf.")
    with Cluster([late], {"worker": 2}) as cluster:
        cluster.wait()
        assert "Collective ops must be configured at program startup" in cluster.log("worker 0")


@pytest.mark.drill
def test_other_batches_train_in_silence_and_other_folders_are_refused(tmp_path):
    other = changed(WORKER, tmp_path, "BATCH = 32", "BATCH = 48")
    report = run(WORKER, "--steps", "3", others={"worker 1": [other, "--steps", "3"]})
    examples = [line.split()[-1] for line in report["worker 0"].lines[1:]]
    assert examples == ["40", "40", "16"]
    run(WORKER, tmp_path / "kept", "--steps", "3")
    elsewhere = {"worker 1": [WORKER, tmp_path / "elsewhere", "--steps", "6"]}
    with Cluster([WORKER, tmp_path / "kept", "--steps", "6"], {"worker": 2}, others=elsewhere) as cluster:
        report = cluster.wait()
    assert [told.heading() for told in report.told] == [f"{task}: ended by AssertionError" for task in BOTH]


@pytest.mark.drill_all
def test_who_leaves_early_fails_the_next_all_reduce_of_the_others(tmp_path):
    last = "total(step.read_value())  # all end"
    early = changed(
        WORKER, tmp_path, last, "time.sleep(30 * worker)\nworker and total(step.read_value())  # "
    )
    with Cluster([early], {"worker": 2}) as cluster:
        report = cluster.wait()
    assert report["worker 0"].status == 0
    assert report["worker 1"].failed


@pytest.mark.drill_all
def test_two_clients_train_as_one_and_one_goes_on_from_their_checkpoint(tmp_path):
    clients = {"job": "client", "variables": "DTENSOR"}
    report = run(CLIENT, tmp_path, **clients)
    assert report["client 0"].losses == report["client 1"].losses
    always = run(CLIENT, "--steps", "8", tasks=1, **clients)["client 0"].losses
    then = run(CLIENT, tmp_path, "--steps", "8", tasks=1, **clients)["client 0"].losses
    assert {**report["client 0"].losses, **then} == pytest.approx(always, abs=1e-4)
    assert list(then) == [6, 7, 8]


@pytest.mark.drill_all
def test_a_lost_worker_comes_back_and_a_lost_server_ends_the_coordinator(tmp_path):
    command = [COORDINATOR, tmp_path, "--epochs", "1000", "--pause", "0.3"]
    tasks = {"chief": 1, "worker": 2, "ps": 2}
    with Cluster(command, tasks) as cluster:
        cluster.wait_for("chief 0", "epoch 2 ")
        cluster.kill("worker 1")
        cluster.wait_for("chief 0", "epoch 6 ")
        cluster.restart("worker 1")
        cluster.wait_for("chief 0", "1] updates")
        cluster.kill("ps 1")
        chief = cluster.wait()["chief 0"]
    assert chief.failed
    updates = [int(line.split()[-1]) for line in chief.lines if line.startswith("epoch")]
    assert all(after - before >= 5 for before, after in zip([0, *updates], updates, strict=False))
    with Cluster(command, tasks) as cluster:  # from the checkpoint of the last epoch
        cluster.wait_for("chief 0", "epoch ")
        line = cluster.report()["chief 0"].lines[-1]
    assert int(line.split()[1]) in (len(updates), len(updates) + 1)  # killed before or after it was saved


@pytest.mark.drill_all
def test_the_drill_fails_and_is_repaired(tmp_path):
    run(WORKER, tmp_path)
    broken = start_both(BROKEN, WORKER, tmp_path)
    assert broken["host1"].heading() == "host1: ended by ValueError"
    report = start_both(REPAIRED, WORKER, tmp_path)
    for told in report.told:
        assert (told.status, told.lines[1], list(told.losses)) == (0, "goes on after step 6", [7, 8, 9])
    wrong = {host: {**settings, "BATCH": 48} for host, settings in REPAIRED.items()}
    assert start_both(wrong, WORKER, tmp_path)["host0"].lines[-1].endswith("examples 48")
