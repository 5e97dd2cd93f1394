"""Exercise 08-step: a training step on a Keras model with layouts, held against the same step in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Array = npt.NDArray[Any]
Values = list[Array]  # the weight and bias of the hidden layer, then those of the logits
Step = Callable[..., Any]

FEATURES, HIDDEN, CLASSES, LEARNING_RATE = 6, 8, 3, 0.5
_MESH = MeshSpec([("batch", 4), ("model", 2)])
_LAYOUTS = ([UNSHARDED, "model"], ["model"], ["model", UNSHARDED], [UNSHARDED])
_SHAPES = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))


def gradients(values: Values, inputs: Array, labels: Array) -> tuple[float, Values]:
    """Returns the mean loss and its gradients in NumPy.

    Args:
        values: as the model has them.
        inputs: `[batch, features]`.
        labels: `[batch]`.
    """
    weight, bias, last_weight, last_bias = values
    hidden = np.maximum(inputs @ weight + bias, 0)
    logits = hidden @ last_weight + last_bias
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(shares[rows, labels]).mean())
    shares[rows, labels] -= 1
    of_logits = shares / len(labels)
    of_hidden = (of_logits @ last_weight.T) * (hidden > 0)
    found = [inputs.T @ of_hidden, of_hidden.sum(axis=0), hidden.T @ of_logits, of_logits.sum(axis=0)]
    return loss, found


def _after(factor: float, *, loss_factor: float = 1.0) -> Callable[..., Any]:
    """Returns a step in NumPy that goes `factor` times the right way, and says a multiple of the loss."""

    def after(values: Values, inputs: Array, labels: Array) -> dict[str, Any]:
        loss, found = gradients([value.astype(np.float64) for value in values], inputs, labels)
        new = [
            value - factor * LEARNING_RATE * gradient for value, gradient in zip(values, found, strict=True)
        ]
        return {"loss": loss_factor * loss, "values": new}

    return after


def _summed(values: Values, inputs: Array, labels: Array) -> dict[str, Any]:
    count = float(len(labels))
    result: dict[str, Any] = _after(count, loss_factor=count)(values, inputs, labels)
    return result


def _losses(tf: Any, model: Any, inputs: Any, labels: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(inputs))


def _step(
    *,
    mean: bool = True,
    apply: bool = True,
    sign: float = 1.0,
    returns: bool = True,
    first_only: bool = False,
) -> Step:
    """Returns a step as a reader may write it, with the mistakes that are asked for."""

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> Any:
        tf = start_tensorflow()
        with tf.GradientTape() as tape:
            losses = _losses(tf, model, inputs, labels)
            loss = tf.reduce_mean(losses) if mean else tf.reduce_sum(losses)
        variables = model.trainable_variables[: 2 if first_only else None]
        found = [sign * each for each in tape.gradient(loss, variables)]
        if apply:
            optimizer.apply_gradients(zip(found, variables, strict=True))
        return loss if returns else None

    return step


def _with_kerass_loss(model: Any, optimizer: Any, inputs: Any, labels: Any) -> Any:
    tf, tf_keras = start_tensorflow(), import_module("tf_keras")
    with tf.GradientTape() as tape:
        losses = tf_keras.losses.sparse_categorical_crossentropy(labels, model(inputs), from_logits=True)
        loss = tf.reduce_mean(losses)
    optimizer.minimize(loss, model.trainable_variables, tape=tape)
    return loss


def _outside_the_tape(model: Any, optimizer: Any, inputs: Any, labels: Any) -> Any:
    tf = start_tensorflow()
    losses = _losses(tf, model, inputs, labels)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(losses)
    found = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))
    return loss


def _divided_by_devices(model: Any, optimizer: Any, inputs: Any, labels: Any) -> Any:
    tf = start_tensorflow()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(_losses(tf, model, inputs, labels))
        scaled = loss / _MESH.size
    found = tape.gradient(scaled, model.trainable_variables)
    optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))
    return loss


@exercise(
    "08-step",
    right=_step(),
    also=[_with_kerass_loss],
    wrong=[
        (_step(apply=False), "no variable has changed"),
        (_step(mean=False), "sum of the losses"),
        (_step(sign=-1.0), "wrong way"),
        (_step(returns=False), "Return the loss"),
        (_step(first_only=True), "model.trainable_variables"),
        (_outside_the_tape, "inside the tape"),
        (_divided_by_devices, "already the gradient of the whole batch"),
        (0.5, "function"),
    ],
    on_devices=True,
)
def step(answer: Step) -> str | None:
    """A step of gradient descent on the mean loss, written for a model whose layers have layouts."""
    random = np.random.default_rng(0)
    cases = [Case(_draw(random, rows), told=_told(rows)) for rows in (8, 12)]
    returned: list[Any] = []

    def run(step: Step, *inputs: Any) -> dict[str, Any]:
        outcome = _on_mesh(step, *inputs)
        returned.append(outcome["loss"])
        return outcome if outcome["loss"] is not None else {**outcome, "loss": _after(1.0)(*inputs)["loss"]}

    hint = judge(
        answer,
        _after(1.0),
        cases,
        run=run,
        misconceptions={
            _after(0.0): _("After your step no variable has changed. Give the gradients to the optimizer."),
            _summed: _("This is the step for the sum of the losses. Take their mean."),
            _after(-1.0): _("The variables go the wrong way: `apply_gradients` subtracts already."),
            _after(1 / _MESH.size): _(
                "Do not divide by the devices: with DTensor the gradient is already the gradient of the whole"
                " batch."
            ),
        },
        advice=_("The gradients of all of `model.trainable_variables` belong to a step."),
    )
    if hint is None and None in returned:
        return _("The variables are right. Return the loss, too.")
    return _missing_gradients(hint)


def _missing_gradients(hint: str | None) -> str | None:
    if hint is not None and "No gradients provided" in hint:
        return _("TensorFlow found no gradient: call the model inside the tape.")
    return hint


def _told(rows: int) -> str:
    return _("{rows} rows on the mesh {mesh}", rows=rows, mesh=_MESH)


def _draw(random: np.random.Generator, rows: int) -> tuple[Values, Array, Array]:
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in _SHAPES]
    inputs = random.normal(0, 1, (rows, FEATURES)).astype(np.float32)
    return values, inputs, random.integers(0, CLASSES, rows)


def _on_mesh(step: Step, values: Values, inputs: Array, labels: Array) -> dict[str, Any]:
    """Takes a step on eight devices; returns the loss, None without one, and the variables after it."""
    with on_devices() as (tf, dtensor):
        tf_keras, mesh = import_module("tf_keras"), dtensor.create_mesh(_MESH)
        layouts = [dtensor.to_layout(LayoutSpec(entries, _MESH), mesh) for entries in _LAYOUTS]
        model = model_with(tf_keras, layouts)
        for variable, value in zip(model.trainable_variables, values, strict=True):
            variable.assign(dtensor.pack(value, variable.layout))
        optimizer = tf_keras.optimizers.SGD(LEARNING_RATE, mesh=mesh)
        rows = (LayoutSpec(["batch", UNSHARDED], _MESH), LayoutSpec(["batch"], _MESH))
        packed = [
            dtensor.pack(each, layout, mesh) for each, layout in zip((inputs, labels), rows, strict=True)
        ]
        loss = tf.function(step)(model, optimizer, *packed)
        return {
            "loss": None if loss is None else float(loss),
            "values": [dtensor.to_numpy(variable) for variable in model.trainable_variables],
        }


def model_with(tf_keras: Any, layouts: list[Any]) -> Any:
    """Returns two dense layers with these layouts for weight and bias, weight and bias."""
    tf_keras.utils.set_random_seed(0)
    hidden, hidden_bias, last, last_bias = layouts
    dense = tf_keras.layers.Dense
    layers = [
        dense(HIDDEN, activation="relu", kernel_layout=hidden, bias_layout=hidden_bias),
        dense(CLASSES, kernel_layout=last, bias_layout=last_bias),
    ]
    model = tf_keras.Sequential(layers)
    model.build((None, FEATURES))
    return model
