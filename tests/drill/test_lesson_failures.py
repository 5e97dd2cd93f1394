"""The program of `failures` in real processes, and its batch script: killed at any moment, and in vain."""

import os
import random
import signal
import subprocess
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


def kills(few, many):
    """Returns how many kills a CI run makes, and how many the weekly drill; its rounds leave out `MANY`."""
    many = pytest.param(many, id=MANY, marks=pytest.mark.drill_all)
    return pytest.mark.parametrize("kills", [pytest.param(few, id="few", marks=pytest.mark.drill), many])


@kills(4, 20)
def test_killed_at_random_moments_it_resumes_with_the_undisturbed_losses(kills, tmp_path):
    # 101 examples: four steps an epoch, a save after each. Steps take less time than saves: kills meet both.
    command = [WORKER, tmp_path, "--examples", "101", "--steps", "100000"]
    losses, resumed = {}, set()
    for kill in range(kills):
        killed = random.choice(BOTH)
        with Cluster(command, {"worker": 2}) as cluster:
            for _step in range(random.randint(1 if kill else 5, 12)):  # the first kill comes after a save
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
def test_sigterm_to_one_has_both_save_the_same_step_again_and_again(tmp_path):
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
    losses |= run(WORKER, tmp_path, "--steps", "9")["worker 0"].losses
    assert losses == run(WORKER, tmp_path / "undisturbed", "--steps", "9")["worker 0"].losses


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
def test_a_worker_that_waits_for_one_that_is_stuck_in_the_training_is_ended_too(tmp_path):
    stuck = {"worker 1": [WORKER, tmp_path, "--pause", "600"]}
    with Cluster([WORKER, tmp_path, "--step-timeout", "20"], {"worker": 2}, others=stuck) as cluster:
        report = cluster.wait(120, grace_seconds=0)
        assert report["worker 0"].heading() == "worker 0: ended by Timeout"
        assert report["worker 0"].lines[-1].startswith("step 1 ")
        assert "worker.py" in cluster.log("worker 0")


@pytest.mark.drill
def test_the_answer_to_the_exercise_refuses_a_wrong_folder(tmp_path):
    program, kept = tmp_path / "resumes.py", tmp_path / "kept"
    program.write_text(with_resume(WORKER, lambda: None))
    run(WORKER, kept, "--steps", "6")
    others = {"worker 0": [program, tmp_path / "elsewhere"]}
    with Cluster([program, kept], {"worker": 2}, others=others) as cluster:
        report = cluster.wait()
    assert report["worker 1"].message == "another worker sees no checkpoint", repr(report)
    assert report["worker 0"].status, repr(report)
    assert not [task.losses for task in report.tasks if task.losses]
