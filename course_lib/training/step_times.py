"""The time of a training step with one global batch, on one device and on eight, measured in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from course_lib.models.sentiment import DEFAULT_DIMS, MLP, initial_values
from course_lib.specs.plan import Plan, data_parallel
from course_lib.training.records import StepTimes
from course_lib.training.trainer import Trainer

_ROWS_IN_A_TURN = 2048  # small batches train several steps a turn, so that the clock's own error is small
_LEAST_STEPS_IN_A_TURN = 2


def step_times(batch_size: int, repeats: int = 3) -> StepTimes:
    """Returns the median times of a step of the sentiment model; one device and eight take turns.

    Args:
        batch_size: the number of rows in the global batch, a multiple of 8.
        repeats: how many turns each has, after one to compile and warm up.

    Raises:
        CourseError: the batch cannot be split over eight devices, or TensorFlow has fewer.
    """
    turns = timed_steps(None, batch_size), timed_steps(data_parallel(8), batch_size)
    for turn in turns:
        turn()
    pairs = [tuple(turn() for turn in turns) for _repeat in range(repeats)]
    return StepTimes(batch_size, *map(statistics.median, zip(*pairs, strict=True)))


def timed_steps(plan: Plan | None, batch_size: int) -> Callable[[], float]:
    """Returns a function that trains some steps and returns the seconds that one of them took.

    The batch lies on the devices already: the step alone is timed.

    Args:
        plan: how the model and the batch are laid out; on one device, without DTensor, if None.
        batch_size: the number of rows in the global batch.
    """
    trainer = Trainer(MLP(initial_values(), plan), 0.64 / batch_size)
    random = np.random.default_rng(0)
    features = random.standard_normal((1, batch_size, DEFAULT_DIMS[0]), np.float32)
    batches = trainer.send(features, (features[..., 0] > 0).astype(np.int64))
    num_steps = max(_LEAST_STEPS_IN_A_TURN, _ROWS_IN_A_TURN // batch_size)

    def turn() -> float:
        start = time.perf_counter()
        for _step in range(num_steps):
            wait = trainer.steps(batches, 1)
        wait()  # each step needs the weights of the one before: the last one waits for all
        return (time.perf_counter() - start) / num_steps

    return turn
