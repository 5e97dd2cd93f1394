"""Three ways to go through a distributed dataset: they give the same losses and differ in what Python does.

Each takes a step, which trains on one batch and returns its loss, and returns a function that trains on a
whole dataset. Keep that function: it is compiled at its first call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

Step = Callable[..., Any]
Epoch = Callable[[Any], npt.NDArray[np.float32]]


def for_loop(step: Step) -> Epoch:
    """Returns a function that goes through a dataset in Python, with a compiled step for each batch."""
    compiled = tf.function(step, reduce_retracing=True)

    def epoch(dataset: Any) -> npt.NDArray[np.float32]:
        return np.array([compiled(*batch) for batch in dataset], np.float32)

    return epoch


def several_steps(step: Step, count: int) -> Epoch:
    """Returns a function that takes batches from an iterator, so many in each call of TensorFlow.

    Args:
        step: trains on one batch.
        count: the number of steps in a call; where fewer are left at the end, the last call has fewer.
    """

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def steps(iterator: Any, due: Any) -> Any:
        losses = tf.TensorArray(tf.float32, size=due)
        for at in tf.range(due):
            losses = losses.write(at, step(*next(iterator)))
        return losses.stack()

    def epoch(dataset: Any) -> npt.NDArray[np.float32]:
        iterator, left = iter(dataset), int(dataset.cardinality)
        sizes = [min(count, left - done) for done in range(0, left, count)]
        return np.concatenate([steps(iterator, tf.constant(size)).numpy() for size in sizes])

    return epoch


def whole_epoch(step: Step) -> Epoch:
    """Returns a function that goes through a dataset inside one compiled function."""

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def steps(dataset: Any) -> Any:
        losses, at = tf.TensorArray(tf.float32, size=0, dynamic_size=True), tf.constant(0)
        for batch in dataset:
            losses = losses.write(at, step(*batch))
            at += 1
        return losses.stack()

    def epoch(dataset: Any) -> npt.NDArray[np.float32]:
        with warnings.catch_warnings():  # of the options of a dataset, when the epoch is compiled
            warnings.filterwarnings("ignore", message="To make it possible to preserve tf.data options")
            losses: npt.NDArray[np.float32] = steps(dataset).numpy()
        return losses

    return epoch
