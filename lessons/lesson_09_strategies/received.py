"""Data sets split over the replicas of a strategy, and who really got which example."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.received import Batch, ReceivedExamples

tf = start_tensorflow()


def distribute(strategy: Any, data: Any) -> Any:
    """Returns a batched data set split over the replicas of a strategy, as TensorFlow splits it.

    Args:
        strategy: a `tf.distribute.Strategy`.
        data: a `tf.data.Dataset` of *global* batches, each of which is split; or a function that takes a
            `tf.distribute.InputContext` and returns one of batches *per replica*, which are handed out whole.

    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    if isinstance(data, tf.data.Dataset):
        return strategy.experimental_distribute_dataset(data)
    return strategy.distribute_datasets_from_function(data)


def received_examples(strategy: Any, data: Any, *, most_batches: int = 8) -> ReceivedExamples:
    """Returns who got which example, as the replicas really receive a data set of indices. It draws itself.

    Args:
        strategy: a `tf.distribute.Strategy`.
        data: what `distribute` takes. Its elements are indices, such as `tf.data.Dataset.range(5).batch(4)`,
            or begin with them, such as `dataset.enumerate().batch(4)`.
        most_batches: after so many batches the rest is left out.

    Raises:
        CourseError: the elements of the data set are no batches of indices.
    """
    batches = islice(distribute(strategy, data), most_batches)
    return ReceivedExamples([_received(strategy, batch) for batch in batches])


def _received(strategy: Any, batch: Any) -> Batch:
    parts = (np.asarray(part) for part in strategy.experimental_local_results(_first(batch)))
    return tuple(tuple(_indices(part)) for part in parts)


def _first(element: Any) -> Any:
    """Returns the indices of an element that may have other components behind them."""
    return _first(element[0]) if isinstance(element, tuple) else element


def _indices(part: np.ndarray[Any, Any]) -> list[int]:
    if part.ndim != 1 or part.dtype.kind not in "iu":
        raise CourseError(
            _("The data set yields {dtype} of the shape {shape}.", dtype=part.dtype, shape=part.shape),
            allowed=_("one index for each example"),
            cure=_("Number the examples before batching them: dataset.enumerate().batch(...)."),
        )
    return [int(index) for index in part]
