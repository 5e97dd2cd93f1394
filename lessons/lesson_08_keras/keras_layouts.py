"""Keras 2 models of `tf_keras` on a mesh: their layouts by patterns of names, checked, and read back.

`tf_keras` is Keras 2 as a package of its own. It stands beside Keras 3, which `tf.keras` is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from importlib import import_module
from typing import Any

import tf_keras

from course_lib.dtensor import fetch_layout, layout_spec, mesh_spec, tf, unpack
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.sharding import Sharding

LayoutMap: Any = tf_keras.dtensor.experimental.LayoutMap

_Functional = import_module("tf_keras.src.engine.functional").Functional  # a Sequential is one, too
_CACHES = {"_self_tracked_trackables", "_trainable_weights", "_non_trainable_weights"}


def require_matched(layout_map: Any, model: Any) -> None:
    """Checks that each pattern gives at least one variable of the model its layout.

    Raises:
        CourseError: one gives none, which tf_keras accepts in silence; the message names it.
    """
    names, patterns = names_of(model), list(layout_map)
    used = {pattern_of(name, patterns) for name in names}
    unmatched = [pattern for pattern in patterns if pattern not in used]
    if unmatched:
        raise CourseError(
            _("No variable gets its layout from {patterns}.", patterns=_(", ").join(map(repr, unmatched))),
            allowed=_("patterns that fit the beginning of a name: {names}", names=_(", ").join(names)),
            cure=_("Correct the pattern, take it out, or put it before the one that takes its place."),
        )


def pattern_of(name: str, patterns: Collection[str]) -> str | None:
    """Returns the pattern that a variable of this name gets its layout from; None where none fits.

    A pattern that is the name itself goes first. Otherwise the patterns are tried in their order, and the
    first one counts that fits the *beginning* of the name.

    Source: https://github.com/keras-team/tf-keras/blob/v2.21.0/tf_keras/src/dtensor/layout_map.py
    """
    if name in patterns:
        return name
    return next((pattern for pattern in patterns if re.match(pattern, name)), None)


def layouts_of(layout_map: Any) -> dict[str, LayoutSpec]:
    """Returns the layouts of a `LayoutMap` by pattern.

    Raises:
        CourseError: the map has no mesh, or a layout of another one.
    """
    if layout_map.get_default_mesh() is None:
        raise CourseError(
            _("The LayoutMap has no mesh."),
            allowed=_("a mesh for the variables that no pattern fits: they are whole on all of its devices"),
            cure=_("Write `LayoutMap(mesh=mesh)`."),
        )
    mesh = mesh_spec(layout_map.get_default_mesh())
    layouts = {pattern: layout_spec(layout_map[pattern]) for pattern in layout_map}
    for pattern, layout in layouts.items():
        if layout.mesh != mesh:
            raise CourseError(
                _("The pattern {pattern!r} has {layout!r}.", pattern=pattern, layout=layout),
                allowed=_("a LayoutSpec on the mesh {mesh}", mesh=mesh),
                cure=_("Write for example LayoutSpec([UNSHARDED, name], mesh)."),
            )
    return layouts


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
