"""What `srun` does for our scripts, on one machine: starts FAKE_TASKS tasks, each told its place.

Five seconds after one has ended it kills the others (--wait). It answers, as its manual says, with the
highest exit status of all tasks or, where a signal ended one, with 128 and the highest signal.
"""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time


def main():
    count = os.environ["FAKE_TASKS"]
    command = list(itertools.dropwhile(lambda word: word.startswith("--"), sys.argv[1:]))
    of_all = {"SLURM_STEP_NUM_TASKS": count, "SLURM_STEP_TASKS_PER_NODE": count}
    of_all |= {"SLURM_STEP_NODELIST": "localhost", "SLURMD_NODENAME": "localhost"}
    tasks = []
    for task in range(int(count)):
        own = {**os.environ, **of_all, "SLURM_PROCID": str(task)}
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        tasks.append(subprocess.Popen(command, env=own, start_new_session=True, **piped))
    labels = [threading.Thread(target=label, args=(task, tasks)) for task in range(len(tasks))]
    for each in labels:
        each.start()
    while all(task.poll() is None for task in tasks):
        time.sleep(0.05)
    until = time.monotonic() + 5
    while any(task.poll() is None for task in tasks) and time.monotonic() < until:
        time.sleep(0.05)
    kill(tasks)
    for each in labels:
        each.join()
    codes = [task.wait() for task in tasks]
    sys.exit(128 - min(codes) if min(codes) < 0 else max(codes))


def label(task, tasks):
    for line in tasks[task].stdout:
        print(f"{task}: {line}", end="", flush=True)


def kill(tasks):
    for task in tasks:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(task.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
