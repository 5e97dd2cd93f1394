"""Values for replicas, and what the replicas of a real strategy make of them: to judge a reader's loop."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any


def replicas(count: int) -> Any:
    """Returns a strategy on the first devices; TensorFlow has started."""
    return import_module("course_lib.strategies").mirrored(count)


def sent(strategy: Any, parts: Sequence[Any]) -> Any:
    """Returns one value for each replica, as a distributed dataset would hand it out."""
    tf = import_module("tensorflow")
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


def summed(strategy: Any, reports: Any) -> float | tuple[Any, ...] | None:
    """Returns the sum of what the replicas returned; None where one returned nothing."""
    parts = strategy.experimental_local_results(reports)
    if any(part is None for part in parts):
        return None
    total = strategy.reduce("SUM", reports, axis=None).numpy()
    return tuple(total.tolist()) if total.ndim else float(total)
