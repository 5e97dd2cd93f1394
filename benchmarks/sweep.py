"""How a train step's time depends on the size of the batch: one device against eight, under two settings.

As `setup` has it, two operations run at a time, on one thread each: one device uses about one core and
eight use two. With TensorFlow's own numbers of threads one device uses all cores too. The third setting
tells glibc to keep its memory: otherwise each step gets every block of more than 32 MiB, such as a batch of
8,192 rows, from the operating system anew. Each setting is a process of its own; within it, one device
without DTensor and eight with it take turns. The steps are those of lesson 04's widget.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from benchmarks.rows import Row, compared, table
from benchmarks.worker import serve, worker

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
        with worker([sys.executable, "-m", "benchmarks.sweep", "--serve"], environment) as ask:
            for batch_size in batch_sizes:
                pairs = [(ask(f"eight {batch_size}"), ask(f"one {batch_size}")) for _repeat in range(repeats)]
                rows.append(compared(f"{setting}: batch {batch_size:,}, eight / one device", pairs))
    return rows


def make(what: str) -> Callable[[], float]:
    """Returns a function that trains some steps and returns the seconds a step.

    Args:
        what: "one" or "eight" devices, and the size of the batch, such as "eight 64".
    """
    import course_lib

    course_lib.setup(devices=8)
    from course_lib.specs.plan import data_parallel
    from course_lib.training.step_times import timed_steps

    devices, batch_size = what.split()
    return timed_steps(None if devices == "one" else data_parallel(8), int(batch_size))


def main() -> None:
    """Prints the table, or measures for the process that asks."""
    if "--serve" in sys.argv:
        serve(make)
    else:
        print(table(measure()))


if __name__ == "__main__":
    main()
