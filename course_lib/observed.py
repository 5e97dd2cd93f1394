"""The collectives that TensorFlow really inserts into a function of DTensors, read from the graphs it ran."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.python.eager import context  # there is no public way to the graphs that ran

from course_lib.combining import no_combining
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.mesh import MeshSpec

tf = start_tensorflow()

_KINDS = {
    "CollectiveReduceV2": Kind.ALL_REDUCE,
    "CollectiveGatherV2": Kind.ALL_GATHER,
    "CollectiveReduceScatterV2": Kind.REDUCE_SCATTER,
    "CollectiveAllToAllV2": Kind.ALL_TO_ALL,
}
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
    with contextlib.nullcontext() if combine else no_combining():
        graphs = _graphs_of(function, arguments)
    found = [(graph, node) for graph in graphs for node in graph.node if node.op in _KINDS]
    return [
        _collective(node, {each.name: each for each in graph.node}, mesh)
        for graph, node in found
        if node.device == found[0][1].device  # all devices do the same
    ]


def _graphs_of(function: Callable[..., Any], arguments: Sequence[Any]) -> list[Any]:
    """Returns the graphs that TensorFlow runs during a call, as its optimizer left them."""
    compiled = tf.function(function)
    variables = compiled.get_concrete_function(*arguments).variables
    context.enable_run_metadata()
    try:
        context.async_wait()
        context.export_run_metadata()  # what still ran of others
        with _unchanged(variables):
            compiled(*arguments)
            context.async_wait()
            return [each.post_optimization_graph for each in context.export_run_metadata().function_graphs]
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
