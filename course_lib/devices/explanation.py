"""Predicted collectives of products and relayouts beside those that TensorFlow really inserts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from course_lib.devices import dtensor
from course_lib.devices.components import layout_of
from course_lib.devices.graphs import result_and_collectives
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import device_kind, start_tensorflow
from course_lib.specs import communication
from course_lib.specs.collectives import require_right
from course_lib.specs.communication import Communication
from course_lib.specs.components import Comparison
from course_lib.specs.explanation import Explanation
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.sharding import Sharding, numbered_tensor

tf = start_tensorflow()

Array = npt.NDArray[Any]

_DTYPES = {4: "float32", 8: "float64"}
_MOST_VALUES = 7  # few enough that float32 has every sum of their products


def explain(function: Any, *arguments: Any, wanted: Any = None) -> Explanation:
    """Returns the collectives that follow from the layouts beside those that TensorFlow runs; drawn.

    Args:
        function: `tf.matmul` of two matrices, or `dtensor.relayout` of a matrix to a layout.
        arguments: what to call it with.
        wanted: the layout in which the one reader of a product takes it.

    Raises:
        CourseError: another function, no DTensors, or what TensorFlow 2.21 runs wrongly.
    """
    rules: dict[Any, Callable[..., Explanation]] = {
        tf.matmul: product,
        tf.experimental.dtensor.relayout: relayout,
    }
    if function not in rules:
        raise CourseError(
            _("The course has no rules for this function."),
            allowed="tf.matmul, dtensor.relayout",
            cure=_("Take collectives: it shows what TensorFlow runs, for any function."),
        )
    return rules[function](*map(_as_spec, arguments), *([] if wanted is None else [_as_spec(wanted)]))


def _as_spec(given: Any) -> LayoutSpec | Sharding:
    if isinstance(given, tf.experimental.dtensor.Layout):
        return dtensor.layout_spec(given)
    return layout_of(given).of(given.shape, element_bytes=given.dtype.size)


def product(left: Sharding, right: Sharding, wanted: LayoutSpec | None = None) -> Explanation:
    """Returns the predicted communication of `A @ B` beside what TensorFlow runs. It draws itself.

    The factors are made, multiplied on the devices, and the product is compared with NumPy's. TensorFlow
    runs each all-reduce by itself here: otherwise it joins those that can run together.

    Args:
        left: `A`, of the shape `[rows, inner] global`.
        right: `B`, of the shape `[inner, columns] global`, on the same mesh.
        wanted: the layout that the one reader of the product gives it.

    Raises:
        CourseError: as `communication.product`; a mesh with more devices than there are; an all-to-all that
            TensorFlow runs wrongly.
    """
    predicted = communication.product(left, right, wanted)
    factors = [_filled(left), _filled(right)]

    def multiplied(*tensors: Any) -> Any:
        found = tf.matmul(*tensors)
        return found if wanted is None else _relayout(found, wanted)

    return _compared(predicted, multiplied, factors, factors[0] @ factors[1])


def relayout(source: Sharding, target: LayoutSpec) -> Explanation:
    """Returns the predicted communication of a change of layout beside what TensorFlow runs. It draws itself.

    The tensor is made on the devices, given the other layout, and then compared with what it was.

    Args:
        source: the tensor, a matrix.
        target: the layout that it gets.

    Raises:
        CourseError: as `product`.
    """
    predicted = communication.relayout(source, target)
    matrix = _filled(source)
    return _compared(predicted, lambda tensor: _relayout(tensor, target), [matrix], matrix)


def _relayout(tensor: Any, target: LayoutSpec) -> Any:
    return tf.experimental.dtensor.relayout(tensor, dtensor.to_layout(target))


def _compared(
    predicted: Communication, function: Callable[..., Any], values: Sequence[Array], right: Array
) -> Explanation:
    require_right(predicted.collectives, device_kind())
    layouts = [operand.layout for operand in predicted.operands]
    tensors = [dtensor.pack(value, layout) for value, layout in zip(values, layouts, strict=True)]
    result, seen = result_and_collectives(function, tensors, predicted.result.mesh)
    layout = dtensor.fetch_layout(result)
    same = Comparison(layout.of(right.shape), right, dtensor.unpack(result)).agrees
    return Explanation(predicted, tuple(seen), layout, device_kind(), values_agree=same)


def _filled(sharding: Sharding) -> Array:
    """Returns a tensor, `[...] global`, of small whole numbers, so that no sum is rounded."""
    dtype = _DTYPES[sharding.element_bytes or 4]
    return (numbered_tensor(sharding.global_shape) % _MOST_VALUES).astype(dtype)
