"""Stands in for Slurm's `srun` and `scontrol` on one machine; the file's name says for which.

The real srun starts a task on each machine. This one starts all here, two or SRUN_TASKS, and sends the signal
that is asked for. They stay in the group of the batch script, so that who ends that ends them.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_WAIT_SECONDS = 30.0  # as the script says: --wait=30
_HOST = "localhost"


def srun(arguments: list[str], folder: Path) -> int:
    """Runs a command as some tasks, prints what they printed, and returns the status of the job step."""
    command = list(itertools.dropwhile(lambda word: word.startswith("--"), arguments))
    count = os.environ.get("SRUN_TASKS", "2")
    of_all = {"SLURM_STEP_NUM_TASKS": count, "SLURM_STEP_TASKS_PER_NODE": count}
    of_all |= {"SLURM_STEP_NODELIST": _HOST, "SLURMD_NODENAME": _HOST}
    logs, tasks = [folder / f"task{task}.log" for task in range(int(count))], []
    for number, log in enumerate(logs):
        own = {**os.environ, **of_all, "SLURM_PROCID": str(number)}
        with log.open("w") as out:
            tasks.append(subprocess.Popen(command, env=own, stdout=out, stderr=subprocess.STDOUT))
    _signal(tasks, logs[0])
    while all(task.poll() is None for task in tasks):
        time.sleep(0.1)
    until = time.monotonic() + _WAIT_SECONDS
    while any(task.poll() is None for task in tasks) and time.monotonic() < until:
        time.sleep(0.1)
    for task in tasks:
        task.kill()
    codes = [task.wait() for task in tasks]
    for number, log in enumerate(logs):
        for line in log.read_text(errors="replace").splitlines():
            print(f"{number}: {line}")
    return 128 - min(codes) if min(codes) < 0 else max(codes)


def _signal(tasks: list[subprocess.Popen[bytes]], log: Path) -> None:
    """Sends SIGTERM to all tasks, or SIGKILL to task 1, when task 0 has printed certain words."""
    words = os.environ.get("SIGTERM_AFTER") or os.environ.get("SIGKILL_AFTER")
    if not words:
        return
    while tasks[0].poll() is None and words not in log.read_text(errors="replace"):
        time.sleep(0.1)
    if os.environ.get("SIGTERM_AFTER"):
        for task in tasks:
            task.send_signal(signal.SIGTERM)
    else:
        tasks[1].kill()


if __name__ == "__main__":
    if Path(__file__).stem == "srun":
        sys.exit(srun(sys.argv[1:], Path(__file__).parent))
    print("scontrol", *sys.argv[1:])
