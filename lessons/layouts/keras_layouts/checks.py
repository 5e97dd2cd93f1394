"""The exercises of this lesson: a LayoutMap and a training step, for real Keras models on a mesh."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises import limit
from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array, answered, plain
from course_lib.i18n import _, join_sentences
from course_lib.messages import last_line
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Batches = list[tuple[Array, Array]]

_MESH = MeshSpec([("batch", 2), ("model", 4)])
_ROWS = 64
_SHAPES = {"first": (1_200, 96), "second": (96, 64), "third": (64, 2)}  # of the kernels of exercise 1
_MOST_HELD, _MOST_CARRIED = 125_000, 132_000  # bytes
_STEP_MESH = MeshSpec([("batch", 4), ("model", 2)])
_FEATURES, _HIDDEN, _CLASSES, _LEARNING_RATE, _MOMENTUM, _NORM = 6, 8, 3, 0.37, 0.8, 1.0


@exercise("keras_layouts-layout-map", right=Callable)
def layout_map(answer: Callable[[Any], Any]) -> str | None:
    """A LayoutMap for a class of three dense layers, judged by what devices hold and exchange."""
    from course_lib.devices import graphs

    with on_devices() as (tf, dtensor):
        import tf_keras

        mesh = dtensor.create_mesh(_MESH)
        layouts = answered(answer(mesh))
        if not isinstance(layouts, tf_keras.dtensor.experimental.LayoutMap):
            return _("Return the LayoutMap that you have filled.")
        if hint := _map_hint(layouts, dtensor):
            return hint
        x = dtensor.pack(np.ones((_ROWS, 1_200), np.float32), LayoutSpec(["batch", UNSHARDED], _MESH), mesh)
        y = dtensor.pack(np.zeros(_ROWS, np.int64), LayoutSpec(["batch"], _MESH), mesh)
        tf_keras.utils.set_random_seed(0)
        with layouts.scope():
            model = _three_layers(tf_keras)
        try:
            model(x)  # makes the variables
            parts = ([part.nbytes for part in dtensor.unpack(weight)] for weight in model.weights)
            most = max(map(sum, zip(*parts, strict=True)))
            if most > _MOST_HELD:
                held = f"{most:,}"
                return _("Bytes on a device: {held}. Allowed: {most}.", held=held, most=f"{_MOST_HELD:,}")
            found = graphs.collectives(partial(_gradients, tf), model, x, y)
        except tf.errors.OpError as error:
            return join_sentences([_("TensorFlow refuses that. {error}", error=last_line(error)), _follow()])
    carried = sum(each.payload_bytes for each in found)
    if carried <= _MOST_CARRIED:
        return None
    told = _("Bytes that the collectives carry: {carried}.", carried=f"{carried:,}")
    return join_sentences([told, _follow()])


def _follow() -> str:
    return _(
        "Follow one unit of `first`: a column of `first.kernel` computes it."
        " What in `first.bias` and in `second.kernel` belongs to this unit?"
        " What comes out of `second` is then whole on every device, so nothing in `third` has to be split."
    )


def _three_layers(tf_keras: Any) -> Any:
    class ThreeLayers(tf_keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = tf_keras.layers.Dense(96, activation="relu", name="hidden")
            self.second = tf_keras.layers.Dense(64, activation="relu", name="narrow")
            self.third = tf_keras.layers.Dense(2, name="logits")

        def call(self, x: Any) -> Any:
            return self.third(self.second(self.first(x)))

    return ThreeLayers()


def _gradients(tf: Any, model: Any, x: Any, y: Any, **options: Any) -> Any:
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, **options))
        loss = tf.reduce_mean(losses)
    return loss, tape.gradient(loss, model.trainable_variables)


def _map_hint(layouts: Any, dtensor: Any) -> str | None:
    """Says what tf_keras would pass over in silence; refuses in words what TensorFlow would stumble over."""
    by_pattern = {pattern: layouts[pattern] for pattern in layouts}
    shapes: dict[str, tuple[int, ...]] = {f"{name}.kernel": shape for name, shape in _SHAPES.items()}
    shapes |= {f"{name}.bias": shape[1:] for name, shape in _SHAPES.items()}
    used = set()
    for name, shape in shapes.items():
        fitting = [name] if name in by_pattern else [each for each in by_pattern if re.match(each, name)]
        used.update(fitting[:1])
        try:
            for pattern in fitting[:1]:
                dtensor.layout_spec(by_pattern[pattern]).of(shape)
        except CourseError as error:
            told = _("{name} cannot have the layout of {pattern!r}.", name=f"`{name}`", pattern=fitting[0])
            return f"{told}\n{error}"
    unused = [pattern for pattern in by_pattern if pattern not in used]
    if not unused:
        return None
    return _(
        "No variable gets its layout from {pattern!r}. In a class, the name of a variable is the path of"
        " attributes that leads to it.",
        pattern=unused[0],
    )


def _on_one_device(
    factor: float = 1.0, *, clipped: str = "together", calls: int = 1, training: bool = True
) -> Callable[[Batches], dict[str, Any]]:
    """Returns steps on one device: the right ones, or with a mistake."""

    def trained(batches: Batches) -> dict[str, Any]:
        tf = start_tensorflow()
        import tf_keras

        model = _with_normalisation(tf_keras)
        optimizer, losses = tf_keras.optimizers.SGD(_LEARNING_RATE, momentum=_MOMENTUM), []
        for x, y in batches:
            for _call in range(calls):
                loss, gradients = _gradients(tf, model, x, y, training=training)
            gradients = [factor * each for each in gradients]
            if clipped == "together":
                gradients, _norm = tf.clip_by_global_norm(gradients, _NORM)
            elif clipped == "always":
                norm = tf.linalg.global_norm(gradients)
                gradients = [each * _NORM / norm for each in gradients]
            elif clipped == "alone":
                gradients = [tf.clip_by_norm(each, _NORM) for each in gradients]
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            losses.append(float(loss))
        return {"losses": losses, "values": [weight.numpy() for weight in model.weights]}

    return trained


@exercise("keras_layouts-step", right=_on_one_device())
def step(answer: Callable[[Any, Any], Any]) -> str | None:
    """Steps with clipped gradients and momentum, for a model that is laid out by a LayoutMap."""
    random = np.random.default_rng(0)
    batches = [
        (random.normal(0, 1, (8, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, 8))
        for _batch in range(2)
    ]
    # What the model then says of eight more rows: the norm of these gradients is below the limit
    batches.append(
        (random.normal(0, 1, (8, _FEATURES)).astype(np.float32), np.array([2, 2, 0, 2, 1, 0, 2, 1]))
    )
    hints = {
        _on_one_device(clipped="not"): _("The global norm of your gradients is larger than 1."),
        _on_one_device(clipped="always"): _(
            "That changes every gradient. Leave them as they are where their global norm is below 1."
        ),
        _on_one_device(clipped="alone"): _(
            "That clips each gradient by its own norm. The global norm is that of all gradients together."
        ),
        _on_one_device(1 / 8): _(
            "Do not divide by the devices: with DTensor a gradient is that of the whole batch already."
        ),
        _on_one_device(calls=2): _(
            "The losses are right, but each step calls the model twice, so its moving mean and variance"
            " are updated twice."
        ),
        _on_one_device(training=False): _(
            "Call the model with `training=True`, so that it normalizes with the mean and variance of the"
            " batch."
        ),
    }
    try:
        return judge(
            answer,
            _on_one_device(),
            [Case((batches,), told=_("three batches of eight rows on the mesh {mesh}", mesh=_STEP_MESH))],
            run=_steps_on_devices,
            misconceptions=hints,
            tolerance=1e-3,
            advice=_(
                "Return the mean loss, and give the optimizer the clipped gradients of all trainable"
                " variables."
            ),
        )
    except limit.TooLong as error:  # so long does TensorFlow take to refuse a gradient that is taken outside
        return join_sentences([error.problem, _compile_it()])


def _steps_on_devices(make_step: Callable[[Any, Any], Any], batches: Batches) -> dict[str, Any] | None:
    """Returns what the reader's steps make of the model on eight devices, if there are any.

    Raises:
        CourseError: a gradient is taken outside a compiled function, or applied within it, or elsewhere.
    """
    with on_devices() as (tf, dtensor):
        import tf_keras

        mesh = dtensor.create_mesh(_STEP_MESH)
        model = _on_mesh(tf_keras, dtensor, mesh)
        optimizer = tf_keras.optimizers.SGD(_LEARNING_RATE, momentum=_MOMENTUM, mesh=mesh)
        step = answered(make_step(model, optimizer))
        if not callable(step):
            return None
        stages, losses = [list(map(dtensor.to_numpy, model.trainable_variables))], []
        for features, labels in batches:
            x = dtensor.pack(features, LayoutSpec(["batch", UNSHARDED], _STEP_MESH), mesh)
            y = dtensor.pack(labels, LayoutSpec(["batch"], _STEP_MESH), mesh)
            try:
                losses.append(plain(answered(step(x, y))))
            except tf.errors.UnimplementedError as error:  # DTensor refuses it outside a compiled function
                raise CourseError(_compile_it()) from error
            stages.append(list(map(dtensor.to_numpy, model.trainable_variables)))
        for first, second, last in zip(stages[0], stages[1], stages[-1], strict=True):
            if np.array_equal(first, second) and not np.array_equal(second, last):
                raise CourseError(
                    _(
                        "Some variables did not move in the first step: their updates came a step late. Call"
                        " `apply_gradients` outside the `tf.function` that computes the gradients."
                    )
                )
        if int(optimizer.iterations.numpy()) != len(batches):
            raise CourseError(_("Apply the gradients once a step, with the optimizer that `make_step` gets."))
        return {"losses": losses, "values": list(map(dtensor.to_numpy, model.weights))}


def _compile_it() -> str:
    return _("Write `@tf.function` over a function that has the tape and its `gradient` in it.")


def _on_mesh(tf_keras: Any, dtensor: Any, mesh: Any) -> Any:
    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    units: dict[str, tuple[str, ...]] = {
        "hidden.kernel": (UNSHARDED, "model"),
        "logits.kernel": ("model", UNSHARDED),
    }
    units |= {"hidden.bias": ("model",), "normal.*": ("model",)}
    for pattern, entries in units.items():
        layouts[pattern] = dtensor.to_layout(LayoutSpec(entries, _STEP_MESH), mesh)
    with layouts.scope():
        return _with_normalisation(tf_keras)


def _with_normalisation(tf_keras: Any) -> Any:
    tf_keras.utils.set_random_seed(0)
    hidden = tf_keras.layers.Dense(_HIDDEN, activation="relu", name="hidden")
    normal = tf_keras.layers.BatchNormalization(name="normal")
    logits = tf_keras.layers.Dense(_CLASSES, name="logits")
    return tf_keras.Sequential([tf_keras.Input((_FEATURES,)), hidden, normal, logits])
