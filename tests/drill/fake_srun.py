"""What `srun` does for our scripts, on one machine: starts so many tasks, each told its place.

As Slurm's manual of srun says, it answers with the highest exit status of all tasks or, where a signal ended
one, with 128 and the highest signal: also where it killed that task itself, because --wait was over.
FAKE_TASKS is how many tasks there are. When task 0 has told the line FAKE_SIGTERM_AFTER, all get SIGTERM, as
before a time limit.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

MOST_WAITED_SECONDS = 5.0  # of --wait: nobody is to wait for half a minute here


def main():
    options, command = parsed(sys.argv[1:])
    tasks = int(os.environ["FAKE_TASKS"])
    of_all = {
        "SLURM_STEP_NUM_TASKS": str(tasks),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_STEP_TASKS_PER_NODE": str(tasks),
        "SLURMD_NODENAME": "localhost",
    }
    started = [
        subprocess.Popen(
            command,
            env={**os.environ, **of_all, "SLURM_PROCID": str(task)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that a signal reaches what the task has started too
        )
        for task in range(tasks)
    ]
    labels = [threading.Thread(target=label, args=(task, started)) for task in range(tasks)]
    for each in labels:
        each.start()
    wait(started, min(options.wait, MOST_WAITED_SECONDS), ends_on_error=options.kill_on_bad_exit == 1)
    for each in labels:
        each.join()
    sys.exit(status([process.returncode for process in started]))


def parsed(words):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--wait", type=float, required=True)
    parser.add_argument("--kill-on-bad-exit", type=int, choices=(0, 1), required=True)
    parser.add_argument("--label", action="store_true", required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    return options, options.command


def label(task, started):
    last = os.environ.get("FAKE_SIGTERM_AFTER")
    for line in started[task].stdout:
        print(f"{task}: {line}", end="", flush=True)
        if task == 0 and last and last in line:
            last = None
            to_all(started, signal.SIGTERM)


def to_all(started, number):
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def wait(started, seconds, *, ends_on_error):
    until = None
    while any(process.poll() is None for process in started):
        ended = [process.returncode for process in started if process.poll() is not None]
        if ended and until is None:
            until = time.monotonic() + seconds
        if (ends_on_error and any(ended)) or (until is not None and time.monotonic() > until):
            to_all(started, signal.SIGKILL)
        time.sleep(0.05)


def status(codes):
    signals = [-code for code in codes if code < 0]
    return 128 + max(signals) if signals else max(codes)


if __name__ == "__main__":
    main()
