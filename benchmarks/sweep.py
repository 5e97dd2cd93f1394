"""How a train step's time depends on the size of the batch: one device against eight, under three settings.

As `setup` has it, two operations run at a time, on one thread each: one device uses about one core and
eight use two. With TensorFlow's own numbers of threads one device uses all cores too. The third setting
tells glibc to keep its memory: otherwise each step gets every block of more than 32 MiB, such as a batch of
8,192 rows, from the operating system anew. Each setting is a process of its own; within it, one device
without DTensor and eight with it take turns. The steps are those of lesson 04's widget.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

import course_lib
from benchmarks.rows import Row

BATCH_SIZES = (64, 512, 2048, 4096, 8192)
ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "2"}
KEPT = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "2000000000"}  # bytes, below 2 GiB
SETTINGS = {
    "one thread a device": ONE_THREAD,
    "TensorFlow's threads": {"TF_NUM_INTRAOP_THREADS": "0", "TF_NUM_INTEROP_THREADS": "0"},
    "one thread, memory kept": ONE_THREAD | KEPT,
}


def measure(repeats: int = 5, batch_sizes: Sequence[int] = BATCH_SIZES) -> list[Row]:
    """Returns a row for each setting and size: eight devices, one device, and one / eight.

    Args:
        repeats: how many pairs are measured for each line.
        batch_sizes: numbers of rows that divide by eight.
    """
    rows = []
    for setting, environment in SETTINGS.items():
        command = [sys.executable, "-m", "benchmarks.sweep", str(repeats), *map(str, batch_sizes)]
        done = subprocess.run(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True
        )
        for times in json.loads(done.stdout):
            one, eight = times["one_device_seconds"], times["eight_devices_seconds"]
            what = f"{setting}: batch {times['batch_size']:,}, eight / one device"
            rows.append(Row(what, eight, one))
    return rows


def times_of(repeats: int, batch_sizes: Sequence[int]) -> list[dict[str, float]]:
    """Returns the times of a step with each batch size on one device and on eight."""
    course_lib.setup(devices=8)
    from course_lib.training.step_times import step_times

    return [asdict(step_times(batch_size, repeats)) for batch_size in batch_sizes]


if __name__ == "__main__":  # in a process of its own, with a setting in its environment
    chosen, *sizes = map(int, sys.argv[1:])
    print(json.dumps(times_of(chosen, sizes)))
