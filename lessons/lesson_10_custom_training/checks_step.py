"""Exercise 10-replica-step: what a replica does in a step, held against the same steps in NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from course_lib.exercises import replica_runs
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.two_layers import Array, Values, gradients
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Part = tuple[Array, Array]  # rows and labels of a replica
Batches = list[list[Part]]

_FEATURES, _HIDDEN, _CLASSES, _RATE, _REPLICAS = 5, 4, 3, 0.5, 2
_SHAPES = ((_FEATURES, _HIDDEN), (_HIDDEN,), (_HIDDEN, _CLASSES), (_CLASSES,))


def _stepped(divisor: Callable[[int, int], float]) -> Callable[[Values, Batches], dict[str, Any]]:
    """Returns steps in NumPy, each replica's losses divided by what comes of its examples and all."""

    def stepped(values: Values, batches: Batches) -> dict[str, Any]:
        values, losses = [value.astype(np.float64) for value in values], []
        for parts in batches:
            size, total, slopes = sum(len(labels) for _rows, labels in parts), 0.0, []
            for rows, labels in parts:
                if len(labels):
                    mean, of_mean = gradients(values, rows, labels)
                    share = len(labels) / divisor(len(labels), size)
                    total += share * mean
                    slopes.append([share * slope for slope in of_mean])
            values = [value - _RATE * sum(own) for value, *own in zip(values, *slopes, strict=True)]
            losses.append(total)
        return {"losses": losses, "values": values}

    return stepped


def _right_step(model: Any, optimizer: Any, images: Any, labels: Any, global_batch_size: Any) -> Any:
    tf = sys.modules["tensorflow"]  # an import here would be AutoGraph's to convert
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
        loss = tf.nn.compute_average_loss(losses, global_batch_size=global_batch_size)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


@exercise("10-replica-step", right=_right_step, on_devices=True)
def replica_step(answer: Callable[..., Any]) -> str | None:
    """Three steps of two replicas, with equal parts, unequal ones, and an empty one."""
    random = np.random.default_rng(0)
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in _SHAPES]
    cases = [
        Case(
            (values, [_parts(random, 3, 2), _parts(random, 2, 2)]),
            told=_("batches of 5 and 4 examples on two replicas"),
        ),
        Case(
            (values, [_parts(random, 1, 0)]),
            hint=_("The second replica has no example here: its share is 0, and so is its gradient."),
            told=_("a batch of one example on two replicas"),
        ),
    ]
    modes: set[bool] = set()
    hint = judge(
        answer,
        _stepped(lambda own, batch: batch),
        cases,
        run=partial(_steps_on_replicas, modes),
        tolerance=1e-3,
        advice=_(
            "Every variable takes the sum of the replicas' gradients: the optimizer adds these up, and the"
            " loop what the replicas return."
        ),
        misconceptions={
            _stepped(lambda own, batch: own): _(
                "Each replica divides by its own examples only. Divide by those of the global batch."
            ),
            _stepped(lambda own, batch: own * _REPLICAS): _(
                "Here a replica divides by its own examples and by the replicas, as Keras does by default."
                " That is right for equal parts only: divide by the global batch."
            ),
            _stepped(lambda own, batch: batch * _REPLICAS): _(
                "Do not divide by the replicas as well: the sum over them adds up already."
            ),
        },
    )
    if hint is None and modes != {True}:
        return _("Call the model with `training=True`: without it, a layer such as `Dropout` does nothing.")
    return hint


def _parts(random: np.random.Generator, *sizes: int) -> list[Part]:
    return [
        (random.normal(0, 1, (size, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, size))
        for size in sizes
    ]


def _steps_on_replicas(
    modes: set[bool], answer: Callable[..., Any], values: Values, batches: Batches
) -> dict[str, Any]:
    """Returns what two replicas make of the batches, in a compiled function as in the lesson's loop.

    Args:
        modes: gets the values of `training` with which the model is called.
        answer: the reader's function.
        values: of the model's variables.
        batches: cut as a distributed dataset cuts them; the first is the largest.
    """
    tf, strategy = start_tensorflow(), replica_runs.replicas(_REPLICAS)
    model, optimizer = _model(strategy, values, modes)
    modes.clear()  # of building the model
    rows, labels = (np.concatenate(each) for each in zip(*chain.from_iterable(batches), strict=True))
    sizes = [sum(len(each) for _rows, each in batch) for batch in batches]
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(sizes[0])
    sent = strategy.experimental_distribute_dataset(dataset)

    @tf.function(input_signature=[*sent.element_spec, tf.TensorSpec((), tf.int32)])  # type: ignore[untyped-decorator]
    def step(rows: Any, labels: Any, size: Any) -> Any:
        return strategy.run(answer, (model, optimizer, rows, labels, size))

    reports = [step(*batch, tf.constant(size)) for batch, size in zip(sent, sizes, strict=True)]
    losses = [sum(replica_runs.numbers(strategy, report)) for report in reports]
    return {"losses": losses, "values": [variable.numpy() for variable in model.trainable_variables]}


def _model(strategy: Any, values: Values, modes: set[bool]) -> tuple[Any, Any]:
    """Returns two dense layers with these values, a variable that is not trained, and gradient descent."""
    keras = start_tensorflow().keras

    class Noting(keras.layers.Layer):  # type: ignore[misc, name-defined]
        """Passes everything on, and notes whether it is called to train."""

        def build(self, input_shape: Any) -> None:
            del input_shape
            self.seed = self.add_weight(shape=(), trainable=False)  # as `Dropout` has one

        def call(self, inputs: Any, training: bool = False) -> Any:
            modes.add(bool(training))
            return inputs

    with strategy.scope():
        layers = keras.layers.Dense(_HIDDEN, activation="relu"), Noting(), keras.layers.Dense(_CLASSES)
        model = keras.Sequential([keras.Input((_FEATURES,)), *layers])
        optimizer = keras.optimizers.SGD(_RATE)
        optimizer.build(model.trainable_variables)
    for variable, value in zip(model.trainable_variables, values, strict=True):
        variable.assign(value)
    return model, optimizer
