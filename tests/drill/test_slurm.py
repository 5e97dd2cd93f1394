"""The batch scripts of clients and of a coordinator train; that of a worker is in `failures`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = {
    "srun": f'exec "{sys.executable}" "{ROOT}/tests/drill/fake_srun.py" "$@"',
    "python": f'exec "{sys.executable}" "$@"',
}


class Job:
    """A batch script that a stand-in for srun runs: its status, and what each task told."""

    def __init__(self, script, tasks, folder, steps, **variables):
        for name, text in STAND_INS.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        own = {"STEPS": str(steps), "CHECKPOINTS": str(folder / "checkpoints"), "FAKE_TASKS": str(tasks)}
        own |= {"PORT": str(20_000 + os.getpid() % 1_000 * 10), "PATH": f"{folder}:{os.environ['PATH']}"}
        own |= {"SLURM_JOB_ID": "17", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
        own |= {"PYTHONUNBUFFERED": "1", "GCE_METADATA_IP": "127.0.0.1:9", "no_grpc_proxy": "localhost"}
        answer = subprocess.run(
            ["bash", ROOT / "deploy" / "slurm" / f"{script}.sbatch"],
            env={**os.environ, **own, **variables},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        self.status, self.output = answer.returncode, answer.stdout + answer.stderr
        self.lines = [re.findall(rf"^{task}: (.*)$", answer.stdout, re.MULTILINE) for task in range(tasks)]

    def steps(self, task):
        return [line for line in self.lines[task] if line.startswith("step ")]


@pytest.mark.drill_all
def test_two_clients_train_as_one(tmp_path):
    job = Job("client", 2, tmp_path, 10)
    assert job.status == 0, job.output[-3000:]
    assert len(job.steps(0)) == 10
    assert job.steps(0) == job.steps(1)


@pytest.mark.drill_all
def test_a_coordinator_ends_the_job_of_workers_and_servers(tmp_path):
    job = Job("coordinator", 4, tmp_path, 3)
    assert job.status == 0, job.output[-3000:]
    assert job.lines[0][-1].startswith("epoch 3 ")
    assert not list((tmp_path / "checkpoints").glob("ended-*"))
