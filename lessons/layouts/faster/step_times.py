"""The time of a training step with one global batch, on one device and on eight, measured in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from course_lib.explorers.measuring import median_seconds
from course_lib.measured.files import Record

_ROWS_IN_A_TURN = 2048  # small batches take several steps a turn, so that the clock's own error is small
_LEAST_STEPS_IN_A_TURN = 2

Step = Callable[[], Sequence[Any]]


def measuring(steps_of: Callable[[int], tuple[Step, Step]]) -> Callable[[int], Record]:
    """Returns a function from a batch size to the times of a step of that size. It takes seconds.

    They are records such as `make results` keeps: `batch_size`, and with it `one_device_seconds`, where one
    device computes all examples, and `eight_devices_seconds`, where each of eight computes an eighth.

    Args:
        steps_of: returns for a batch size two functions that do a training step, on one device and on eight;
            a step returns its loss first.
    """

    def measure(batch_size: int) -> Record:
        count = max(_LEAST_STEPS_IN_A_TURN, _ROWS_IN_A_TURN // batch_size)
        turns = [partial(_turn, step, count) for step in steps_of(batch_size)]
        one, eight = (seconds / count for seconds in median_seconds(turns))
        return Record(batch_size=batch_size, one_device_seconds=one, eight_devices_seconds=eight)

    return measure


def _turn(step: Step, count: int) -> float:
    """Does some steps; each needs the weights of the one before."""
    losses = [step()[0] for _step in range(count)]
    return float(losses[-1])
