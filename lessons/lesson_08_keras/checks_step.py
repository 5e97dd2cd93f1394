"""Exercise 08-step: a training step on a Keras model with layouts, held against the same steps in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.answers import answered
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.exercises.two_layers import Array, Values, gradients
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Batches = list[tuple[Array, Array]]
MakeStep = Callable[..., Any]

FEATURES, HIDDEN, CLASSES, LEARNING_RATE, MOMENTUM = 6, 8, 3, 0.5, 0.9
_MESH = MeshSpec([("batch", 4), ("model", 2)])
_LAYOUTS = ([UNSHARDED, "model"], ["model"], ["model", UNSHARDED], [UNSHARDED])
_SHAPES = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))


def _trained(
    factor: float = 1.0, *, loss_factor: float = 1.0, loss_after: bool = False
) -> Callable[..., Any]:
    """Returns steps in NumPy with multiples of the right gradients, which say a multiple of the loss.

    With `loss_after` the loss is that of the batch after the update.
    """

    def trained(values: Values, batches: Batches) -> dict[str, Any]:
        values = [value.astype(np.float64) for value in values]
        slots, losses = [np.zeros_like(value) for value in values], []
        for inputs, labels in batches:
            loss, found = gradients(values, inputs, labels)
            pairs = zip(slots, found, strict=True)
            slots = [MOMENTUM * slot - factor * LEARNING_RATE * gradient for slot, gradient in pairs]
            values = [value + slot for value, slot in zip(values, slots, strict=True)]
            if loss_after:
                loss, _gradients = gradients(values, inputs, labels)
            losses.append(loss_factor * loss)
        return {"losses": losses, "values": values}

    return trained


def _summed(values: Values, batches: Batches) -> dict[str, Any]:
    """Returns what steps give that minimise the sum of the losses; all batches have as many rows."""
    rows = float(len(batches[0][1]))
    result: dict[str, Any] = _trained(rows, loss_factor=rows)(values, batches)
    return result


def _maker(
    *,
    reduced: str = "reduce_mean",
    apply: bool = True,
    factor: float = 1.0,
    returns: bool = True,
    only_kernels: bool = False,
    in_one_function: bool = False,
    in_two_functions: bool = False,
    compiled: bool = True,
    own_optimizer: bool = False,
    mean: bool = True,
    loss_after: bool = False,
) -> MakeStep:
    """Returns an answer as a reader may write it, with the mistakes that are asked for."""

    def make_step(model: Any, optimizer: Any) -> Callable[..., Any]:
        tf = start_tensorflow()

        variables = model.trainable_variables[:: 2 if only_kernels else 1]
        chosen = optimizer
        if own_optimizer:
            mesh = model.weights[0].layout.mesh
            chosen = import_module("tf_keras").optimizers.SGD(LEARNING_RATE, mesh=mesh)

        def loss_and_gradients(inputs: Any, labels: Any) -> tuple[Any, list[Any]]:
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(inputs))
                loss = getattr(tf, reduced)(losses) if mean else losses
            return loss, [factor * each for each in tape.gradient(loss, variables)]

        def applied(found: list[Any]) -> None:
            chosen.apply_gradients(zip(found, variables, strict=True))

        compute = loss_and_gradients if in_one_function or not compiled else tf.function(loss_and_gradients)
        write = tf.function(applied) if in_two_functions else applied

        def step(inputs: Any, labels: Any) -> Any:
            loss, found = compute(inputs, labels)
            if apply:
                write(found)
            if loss_after:
                loss, _found = compute(inputs, labels)
            return loss if returns else None

        return tf.function(step) if in_one_function else step

    return make_step


def _one_step_at_once(model: Any, optimizer: Any) -> Any:
    """Returns no function: a step that was called already."""
    return None


@exercise(
    "08-step",
    right=_maker(),
    also=[_maker(in_two_functions=True)],
    wrong=[
        (_maker(in_one_function=True), "came a step late"),
        (_maker(apply=False), "no variable has changed"),
        (_maker(reduced="reduce_sum"), "sum of the losses"),
        (_maker(factor=-1.0), "wrong way"),
        (_maker(factor=1 / 8), "whole batch"),
        (_maker(returns=False), "Return the loss"),
        (_maker(only_kernels=True), "never moved"),
        (_maker(compiled=False), "`@tf.function`"),
        (_maker(own_optimizer=True), "that `make_step` gets"),
        (_maker(mean=False), "one number"),
        (_maker(loss_after=True), "before the update"),
        (_one_step_at_once, "returns a function"),
        (0.5, "function"),
    ],
    on_devices=True,
)
def step(answer: MakeStep) -> str | None:
    """Steps of gradient descent with momentum, for a model whose layers have layouts."""
    random = np.random.default_rng(0)
    case = Case(_draw(random), told=_("three batches of eight rows on the mesh {mesh}", mesh=_MESH))
    runs: list[_Run] = []

    def run(make_step: MakeStep, values: Values, batches: Batches) -> dict[str, Any]:
        runs.append(_on_mesh(make_step, values, batches))
        losses = runs[-1].losses or _trained()(values, batches)["losses"]  # not returned: judged below
        return {"losses": losses, "values": runs[-1].values}

    mistakes = {
        _trained(0.0): _("After your steps no variable has changed. Give the gradients to the optimizer."),
        _summed: _("These are steps for the sum of the losses. Take their mean."),
        _trained(-1.0): _("The variables go the wrong way: `apply_gradients` subtracts already."),
        _trained(1 / _MESH.size): _(
            "Do not divide by the devices: with DTensor a gradient is that of the whole batch already."
        ),
        _trained(loss_after=True): _("The variables are right. Return the loss before the update."),
    }
    hint = judge(answer, _trained(), [case], run=run, misconceptions=mistakes, tolerance=1e-3)
    if runs and runs[-1].some_came_late:
        return _(
            "Some variables did not move in the first step: their updates came a step late. Call"
            " `apply_gradients` outside the `tf.function` that computes the gradients."
        )
    if runs and runs[-1].some_never_moved:
        return _(
            "Some variables never moved. Give the optimizer a gradient for each of"
            " `model.trainable_variables`."
        )
    if hint is not None and runs and not runs[-1].was_asked:
        return _("Give the gradients to the optimizer that `make_step` gets, in each step.")
    if hint is None and not runs[-1].losses:
        return _("The variables are right. Return the loss, too.")
    return hint


@dataclass(frozen=True)
class _Run:
    """What a reader's steps did on eight devices.

    Attributes:
        losses: what each returned; nothing where one returned nothing.
        values: the variables after the last, `[...] global`.
        some_came_late: whether a later step changed a variable that the first one left as it was.
        some_never_moved: whether the steps changed some variables and left others as they were.
        was_asked: whether the steps changed no variable, or took the optimizer that they were given.
    """

    losses: list[float]
    values: Values
    some_came_late: bool
    some_never_moved: bool
    was_asked: bool


def _draw(random: np.random.Generator) -> tuple[Values, Batches]:
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in _SHAPES]
    batches = [
        (random.normal(0, 1, (8, FEATURES)).astype(np.float32), random.integers(0, CLASSES, 8))
        for _batch in range(3)
    ]
    return values, batches


def _on_mesh(make_step: MakeStep, values: Values, batches: Batches) -> _Run:
    with on_devices() as (_tf, dtensor):
        mesh = dtensor.create_mesh(_MESH)
        model = _model([dtensor.to_layout(LayoutSpec(entries, _MESH), mesh) for entries in _LAYOUTS])
        model.set_weights(values)
        optimizer = import_module("tf_keras").optimizers.SGD(LEARNING_RATE, momentum=MOMENTUM, mesh=mesh)
        step = answered(make_step(model, optimizer))
        if not callable(step):
            raise CourseError(
                _("`make_step` gives no function."),
                allowed=_("an answer that returns a function `step(inputs, labels)`"),
                cure=_("End it with `return step`."),
            )
        returned, moved = [], []
        for batch in batches:
            layouts = LayoutSpec(["batch", UNSHARDED], _MESH), LayoutSpec(["batch"], _MESH)
            packed = [dtensor.pack(*both, mesh) for both in zip(batch, layouts, strict=True)]
            returned.append(_loss_of(step, packed))
            found = [dtensor.to_numpy(variable) for variable in model.trainable_variables]
            moved.append([not np.array_equal(*pair) for pair in zip(found, values, strict=True)])
        losses = [] if None in returned else [loss for loss in returned if loss is not None]
        late = any(last and not first for first, last in zip(moved[0], moved[-1], strict=True))
        was_asked = int(optimizer.iterations) > 0 or not any(moved[-1])
        return _Run(losses, found, late, any(moved[-1]) and not all(moved[-1]), was_asked)


def _loss_of(step: Callable[..., Any], batch: list[Any]) -> float | None:
    """Takes a reader's step and returns its loss; None where it returns nothing."""
    tf = start_tensorflow()
    try:
        loss = step(*batch)
    except tf.errors.UnimplementedError as error:
        if "got a regular tensor" not in str(error):
            raise
        raise CourseError(
            _("DTensor refuses a part of your step outside a compiled function."),
            allowed=_("a loss and gradients that are computed in a compiled function"),
            cure=_("Write `@tf.function` over the function that computes them."),
        ) from error
    answered(loss)
    if loss is None:
        return None
    if isinstance(loss, (tuple, list)) or callable(loss) or tuple(getattr(loss, "shape", ())):
        raise CourseError(
            _("Your step does not return one number."),
            allowed=_("the mean loss of the batch"),
            cure=_("Take the mean of the losses of the examples, and return it alone."),
        )
    return float(loss)


def _model(layouts: list[Any]) -> Any:
    """Returns two dense layers with these layouts for weight and bias, weight and bias."""
    tf_keras = import_module("tf_keras")
    tf_keras.utils.set_random_seed(0)
    hidden, hidden_bias, last, last_bias = layouts
    dense = tf_keras.layers.Dense
    return tf_keras.Sequential(
        [
            tf_keras.Input((FEATURES,)),
            dense(HIDDEN, activation="relu", kernel_layout=hidden, bias_layout=hidden_bias),
            dense(CLASSES, kernel_layout=last, bias_layout=last_bias),
        ]
    )
