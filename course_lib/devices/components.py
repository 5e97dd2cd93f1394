"""Who holds what of TensorFlow's own objects: shown, compared with what should be, and sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from course_lib.devices import dtensor as real
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.components import Comparison, Components
from course_lib.specs.drawing import DrawsItself


def show(thing: Any, global_shape: Sequence[int] | None = None) -> DrawsItself:
    """Returns what a notebook draws of a mesh, of a layout with a shape, or of what devices hold of a tensor.

    Args:
        thing: a `dtensor.Mesh`, a `dtensor.Layout` (with `global_shape`), or a DTensor or DVariable.
        global_shape: the shape of the whole tensor that the layout is for.

    Raises:
        CourseError: something else, or a layout without a shape that fits it.
    """
    if isinstance(thing, real.tf.experimental.dtensor.Mesh):
        return real.mesh_spec(thing)
    if isinstance(thing, real.tf.experimental.dtensor.Layout):
        return real.layout_spec(thing).of(() if global_shape is None else global_shape)
    return Components.of(real.fetch_layout(thing), real.unpack(thing))


def compare(whole: npt.ArrayLike, tensor: Any) -> Comparison:
    """Returns what each device should hold of an array beside what it holds. It draws itself.

    Args:
        whole: the array, `[...] global`.
        tensor: the DTensor or DVariable that was made of it.

    Raises:
        CourseError: no DTensor, or another shape.
    """
    return Comparison(real.fetch_layout(tensor).of(tensor.shape), whole, real.unpack(tensor))


def shard(whole: npt.ArrayLike, layout: Any) -> Any:
    """Returns an array as a DTensor, having sent each device its own component and no more.

    Args:
        whole: the array on the host, `[...] global`.
        layout: the `dtensor.Layout` that the DTensor gets.

    Raises:
        CourseError: no layout, or one that does not fit the array.
    """
    if not isinstance(layout, real.tf.experimental.dtensor.Layout):
        raise CourseError(
            _("{given!r} is not a layout.", given=layout),
            allowed="dtensor.Layout",
            cure=_("Make one of a list with an entry for each axis: dtensor.Layout([...], mesh)."),
        )
    return real.pack(whole, layout)
