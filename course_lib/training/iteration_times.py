"""The time of a step with each of the three ways to go through an epoch, measured in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.runtime import start_tensorflow
from course_lib.training.iterating import Epoch, for_loop, several_steps, whole_epoch
from course_lib.training.records import IterationTimes

tf = start_tensorflow()

_STEPS, _STEPS_IN_A_CALL = 20, 10
_SHAPE, _CLASSES, _HIDDEN = (28, 28, 1), 10, 32


def iteration_times(strategy: Any, batch_size: int, repeats: int = 3) -> IterationTimes:
    """Returns the median times of a step of a small dense model; the three ways take turns.

    Args:
        strategy: whose replicas train.
        batch_size: the number of examples in the global batch.
        repeats: how many epochs each has, after one to compile and warm up.
    """
    turns = timed_ways(strategy, batch_size)
    for turn in turns:
        turn()
    rounds = [tuple(turn() for turn in turns) for _repeat in range(repeats)]
    return IterationTimes(batch_size, *map(statistics.median, zip(*rounds, strict=True)))


def timed_ways(strategy: Any, batch_size: int) -> tuple[Callable[[], float], ...]:
    """Returns a function for each of the three ways, which trains for an epoch and returns a step's seconds.

    Args:
        strategy: whose replicas train.
        batch_size: the number of examples in the global batch.
    """
    dataset = strategy.experimental_distribute_dataset(_batches(batch_size))
    step = _step(strategy)
    ways = for_loop(step), several_steps(step, _STEPS_IN_A_CALL), whole_epoch(step)
    return tuple(_timed(way, dataset) for way in ways)


def _timed(epoch: Epoch, dataset: Any) -> Callable[[], float]:
    def turn() -> float:
        start = time.perf_counter()
        epoch(dataset)
        return (time.perf_counter() - start) / _STEPS

    return turn


def _batches(batch_size: int) -> Any:
    """Returns one batch of noise, again and again: reading data is not what is timed."""
    random = np.random.default_rng(0)
    images = random.random((batch_size, *_SHAPE), np.float32)
    labels = random.integers(0, _CLASSES, batch_size)
    return tf.data.Dataset.from_tensors((images, labels)).repeat(_STEPS)


def _step(strategy: Any) -> Callable[..., Any]:
    """Returns a step that trains, and returns the mean loss of the batch; all its batches are full."""
    layers = tf.keras.layers
    with strategy.scope():
        dense = layers.Dense(_HIDDEN, "relu"), layers.Dense(_CLASSES)
        model = tf.keras.Sequential([tf.keras.Input(_SHAPE), layers.Flatten(), *dense])
        optimizer = tf.keras.optimizers.SGD(0.01)
        optimizer.build(model.trainable_variables)

    def on_replica(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.nn.compute_average_loss(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    def step(images: Any, labels: Any) -> Any:
        shares = strategy.run(on_replica, (images, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, shares, axis=None)

    return step
