"""Values for replicas, and what the replicas of a real strategy make of them: to judge a reader's loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import device_kind, start_tensorflow


def replicas(count: int) -> Any:
    """Returns a strategy on the first devices, without collective operations: those of two would collide."""
    distribute = start_tensorflow().distribute
    devices = [f"{device_kind()}:{device_id}" for device_id in range(count)]
    return distribute.MirroredStrategy(devices, distribute.ReductionToOneDevice())


def sent(strategy: Any, parts: Sequence[Any]) -> Any:
    """Returns one value for each replica, as a distributed dataset would hand it out."""
    tf = start_tensorflow()
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


def numbers(strategy: Any, reports: Any) -> list[float]:
    """Returns what each replica returned.

    Raises:
        CourseError: one did not return a number.
    """
    parts = [np.asarray(part) for part in strategy.experimental_local_results(reports)]
    if any(part.ndim or part.dtype.kind not in "iuf" for part in parts):
        raise CourseError(
            _("Your function does not return one number."),
            allowed=_("the replica's share of the loss"),
            cure=_("Return one number from each replica."),
        )
    return [part.item() for part in parts]
