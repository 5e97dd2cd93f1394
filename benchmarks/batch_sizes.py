"""Times of a training step with batches of several sizes, on one device and on eight, for `faster`."""

from __future__ import annotations

import resource
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks.steps import LESSON, SCHEMES
from course_lib import start_tensorflow, syllabus

start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

BATCH_SIZES = syllabus.module("faster.explorer").BATCH_SIZES
REPEATS = 5
measuring = syllabus.module("faster.step_times").measuring


def measure() -> list[dict[str, float]]:
    """Returns for each batch size the shortest times of what the lesson measures several times.

    Each is a median of turns; of these medians the least, since what else the machine does only adds to them.

    With them come the page faults of a step: the pages of memory that the allocator had given back to the
    system and gets again. Where they are few, the times owe nothing to it.
    """
    steps_of = _steps_of()
    times, faults = measuring(steps_of), _faults_of(steps_of)
    # The sizes take turns, so that other work of the machine is spread over them
    turns = [[times(batch_size) for batch_size in BATCH_SIZES] for _repeat in range(REPEATS)]
    shortest = [
        {name: min(each[name] for each in found) for name in found[0]} for found in zip(*turns, strict=True)
    ]
    return [each | faults(int(each["batch_size"])) for each in shortest]


def _steps_of() -> Callable[[int], Any]:
    """Returns the program's step on one device and on eight, as the lesson makes them in a cell."""
    dims, specs = SCHEMES["data"]
    layouts = LESSON.layouts_on(dtensor.create_mesh(dims, device_type="CPU"), specs)
    models = [LESSON.Model(dict.fromkeys(specs)), LESSON.Model(layouts)]
    features, labels = LESSON.made_up_reviews(max(BATCH_SIZES))
    step, rate = np.float32(1), LESSON.LEARNING_RATE

    def steps_of(batch_size: int) -> Any:
        x, y = features[:batch_size], labels[:batch_size]
        whole = LESSON.place(x, None), LESSON.place(y, None)
        parts = LESSON.place(x, layouts["x"]), LESSON.place(y, layouts["y"])
        return (
            lambda: LESSON.train_step(models[0], *whole, step, rate),
            lambda: LESSON.train_step(models[1], *parts, step, rate),
        )

    return steps_of


def _faults_of(steps_of: Callable[[int], Any]) -> Callable[[int], dict[str, float]]:
    def faults(batch_size: int) -> dict[str, float]:
        names = "one_device_page_faults", "eight_devices_page_faults"
        return {
            name: median(_faults(step) for _repeat in range(REPEATS))
            for name, step in zip(names, steps_of(batch_size), strict=True)
        }

    return faults


def _faults(step: Callable[[], Any]) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    float(step()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
