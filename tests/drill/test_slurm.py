"""The batch scripts of clients and of a coordinator train; that of a worker is in `failures`."""

import os
import re
from pathlib import Path

import pytest

from course_lib import processes
from lessons.strategies.failures.batch import slurm

SCRIPTS = Path(__file__).resolve().parents[2] / "deploy" / "slurm"


def lines_of(script, tasks, folder, steps):
    """Runs a batch script with a stand-in for srun, and returns what each task printed."""
    own = {"SRUN_TASKS": str(tasks), "STEPS": str(steps), "CHECKPOINTS": str(folder / "checkpoints")}
    environment = slurm(folder, 2 * os.getpid()) | own  # a port for each of up to four tasks
    job = processes.run(["bash", str(SCRIPTS / f"{script}.sbatch")], seconds=240, environment=environment)
    assert job.returncode == 0, (job.stdout + job.stderr)[-3000:]
    return [re.findall(rf"^{task}: (.*)$", job.stdout, re.MULTILINE) for task in range(tasks)]


@pytest.mark.drill_all
def test_two_clients_train_as_one(tmp_path):
    first, second = lines_of("client", 2, tmp_path, 10)
    steps = [line for line in first if line.startswith("step ")]
    assert len(steps) == 10
    assert steps == [line for line in second if line.startswith("step ")]


@pytest.mark.drill_all
def test_a_coordinator_ends_the_job_of_workers_and_servers(tmp_path):
    coordinator, *_others = lines_of("coordinator", 4, tmp_path, 3)
    assert coordinator[-1].startswith("epoch 3 ")
    assert not list((tmp_path / "checkpoints").glob("ended-*"))
