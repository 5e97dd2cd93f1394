"""The exercises of this lesson: what a replica does in a step, and in one of several micro-batches."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.strategies import replica_runs

Parts = list[tuple[Array, Array]]  # rows and labels of each replica
Refusal = Callable[[list[str]], str | None]  # of the order in which the model ran forward and backward
Shares = Callable[[int, int, int], float]  # of one example, by those of its replica, of all, and the replicas

_FEATURES, _CLASSES, _RATE, _MOMENTUM, _PENALTY = 5, 3, 0.5, 0.5, 0.1
_MICRO_BATCHES = 3

_OWN = lambda own, batch, replicas: 1 / own  # noqa: E731
_KERAS = lambda own, batch, replicas: 1 / own / replicas  # noqa: E731
_GLOBAL = lambda own, batch, replicas: 1 / batch  # noqa: E731


def _stepped(
    share: Shares = _GLOBAL, *, counted: Callable[[int], int] = lambda replicas: 1
) -> Callable[..., dict[str, Any]]:
    """Returns the steps on one device: a dense layer, its penalty counted so many times, momentum."""

    def stepped(weight: Array, bias: Array, batches: list[Parts], penalty: float) -> dict[str, Any]:
        tf = start_tensorflow()
        variables, losses = [tf.Variable(weight), tf.Variable(bias)], []
        optimizer = tf.keras.optimizers.SGD(_RATE, momentum=_MOMENTUM)
        summed = tf.keras.metrics.Sum()
        for parts in batches:
            size = sum(len(labels) for _rows, labels in parts)
            with tf.GradientTape() as tape:
                loss = counted(len(parts)) * penalty * sum(tf.reduce_sum(each**2) for each in variables)
                for rows, labels in (part for part in parts if len(part[1])):
                    logits = 2 * (rows @ variables[0] + variables[1])
                    own = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
                    loss += share(len(labels), size, len(parts)) * tf.reduce_sum(own)
                    summed.update_state(logits)
            optimizer.apply(tape.gradient(loss, variables), variables)
            losses.append(float(loss))
        return _found(losses, variables, summed)

    return stepped


def _found(losses: list[float], variables: list[Any], logits: Any) -> dict[str, Any]:
    values = [variable.numpy() for variable in variables]
    found = {"losses": losses, "variables": values, "logits": float(logits.result())}
    return found | {"iterations": len(losses)}


def _right_gradients(model: Any, images: Any, labels: Any, size: Any) -> tuple[Any, Any, Any]:
    tf = sys.modules["tensorflow"]  # an import here would be AutoGraph's to convert
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
        loss += tf.nn.scale_regularization_loss(model.losses)
    return loss, logits, tape.gradient(loss, model.trainable_variables)


def _right_step(model: Any, optimizer: Any, images: Any, labels: Any, size: Any) -> Any:
    loss, logits, gradients = _right_gradients(model, images, labels, size)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, logits


def _right_accumulated(model: Any, optimizer: Any, micro_batches: Any, size: Any) -> Any:
    found = [_right_gradients(model, images, labels, size) for images, labels in micro_batches]
    gradients = zip(*(each for _loss, _logits, each in found), strict=True)
    optimizer.apply([sum(each) for each in gradients], model.trainable_variables)
    return sum(loss for loss, _logits, _gradients in found)


@exercise("custom_training-replica-step", right=_right_step)
def replica_step(answer: Callable[..., Any]) -> str | None:
    """Steps of two replicas and of four: with equal parts, unequal ones, an empty one, and no penalties."""
    random = np.random.default_rng(0)
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in ((_FEATURES, _CLASSES), _CLASSES)]
    cases = [
        Case((*values, [_parts(random, 3, 2), _parts(random, 2, 2)], _PENALTY), told=_("5 and 4 examples")),
        Case(
            (*values, [_parts(random, 3, 3, 3, 2)], _PENALTY),
            told=_("a batch of 11 examples on four replicas"),
        ),
        Case(
            (*values, [_parts(random, 2, 1)], 0.0),
            hint=_("This model has no regularization losses: the list `model.losses` is empty."),
            told=_("a model without regularization losses"),
        ),
        Case(
            (*values, [_parts(random, 1, 0)], _PENALTY),
            hint=_("The second replica has no example: its share of the losses is 0, and their gradient."),
            told=_("a batch of one example on two replicas"),
        ),
    ]
    twice = _("Call the model once: each call changes the averages of batch normalization.")
    return judge(
        answer,
        _stepped(),
        cases,
        run=lambda answer, *inputs: _steps_on_replicas(
            answer, lambda events: twice if events.count("forward") > 1 else None, *inputs
        ),
        tolerance=1e-3,
        advice=_(
            "Every variable takes the step of the given optimizer, with the gradient of what you return: the"
            " cross entropies (`training=True`) divided by `size`, plus the regularization losses, counted"
            " once in all. The logits go to the metric as they are."
        ),
        misconceptions={
            _stepped(share=_OWN): _(
                "Each replica divides by its own examples only. Divide by those of the global batch."
            ),
            _stepped(share=_KERAS): _(
                "Here a replica divides by its own examples and by the replicas, as Keras does by default."
                " That is right for equal parts only: divide by the global batch."
            ),
            _stepped(share=_OWN, counted=lambda replicas: 0): _(
                "Each replica divides by its own examples only, and regularization is left out. Divide the"
                " cross entropies by `size`, and add this replica's share of `model.losses`."
            ),
            _stepped(counted=lambda replicas: 0): _("The penalties in `model.losses` are left out."),
            _stepped(counted=lambda replicas: replicas): _(
                "The regularization losses are added once for every replica. Divide them by the number of"
                " replicas."
            ),
        },
    )


def _replica() -> int:
    tf = start_tensorflow()
    context = tf.distribute.get_replica_context()
    return int(tf.get_static_value(context.replica_id_in_sync_group)) if context else -1


def _micro_batches(rows: Any, labels: Any) -> list[tuple[Any, Any]]:
    count = _MICRO_BATCHES - int(_replica() == 3)  # the last of four has one fewer
    return [(rows[at::count], labels[at::count]) for at in range(count)]


@exercise("custom_training-accumulated", right=_right_accumulated)
def accumulated_step(answer: Callable[..., Any]) -> str | None:
    """Steps of two replicas and of four, with three micro-batches each; the last of four has two."""
    tf = start_tensorflow()
    random = np.random.default_rng(0)
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in ((_FEATURES, _CLASSES), _CLASSES)]
    cases = [
        Case(
            (*values, [_parts(random, 6, 6), _parts(random, 5, 4)]),
            told=_("replicas with three micro-batches each"),
        ),
        Case(
            (*values, [_parts(random, 4, 4, 4, 3)]),
            hint=_("The last replica has a micro-batch fewer: only the optimizer may add up over replicas."),
            told=_("a replica with fewer micro-batches than the others"),
        ),
        Case((*values, [_parts(random, 2, 2)]), told=_("replicas with an empty micro-batch each")),
    ]

    def run(answer: Callable[..., Any], weight: Array, bias: Array, batches: list[Parts]) -> dict[str, Any]:
        def step(model: Any, optimizer: Any, rows: Any, labels: Any, size: Any) -> Any:
            return answer(model, optimizer, _micro_batches(rows, labels), size), tf.zeros((1, _CLASSES))

        eager = tf.config.functions_run_eagerly()  # a compiled function is traced once for many calls
        refuse = _all_at_once if eager else lambda events: None
        found = _steps_on_replicas(step, refuse, weight, bias, batches, 0.0)
        if int(found["iterations"]) > len(batches):
            raise CourseError(_("The optimizer applies gradients more than once in a step. Add them up."))
        return found

    if wrong := judge(
        answer,
        lambda *inputs: _stepped()(*inputs, 0.0) | {"logits": 0.0},
        cases,
        run=run,
        tolerance=1e-3,
        advice=_(
            "Add up gradients and losses of all micro-batches. Every loss is divided by `size`, and by"
            " nothing else: not by the examples of its micro-batch, nor by the number of micro-batches."
        ),
    ):
        return wrong
    tf.config.run_functions_eagerly(True)
    try:
        with warnings.catch_warnings(action="ignore"):  # that data are read as ever
            run(answer, *cases[1].inputs)
    except CourseError as error:
        return str(error)
    finally:
        tf.config.run_functions_eagerly(False)
    return None


def _all_at_once(events: list[str]) -> str | None:
    if events.count("forward") < _MICRO_BATCHES - 1:
        return _("Call the model once for each micro-batch: all at once need too much memory.")
    kept = _("Take each micro-batch's gradient before the next: until then its activations stay in memory.")
    return kept if events.index("backward") >= _MICRO_BATCHES - 1 else None


def _parts(random: np.random.Generator, *sizes: int) -> Parts:
    return [
        (random.normal(0, 1, (size, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, size))
        for size in sizes
    ]


def _steps_on_replicas(answer: Callable[..., Any], refuse: Refusal, *inputs: Any) -> dict[str, Any]:
    """Returns what replicas make of the batches, in a compiled function as in the lesson's loop."""
    weight, bias, batches, penalty = inputs
    tf, strategy = start_tensorflow(), replica_runs.replicas(len(batches[0]))
    with strategy.scope():
        model, optimizer = _model(penalty), tf.keras.optimizers.SGD(_RATE, momentum=_MOMENTUM)
        optimizer.build(model.trainable_variables)
        logits = tf.keras.metrics.Sum()
    for variable, value in zip(model.trainable_variables, (weight, bias), strict=True):
        variable.assign(value)
    sizes = [sum(len(labels) for _rows, labels in parts) for parts in batches]
    dataset = tf.data.Dataset.from_tensor_slices(batches[0][0]).batch(sizes[0])
    spec = strategy.experimental_distribute_dataset(dataset).element_spec  # for any number of rows

    def on_replica(rows: Any, labels: Any, size: Any) -> Any:
        events = model.layers[-1].events[_replica()]
        events.clear()
        returned = answer(model, optimizer, rows, labels, size)
        if fault := refuse(events):
            raise CourseError(fault)
        pair = isinstance(returned, (tuple, list)) and len(returned) == 2
        if not pair or len(getattr(returned[1], "shape", ())) != 2:
            raise CourseError(_("Return a pair that ends in the logits: `return loss, logits`."))
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
    found = _found(losses, model.trainable_variables, logits)
    return found | {"iterations": int(optimizer.iterations.numpy())}


def _model(penalty: float) -> Any:
    """Returns a dense layer, and behind it one that tells training from use, and forward from backward."""
    tf = start_tensorflow()
    keras = tf.keras

    class TwiceToTrain(keras.layers.Layer):  # type: ignore[misc, name-defined]
        """Doubles its inputs in training."""

        def build(self, input_shape: Any) -> None:
            del input_shape
            self.events: list[list[str]] = [[] for _replica in range(5)]  # the last is of none
            self.seed = self.add_weight(shape=(), trainable=False)  # as `Dropout` has one

        def call(self, inputs: Any, training: bool = False) -> Any:
            events = self.events[_replica()]

            @tf.custom_gradient  # type: ignore[untyped-decorator]
            def watched(inputs: Any) -> Any:
                events.append("forward")

                def backward(gradient: Any) -> Any:
                    events.append("backward")
                    return gradient

                return tf.identity(inputs), backward

            return watched(2 * inputs if training else inputs)

    penalised = keras.regularizers.L2(penalty) if penalty else None
    dense = keras.layers.Dense(_CLASSES, kernel_regularizer=penalised, bias_regularizer=penalised)
    return keras.Sequential([keras.Input((_FEATURES,)), dense, TwiceToTrain()])
