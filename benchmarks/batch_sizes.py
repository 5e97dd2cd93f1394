"""Times of a training step with batches of several sizes, on one device and on eight, for `a_run`."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks.programs import program
from course_lib import syllabus
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

BATCH_SIZES = syllabus.module("a_run.explorer").BATCH_SIZES
REPEATS = 5
measuring = syllabus.module("a_run.step_times").measuring


def measure() -> list[dict[str, float]]:
    """Returns for each batch size the medians of what the lesson measures several times."""
    times = measuring(_steps_of(program("a_run")))
    sizes = [[times(batch_size) for _repeat in range(REPEATS)] for batch_size in BATCH_SIZES]
    return [{name: median(each[name] for each in found) for name in found[0]} for found in sizes]


def _steps_of(a_run: Any) -> Callable[[int], Any]:
    """Returns the program's step on one device and on eight, as the lesson makes them in a cell."""
    on_one, on_eight = a_run.MLP(seed=0), a_run.MLP(seed=0)
    for name in ("W1", "b1", "W2", "b2", "mean", "variance"):
        setattr(on_one, name, tf.Variable(getattr(on_one, name).numpy()))

    def steps_of(batch_size: int) -> Any:
        x = np.random.standard_normal((batch_size, 1200)).astype("float32") / 35
        y, rate = (x[:, 0] > 0).astype(int), 0.64 / batch_size
        whole, parts = (tf.constant(x), tf.constant(y)), (a_run.split_rows(x), a_run.split_rows(y))
        step = a_run.train_step
        return lambda: step(on_one, *whole, rate), lambda: step(on_eight, *parts, rate)

    return steps_of
