"""Exercise 10-replica-step: what a replica does in a step, held against the same steps in NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from course_lib.exercises import replica_runs
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.exercises.two_layers import Array, Values, gradients
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Part = tuple[Array, Array]  # rows and labels of a replica
Batches = list[list[Part]]
Divisor = Callable[[int, int], float]  # of the own examples and those of the batch
ReplicaStep = Callable[..., Any]

_FEATURES, _HIDDEN, _CLASSES, _RATE, _REPLICAS = 5, 4, 3, 0.5, 2
_SHAPES = ((_FEATURES, _HIDDEN), (_HIDDEN,), (_HIDDEN, _CLASSES), (_CLASSES,))


def _of_batch(own: int, batch: int) -> float:
    return batch


def _of_own(own: int, batch: int) -> float:
    return own


def _stepped(
    divisor: Divisor = _of_batch, *, factor: float = 1.0, told: Divisor | None = None
) -> Callable[..., Any]:
    """Returns steps in NumPy, with what a mistake makes of them.

    Args:
        divisor: what a replica divides the sum of its losses by.
        factor: by what the gradients are multiplied.
        told: what it divides by in what it returns, if that is something else.
    """

    def stepped(values: Values, batches: Batches) -> dict[str, Any]:
        values, losses = [value.astype(np.float64) for value in values], []
        for parts in batches:
            size, total, found = sum(len(labels) for _rows, labels in parts), 0.0, []
            for rows, labels in parts:
                own = len(labels)
                mean, slopes = gradients(values, rows, labels)
                total += own * mean / (told or divisor)(own, size)
                found.append([own * slope / divisor(own, size) for slope in slopes])
            values = [
                value - factor * _RATE * sum(slopes) for value, *slopes in zip(values, *found, strict=True)
            ]
            losses.append(total)
        return {"losses": losses, "values": values}

    return stepped


_right = _stepped()


def _right_with_empty(values: Values, batches: Batches) -> dict[str, Any]:
    full: Batches = [[part for part in parts if len(part[1])] for parts in batches]
    result: dict[str, Any] = _right(values, full)
    return result


def _written(
    divide: str = "global",
    *,
    apply: bool = True,
    factor: float = 1.0,
    told: str = "",
    returns: bool = True,
    training: bool = True,
) -> ReplicaStep:
    """Returns an answer as a reader may write it, with the mistakes that are asked for."""

    def replica_step(model: Any, optimizer: Any, images: Any, labels: Any, global_batch_size: Any) -> Any:
        tf = sys.modules["tensorflow"]  # an import would be compiled, with a warning
        with tf.GradientTape(persistent=True) as tape:
            logits = model(images, training=True) if training else model(images)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            size = tf.cast(global_batch_size, tf.float32)
            numbers = {
                "global": tf.nn.compute_average_loss(losses, global_batch_size=global_batch_size),
                "by hand": tf.reduce_sum(losses) / size,
                "own": tf.reduce_mean(losses),
                "each": losses,
                "no size": tf.nn.compute_average_loss(losses),
                "keras": tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits),
                "sum": tf.reduce_sum(losses),
                "keras sum": _keras_sum(tf)(labels, logits) / size,
                "twice": tf.reduce_sum(losses) / size / _REPLICAS,
            }
            loss = factor * numbers[divide]
        slopes = tape.gradient(loss, model.trainable_variables)
        if apply:
            optimizer.apply(slopes, model.trainable_variables)
        return numbers[told or divide] if returns else None

    return replica_step


def _keras_sum(tf: Any) -> Any:
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")


def _in_python(model: Any, optimizer: Any, images: Any, labels: Any, global_batch_size: Any) -> Any:
    """Trains rightly, but not inside a compiled function."""
    return _written()(model, optimizer, images, labels, global_batch_size).numpy()


@exercise(
    "10-replica-step",
    right=_written(),
    also=[_written("by hand"), _written("keras sum")],
    wrong=[
        (_written("own"), "its own examples only"),
        (_written("keras"), "as Keras does by default"),
        (_written("no size"), "as Keras does by default"),
        (_written("sum"), "nothing is divided"),
        (_written("twice"), "adds up already"),
        (_written(apply=False), "no variable has changed"),
        (_written(factor=-1.0), "wrong way"),
        (_written(told="own"), "The variables are right"),
        (_written(told="each"), "Return one number"),
        (_written(factor=2.0), "the optimizer adds these up"),
        (_written(told="sum"), "The variables are right"),
        (_written(returns=False), "Return the share"),
        (_written(training=False), "`training=True`"),
        (_in_python, "fails"),
        (0.5, "function"),
    ],
    on_devices=True,
)
def replica_step(answer: ReplicaStep) -> str | None:
    """Three steps of two replicas, with equal parts, unequal ones, and an empty one."""
    random, values = np.random.default_rng(0), []
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in _SHAPES]
    cases = [
        Case(
            (values, [_drawn(random, 3, 2), _drawn(random, 2, 2)]),
            told=_("batches of 5 and 4 examples on two replicas"),
        ),
        Case(
            (values, [_drawn(random, 1, 0)]),
            hint=_("The second replica has no example here: its share is 0, and so is its gradient."),
            told=_("a batch of one example on two replicas"),
        ),
    ]
    right = _("The variables are right. Return the share whose gradient you took.")
    modes: set[bool] = set()
    others: list[object] = []
    hint = judge(
        answer,
        _right_with_empty,
        cases,
        run=partial(_on_replicas, modes, others),
        tolerance=1e-3,
        advice=_(
            "Every variable takes the sum of the replicas' gradients: the optimizer adds these up, and the"
            " loop what the replicas return."
        ),
        misconceptions={
            _stepped(_of_own): _(
                "Each replica divides by its own examples only. Divide by those of the global batch."
            ),
            _stepped(lambda own, batch: own * _REPLICAS): _(
                "Here a replica divides by its own examples and by the replicas, as Keras does by default."
                " That is right for equal parts only: divide by the global batch."
            ),
            _stepped(lambda own, batch: 1): _("Here nothing is divided. Divide by the global batch."),
            _stepped(lambda own, batch: batch * _REPLICAS): _(
                "Do not divide by the replicas as well: the sum over them adds up already."
            ),
            _stepped(factor=0.0): _(
                "After your step no variable has changed. Give the gradients to the optimizer."
            ),
            _stepped(factor=-1.0): _("The variables go the wrong way: the optimizer subtracts already."),
            _stepped(told=_of_own): right,
            _stepped(told=lambda own, batch: 1): right,
            _told_nothing: _("The variables are right. Return the share, too."),
        },
    )
    if others:
        return _("Return one number from each replica.")
    if hint is None and modes != {True}:
        return _("Call the model with `training=True`: without it, a layer such as `Dropout` does nothing.")
    return hint


def _told_nothing(values: Values, batches: Batches) -> dict[str, Any]:
    return {**_right(values, batches), "losses": [None] * len(batches)}


def _drawn(random: np.random.Generator, *sizes: int) -> list[Part]:
    return [
        (random.normal(0, 1, (size, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, size))
        for size in sizes
    ]


def _on_replicas(
    modes: set[bool], others: list[object], answer: ReplicaStep, values: Values, batches: Batches
) -> dict[str, Any]:
    """Returns what two replicas make of the batches, in a compiled function as in the lesson's loop.

    Args:
        modes: gets the values of `training` with which the model is called.
        others: gets what a replica returned in place of one number.
        answer: the reader's function.
        values: of the model's variables.
        batches: cut as a distributed dataset cuts them; the first is the largest.
    """
    with on_devices() as (tf, _dtensor):
        strategy = replica_runs.replicas(_REPLICAS)
        model, optimizer = _model(strategy, values, modes)
        modes.clear()  # of building the model
        parts = [part for batch in batches for part in batch]
        rows, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
        sizes = [sum(len(each) for _rows, each in batch) for batch in batches]
        dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(sizes[0])
        sent = strategy.experimental_distribute_dataset(dataset)

        def on_replica(rows: Any, labels: Any, size: Any) -> Any:
            return answer(model, optimizer, rows, labels, size)

        @tf.function(input_signature=[*sent.element_spec, tf.TensorSpec((), tf.int32)])  # type: ignore[untyped-decorator]
        def step(rows: Any, labels: Any, size: Any) -> Any:
            return strategy.run(on_replica, (rows, labels, size))

        reports = [step(*batch, tf.constant(size)) for batch, size in zip(sent, sizes, strict=True)]
        others += [part for report in reports for part in replica_runs.other_parts(strategy, report)]
        losses = [replica_runs.summed(strategy, report) for report in reports]
        return {"losses": losses, "values": [variable.numpy() for variable in model.trainable_variables]}


def _model(strategy: Any, values: Values, modes: set[bool]) -> tuple[Any, Any]:
    """Returns two dense layers with these values, and plain gradient descent for them."""
    keras = start_tensorflow().keras

    class Noting(keras.layers.Layer):  # type: ignore[misc, name-defined]
        """Passes everything on, and notes whether it is called to train."""

        def call(self, inputs: Any, training: bool = False) -> Any:
            modes.add(bool(training))
            return inputs

    with strategy.scope():
        layers = keras.layers.Dense(_HIDDEN, activation="relu"), Noting(), keras.layers.Dense(_CLASSES)
        model = keras.Sequential([keras.Input((_FEATURES,)), *layers])
        optimizer = keras.optimizers.SGD(_RATE)
        optimizer.build(model.trainable_variables)
    model.set_weights(values)
    return model, optimizer
