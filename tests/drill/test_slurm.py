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

    def __init__(self, script, tasks, folder, steps=10, **variables):
        command(folder, "srun", f'exec "{sys.executable}" "{ROOT}/tests/drill/fake_srun.py" "$@"')
        command(folder, "scontrol", 'echo "scontrol $*"')
        course = {
            "COURSE_PYTHON": sys.executable,
            "COURSE_STEPS": str(steps),
            "COURSE_PORT": str(free_ports(tasks)),
            "COURSE_CHECKPOINTS": str(folder / "checkpoints"),
        }
        slurms = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "2", "FAKE_TASKS": str(tasks)}
        proxy = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "", "NO_PROXY": ""}  # nobody is there
        path = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        answer = subprocess.run(
            ["bash", ROOT / "deploy" / "slurm" / f"{script}.sbatch"],
            env={**os.environ, **course, **slurms, **path, **proxy, "CUDA_VISIBLE_DEVICES": "", **variables},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        self.status, self.output = answer.returncode, answer.stdout + answer.stderr
        self.requeued = "\nscontrol requeue 17\n" in self.output
        self.told = [
            re.findall(rf"^{task}: course: (.*)$", answer.stdout, re.MULTILINE) for task in range(tasks)
        ]


def losses(told):
    return [line for line in told if re.fullmatch(r"step \d+ loss \S+", line)]


def steps(told):
    return [int(line.split()[1]) for line in losses(told)]


@pytest.mark.drill
def test_two_workers_save_before_the_time_limit_and_go_on(tmp_path):
    first = Job("multi_worker", 2, tmp_path, steps=200, FAKE_SIGTERM_AFTER="step 3 ")
    assert (first.status, first.requeued) == (75, True), first.output[-3000:]
    assert losses(first.told[0]) == losses(first.told[1])
    assert first.told[0][0] == "worker 0 of 2, 2 replicas"
    done = steps(first.told[0])[-1]
    assert 3 <= done < 200

    second = Job("multi_worker", 2, tmp_path, steps=200)
    assert (second.status, second.requeued) == (0, False), second.output[-3000:]
    assert losses(second.told[0]) == losses(second.told[1])
    assert second.told[1][1] == f"goes on after step {done}"
    assert steps(second.told[0]) == list(range(done + 1, 201))


@pytest.mark.drill_all
def test_two_clients_train_as_one(tmp_path):
    job = Job("multi_client", 2, tmp_path)
    assert (job.status, job.requeued) == (0, False), job.output[-3000:]
    first, second = map(losses, job.told)
    assert len(first) == 10
    assert first == second


@pytest.mark.drill_all
def test_a_coordinator_ends_the_job_of_workers_and_servers(tmp_path):
    job = Job("parameter_server", 4, tmp_path)
    assert (job.status, job.requeued) == (0, False), job.output[-3000:]
    chief, server, *workers = job.told
    assert chief[-1] == "10 of 10 steps done"
    assert server[0] == "ps 0 serves"
    assert [told[0] for told in workers] == ["worker 0 serves", "worker 1 serves"]
    assert not list((tmp_path / "checkpoints").glob("ended-*"))
