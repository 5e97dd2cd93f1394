"""The exercises of this lesson: an objective with penalties, and what a replica does in a step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.strategies import replica_runs

Parts = list[tuple[Array, Array]]  # rows and labels of each replica
Shares = Callable[[int, int, int], float]  # of one example, by those of its replica, of all, and the replicas

_SIZES = ((2, 3), (1, 3, 2, 2))  # of the losses of two replicas, and of four
_FEATURES, _CLASSES, _RATE, _MOMENTUM, _PENALTY = 5, 3, 0.5, 0.5, 0.1

_OWN = lambda own, batch, replicas: 1 / own  # noqa: E731
_KERAS = lambda own, batch, replicas: 1 / own / replicas  # noqa: E731
_GLOBAL = lambda own, batch, replicas: 1 / batch  # noqa: E731


def _mistakes(make: Callable[..., Any]) -> dict[Callable[..., Any], str]:
    """Returns what `make` makes of wrong shares, and of penalties that every replica adds, with hints."""
    return {
        make(share=_OWN): _(
            "Each replica divides by its own examples only. Divide by those of the global batch."
        ),
        make(share=_KERAS): _(
            "Here a replica divides by its own examples and by the replicas, as Keras does by default."
            " That is right for equal parts only: divide by the global batch."
        ),
        make(repeated=True): _(
            "The penalties are added once for every replica. Divide them by the number of replicas."
        ),
    }


def _objective(
    losses: list[Array], penalties: list[float], share: Shares = _GLOBAL, *, repeated: bool = False
) -> float:
    """Returns the sum over the replicas."""
    size = sum(map(len, losses))
    mean = sum(share(len(part), size, len(losses)) * part.sum() for part in losses if len(part))
    return float(mean + (len(losses) if repeated else 1) * sum(penalties))


@exercise("custom_training-objective", right=_objective)
def objective(answer: Callable[..., Any]) -> str | None:
    """The objective of a replica with penalties, judged by its sum over the replicas."""
    empty = Case(([np.ones(2, np.float32), np.ones(0, np.float32)], [0.5]), _no_example())
    return judge(
        answer,
        _objective,
        [*drawn(_draw_losses, 6), empty],
        run=_objective_on_replicas,
        advice=_(
            "That is the sum over the replicas of what your function returns. It has to be the mean loss of"
            " the global batch plus the sum of the penalties."
        ),
        misconceptions=_mistakes(partial(partial, _objective)),
    )


def _no_example() -> str:
    return _("The second replica has no example here: its share of the losses is 0, and their gradient.")


def _draw_losses(random: np.random.Generator) -> tuple[list[Array], list[float]]:
    sizes = random.permutation(_SIZES[random.integers(len(_SIZES))])
    losses = [(random.integers(1, 20, size) / 4).astype(np.float32) for size in sizes]
    return losses, (random.integers(1, 9, random.choice([0, 3])) / 2).tolist()


def _objective_on_replicas(answer: Callable[..., Any], losses: list[Array], penalties: list[float]) -> float:
    tf, strategy = start_tensorflow(), replica_runs.replicas(len(losses))

    @tf.function  # type: ignore[untyped-decorator]  # as in a loop: numbers of Python would stay as they are
    def run(losses: Any, size: Any) -> Any:
        constants = list(map(tf.constant, penalties))
        return strategy.run(answer, (losses, constants, size))

    value = run(replica_runs.sent(strategy, losses), tf.constant(sum(map(len, losses))))
    return sum(replica_runs.numbers(strategy, value))


def _stepped(
    share: Shares = _GLOBAL, *, repeated: bool = False, training: bool = True
) -> Callable[..., dict[str, Any]]:
    """Returns the steps on one device: a dense layer with penalties or none, momentum."""

    def stepped(weight: Array, bias: Array, batches: list[Parts], penalty: float) -> dict[str, Any]:
        tf = start_tensorflow()
        variables, losses = [tf.Variable(weight), tf.Variable(bias)], []
        optimizer = tf.keras.optimizers.SGD(_RATE, momentum=_MOMENTUM)
        accuracy, summed = tf.keras.metrics.SparseCategoricalAccuracy(), tf.keras.metrics.Sum()
        for parts in batches:
            size = sum(len(labels) for _rows, labels in parts)
            with tf.GradientTape() as tape:
                times = len(parts) if repeated else 1
                loss = times * penalty * sum(tf.reduce_sum(each**2) for each in variables)
                for rows, labels in (part for part in parts if len(part[1])):
                    logits = (2 * rows if training else rows) @ variables[0] + variables[1]
                    own = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
                    loss += share(len(labels), size, len(parts)) * tf.reduce_sum(own)
                    accuracy.update_state(labels, logits)
                    summed.update_state(logits)
            optimizer.apply(tape.gradient(loss, variables), variables)
            losses.append(float(loss))
        return _found(losses, variables, accuracy, summed)

    return stepped


def _found(losses: list[float], variables: list[Any], accuracy: Any, logits: Any) -> dict[str, Any]:
    values = [variable.numpy() for variable in variables]
    metrics = {"accuracy": float(accuracy.result()), "logits": float(logits.result())}
    return {"losses": losses, "variables": values, **metrics}


def _right_step(model: Any, optimizer: Any, images: Any, labels: Any, global_batch_size: Any) -> Any:
    tf = sys.modules["tensorflow"]  # an import here would be AutoGraph's to convert
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=global_batch_size)
        loss += tf.nn.scale_regularization_loss(model.losses)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss, logits


@exercise("custom_training-replica-step", right=_right_step)
def replica_step(answer: Callable[..., Any]) -> str | None:
    """Steps of two replicas and of four: with equal parts, unequal ones, an empty one, and no penalties."""
    random = np.random.default_rng(0)
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in ((_FEATURES, _CLASSES), _CLASSES)]
    two_batches = [_parts(random, 3, 2), _parts(random, 2, 2)]
    cases = [
        Case((*values, two_batches, _PENALTY), told=_("batches of 5 and 4 examples on two replicas")),
        Case(
            (*values, [_parts(random, 3, 3, 3, 2)], _PENALTY),
            told=_("a batch of 11 examples on four replicas"),
        ),
        Case(
            (*values, [_parts(random, 2, 1)], 0.0),
            hint=_("This model has no penalties: the list `model.losses` is empty."),
            told=_("a model without penalties"),
        ),
        Case(
            (*values, [_parts(random, 1, 0)], _PENALTY),
            hint=_no_example(),
            told=_("a batch of one example on two replicas"),
        ),
    ]
    return judge(
        answer,
        _stepped(),
        cases,
        run=_steps_on_replicas,
        tolerance=1e-3,
        advice=_(
            "Every variable takes the step of the given optimizer, with the gradient of what you return: the"
            " cross entropy of the logits, divided by `size`, plus the penalties, which count once in all."
            " The logits go to the metric as they are."
        ),
        misconceptions={
            **_mistakes(_stepped),
            _stepped(training=False): _(
                "Call the model with `training=True`: without it, a layer such as `Dropout` does nothing."
            ),
        },
    )


def _parts(random: np.random.Generator, *sizes: int) -> Parts:
    return [
        (random.normal(0, 1, (size, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, size))
        for size in sizes
    ]


def _steps_on_replicas(
    answer: Callable[..., Any], weight: Array, bias: Array, batches: list[Parts], penalty: float
) -> dict[str, Any]:
    """Returns what replicas make of the batches, in a compiled function as in the lesson's loop.

    These are cut as a distributed dataset cuts them; the first is the largest.
    """
    tf, strategy = start_tensorflow(), replica_runs.replicas(len(batches[0]))
    with strategy.scope():
        model, optimizer = _model(penalty), tf.keras.optimizers.SGD(_RATE, momentum=_MOMENTUM)
        optimizer.build(model.trainable_variables)
        accuracy, logits = tf.keras.metrics.SparseCategoricalAccuracy(), tf.keras.metrics.Sum()
    for variable, value in zip(model.trainable_variables, (weight, bias), strict=True):
        variable.assign(value)
    sizes = [sum(len(labels) for _rows, labels in parts) for parts in batches]
    dataset = tf.data.Dataset.from_tensor_slices(batches[0][0]).batch(sizes[0])
    spec = strategy.experimental_distribute_dataset(dataset).element_spec  # for any number of rows

    def on_replica(rows: Any, labels: Any, size: Any) -> Any:
        returned = answer(model, optimizer, rows, labels, size)
        pair = isinstance(returned, (tuple, list)) and len(returned) == 2
        if not pair or len(getattr(returned[1], "shape", ())) != 2:
            raise CourseError(_("Return a pair that ends in the logits: `return loss, logits`."))
        accuracy.update_state(labels, returned[1])
        logits.update_state(returned[1])
        return returned[0]

    @tf.function(input_signature=[*spec, tf.TensorSpec((), tf.int32)])  # type: ignore[untyped-decorator]
    def step(rows: Any, labels: Any, size: Any) -> Any:
        return strategy.run(on_replica, (rows, labels, size))

    reports = [
        step(*(replica_runs.sent(strategy, kind) for kind in zip(*parts, strict=True)), tf.constant(size))
        for parts, size in zip(batches, sizes, strict=True)
    ]
    losses = [sum(replica_runs.numbers(strategy, report)) for report in reports]
    return _found(losses, model.trainable_variables, accuracy, logits)


def _model(penalty: float) -> Any:
    """Returns a dense layer, behind one that has another output where it is called to train."""
    keras = start_tensorflow().keras

    class TwiceToTrain(keras.layers.Layer):  # type: ignore[misc, name-defined]
        """Doubles its inputs in training."""

        def build(self, input_shape: Any) -> None:
            del input_shape
            self.seed = self.add_weight(shape=(), trainable=False)  # as `Dropout` has one

        def call(self, inputs: Any, training: bool = False) -> Any:
            return 2 * inputs if training else inputs

    penalised = keras.regularizers.L2(penalty) if penalty else None
    dense = keras.layers.Dense(_CLASSES, kernel_regularizer=penalised, bias_regularizer=penalised)
    return keras.Sequential([keras.Input((_FEATURES,)), TwiceToTrain(), dense])
