"""Who really got which example of a data set that a strategy splits over its replicas."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.strategies.received_examples import ReceivedExamples


def received_examples(strategy: Any, data: Any, *, most_batches: int = 8) -> ReceivedExamples:
    """Returns who got which example, as the replicas really receive a data set of indices. It draws itself.

    Args:
        strategy: a `tf.distribute.Strategy`.
        data: a `tf.data.Dataset` of *global* batches of indices, such as `tf.data.Dataset.range(5).batch(4)`.
        most_batches: after so many batches the rest is left out.

    Raises:
        CourseError: the elements of the data set are no batches of indices.

    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    batches = islice(strategy.experimental_distribute_dataset(data), most_batches)
    return ReceivedExamples(
        [_indices(part) for part in strategy.experimental_local_results(batch)] for batch in batches
    )


def _indices(part: Any) -> list[int]:
    numbers = np.asarray(part)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise CourseError(
            _("The data set yields {dtype} of the shape {shape}.", dtype=numbers.dtype, shape=numbers.shape),
            allowed=_("one index for each example"),
            cure=_("Split the numbers of the examples: tf.data.Dataset.range(5).batch(4)."),
        )
    return [int(number) for number in numbers]
