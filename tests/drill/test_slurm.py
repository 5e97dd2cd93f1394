"""The batch scripts train, started as Slurm starts them, on this machine."""

import os
import random
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 240


def free_ports(count):
    """Returns the first of so many ports in a row that were free a moment ago."""
    for first in random.sample(range(20_000, 30_000, count), 100):  # another test may look as well
        try:
            for port in range(first, first + count):
                with socket.socket() as found:
                    found.bind(("", port))
        except OSError:
            continue
        return first
    raise AssertionError("no free ports")


def command(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class Job:
    """A batch script that stand-ins for srun and scontrol run: its status, and what each task told."""

    def __init__(self, script, tasks, folder, steps, **variables):
        command(folder, "srun", f'exec "{sys.executable}" "{ROOT}/tests/drill/fake_srun.py" "$@"')
        command(folder, "scontrol", 'echo "scontrol $*"')
        command(folder, "python", f'exec "{sys.executable}" "$@"')
        ours = {
            "STEPS": str(steps),
            "PORT": str(free_ports(tasks)),
            "CHECKPOINTS": str(folder / "checkpoints"),
        }
        slurms = {"SLURM_JOB_ID": "17", "FAKE_TASKS": str(tasks), "PATH": f"{folder}:{os.environ['PATH']}"}
        quiet = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
        quiet |= {"GCE_METADATA_IP": "127.0.0.1:9", "no_grpc_proxy": "localhost"}
        answer = subprocess.run(
            ["bash", ROOT / "deploy" / "slurm" / f"{script}.sbatch"],
            env={**os.environ, **ours, **slurms, **quiet, **variables},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        self.status, self.output = answer.returncode, answer.stdout + answer.stderr
        self.requeued = "\nscontrol requeue 17\n" in self.output
        self.told = [re.findall(rf"^{task}: (.*)$", answer.stdout, re.MULTILINE) for task in range(tasks)]

    def steps(self, task):
        return [line for line in self.told[task] if line.startswith("step ")]


@pytest.mark.drill
def test_two_workers_save_before_the_time_limit_and_go_on(tmp_path):
    first = Job("worker", 2, tmp_path, 200, FAKE_SIGTERM_AFTER="step 3 ")
    assert (first.status, first.requeued) == (75, True), first.output[-3000:]
    assert first.steps(0) == first.steps(1)
    done = len(first.steps(0))
    assert 3 <= done < 200
    second = Job("worker", 2, tmp_path, 200)
    assert (second.status, second.requeued) == (0, False), second.output[-3000:]
    assert second.steps(0) == second.steps(1)
    assert f"goes on after step {done}" in second.told[1]
    assert len(second.steps(0)) == 200 - done


@pytest.mark.drill_all
def test_two_clients_train_as_one(tmp_path):
    job = Job("client", 2, tmp_path, 10)
    assert (job.status, job.requeued) == (0, False), job.output[-3000:]
    assert len(job.steps(0)) == 10
    assert job.steps(0) == job.steps(1)


@pytest.mark.drill_all
def test_a_coordinator_ends_the_job_of_workers_and_servers(tmp_path):
    job = Job("coordinator", 4, tmp_path, 3)
    assert (job.status, job.requeued) == (0, False), job.output[-3000:]
    assert job.told[0][-1].startswith("epoch 3 ")
    assert not list((tmp_path / "checkpoints").glob("ended-*"))
