"""The exercises of lesson 08: layouts, patterns, and real Keras models whose variables lie on a mesh."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.answers import answered, plain
from course_lib.exercises.checks import exercise
from course_lib.exercises.faults import fault
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.exercises.two_layers import Array, Values, gradients
from course_lib.i18n import _, ngettext
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Names = list[str]
Patterns = list[str]
Fits = Callable[[str, str], object]
Batches = list[tuple[Array, Array]]

_MESH = MeshSpec([("batch", 2), ("model", 4)])
_STEP_MESH = MeshSpec([("batch", 4), ("model", 2)])
_FEATURES, _HIDDEN, _CLASSES, _LEARNING_RATE, _MOMENTUM = 6, 8, 3, 0.5, 0.9
_SHAPES = ((_FEATURES, _HIDDEN), (_HIDDEN,), (_HIDDEN, _CLASSES), (_CLASSES,))
_MOST_BYTES = 125_000
_OF_CHANNELS = ("gamma", "beta", "moving_mean", "moving_variance")


@exercise("08-normalisation", right=dict.fromkeys(_OF_CHANNELS, LayoutSpec([UNSHARDED], _MESH)))
def normalisation(answer: dict[str, Any]) -> str | None:
    """The layouts of the four variables that normalise images whose rows of pixels are split over `model`."""
    return next(filter(None, (_vector_hint(name, answer.get(name)) for name in _OF_CHANNELS)), None)


def _vector_hint(name: str, layout: object) -> str | None:
    if not isinstance(layout, LayoutSpec):
        return _("The dictionary needs a LayoutSpec for {name!r}.", name=name)
    if layout.num_axes != 1:
        return ngettext(
            "The tensor {name!r} has {count} axis.", "The tensor {name!r} has {count} axes.", 1, name=name
        )
    if layout.mesh != _MESH:
        return _("Use `mesh_of_images`, the mesh that the cell makes.")
    hints = {
        "batch": _("`{name}` has no entry for an example: `batch` splits examples.", name=name),
        "model": _(
            "`{name}` has one number for each channel. Which channels does a device hold of its images?",
            name=name,
        ),
    }
    return hints.get(layout.sharding_specs[0])


def _unused(fits: Fits, *, name_itself: bool = True) -> Callable[[Patterns, Names], list[str]]:
    """Returns the answer for which a name uses itself, or else the first pattern that fits in this sense."""

    def unused(patterns: Patterns, names: Names) -> list[str]:
        first = {name: next((each for each in patterns if fits(each, name)), None) for name in names}
        used = {name if name_itself and name in patterns else first[name] for name in names}
        return [pattern for pattern in patterns if pattern not in used]

    return unused


_unmatched = _unused(re.match)
_PATTERNS = ("hidden", "hidden.kernel", ".*kernel", ".*bias", "kernel", "hiden.*", "logits.*kernel", "logits")
_NAMES = ("hidden.kernel", "hidden.bias", "logits.kernel", "logits.bias", "hidden_kernel.bias")


def _draw(random: np.random.Generator) -> tuple[Patterns, Names]:
    patterns = random.permutation(_PATTERNS)[: random.integers(1, 6)]
    return [str(each) for each in patterns], [str(each) for each in random.permutation(_NAMES)[:3]]


@exercise("08-unmatched", right=_unmatched)
def unmatched(answer: Callable[..., Any]) -> str | None:
    """The patterns from which no variable gets its layout."""
    return judge(
        answer,
        _unmatched,
        [*drawn(_draw, count=80), Case((["hidden"], []), _("Without any variable no pattern is used."))],
        misconceptions={
            lambda patterns, names: [
                pattern for pattern in patterns if not any(re.match(pattern, name) for name in names)
            ]: _(
                "A pattern that fits is not always used: another one may come before it, and takes its place."
            ),
            _unused(re.search): _("A pattern has to fit from the beginning of the name: that is `re.match`."),
            _unused(re.match, name_itself=False): _(
                "A pattern that is the name itself goes first, wherever it stands."
            ),
        },
        advice=_(
            "For each name, find the one pattern that it gets its layout from. Return the other patterns."
        ),
    )


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


@exercise("08-step", right=_trained(), on_devices=True)
def step(answer: Callable[[Any, Any], Any]) -> str | None:
    """Steps of gradient descent with momentum, for a model whose layers have layouts."""
    random = np.random.default_rng(0)
    values = [random.normal(0, 0.5, shape).astype(np.float32) for shape in _SHAPES]
    batches = [
        (random.normal(0, 1, (8, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, 8))
        for _batch in range(3)
    ]
    told = _("three batches of eight rows on the mesh {mesh}", mesh=_STEP_MESH)
    moved: list[list[bool]] = []  # after each step: which variables have changed since the first
    hint = judge(
        answer,
        _trained(),
        [Case((values, batches), told=told)],
        run=partial(_on_mesh, moved),
        misconceptions={
            _trained(0.0): _(
                "After your steps no variable has changed. Give the gradients to the optimizer."
            ),
            _trained(8, loss_factor=8): _("These are steps for the sum of the losses. Take their mean."),
            _trained(1 / 8): _(
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
    return hint


def _on_mesh(
    moved: list[list[bool]], make_step: Callable[[Any, Any], Any], values: Values, batches: Batches
) -> dict[str, Any] | None:
    """Returns what a reader's steps make of the model, if there are any; notes which variables have moved."""
    with on_devices() as (_tf, dtensor):
        mesh = dtensor.create_mesh(_STEP_MESH)
        model = _two_layers(lambda *entries: dtensor.to_layout(LayoutSpec(entries, _STEP_MESH), mesh))
        model.set_weights(values)
        optimizer = import_module("tf_keras").optimizers.SGD(_LEARNING_RATE, momentum=_MOMENTUM, mesh=mesh)
        step = answered(make_step(model, optimizer))
        if not callable(step):
            return None
        losses = []
        for features, labels in batches:
            inputs = dtensor.pack(features, LayoutSpec(["batch", UNSHARDED], _STEP_MESH), mesh)
            packed = dtensor.pack(labels, LayoutSpec(["batch"], _STEP_MESH), mesh)
            losses.append(_loss_of(step, inputs, packed))
            stepped = [dtensor.to_numpy(variable) for variable in model.trainable_variables]
            moved.append([not np.array_equal(*pair) for pair in zip(stepped, values, strict=True)])
        return {"losses": losses, "values": stepped}


def _loss_of(step: Callable[[Any, Any], Any], inputs: Any, labels: Any) -> Any:
    tf = start_tensorflow()
    try:
        return plain(answered(step(inputs, labels)))
    except tf.errors.UnimplementedError as error:
        if "got a regular tensor" not in str(error):
            raise
        raise CourseError(
            _("DTensor refuses a part of your step outside a compiled function."),
            allowed=_("a loss and gradients that are computed in a compiled function"),
            cure=_("Write `@tf.function` over the function that computes them."),
        ) from error


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
    with on_devices() as (tf, dtensor):
        mesh = dtensor.create_mesh(_MESH)
        layouts = answered(answer(mesh))
        if not isinstance(layouts, keras_layouts.LayoutMap):
            return _("Return the LayoutMap that you have filled.")
        by_pattern = keras_layouts.layouts_of(layouts)
        if dtensor.mesh_spec(layouts.get_default_mesh()) != _MESH:
            return _(
                "Use the `mesh` that `small_enough` gets, for the LayoutMap and for each layout. The lesson's"
                " own `layout` and `layout_map` use the lesson's mesh."
            )
        # This refuses in words what TensorFlow would stumble over.
        for name, whole in keras_layouts.names_of(_three_layers()).items():
            pattern = keras_layouts.pattern_of(name, by_pattern.keys())
            if pattern is not None:
                by_pattern[pattern].of(whole.shape)
        with layouts.scope():
            model = _three_layers()
        keras_layouts.require_matched(layouts, model)
        most = max(keras_layouts.bytes_on_devices(model.weights))
        if most > _MOST_BYTES:
            return _(
                "The most bytes that a device holds are {held}; it may hold {most}.",
                held=f"{most:,}",
                most=f"{_MOST_BYTES:,}",
            )
        rows = dtensor.pack(np.ones((8, 1_200), np.float32), LayoutSpec(["batch", UNSHARDED], _MESH), mesh)
        try:
            tf.function(model)(rows)
        except tf.errors.OpError as error:
            return _("The bytes are few enough, but the layers do not fit together.") + "\n" + fault(error)
    return None


def _three_layers() -> Any:
    dense, units = import_module("tf_keras").layers.Dense, {"first": 96, "second": 64, "logits": 2}
    return _sequential(1_200, *(dense(count, name=name) for name, count in units.items()))
