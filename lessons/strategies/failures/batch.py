"""Runs a batch script as a job of Slurm's would run, with stand-ins for Slurm's commands."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from course_lib import processes
from lessons.strategies.launcher import LIMIT_SECONDS
from lessons.strategies.report import TaskReport

STAND_INS = Path(__file__).with_name("stand_ins.py")


@dataclass(frozen=True)
class JobReport(TaskReport):
    """What a job printed, and its status.

    Attributes:
        requeued: whether its script put it back into the queue.
    """

    requeued: bool = False


def run_batch(
    script: Path, folder: str | os.PathLike[str], *, kill_after: str = "", terminate_after: str = ""
) -> JobReport:
    """Runs a batch script as a job, and returns what its task 0 printed; what it starts ends with it.

    It runs in its own folder; srun's label `0: ` is left out.

    Args:
        script: the batch script.
        folder: that of the checkpoints.
        kill_after: words of task 0 after which task 1 gets SIGKILL, such as "step 4 ".
        terminate_after: words of task 0 after which both get SIGTERM.
    """
    own = {
        "CHECKPOINTS": str(folder),
        "SIGKILL_AFTER": kill_after,
        "SIGTERM_AFTER": terminate_after,
    }
    told = [script.name, "--pause", "0.5"]  # a signal falls between two steps
    command = ["bash", "-c", 'cd "$0" && exec bash "$@"', str(script.parent.resolve()), *told]
    with tempfile.TemporaryDirectory() as name:
        environment = {**slurm(Path(name), os.getpid()), **own}
        done = processes.run(command, seconds=LIMIT_SECONDS, environment=environment)
    printed = done.stdout.splitlines()
    lines = tuple(line.removeprefix("0: ") for line in printed if not line.startswith("1: "))
    return JobReport(script.stem, lines, done.returncode, requeued="scontrol requeue 17" in printed)


def slurm(folder: Path, number: int) -> dict[str, str]:
    """Puts stand-ins for Slurm's commands into a folder, and returns what a job of this number is told.

    `srun` writes what its tasks print to files there: task0.log, task1.log, …
    """
    for name in ("srun", "scontrol"):
        shutil.copy(STAND_INS, folder / f"{name}.py")
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/{name}.py" "$@"\n')
        (folder / name).chmod(0o755)
    return {
        **processes.OF_EACH,
        "no_grpc_proxy": "localhost",
        "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PORT": str(20_000 + number % 6_000 * 2),  # and the next one: one for each task
        "SLURM_JOB_ID": "17",
    }
