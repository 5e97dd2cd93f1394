"""Values for replicas, and what the replicas of a real strategy make of them: to judge a reader's loop."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from course_lib.exercises.answers import plain


def replicas(count: int) -> Any:
    """Returns a strategy on the first devices; TensorFlow has started."""
    return import_module("course_lib.strategies").mirrored(count)


def sent(strategy: Any, parts: Sequence[Any]) -> Any:
    """Returns one value for each replica, as a distributed dataset would hand it out."""
    tf = import_module("tensorflow")
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


def summed(strategy: Any, reports: Any) -> object:
    """Returns the sum of the numbers that replicas returned; all parts where one returned something else."""
    parts = strategy.experimental_local_results(reports)
    if all(is_number(part) for part in parts):
        return float(sum(np.asarray(part).item() for part in parts))
    return None if any(part is None for part in parts) else plain(parts)


def is_number(part: Any) -> bool:
    """Returns whether a replica returned one number, and no array or sequence."""
    return part is not None and not isinstance(part, (tuple, list, dict)) and np.ndim(part) == 0
