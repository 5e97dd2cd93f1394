"""What the course shows of TensorFlow's own objects: who holds what, and what devices send each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from course_lib.devices import dtensor as real
from course_lib.devices import observed
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.collectives import Collective
from course_lib.specs.compared import Compared
from course_lib.specs.components import Comparison
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.sharding import Sharding

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402


def show(thing: Any, global_shape: Sequence[int] | None = None) -> DrawsItself:
    """Returns what a notebook draws of a mesh, of a layout with a shape, or of what devices hold of a tensor.

    Args:
        thing: a `dtensor.Mesh`, a `dtensor.Layout` (with `global_shape`), or a DTensor or DVariable.
        global_shape: the shape of the whole tensor that the layout is for.

    Raises:
        CourseError: something else, or a layout without a shape that fits it.
    """
    if isinstance(thing, dtensor.Mesh):
        return real.mesh_spec(thing)
    if isinstance(thing, dtensor.Layout):
        return real.layout_spec(thing).of(() if global_shape is None else global_shape)
    return layout_of(thing).observed(real.unpack(thing))


def compare(whole: npt.ArrayLike, tensor: Any) -> Comparison:
    """Returns what each device should hold of an array beside what it holds. It draws itself.

    Args:
        whole: the array, `[...] global`.
        tensor: the DTensor or DVariable that was made of it.

    Raises:
        CourseError: no DTensor, or another shape.
    """
    return layout_of(tensor).of(tensor.shape).compare(whole, real.unpack(tensor))


def shard(whole: npt.ArrayLike, layout: Any) -> Any:
    """Returns an array as a DTensor, having sent each device its own component and no more.

    Args:
        whole: the array on the host, `[...] global`.
        layout: the `dtensor.Layout` that the DTensor gets.

    Raises:
        CourseError: no layout, or one that does not fit the array.
    """
    if not isinstance(layout, dtensor.Layout):
        raise CourseError(
            _("{given!r} is not a layout.", given=layout),
            allowed="dtensor.Layout",
            cure=_("Make one of a list with an entry for each axis: dtensor.Layout([...], mesh)."),
        )
    return real.pack(whole, layout)


def collectives(function: Callable[..., Any], *arguments: Any, combine: bool = False) -> list[Collective]:
    """Returns the collectives in which one device takes part when TensorFlow runs a function, in order.

    The function is compiled anew and runs once; the variables that it writes get their values back. What a
    loop repeats is there once.

    Args:
        function: a function of DTensors.
        arguments: what to call it with; among them, or in their variables, is a DTensor or DVariable.
        combine: whether TensorFlow may join all-reduces, as it does if it is not told otherwise. It pads
            what it joins.

    Raises:
        CourseError: no DTensor among the arguments.
    """
    return observed.collectives(function, *arguments, mesh=_mesh_of(arguments), combine=combine)


def explain(function: Any, *arguments: Any, wanted: Any = None) -> Compared:
    """Returns the collectives that follow from the layouts beside those that TensorFlow runs; drawn.

    Args:
        function: `tf.matmul` of two matrices, or `dtensor.relayout` of a matrix to a layout.
        arguments: what to call it with.
        wanted: the layout in which the one reader of a product takes it.

    Raises:
        CourseError: another function, no DTensors, or what TensorFlow 2.21 runs wrongly.
    """
    rules: dict[Any, Callable[..., Compared]] = {
        tf.matmul: observed.product,
        dtensor.relayout: observed.relayout,
    }
    if function not in rules:
        raise CourseError(
            _("The course has no rules for this function."),
            allowed="tf.matmul, dtensor.relayout",
            cure=_("Take collectives: it shows what TensorFlow runs, for any function."),
        )
    layouts = [real.layout_spec(each) for each in (*arguments, wanted) if isinstance(each, dtensor.Layout)]
    tensors = [_sharding(each) for each in arguments if not isinstance(each, dtensor.Layout)]
    return rules[function](*tensors, *layouts)


def _sharding(tensor: Any) -> Sharding:
    return layout_of(tensor).of(tensor.shape, element_bytes=tensor.dtype.size)


def layout_of(tensor: Any) -> LayoutSpec:
    """Returns the layout of a DTensor or DVariable.

    Raises:
        CourseError: it is none.
    """
    try:
        return real.fetch_layout(tensor)
    except (AttributeError, TypeError, ValueError, tf.errors.InvalidArgumentError):
        raise CourseError(
            _("{given} is not laid out on a mesh.", given=type(tensor).__name__),
            allowed=_("a DTensor or a DVariable"),
            cure=_("Make one with dtensor.pack or dtensor.copy_to_mesh."),
        ) from None


def _mesh_of(arguments: Sequence[Any]) -> Any:
    """Returns the mesh of the first DTensor among arguments, or among the variables of a module."""
    for each in tf.nest.flatten(list(arguments)):
        for tensor in each.variables if isinstance(each, tf.Module) else [each]:
            if tf.is_tensor(tensor) and dtensor.is_dtensor(tensor):
                return real.fetch_layout(tensor).mesh
    raise CourseError(
        _("No argument is laid out on a mesh."),
        allowed=_("at least one DTensor or DVariable among the arguments"),
        cure=_("Give the tensors to the function as arguments."),
    )
