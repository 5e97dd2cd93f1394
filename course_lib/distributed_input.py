"""Data sets split over the replicas of a strategy, and who really got which example."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.received import Batch, ReceivedExamples

tf = start_tensorflow()

MOST_BATCHES = 20


def distribute(strategy: Any, data: Any) -> Any:
    """Returns a batched data set split over the replicas of a strategy, as TensorFlow splits it.

    Args:
        strategy: a `tf.distribute.Strategy`.
        data: a `tf.data.Dataset` of *global* batches, each of which is split; or a function that takes a
            `tf.distribute.InputContext` and returns one of batches *per replica*, which are handed out whole.

    Raises:
        CourseError: no data set, or one whose elements are no batches: TensorFlow would say
            "IndexError: list index out of range".

    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    if isinstance(data, tf.data.Dataset):
        _require_batches(data)
        return strategy.experimental_distribute_dataset(data)
    if not callable(data):
        raise _no_dataset(data)
    return strategy.distribute_datasets_from_function(_checked(data))


def received_examples(strategy: Any, data: Any, *, most_batches: int = 8) -> ReceivedExamples:
    """Returns who got which example, as the replicas really receive a data set of indices. It draws itself.

    Args:
        strategy: a `tf.distribute.Strategy`.
        data: what `distribute` takes. Its elements are indices, such as `tf.data.Dataset.range(5).batch(4)`,
            or begin with them, such as `dataset.enumerate().batch(4)`.
        most_batches: after so many batches the rest is left out.

    Raises:
        CourseError: no data set, one whose elements are no batches of indices, or no batch at all.
    """
    most = whole_number(
        most_batches,
        _("{count!r} batches cannot be shown.", count=most_batches),
        least=1,
        most=MOST_BATCHES,
        cure=_("Show the first eight, for example."),
    )
    batches = islice(distribute(strategy, data), most)
    received = [_received(strategy, batch) for batch in batches]
    if not received:
        raise CourseError(
            _("The data set has no batch."),
            allowed=_("one batch at least"),
            cure=_("Give it examples; drop_remainder=True leaves out a last batch that is not full."),
        )
    return ReceivedExamples(received)


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


def _checked(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns the function with a check of the data set that it makes."""

    def make_checked(context: Any) -> Any:
        dataset = make(context)
        if not isinstance(dataset, tf.data.Dataset):
            raise _no_dataset(dataset)
        _require_batches(dataset)
        return dataset

    return make_checked


def _require_batches(dataset: Any) -> None:
    specs = tf.nest.flatten(dataset.element_spec)
    shapes = [spec.shape for spec in specs if hasattr(spec, "shape")]
    if any(shape.rank == 0 for shape in shapes):
        raise CourseError(
            _(
                "The data set is not batched: its elements have the shapes {shapes}.",
                shapes=_(", ").join(map(str, shapes)),
            ),
            allowed=_("elements whose first axis counts examples"),
            cure=_("Batch it before it is split: dataset.batch(global_batch_size)."),
        )


def _no_dataset(given: Any) -> CourseError:
    return CourseError(
        _("{kind} is no data set.", kind=type(given).__name__),
        allowed=_("a tf.data.Dataset, or a function of a tf.distribute.InputContext that makes one"),
        cure=_("Make one of arrays: tf.data.Dataset.from_tensor_slices(...).batch(...)."),
    )
