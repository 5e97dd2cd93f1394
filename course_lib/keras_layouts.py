"""Keras 2 models whose variables lie on a mesh: made by patterns of names, and read back.

`tf_keras` is Keras 2 as a package of its own. It stands beside Keras 3, which `tf.keras` is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tf_keras

from course_lib.dtensor import fetch_layout, layout_spec, mesh_spec, unpack
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.layout_patterns import LayoutPatterns
from course_lib.specs.sharding import Sharding

LayoutMap = tf_keras.dtensor.experimental.LayoutMap


class WatchedLayoutMap(LayoutMap):  # type: ignore[misc]
    """A LayoutMap that keeps the names it is asked for, which are written down nowhere else.

    Attributes:
        asked: the names, once each, in the order in which they were asked for.
    """

    def __init__(self, mesh: Any) -> None:
        super().__init__(mesh)
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> Any:
        if name and name not in self.asked:  # state of random numbers is asked for without a name
            self.asked.append(name)
        return super().__getitem__(name)


def made_with(layout_map: LayoutMap, make: Callable[[], Any], inputs: Any = None) -> Any:
    """Returns the model that `make` makes, its variables laid out by the map.

    Args:
        layout_map: layouts by patterns of names.
        make: makes the model.
        inputs: what the model is called with, for one that has its variables only then.

    Raises:
        CourseError: a pattern gives no variable its layout. tf_keras accepts that in silence.
    """
    watched = WatchedLayoutMap(layout_map.get_default_mesh())
    watched.update(layout_map)
    with watched.scope():
        model = make()
    if inputs is not None:
        model(inputs)
    require_matched(watched)
    return model


def require_matched(watched: WatchedLayoutMap) -> None:
    """Checks that each pattern gave at least one of the variables asked for its layout.

    Raises:
        CourseError: one gave none, or a layout is of another mesh than the map.
    """
    asked = list(watched.asked)  # reading the patterns asks, too
    patterns_of(watched).require_matched(asked)


def patterns_of(layout_map: LayoutMap) -> LayoutPatterns:
    """Returns what a LayoutMap says, to be looked at and checked without TensorFlow.

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
    return LayoutPatterns(
        {pattern: layout_spec(layout_map[pattern]) for pattern in layout_map}, mesh_spec(mesh)
    )


def shardings(variables: Iterable[Any]) -> list[Sharding]:
    """Returns who holds what of each variable, as its real layout says."""
    return [
        fetch_layout(variable).of(variable.shape, element_bytes=variable.dtype.size) for variable in variables
    ]


def bytes_on_devices(variables: Iterable[Any]) -> list[int]:
    """Returns how many bytes of these variables each device holds, counted on the real components."""
    held = zip(*([part.nbytes for part in unpack(variable)] for variable in variables), strict=True)
    return [sum(each) for each in held]
