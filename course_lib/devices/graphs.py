"""The collectives that TensorFlow really inserts into a function of DTensors, read from the graphs it ran.

`explain` puts them beside the prediction.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from course_lib.devices import dtensor
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import device_kind, start_tensorflow
from course_lib.specs import communication
from course_lib.specs.collectives import Collective, Kind, require_right
from course_lib.specs.communication import Communication
from course_lib.specs.components import Comparison
from course_lib.specs.explanation import Explanation
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Sharding, numbered_tensor

tf = start_tensorflow()
# There is no public way to the graphs that ran. Imported first, TensorFlow would start with its log.
from tensorflow.python.eager import context  # noqa: E402

Array = npt.NDArray[Any]

_KINDS = {
    "CollectiveReduceV2": Kind.ALL_REDUCE,
    "CollectiveGatherV2": Kind.ALL_GATHER,
    "CollectiveReduceScatterV2": Kind.REDUCE_SCATTER,
    "CollectiveAllToAllV2": Kind.ALL_TO_ALL,
}
_DTYPES = {1: "int8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}
_MOST_VALUES = 7  # few enough that float32 has every sum of their products, and float16 those of hundreds
_GROUP_KEY = 2  # the place of the group's key among the inputs of a collective


def collectives(
    function: Callable[..., Any], *arguments: Any, mesh: MeshSpec | None = None, combine: bool = False
) -> list[Collective]:
    """Returns the collectives in which one device takes part when TensorFlow runs a function, in order.

    The function is compiled anew and runs once; the variables that it writes get their values back. What a
    loop repeats is there once.

    Args:
        function: a function of DTensors.
        arguments: what to call it with; among them, or in their variables, is a DTensor or DVariable.
        mesh: the mesh that the DTensors are on, where the arguments do not tell.
        combine: whether TensorFlow may join all-reduces, as it does if it is not told otherwise. It pads
            what it joins.

    Raises:
        CourseError: no DTensor among the arguments, and no mesh.
    """
    return result_and_collectives(function, arguments, mesh or _mesh_of(arguments), combine=combine)[1]


def explain(function: Any, *arguments: Any) -> Explanation:
    """Returns the collectives that follow from the layouts beside those that TensorFlow runs; drawn.

    Args:
        function: `tf.matmul` of two matrices, or `dtensor.relayout` of a matrix to a layout.
        arguments: what to call it with.

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
    return rules[function](*map(_as_spec, arguments))


def _as_spec(given: Any) -> LayoutSpec | Sharding:
    if isinstance(given, tf.experimental.dtensor.Layout):
        return dtensor.layout_spec(given)
    return dtensor.fetch_layout(given).of(given.shape, element_bytes=given.dtype.size)


def product(left: Sharding, right: Sharding, wanted: LayoutSpec | None = None) -> Explanation:
    """Returns the predicted communication of `x @ W` beside what TensorFlow runs. It draws itself.

    The factors are made, multiplied on the devices, and the product is compared with NumPy's. TensorFlow
    runs each all-reduce by itself here: otherwise it joins those that can run together.

    Args:
        left: `x`, of the shape `[rows, inner] global`.
        right: `W`, of the shape `[inner, columns] global`, on the same mesh.
        wanted: the layout that the one reader of the product gives it.

    Raises:
        CourseError: as `communication.product`; a mesh with more devices than there are; an all-to-all that
            TensorFlow runs wrongly.
    """
    predicted = communication.product(left, right, wanted)
    factors = [_filled(left), _filled(right)]

    def multiplied(*tensors: Any) -> Any:
        found = tf.matmul(*tensors)
        return found if wanted is None else tf.experimental.dtensor.relayout(found, dtensor.to_layout(wanted))

    return _compared(predicted, multiplied, factors, factors[0] @ factors[1])


def relayout(source: Sharding, target: LayoutSpec) -> Explanation:
    """Returns the predicted communication of a change of layout beside what TensorFlow runs. It draws itself.

    The matrix is made on the devices, given the other layout, and then compared with what it was.

    Raises:
        CourseError: as `product`.
    """
    predicted = communication.relayout(source, target)
    matrix = _filled(source)

    def laid_out(tensor: Any) -> Any:
        return tf.experimental.dtensor.relayout(tensor, dtensor.to_layout(target))

    return _compared(predicted, laid_out, [matrix], matrix)


def _compared(
    predicted: Communication, function: Callable[..., Any], values: Sequence[Array], right: Array
) -> Explanation:
    require_right(predicted.collectives, device_kind())
    layouts = [operand.layout for operand in predicted.operands]
    tensors = [dtensor.pack(value, layout) for value, layout in zip(values, layouts, strict=True)]
    result, seen = result_and_collectives(function, tensors, predicted.result.mesh)
    layout = dtensor.fetch_layout(result)
    same = Comparison(layout.of(right.shape), right, dtensor.unpack(result)).agrees
    return Explanation(predicted, tuple(seen), layout, values_agree=same)


def _filled(sharding: Sharding) -> Array:
    """Returns a tensor, `[...] global`, of small whole numbers, so that no sum is rounded."""
    dtype = _DTYPES[sharding.element_bytes or 4]
    return (numbered_tensor(sharding.global_shape) % _MOST_VALUES - _MOST_VALUES // 2).astype(dtype)


def _mesh_of(arguments: Sequence[Any]) -> MeshSpec:
    """Returns the mesh of the first DTensor among arguments, or among the variables of a module."""
    for each in tf.nest.flatten(list(arguments)):
        for tensor in each.variables if isinstance(each, tf.Module) else [each]:
            if tf.is_tensor(tensor) and tf.experimental.dtensor.is_dtensor(tensor):
                return dtensor.fetch_layout(tensor).mesh
    raise CourseError(
        _("No argument is laid out on a mesh."),
        allowed=_("at least one DTensor or DVariable among the arguments"),
        cure=_("Give the tensors to the function as arguments."),
    )


def result_and_collectives(
    function: Callable[..., Any], arguments: Sequence[Any], mesh: MeshSpec, *, combine: bool = False
) -> tuple[Any, list[Collective]]:
    """Returns the result of a function, compiled anew, and its `collectives`."""
    with contextlib.nullcontext() if combine else dtensor.no_combining():
        result, graphs = result_and_graphs(function, arguments)
    found = [(graph, node) for graph in graphs for node in graph.node if node.op in _KINDS]
    return result, [
        _collective(node, {each.name: each for each in graph.node}, mesh)
        for graph, node in found
        if node.device == found[0][1].device  # all devices do the same
    ]


def result_and_graphs(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Returns what a function returns, and the graphs that ran, as TensorFlow's optimizer left them."""
    compiled = tf.function(function)
    captured = compiled.get_concrete_function(*arguments).variables
    passed = [each for each in tf.nest.flatten(arguments) if isinstance(each, tf.Variable)]
    before = [(variable, variable.read_value()) for variable in (*captured, *passed)]
    context.enable_run_metadata()
    try:
        context.async_wait()
        context.export_run_metadata()  # what still ran of others
        result = compiled(*arguments)
        context.async_wait()
        graphs = context.export_run_metadata().function_graphs
        return result, [each.post_optimization_graph for each in graphs]
    finally:
        context.disable_run_metadata()
        for variable, value in before:
            variable.assign(value)


def _collective(node: Any, nodes: dict[str, Any], mesh: MeshSpec) -> Collective:
    (shape,) = node.attr["_output_shapes"].list.shape
    element_bytes = tf.as_dtype(node.attr["T"].type).size
    keys = _constant_by_device(node.input[_GROUP_KEY], nodes, mesh.size)
    return Collective(
        _KINDS[node.op],
        mesh,
        _mesh_dims(keys, mesh),
        math.prod(axis.size for axis in shape.dim) * element_bytes,
    )


def _constant_by_device(name: str, nodes: dict[str, Any], num_devices: int) -> list[int] | None:
    """Returns the first constant with an entry for each device on the way to an input, or None."""
    node = nodes.get(name.split(":", maxsplit=1)[0].lstrip("^"))
    if node is None:
        return None
    if node.op == "Const":
        values = tf.make_ndarray(node.attr["value"].tensor).ravel().tolist()
        return values if len(values) == num_devices else None
    found = (_constant_by_device(each, nodes, num_devices) for each in node.input)
    return next((values for values in found if values is not None), None)


def _mesh_dims(keys: Sequence[int] | None, mesh: MeshSpec) -> tuple[str, ...]:
    """Returns the mesh dimensions along which devices with equal keys differ."""
    groups: dict[int, list[int]] = {}
    for device_id, key in enumerate(keys or ()):
        groups.setdefault(key, []).append(device_id)
    together = {tuple(group) for group in groups.values()}
    for count in range(1, len(mesh.names) + 1):
        for names in itertools.combinations(mesh.names, count):
            if {*mesh.groups(*names)} == together:
                return names
    raise ValueError(f"the mesh {mesh} lacks the groups of devices in which TensorFlow exchanges data")
