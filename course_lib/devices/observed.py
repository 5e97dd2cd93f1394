"""The collectives that TensorFlow really inserts into a function of DTensors, read from the graphs it ran.

`product` and `relayout` put them beside the prediction.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy.typing as npt

from course_lib.devices import dtensor
from course_lib.devices.combining import no_combining
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import device_kind, start_tensorflow
from course_lib.specs import communication
from course_lib.specs.collectives import Collective, Kind, require_right
from course_lib.specs.communication import Communication
from course_lib.specs.compared import Compared
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
_DTYPES = {4: "float32", 8: "float64"}
_MOST_VALUES = 7  # few enough that float32 has every sum of their products
_GROUP_KEY = 2  # the place of the group's key among the inputs of a collective


def collectives(
    function: Callable[..., Any], *arguments: Any, mesh: MeshSpec, combine: bool = False
) -> list[Collective]:
    """Returns the collectives in which one device takes part when `function` runs, in order.

    The function is compiled anew and runs once. The variables that it writes get their values back. What a
    loop repeats is there once.

    Args:
        function: a function of DTensors.
        arguments: what to call it with.
        mesh: the mesh that the DTensors are on.
        combine: whether TensorFlow may make one all-reduce of several, as it does if it is not told
            otherwise. It pads what it puts together.

    Raises:
        CourseError: a collective among devices that form no group of this mesh.
    """
    return result_and_collectives(function, arguments, mesh, combine=combine)[1]


def result_and_collectives(
    function: Callable[..., Any], arguments: Sequence[Any], mesh: MeshSpec, *, combine: bool = False
) -> tuple[Any, list[Collective]]:
    """Returns the result of a function, compiled anew, and its `collectives`."""
    with contextlib.nullcontext() if combine else no_combining():
        result, graphs = _result_and_graphs(function, arguments)
    found = [(graph, node) for graph in graphs for node in graph.node if node.op in _KINDS]
    return result, [
        _collective(node, {each.name: each for each in graph.node}, mesh)
        for graph, node in found
        if node.device == found[0][1].device  # all devices do the same
    ]


def product(left: Sharding, right: Sharding, wanted: LayoutSpec | None = None) -> Compared:
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


def relayout(source: Sharding, target: LayoutSpec) -> Compared:
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
) -> Compared:
    require_right(predicted.collectives, device_kind())
    layouts = [operand.layout for operand in predicted.operands]
    tensors = [dtensor.pack(value, layout) for value, layout in zip(values, layouts, strict=True)]
    result, seen = result_and_collectives(function, tensors, predicted.result.mesh)
    layout = dtensor.fetch_layout(result)
    same = layout.of(right.shape).compare(right, dtensor.unpack(result)).agrees
    return Compared(predicted, tuple(seen), layout, device_kind(), values_agree=same)


def _filled(sharding: Sharding) -> Array:
    """Returns a tensor, `[...] global`, of small whole numbers, so that no sum is rounded."""
    dtype = _DTYPES[sharding.element_bytes or 4]
    return (numbered_tensor(sharding.global_shape) % _MOST_VALUES).astype(dtype)


def _result_and_graphs(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Returns what a function returns, and the graphs that ran, as TensorFlow's optimizer left them."""
    compiled = tf.function(function)
    captured = compiled.get_concrete_function(*arguments).variables
    passed = [each for each in tf.nest.flatten(arguments) if isinstance(each, tf.Variable)]
    context.enable_run_metadata()
    try:
        context.async_wait()
        context.export_run_metadata()  # what still ran of others
        with _unchanged([*captured, *passed]):
            result = compiled(*arguments)
            context.async_wait()
            graphs = context.export_run_metadata().function_graphs
        return result, [each.post_optimization_graph for each in graphs]
    finally:
        context.disable_run_metadata()


@contextlib.contextmanager
def _unchanged(variables: Sequence[Any]) -> Iterator[None]:
    before = [variable.read_value() for variable in variables]
    try:
        yield
    finally:
        for variable, value in zip(variables, before, strict=True):
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
    raise CourseError(
        _("The mesh {mesh} lacks the groups of devices in which TensorFlow exchanges data.", mesh=mesh),
        allowed=_("the mesh of the DTensors"),
        cure=_("Give the mesh that the DTensors are on."),
    )
