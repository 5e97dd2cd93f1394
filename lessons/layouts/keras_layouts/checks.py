"""The exercises of this lesson: a LayoutMap and a training step, for real Keras models on a mesh."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises import limit
from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array, answered, plain
from course_lib.i18n import _, join_sentences
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Batches = list[tuple[Array, Array]]

_MESH = MeshSpec([("batch", 2), ("model", 4)])
_SHAPES = {"first": (1_200, 96), "second": (96, 64), "logits": (64, 2)}  # of the kernels of exercise 1
_MOST_BYTES = 125_000
_STEP_MESH = MeshSpec([("batch", 4), ("model", 2)])
_FEATURES, _HIDDEN, _CLASSES, _LEARNING_RATE, _MOMENTUM = 6, 8, 3, 0.37, 0.8


@exercise("keras_layouts-layout-map", right=Callable)
def layout_map(answer: Callable[[Any], Any]) -> str | None:
    """A LayoutMap for a model of three dense layers, judged by the bytes of real components."""
    with on_devices() as (tf, dtensor):
        import tf_keras

        mesh = dtensor.create_mesh(_MESH)
        layouts = answered(answer(mesh))
        if not isinstance(layouts, tf_keras.dtensor.experimental.LayoutMap):
            return _("Return the LayoutMap that you have filled.")
        hint = _map_hint(layouts, dtensor)
        if hint:
            return hint
        with layouts.scope():
            dense = [tf_keras.layers.Dense(shape[1], name=name) for name, shape in _SHAPES.items()]
            model = _sequential(1_200, *dense)
        parts = ([part.nbytes for part in dtensor.unpack(weight)] for weight in model.weights)
        most = max(map(sum, zip(*parts, strict=True)))
        if most > _MOST_BYTES:
            return _(
                "The most bytes that a device holds are {held}; it may hold {most}.",
                held=f"{most:,}",
                most=f"{_MOST_BYTES:,}",
            )
        rows = dtensor.pack(np.ones((8, 1_200), np.float32), LayoutSpec(["batch", UNSHARDED], _MESH), mesh)
        tf.function(model)(rows)  # raises where the layers do not fit together
    return None


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
            return _("{name} cannot have this layout.", name=f"`{name}`") + f"\n{error}"
    unused = [pattern for pattern in by_pattern if pattern not in used]
    if not unused:
        return None
    return _(
        "No variable gets its layout from {pattern!r}. Their names are {names}.",
        pattern=unused[0],
        names=_(", ").join(shapes),
    )


def _sequential(num_features: int, *layers: Any) -> Any:
    import tf_keras

    tf_keras.utils.set_random_seed(0)
    return tf_keras.Sequential([tf_keras.Input((num_features,)), *layers])


def _on_one_device(factor: float = 1.0, *, training: bool = True) -> Callable[[Batches], dict[str, Any]]:
    """Returns steps on one device with multiples of the right gradients."""

    def trained(batches: Batches) -> dict[str, Any]:
        tf = start_tensorflow()
        import tf_keras

        model = _with_normalisation()
        optimizer, losses = tf_keras.optimizers.SGD(_LEARNING_RATE, momentum=_MOMENTUM), []
        for features, labels in batches:
            with tf.GradientTape() as tape:
                logits = model(features, training=training)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            gradients = [factor * each for each in tape.gradient(loss, model.trainable_variables)]
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            losses.append(float(loss))
        return _found(losses, [weight.numpy() for weight in model.weights], optimizer)

    return trained


@exercise("keras_layouts-step", right=_on_one_device())
def step(answer: Callable[[Any, Any], Any]) -> str | None:
    """Steps of gradient descent with momentum, for a model that is laid out by a LayoutMap."""
    random = np.random.default_rng(0)
    batches = [
        (random.normal(0, 1, (8, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, 8))
        for _batch in range(3)
    ]
    try:
        return judge(
            answer,
            _on_one_device(),
            [Case((batches,), told=_("three batches of eight rows on the mesh {mesh}", mesh=_STEP_MESH))],
            run=_steps_on_devices,
            misconceptions={
                _on_one_device(1 / 8): _(
                    "Do not divide by the devices: with DTensor a gradient is that of the whole batch"
                    " already."
                ),
                _on_one_device(training=False): _(
                    "Call the model with `training=True`, so that it normalises with the moments of the"
                    " batch."
                ),
            },
            tolerance=1e-3,
            advice=_(
                "Return the mean loss, and give the optimizer that `make_step` gets the gradients of all"
                " trainable variables."
            ),
        )
    except limit.TooLong as error:  # so long does TensorFlow take to refuse a gradient that is taken outside
        return join_sentences([error.problem, _compile_it()])


def _steps_on_devices(make_step: Callable[[Any, Any], Any], batches: Batches) -> dict[str, Any] | None:
    """Returns what the reader's steps make of the model on eight devices, if there are any.

    Raises:
        CourseError: a gradient is taken outside a compiled function, or applied within it.
    """
    with on_devices() as (tf, dtensor):
        import tf_keras

        mesh = dtensor.create_mesh(_STEP_MESH)
        model = _on_mesh(dtensor, mesh)
        optimizer = tf_keras.optimizers.SGD(_LEARNING_RATE, momentum=_MOMENTUM, mesh=mesh)
        step = answered(make_step(model, optimizer))
        if not callable(step):
            return None
        stages, losses = [list(map(dtensor.to_numpy, model.trainable_variables))], []
        for features, labels in batches:
            inputs = dtensor.pack(features, LayoutSpec(["batch", UNSHARDED], _STEP_MESH), mesh)
            targets = dtensor.pack(labels, LayoutSpec(["batch"], _STEP_MESH), mesh)
            try:
                losses.append(plain(answered(step(inputs, targets))))
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
        return _found(losses, list(map(dtensor.to_numpy, model.weights)), optimizer)


def _found(losses: list[Any], values: list[Array], optimizer: Any) -> dict[str, Any]:
    """Returns what is compared: also whether the steps were taken with the optimizer that was given."""
    taken = int(optimizer.iterations.numpy())
    return {"losses": losses, "values": values, "optimizer.iterations": taken}


def _compile_it() -> str:
    return _("Write `@tf.function` over a function that has the tape and its `gradient` in it.")


def _on_mesh(dtensor: Any, mesh: Any) -> Any:
    import tf_keras

    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    units: dict[str, tuple[str, ...]] = {
        "hidden.kernel": (UNSHARDED, "model"),
        "logits.kernel": ("model", UNSHARDED),
    }
    units |= {"hidden.bias": ("model",), "normal.*": ("model",)}
    for pattern, entries in units.items():
        layouts[pattern] = dtensor.to_layout(LayoutSpec(entries, _STEP_MESH), mesh)
    with layouts.scope():
        return _with_normalisation()


def _with_normalisation() -> Any:
    from tf_keras import layers

    hidden = layers.Dense(_HIDDEN, activation="relu", name="hidden")
    normal, logits = layers.BatchNormalization(name="normal"), layers.Dense(_CLASSES, name="logits")
    return _sequential(_FEATURES, hidden, normal, logits)
