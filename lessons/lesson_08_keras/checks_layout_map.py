"""Exercise 08-layout-map: layouts by patterns of names under which no device holds more than it may."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from course_lib.exercises.answers import answered
from course_lib.exercises.checks import exercise
from course_lib.exercises.faults import fault
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _, join_sentences
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

MESH = MeshSpec([("batch", 2), ("model", 4)])
UNITS = {"first": 96, "second": 64, "logits": 2}
FEATURES, ROWS, MOST_BYTES = 1_200, 8, 125_000
Make = Callable[[Any], Any]

_RIGHT = {
    "first.kernel": [UNSHARDED, "model"],
    "first.bias": ["model"],
    "second.kernel": ["model", UNSHARDED],
}


def _map_of(patterns: dict[str, list[str]]) -> Make:
    """Returns the answer with these entries by pattern."""

    def layout_map(mesh: Any) -> Any:
        tf_keras, dtensor = import_module("tf_keras"), start_tensorflow().experimental.dtensor
        layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
        for pattern, entries in patterns.items():
            layouts[pattern] = dtensor.Layout(entries, mesh)
        return layouts

    return layout_map


def _on_another_mesh(mesh: Any) -> Any:
    """Returns the right patterns on the mesh of the lesson: what its own `layout_map` makes."""
    dtensor = import_module("course_lib.dtensor")
    return _map_of(_RIGHT)(dtensor.create_mesh(MeshSpec([("batch", 4), ("model", 2)])))


def _with_layouts_of_another_mesh(mesh: Any) -> Any:
    tf_keras = import_module("tf_keras")
    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    layouts.update(_on_another_mesh(mesh))
    return layouts


def _without_a_mesh(mesh: Any) -> Any:
    tf_keras = import_module("tf_keras")
    layouts = tf_keras.dtensor.experimental.LayoutMap()
    layouts.update(_map_of(_RIGHT)(mesh))
    return layouts


@exercise(
    "08-layout-map",
    right=_map_of(_RIGHT),
    also=[
        _map_of({"first.*kernel": [UNSHARDED, "model"], "second.*kernel": [UNSHARDED, "model"]}),
        _map_of({"(first|second).kernel": [UNSHARDED, "model"], ".*bias": [UNSHARDED]}),
        _map_of({"first.kernel": ["batch", "model"], "second.kernel": ["model", UNSHARDED]}),
    ],
    wrong=[
        (_map_of({}), "486,536"),
        (_map_of({"first.kernel": [UNSHARDED, "model"]}), "`second.kernel`"),
        (_map_of({"second.kernel": ["model", UNSHARDED]}), "`first.kernel`"),
        (_map_of({**_RIGHT, "frist.bias": ["model"]}), "'frist.bias'"),
        (_map_of({**_RIGHT, "kernel": ["model", UNSHARDED]}), "'kernel'"),
        (_map_of({"first": [UNSHARDED, "model"], "second.kernel": ["model", UNSHARDED]}), "'first.bias'"),
        (
            _map_of({**_RIGHT, "first.kernel": ["batch", "model"], "second.kernel": ["batch", UNSHARDED]}),
            "Contracting dimension",
        ),
        (_without_a_mesh, "mesh=mesh"),
        (_on_another_mesh, "`mesh` that `small_enough` gets"),
        (_with_layouts_of_another_mesh, "`mesh` that `small_enough` gets"),
        (_map_of({"(first|second).kernel": ["batch", UNSHARDED]}), "`first.kernel`"),
        (lambda mesh: _RIGHT, "LayoutMap"),
        ({"first.kernel": ["model"]}, "function"),
    ],
    on_devices=True,
)
def layout_map(answer: Make) -> str | None:
    """A LayoutMap for a model of three dense layers, judged by the bytes of real components."""
    with on_devices() as (_tf, dtensor):
        mesh = dtensor.create_mesh(MESH)
        given = answered(answer(mesh))
        keras_layouts = import_module("lessons.lesson_08_keras.keras_layouts")
        if not isinstance(given, keras_layouts.LayoutMap):
            return _("Return the LayoutMap that you have filled.")
        if not _is_on(MESH, given, dtensor):
            return _(
                "Use the `mesh` that `small_enough` gets, for the LayoutMap and for each layout. The lesson's"
                " own `layout` and `layout_map` use the lesson's mesh."
            )
        keras_layouts.patterns_of(given).of(shapes())  # refuses here what TensorFlow would stumble over
        model = keras_layouts.made_with(given, _model)
        held = keras_layouts.bytes_on_devices(model.weights)
        if max(held) > MOST_BYTES:
            return _too_many(model, max(held), keras_layouts)
        return _not_callable(model, dtensor, mesh)


def _is_on(spec: MeshSpec, given: Any, dtensor: Any) -> bool:
    """Returns whether all meshes of a LayoutMap are that one; one without a mesh is refused elsewhere."""
    meshes = [given.get_default_mesh(), *(given[pattern].mesh for pattern in given)]
    return all(mesh is None or dtensor.mesh_spec(mesh) == spec for mesh in meshes)


def shapes() -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the model's variables by the names that a LayoutMap is asked for."""
    lengths = [FEATURES, *UNITS.values()]
    return {
        f"{layer}.{variable}": (before, units) if variable == "kernel" else (units,)
        for before, (layer, units) in zip(lengths, UNITS.items(), strict=False)
        for variable in ("kernel", "bias")
    }


def _too_many(model: Any, held: int, keras_layouts: Any) -> str:
    too_many = _(
        "The most bytes that a device holds are {held}; it may hold {most}.",
        held=f"{held:,}",
        most=f"{MOST_BYTES:,}",
    )
    shardings = dict(zip(shapes(), keras_layouts.shardings(model.weights), strict=True))
    parts = MESH.dim_size("model")
    coarse = {
        name: math.prod(each.global_shape) / len(each.blocks)
        for name, each in shardings.items()
        if len(each.blocks) < parts
    }
    if not coarse:
        return too_many
    name = max(coarse, key=coarse.__getitem__)
    hint = _(
        "Look at `{name}`: it is whole on each device, or cut in fewer than {parts}.",
        name=name,
        parts=parts,
    )
    return join_sentences([too_many, hint])


def _not_callable(model: Any, dtensor: Any, mesh: Any) -> str | None:
    """Returns the error that calling the model on a batch ends with; None where it gives logits."""
    tf = start_tensorflow()
    rows = dtensor.pack(np.ones((ROWS, FEATURES), np.float32), LayoutSpec(["batch", UNSHARDED], MESH), mesh)
    try:
        tf.function(model)(rows)
    except tf.errors.OpError as error:
        return _("The bytes are few enough, but the layers do not fit together.") + "\n" + fault(error)
    return None


def _model() -> Any:
    tf_keras = import_module("tf_keras")
    tf_keras.utils.set_random_seed(0)
    layers = [tf_keras.layers.Dense(units, name=name) for name, units in UNITS.items()]
    return tf_keras.Sequential([tf_keras.Input((FEATURES,)), *layers])
