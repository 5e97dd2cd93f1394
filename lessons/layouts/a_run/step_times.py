"""The time of a training step with one global batch, on one device and on eight, measured in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from course_lib.explorers.measuring import median_seconds

_ROWS_IN_A_TURN = 2048  # small batches take several steps a turn, so that the clock's own error is small
_LEAST_STEPS_IN_A_TURN = 2

Step = Callable[[], Sequence[Any]]


@dataclass(frozen=True)
class StepTimes:
    """How long a training step takes with one global batch, on one device and on eight.

    Attributes:
        batch_size: the number of examples in the global batch.
        one_device_seconds: the time of a step where one device computes all of them.
        eight_devices_seconds: the time of a step where each of eight devices computes an eighth.
    """

    batch_size: int
    one_device_seconds: float
    eight_devices_seconds: float


def measuring(steps_of: Callable[[int], tuple[Step, Step]]) -> Callable[[int], StepTimes]:
    """Returns a function from a batch size to the times of a step of that size. It takes seconds.

    Args:
        steps_of: returns for a batch size two functions that do a training step, on one device and on eight;
            a step returns its loss first.
    """

    def measure(batch_size: int) -> StepTimes:
        count = max(_LEAST_STEPS_IN_A_TURN, _ROWS_IN_A_TURN // batch_size)
        turns = [partial(_turn, step, count) for step in steps_of(batch_size)]
        return StepTimes(batch_size, *(seconds / count for seconds in median_seconds(turns)))

    return measure


def _turn(step: Step, count: int) -> float:
    """Does some steps; each needs the weights of the one before."""
    losses = [step()[0] for _step in range(count)]
    return float(losses[-1])
