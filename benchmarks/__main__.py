"""`make bench`: one table of all that is measured, each pair in one run, medians of several repeats."""

from __future__ import annotations

import time
from statistics import median

from benchmarks import training
from course_lib import syllabus

CLUSTERS = syllabus.module("how_long.networks").CLUSTERS
transformer = syllabus.module("how_long.networks").transformer
planned = syllabus.module("how_long.planner").planned


def planning(num_devices: int) -> float:
    """Returns how long the planner of `how_long` takes for every plan of a network."""
    seconds = []
    for blocks in range(40, 45):  # another network each time: the planner keeps what it learns of one
        network = transformer(blocks, sequence=2048, features=6144, heads=48, vocabulary=51200)
        start = time.perf_counter()
        planned(network, num_devices, num_devices, CLUSTERS["A100"])
        seconds.append(time.perf_counter() - start)
    return median(seconds)


if __name__ == "__main__":
    plans = "all plans of 4,096 devices / of 64 devices", planning(4096), planning(64)
    print(f"{'':64} {'course':>11} {'other':>11} {'other/course':>13}")
    for what, course, other in [plans, *training.measure()]:
        print(f"{what:64} {1000 * course:>8,.2f} ms {1000 * other:>8,.2f} ms {other / course:>13.3f}")
