"""The collectives that TensorFlow really inserts into a function of DTensors, read from the graphs it ran."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.python.eager import context  # there is no public way to the graphs that ran

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


def collectives(function: Callable[..., Any], *arguments: Any, mesh: MeshSpec) -> list[Collective]:
    """Returns the collectives in which device 0 takes part when `function` runs, in order.

    The function is compiled anew and runs once. The variables that it writes get their values back.

    Args:
        function: a function of DTensors.
        arguments: what to call it with.
        mesh: the mesh that the DTensors are on.

    Raises:
        CourseError: a collective among devices that form no group of this mesh.
    """
    compiled = tf.function(function)
    with _unchanged(compiled.get_concrete_function(*arguments).variables):
        graphs = _graphs_of(lambda: compiled(*arguments))
    return [
        _collective(node, {each.name: each for each in graph.node}, mesh)
        for graph in graphs
        for node in graph.node
        if node.op in _KINDS and node.device.endswith(":0")
    ]


def _graphs_of(run: Callable[[], Any]) -> list[Any]:
    """Returns the graphs that TensorFlow runs during a call, as its optimizer left them."""
    context.enable_run_metadata()
    try:
        context.async_wait()
        context.export_run_metadata()  # what still ran of others
        run()
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
    keys = _constant_by_device(node.input[_GROUP_KEY], nodes, mesh.size) or range(mesh.size)
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


def _mesh_dims(keys: Sequence[int], mesh: MeshSpec) -> tuple[str, ...]:
    """Returns the mesh dimensions along which devices with equal keys differ."""
    groups: dict[int, list[int]] = {}
    for device_id, key in enumerate(keys):
        groups.setdefault(key, []).append(device_id)
    together = {tuple(group) for group in groups.values()}
    for count in range(1, len(mesh.names) + 1):
        for names in itertools.combinations(mesh.names, count):
            if {*mesh.groups(*names)} == together:
                return names
    raise CourseError(
        _("TensorFlow exchanges data among the devices {groups}.", groups=sorted(together)),
        allowed=_("groups along the dimensions of the mesh {mesh}", mesh=mesh),
        cure=_("Give the mesh that the DTensors are on."),
    )
