"""The batch scripts train, started as Slurm starts them, on this machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = {
    "srun": f'exec "{sys.executable}" "{ROOT}/tests/drill/fake_srun.py" "$@"',
    "scontrol": 'echo "scontrol $*"',
    "python": f'exec "{sys.executable}" "$@"',
}


class Job:
    """A batch script that stand-ins for srun and scontrol run: its status, and what each task told."""

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
        self.requeued = "\nscontrol requeue 17\n" in self.output
        self.lines = [re.findall(rf"^{task}: (.*)$", answer.stdout, re.MULTILINE) for task in range(tasks)]

    def steps(self, task):
        return [line for line in self.lines[task] if line.startswith("step ")]


@pytest.mark.drill
def test_two_workers_save_before_the_time_limit_and_go_on(tmp_path):
    first = Job("worker", 2, tmp_path, 200, FAKE_SIGTERM_AFTER="step 3 ")
    assert (first.status, first.requeued) == (75, True), first.output[-3000:]
    done = len(first.steps(0))
    assert 3 <= done < 200
    second = Job("worker", 2, tmp_path, 200)
    assert (second.status, second.requeued) == (0, False), second.output[-3000:]
    assert second.steps(0) == second.steps(1)
    assert f"goes on after step {done}" in second.lines[1]
    assert len(second.steps(0)) == 200 - done


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
