"""Exercises 08-step and 08-layout-map: real Keras models whose variables lie on a mesh."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.answers import answered
from course_lib.exercises.checks import exercise
from course_lib.exercises.faults import fault
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.exercises.two_layers import Array, Values, gradients
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Batches = list[tuple[Array, Array]]
MakeStep = Callable[[Any, Any], Any]

_STEP_MESH = MeshSpec([("batch", 4), ("model", 2)])
_FEATURES, _HIDDEN, _CLASSES, _LEARNING_RATE, _MOMENTUM = 6, 8, 3, 0.5, 0.9
_SHAPES = ((_FEATURES, _HIDDEN), (_HIDDEN,), (_HIDDEN, _CLASSES), (_CLASSES,))

_MAP_MESH = MeshSpec([("batch", 2), ("model", 4)])
_MOST_BYTES = 125_000


def _trained(factor: float = 1.0, *, loss_factor: float = 1.0) -> Callable[[Values, Batches], Any]:
    """Returns steps in NumPy with multiples of the right gradients, which say a multiple of the loss."""

    def trained(values: Values, batches: Batches) -> dict[str, Any]:
        values = [value.astype(np.float64) for value in values]
        slots, losses = [np.zeros_like(value) for value in values], []
        for inputs, labels in batches:
            loss, of_batch = gradients(values, inputs, labels)
            pairs = zip(slots, of_batch, strict=True)
            slots = [_MOMENTUM * slot - factor * _LEARNING_RATE * gradient for slot, gradient in pairs]
            values = [value + slot for value, slot in zip(values, slots, strict=True)]
            losses.append(loss_factor * loss)
        return {"losses": losses, "values": values}

    return trained


def _right_step(model: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
    tf = start_tensorflow()

    @tf.function  # type: ignore[untyped-decorator]
    def loss_and_gradients(inputs: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs))
            loss = tf.reduce_mean(losses)
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(inputs: Any, labels: Any) -> Any:
        loss, of_batch = loss_and_gradients(inputs, labels)
        optimizer.apply_gradients(zip(of_batch, model.trainable_variables, strict=True))
        return loss

    return step


@exercise("08-step", right=_right_step, on_devices=True)
def step(answer: MakeStep) -> str | None:
    """Steps of gradient descent with momentum, for a model whose layers have layouts."""
    case = Case(_draw(), told=_("three batches of eight rows on the mesh {mesh}", mesh=_STEP_MESH))
    rows = float(_STEP_MESH.size)
    moved: list[list[bool]] = []  # after each step: which variables have changed since the first
    applied: list[int] = []  # after each step: how often the optimizer has been used
    hint = judge(
        answer,
        _trained(),
        [case],
        run=partial(_on_mesh, moved, applied),
        misconceptions={
            _trained(0.0): _(
                "After your steps no variable has changed. Give the gradients to the optimizer."
            ),
            _trained(rows, loss_factor=rows): _(
                "These are steps for the sum of the losses. Take their mean."
            ),
            _trained(1 / _STEP_MESH.size): _(
                "Do not divide by the devices: with DTensor a gradient is that of the whole batch already."
            ),
        },
        tolerance=1e-3,
    )
    if moved and any(late and not at_once for at_once, late in zip(moved[0], moved[-1], strict=True)):
        return _(
            "Some variables did not move in the first step: their updates came a step late. Call"
            " `apply_gradients` outside the `tf.function` that computes the gradients."
        )
    if moved and any(moved[-1]) and not all(moved[-1]):
        return _(
            "Some variables never moved. Give the optimizer a gradient for each of"
            " `model.trainable_variables`."
        )
    if moved and any(moved[-1]) and applied != [1, 2, 3]:
        return _("Give the gradients to the optimizer that `make_step` gets, in each step.")
    return hint


def _draw() -> tuple[Values, Batches]:
    random = np.random.default_rng(0)
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in _SHAPES]
    batches = [
        (random.normal(0, 1, (8, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, 8))
        for _batch in range(3)
    ]
    return values, batches


def _on_mesh(
    moved: list[list[bool]], applied: list[int], make_step: MakeStep, values: Values, batches: Batches
) -> dict[str, Any]:
    """Returns what a reader's steps make of the model; notes what has moved, and what moved it."""
    with on_devices() as (_tf, dtensor):
        mesh = dtensor.create_mesh(_STEP_MESH)
        model = _two_layers(lambda *entries: dtensor.to_layout(LayoutSpec(entries, _STEP_MESH), mesh))
        model.set_weights(values)
        optimizer = import_module("tf_keras").optimizers.SGD(_LEARNING_RATE, momentum=_MOMENTUM, mesh=mesh)
        step = answered(make_step(model, optimizer))
        if not callable(step):
            raise CourseError(
                _("`make_step` gives no function."),
                allowed=_("an answer that returns a function `step(inputs, labels)`"),
                cure=_("End it with `return step`."),
            )
        losses = []
        for features, labels in batches:
            inputs = dtensor.pack(features, LayoutSpec(["batch", UNSHARDED], _STEP_MESH), mesh)
            packed = dtensor.pack(labels, LayoutSpec(["batch"], _STEP_MESH), mesh)
            losses.append(_loss_of(step, inputs, packed))
            stepped = [dtensor.to_numpy(variable) for variable in model.trainable_variables]
            moved.append([not np.array_equal(*pair) for pair in zip(stepped, values, strict=True)])
            applied.append(int(optimizer.iterations))
        return {"losses": losses, "values": stepped}


def _loss_of(step: Callable[[Any, Any], Any], inputs: Any, labels: Any) -> float:
    tf = start_tensorflow()
    try:
        loss = answered(step(inputs, labels))
    except tf.errors.UnimplementedError as error:
        if "got a regular tensor" not in str(error):
            raise
        raise CourseError(
            _("DTensor refuses a part of your step outside a compiled function."),
            allowed=_("a loss and gradients that are computed in a compiled function"),
            cure=_("Write `@tf.function` over the function that computes them."),
        ) from error
    if not (isinstance(loss, (float, np.number)) or (tf.is_tensor(loss) and loss.shape.rank == 0)):
        raise CourseError(
            _("Your step does not return one number."),
            allowed=_("the mean loss of the batch"),
            cure=_("Take the mean of the losses of the examples, and return it alone."),
        )
    return float(loss)


def _two_layers(layout: Callable[..., Any]) -> Any:
    layers = import_module("tf_keras").layers
    hidden = {"kernel_layout": layout(UNSHARDED, "model"), "bias_layout": layout("model")}
    last = {"kernel_layout": layout("model", UNSHARDED), "bias_layout": layout(UNSHARDED)}
    return _sequential(
        _FEATURES,
        layers.Dense(_HIDDEN, activation="relu", **hidden),
        layers.Dense(_CLASSES, **last),
    )


def _sequential(num_features: int, *layers: Any) -> Any:
    tf_keras = import_module("tf_keras")
    tf_keras.utils.set_random_seed(0)
    return tf_keras.Sequential([tf_keras.Input((num_features,)), *layers])


def _right_map(mesh: Any) -> Any:
    tf_keras, dtensor = import_module("tf_keras"), start_tensorflow().experimental.dtensor
    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    layouts["first.kernel"] = dtensor.Layout([UNSHARDED, "model"], mesh)
    layouts["second.kernel"] = dtensor.Layout(["model", UNSHARDED], mesh)
    return layouts


@exercise("08-layout-map", right=_right_map, on_devices=True)
def layout_map(answer: Callable[[Any], Any]) -> str | None:
    """A LayoutMap for a model of three dense layers, judged by the bytes of real components."""
    keras_layouts = import_module("lessons.lesson_08_keras.keras_layouts")
    with on_devices() as (_tf, dtensor):
        mesh = dtensor.create_mesh(_MAP_MESH)
        layouts = answered(answer(mesh))
        if not isinstance(layouts, keras_layouts.LayoutMap):
            return _("Return the LayoutMap that you have filled.")
        patterns = keras_layouts.patterns_of(layouts)
        if patterns.mesh != _MAP_MESH:
            return _(
                "Use the `mesh` that `small_enough` gets, for the LayoutMap and for each layout. The lesson's"
                " own `layout` and `layout_map` use the lesson's mesh."
            )
        # This refuses in words what TensorFlow would stumble over.
        for name, whole in keras_layouts.names_of(_three_layers()).items():
            patterns.layout_of(name, whole.shape.rank).of(whole.shape)
        model = keras_layouts.made_with(layouts, _three_layers)
        most = max(keras_layouts.bytes_on_devices(model.weights))
        if most > _MOST_BYTES:
            return _(
                "The most bytes that a device holds are {held}; it may hold {most}.",
                held=f"{most:,}",
                most=f"{_MOST_BYTES:,}",
            )
        return _not_callable(model, dtensor, mesh)


def _not_callable(model: Any, dtensor: Any, mesh: Any) -> str | None:
    """Returns the error that calling the model on a batch ends with; None where it gives logits."""
    tf, batch = start_tensorflow(), LayoutSpec(["batch", UNSHARDED], _MAP_MESH)
    try:
        tf.function(model)(dtensor.pack(np.ones((8, 1_200), np.float32), batch, mesh))
    except tf.errors.OpError as error:
        return _("The bytes are few enough, but the layers do not fit together.") + "\n" + fault(error)
    return None


def _three_layers() -> Any:
    dense, units = import_module("tf_keras").layers.Dense, {"first": 96, "second": 64, "logits": 2}
    return _sequential(1_200, *(dense(count, name=name) for name, count in units.items()))
