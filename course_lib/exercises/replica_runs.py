"""Values for replicas, and what the replicas of a real strategy make of them: to judge a reader's loop."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np


def replicas(count: int) -> Any:
    """Returns a strategy on the first devices; TensorFlow has started."""
    return import_module("course_lib.strategies").mirrored(count)


def sent(strategy: Any, parts: Sequence[Any]) -> Any:
    """Returns one value for each replica, as a distributed dataset would hand it out."""
    tf = import_module("tensorflow")
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


def summed(strategy: Any, reports: Any) -> float | None:
    """Returns the sum of what the replicas returned; None if one returned something else than a number."""
    parts = strategy.experimental_local_results(reports)
    return float(sum(np.asarray(part).item() for part in parts)) if all(map(_is_number, parts)) else None


def other_parts(strategy: Any, reports: Any) -> list[object]:
    """Returns what replicas returned in place of a number, such as the losses of their examples."""
    parts = strategy.experimental_local_results(reports)
    return [part for part in parts if part is not None and not _is_number(part)]


def _is_number(part: Any) -> bool:
    return part is not None and not isinstance(part, (tuple, list, dict)) and np.ndim(part) == 0
