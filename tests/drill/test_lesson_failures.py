"""The program of `failures` in real processes, and its batch script: killed at any moment, and in vain."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from lessons.strategies.failures.batch import slurm
from lessons.strategies.failures.resuming import with_resume
from lessons.strategies.launcher import Cluster
from tests.course import COURSE

DEPLOY = COURSE.root / "deploy" / "slurm"
WORKER = COURSE.root / "notebooks" / "plain" / "worker.py"
BOTH = ("worker 0", "worker 1")
MANY = "many_kills"


def run(*command):
    """Returns the report of two workers that end by themselves, and well."""
    with Cluster(command, {"worker": 2}) as cluster:
        report = cluster.wait()
        assert [each.status for each in report.tasks] == [0, 0], repr(report)
    return report


@pytest.fixture(scope="module")
def undisturbed():
    return run(WORKER, tempfile.mkdtemp(), "--steps", "9")["worker 0"].losses


def kills(few, many):
    """Returns how many kills a CI run makes, and how many the weekly drill; its rounds leave out `MANY`."""
    many = pytest.param(many, id=MANY, marks=pytest.mark.drill_all)
    return pytest.mark.parametrize("kills", [pytest.param(few, id="few", marks=pytest.mark.drill), many])


@kills(4, 20)
def test_killed_at_random_moments_it_resumes_with_the_undisturbed_losses(kills, tmp_path):
    # 101 examples: four steps an epoch, a save after each. Steps take less time than saves: kills meet both.
    command = [WORKER, tmp_path, "--examples", "101", "--steps", "100000"]
    losses, resumed = {}, set()
    for _kill in range(kills):
        killed = random.choice(BOTH)
        with Cluster(command, {"worker": 2}) as cluster:
            for _step in range(random.randint(1, 12)):
                cluster.wait_for(killed, " loss ")
            time.sleep(random.uniform(0, 0.3))
            cluster.kill(killed)
            tasks = cluster.report().tasks  # the end of the block kills the other one
        for task in tasks:
            resumed |= {line for line in task.lines if line.startswith("resumes after ")}
            assert {step: losses.setdefault(step, loss) for step, loss in task.losses.items()} == task.losses
    assert len(resumed) > kills // 6
    whole = run(WORKER, tmp_path / "whole", "--examples", "101", "--steps", max(losses))
    assert whole["worker 0"].losses == losses


@pytest.mark.drill_all
@pytest.mark.parametrize("killed", BOTH)
def test_a_killed_worker_ends_the_other_and_both_resume_as_undisturbed(tmp_path, undisturbed, killed):
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


@pytest.mark.drill
@pytest.mark.parametrize("examples", ["97", "101"])
def test_one_two_and_three_workers_have_the_same_losses(examples):
    losses = []
    for workers in (1, 2, 3):
        command = [WORKER, tempfile.mkdtemp(), "--examples", examples, "--steps", "8"]
        with Cluster(command, {"worker": workers}) as cluster:
            losses += [each.losses for each in cluster.wait().tasks]
    for each in losses:
        assert each == pytest.approx(losses[0], abs=1e-5)
    assert [len(each) for each in losses] == [8] * 6


def job(folder, *arguments, **variables):
    """Returns a job of Slurm's that runs in a folder, with what stands in for Slurm in the lesson."""
    for path in (WORKER, DEPLOY / "tf_config.py", DEPLOY / "worker.sbatch"):
        (folder / path.name).write_text(path.read_text())
    return subprocess.Popen(
        ["bash", "worker.sbatch", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **slurm(folder, random.randrange(6_000)), **variables},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def losses_of(log):
    words = [line.split() for line in log.splitlines() if line.startswith("step ") and " mine " in line]
    return {int(each[1]): each[3] for each in words}


@pytest.mark.drill
def test_the_batch_script_goes_back_into_the_queue_if_it_got_on(tmp_path):
    ends, done = [], []
    for signals in (
        {"SIGKILL_AFTER": "worker 0 of 2"},  # before a checkpoint
        {"SIGKILL_AFTER": "step 4 "},
        {"SIGKILL_AFTER": "step 4 "},  # after step 3 again: no new one
        {"SIGTERM_AFTER": "step 4 "},
        {},
    ):
        with job(tmp_path, "--steps", 60, "--pause", 0.5 if signals else 0, **signals) as running:
            output = running.communicate(timeout=240)[0]
        ends.append((running.returncode, "scontrol requeue 17" in output))
        first, second = (losses_of((tmp_path / f"task{task}.log").read_text()) for task in range(2))
        assert [first[step] for step in first if step in second] == [
            second[step] for step in second if step in first
        ]
        # One that is killed, or fails since the other was, may not have told its last step.
        assert abs(len(first) - len(second)) <= ("SIGKILL_AFTER" in signals), output[-3000:]
        done.append(first)
    assert ends == [(137, False), (137, True), (137, False), (75, True), (0, False)]
    assert [min(each) for each in done[1:4]] == [1, 4, 4]
    assert [*done[3], *done[4]] == list(range(4, 61))  # after a warning no step is done twice


@kills(2, 5)
def test_the_batch_script_killed_with_its_workers_resumes_with_the_undisturbed_losses(kills, tmp_path):
    losses = {}
    for _kill in range(kills):
        log = tmp_path / "task0.log"
        log.unlink(missing_ok=True)
        with job(tmp_path, "--steps", 100_000) as running:
            last = max(losses, default=0) + random.randint(1, 6)
            while not log.exists() or max(losses_of(log.read_text()), default=0) < last:
                assert running.poll() is None
                time.sleep(0.1)
            os.killpg(running.pid, signal.SIGKILL)  # script, srun and workers
        found = losses_of(log.read_text())
        assert {step: losses.setdefault(step, loss) for step, loss in found.items()} == found
    whole = run(WORKER, tmp_path / "whole", "--steps", max(losses))["worker 0"].losses
    assert whole == {step: float(loss) for step, loss in losses.items()}


@pytest.mark.drill
def test_a_worker_that_waits_in_vain_is_ended_and_says_where_it_waited(tmp_path):
    command = [WORKER, tmp_path, "--start-timeout", "20"]
    with Cluster(command, {"worker": 2}, absent="worker 1") as cluster:
        report = cluster.wait(120, grace_seconds=0)
        assert report["worker 0"].heading() == "worker 0: ended by Timeout"
        assert "worker.py" in cluster.log("worker 0")


@pytest.mark.drill
def test_a_worker_that_waits_for_one_that_is_stuck_in_the_training_is_ended_too(tmp_path):
    stuck = {"worker 1": [WORKER, tmp_path, "--pause", "600"]}
    with Cluster([WORKER, tmp_path, "--step-timeout", "20"], {"worker": 2}, others=stuck) as cluster:
        report = cluster.wait(120, grace_seconds=0)
        assert report["worker 0"].heading() == "worker 0: ended by Timeout"
        assert report["worker 0"].lines[-1].startswith("step 1 ")
        assert "worker.py" in cluster.log("worker 0")


@pytest.mark.drill
def test_workers_with_other_folders_are_refused(tmp_path):
    run(WORKER, tmp_path / "kept", "--steps", "3")
    elsewhere = {"worker 1": [WORKER, tmp_path / "elsewhere", "--steps", "6"]}
    with Cluster([WORKER, tmp_path / "kept", "--steps", "6"], {"worker": 2}, others=elsewhere) as cluster:
        report = cluster.wait()
    assert [each.heading() for each in report.tasks] == [f"{task}: ended by ValueError" for task in BOTH]
    assert [each.message.splitlines()[0] for each in report.tasks] == [
        f"step {step}, on average 1.5" for step in (3, 0)
    ]


@pytest.mark.drill
def test_the_answer_to_the_exercise_keeps_the_workers_of_the_program_together(tmp_path, undisturbed):
    """Worker 1 sees the first of two checkpoints: the handler, made later, must restore neither."""
    program, kept, seen = resuming(tmp_path)
    for path in seen.glob("ckpt-2.*"):
        path.unlink()
    arguments = ["--steps", "9", "--pause", "0.5"]
    others = {"worker 1": [program, seen, *arguments]}
    with Cluster([program, kept, *arguments], {"worker": 2}, others=others) as cluster:
        cluster.wait_for("worker 1", " loss ")
        cluster.terminate("worker 1")
        report = cluster.wait()
    assert [each.status for each in report.tasks] == [75, 75], repr(report)
    again = run(WORKER, kept, "--steps", "9")["worker 0"].losses
    for task in report.tasks:
        assert min(task.losses) == 4
        together = {**task.losses, **again}
        assert together == {step: undisturbed[step] for step in range(4, 10)}
        assert not task.losses.keys() & again.keys()


@pytest.mark.drill
@pytest.mark.parametrize("lost", [0, 1])
def test_the_answer_to_the_exercise_refuses_a_wrong_folder(tmp_path, lost):
    program, kept, _seen = resuming(tmp_path)
    others = {f"worker {lost}": [program, tmp_path / "elsewhere"]}
    with Cluster([program, kept], {"worker": 2}, others=others) as cluster:
        report = cluster.wait()
    assert report[f"worker {1 - lost}"].message == "another worker sees no checkpoint", repr(report)
    assert report[f"worker {lost}"].status, repr(report)
    assert not [task.losses for task in report.tasks if task.losses]


def resuming(folder):
    """Returns the program with the lesson's `resume`, and two equal folders, of two checkpoints."""
    program, kept, seen = folder / "resumes.py", folder / "kept", folder / "seen"
    program.write_text(with_resume(WORKER, lambda: None))
    run(WORKER, kept, "--steps", "6")
    shutil.copytree(kept, seen)
    return program, kept, seen
