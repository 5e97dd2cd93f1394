"""Keras 2 models whose variables lie on a mesh: made by patterns of names, checked, and read back.

`tf_keras` is Keras 2 as a package of its own. It stands beside Keras 3, which `tf.keras` is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import tf_keras

from course_lib.dtensor import fetch_layout, layout_spec, mesh_spec, tf, unpack
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.sharding import Sharding
from lessons.lesson_08_keras.layout_patterns import LayoutPatterns

LayoutMap: Any = tf_keras.dtensor.experimental.LayoutMap

_Functional = import_module("tf_keras.src.engine.functional").Functional  # a Sequential is one, too
_CACHES = {"_self_tracked_trackables", "_trainable_weights", "_non_trainable_weights"}


def made_with(layout_map: Any, make: Callable[[], Any], inputs: Any = None) -> Any:
    """Returns the model that `make` makes, its variables laid out by the map.

    Args:
        layout_map: a `LayoutMap`, layouts by patterns of names.
        make: makes the model.
        inputs: what the model is called with, for one that has its variables only then.

    Raises:
        CourseError: as `require_matched`.
    """
    with layout_map.scope():
        model = make()
    if inputs is not None:
        model(inputs)
    require_matched(layout_map, model)
    return model


def require_matched(layout_map: Any, model: Any) -> None:
    """Checks that each pattern gives at least one variable of the model its layout.

    Raises:
        CourseError: one gives none, which tf_keras accepts in silence; or as `patterns_of`.
    """
    patterns_of(layout_map).require_matched(names_of(model))


def patterns_of(layout_map: Any) -> LayoutPatterns:
    """Returns what a `LayoutMap` says, to be looked at and checked without TensorFlow.

    Raises:
        CourseError: the map has no mesh, or a layout of another one.
    """
    mesh = layout_map.get_default_mesh()
    if mesh is None:
        raise CourseError(
            _("The LayoutMap has no mesh."),
            allowed=_("a mesh for the variables that no pattern fits: they are whole on all of its devices"),
            cure=_("Write `LayoutMap(mesh=mesh)`."),
        )
    layouts = {pattern: layout_spec(layout_map[pattern]) for pattern in layout_map}
    return LayoutPatterns(layouts, mesh_spec(mesh))


def names_of(model: Any) -> dict[str, Any]:
    """Returns the variables of a model by the names under which tf_keras looks for their layouts.

    In sequential and functional models these are the layer's name and the attribute, such as
    "hidden.kernel"; in a class of one's own they are the path of attributes.

    Source: https://github.com/keras-team/tf-keras/blob/v2.21.0/tf_keras/src/dtensor/layout_map.py
    """
    if not isinstance(model, _Functional):
        return _by_path(model)
    names: dict[str, Any] = {}
    for layer in model.layers:
        own = names_of(layer) if isinstance(layer, _Functional) else _by_path(layer, f"{layer.name}.")
        names |= own
    return names


def shardings(variables: Iterable[Any]) -> list[Sharding]:
    """Returns who holds what of each variable, as its real layout says."""
    return [
        fetch_layout(variable).of(variable.shape, element_bytes=variable.dtype.size) for variable in variables
    ]


def bytes_on_devices(variables: Iterable[Any]) -> list[int]:
    """Returns how many bytes of these variables each device holds, counted on the real components."""
    held = zip(*([part.nbytes for part in unpack(variable)] for variable in variables), strict=True)
    return [sum(each) for each in held]


def _by_path(owner: Any, before: str = "") -> dict[str, Any]:
    """Returns the variables of an object by the paths of attributes that lead to them."""
    found = owner._flatten(predicate=lambda each: isinstance(each, tf.Variable), with_path=True)
    return {
        before + ".".join(map(str, path)): variable for path, variable in found if _CACHES.isdisjoint(path)
    }
