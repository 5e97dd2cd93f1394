"""The only place where specs become real DTensor objects, and real tensors become specs and arrays again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.aborts import explaining_aborts
from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _
from course_lib.runtime import device_kind, num_devices, start_tensorflow
from course_lib.specs import communication
from course_lib.specs.collectives import MOST_CPUS_IN_AN_ALL_TO_ALL, require_right
from course_lib.specs.components import same_values
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

Array = npt.NDArray[Any]
_MOST_AXES_DIRECTLY = 2


def create_mesh(mesh: MeshSpec) -> Any:
    """Returns the real `dtensor.Mesh` of `mesh`, on the first devices of the kind that `setup` was given.

    In a cluster (`dtensor.num_clients() > 1`) the first devices are those of process 0, and so on; every
    process makes the same mesh, and holds the components of its own devices only.

    Raises:
        CourseError: the mesh has more places than there are devices. In a cluster: a mesh that does not have
            all devices of all processes.
    """
    kind = device_kind()
    if dtensor.num_clients() > 1:
        mesh.require_size(dtensor.num_clients() * num_devices())
        return dtensor.create_distributed_mesh(list(mesh.dims), device_type=kind)
    last = whole_number(
        mesh.size - 1,
        _("There is no device {kind}:{device_id}.", kind=kind, device_id=mesh.size - 1),
        most=num_devices() - 1,
        cure=_("Use fewer devices, or ask for more in setup(devices=...) and restart the kernel."),
    )
    return dtensor.create_mesh(
        list(mesh.dims), devices=[f"{kind}:{device_id}" for device_id in range(last + 1)]
    )


def to_layout(layout: LayoutSpec, mesh: Any | None = None) -> Any:
    """Returns the real `dtensor.Layout` of `layout`.

    Args:
        layout: the specification. A real layout is taken too, here and wherever this module takes one.
        mesh: the real mesh to put it on, with the dimensions of `layout.mesh`. By default the mesh of a real
            layout, and of a specification `create_mesh(layout.mesh)`.

    Raises:
        CourseError: the real mesh has other dimensions, or has them in another order.
    """
    return _both(layout, mesh)[1]


def mesh_spec(mesh: Any) -> MeshSpec:
    """Returns the specification of a real mesh."""
    return MeshSpec((name, mesh.dim_size(name)) for name in mesh.dim_names)


def layout_spec(layout: Any) -> LayoutSpec:
    """Returns the specification of a real layout."""
    return LayoutSpec(layout.sharding_specs, mesh_spec(layout.mesh))


def split(value: npt.ArrayLike, layout: LayoutSpec) -> list[Array]:
    """Returns the component of each device, in the order of the devices.

    Args:
        value: the whole tensor, `[...] global`.
        layout: how it is to be split.

    Returns:
        One array `[...] local` a device.

    Raises:
        CourseError: the layout does not fit the tensor.
    """
    return layout.of(np.shape(value)).split(value)


@explaining_aborts()
def pack(value: npt.ArrayLike, layout: LayoutSpec, mesh: Any | None = None) -> Any:
    """Returns `value` as a DTensor, having sent each device only its own component.

    Args:
        value: the whole tensor on the host, `[...] global`.
        layout: how it is to be split.
        mesh: the real mesh to put it on; by default that of `create_mesh(layout.mesh)`.

    Raises:
        CourseError: the layout does not fit the tensor, or the real mesh the layout.
    """
    spec, real = _both(layout, mesh)
    sent: dict[tuple[int, ...], Any] = {}  # devices with equal blocks share one tensor on the host
    for device_id, component in enumerate(split(value, spec)):
        sent.setdefault(spec.block(device_id), component)
    own = real.mesh.local_device_ids()  # all of them, but in a cluster
    tensors = {block: tf.constant(sent[block]) for block in map(spec.block, own)}
    return dtensor.pack([tensors[spec.block(device_id)] for device_id in own], real)


@explaining_aborts()
def pack_components(components: Sequence[npt.ArrayLike], layout: LayoutSpec, mesh: Any | None = None) -> Any:
    """Returns one DTensor made of a component for each device.

    Args:
        components: `[...] local` each, one a device, in the order of the devices.
        layout: how the whole tensor is split.
        mesh: the real mesh to put it on; by default that of `create_mesh(layout.mesh)`.

    Raises:
        CourseError: another number of components than devices (none at all would end the process inside
            TensorFlow), components of unlike shapes, replicas that differ, or a real mesh that is not that
            of the layout.
    """
    spec, real = _both(layout, mesh)
    arrays = [np.asarray(component) for component in components]
    _check_components(arrays, spec)
    return dtensor.pack([tf.constant(array) for array in arrays], real)


@explaining_aborts()
def relayout(tensor: Any, layout: LayoutSpec, mesh: Any | None = None) -> Any:
    """Returns a DTensor of the same values in another layout, also inside a `tf.function`.

    TensorFlow 2.21 can return wrong values in silence. With three axes or more, from `[r, p, unsharded]` to
    `[q, unsharded, p]`, it moves `p` and forgets the other axis; an all-to-all among 12 CPUs or more mixes up
    their data. So tensors of three axes go through the unsharded layout, in which every device has all of
    it: that sends more than other ways do, but is right. Matrices go directly where their layout says that
    no such all-to-all is needed; a function that is being traced does not know it, and goes the safe way
    where the target is split among so many.

    Args:
        tensor: a DTensor.
        layout: the layout to give it.
        mesh: the real mesh that `tensor` is on; by default that of `create_mesh(layout.mesh)`.

    Raises:
        CourseError: the layout does not fit the tensor, the real mesh the layout, or a matrix would take an
            all-to-all among 12 CPUs or more.

    Source: https://www.tensorflow.org/api_docs/python/tf/experimental/dtensor/relayout.
    """
    spec, real = _both(layout, mesh)
    spec.local_shape(tensor.shape)
    if spec.num_axes <= _MOST_AXES_DIRECTLY and not tf.inside_function():
        source = fetch_layout(tensor).of(tensor.shape)
        require_right(communication.relayout(source, spec).collectives, device_kind())
    elif spec.num_axes > _MOST_AXES_DIRECTLY or _may_mix_up(spec):
        whole = LayoutSpec.replicated(spec.mesh, spec.num_axes)
        tensor = dtensor.relayout(tensor, to_layout(whole, real.mesh))
    return dtensor.relayout(tensor, real)


@explaining_aborts()
def unpack(tensor: Any) -> list[Array]:
    """Returns the real component of each device, `[...] local` each, in the order of the devices.

    In a cluster those of this process's devices.
    """
    return [component.numpy() for component in dtensor.unpack(_read(tensor))]


def fetch_layout(tensor: Any) -> LayoutSpec:
    """Returns the layout that a real DTensor or DVariable has."""
    return layout_spec(dtensor.fetch_layout(_read(tensor)))


def to_numpy(tensor: Any) -> Array:
    """Returns the whole tensor, `[...] global`, put together from the components on the host.

    In a cluster every process has to call this, since the devices send each other their components for it.
    """
    layout = fetch_layout(tensor)
    if dtensor.num_clients() == 1:
        return layout.observed(unpack(tensor)).whole
    if layout.sharded_dims:
        tensor = relayout(_read(tensor), LayoutSpec.replicated(layout.mesh, layout.num_axes))
    return unpack(tensor)[0]


def _both(layout: Any, mesh: Any | None) -> tuple[LayoutSpec, Any]:
    """Returns a layout as a specification and as a real one; either may be given."""
    if isinstance(layout, dtensor.Layout):
        spec, mesh = layout_spec(layout), layout.mesh if mesh is None else mesh
    else:
        spec, mesh = layout, create_mesh(layout.mesh) if mesh is None else mesh
    given = mesh_spec(mesh)
    if given != spec.mesh:
        raise CourseError(
            _("The real mesh is {given}; the layout has the mesh {mesh}.", given=given, mesh=spec.mesh),
            allowed=_("the same names and sizes in the same order"),
            cure=_("Write the layout for the mesh that you give. Otherwise parts are mixed up or lost."),
        )
    return spec, dtensor.Layout(list(spec.sharding_specs), mesh)


def _may_mix_up(target: LayoutSpec) -> bool:
    """Returns whether a relayout to this layout may take an all-to-all that is wrong, from some layout."""
    longest = max((target.mesh.dim_size(name) for name in target.sharded_dims), default=1)
    return device_kind() == "CPU" and longest > MOST_CPUS_IN_AN_ALL_TO_ALL


def _read(tensor: Any) -> Any:
    return tensor.read_value() if isinstance(tensor, tf.Variable) else tensor


def _check_components(arrays: Sequence[Array], layout: LayoutSpec) -> None:
    layout.of_components(arrays)
    held: dict[tuple[int, ...], Array] = {}
    for device_id, array in enumerate(arrays):
        replica = held.setdefault(layout.block(device_id), array)
        if not same_values(replica, array):
            raise CourseError(
                _(
                    "Device {device_id} should hold a replica, but its component differs.",
                    device_id=device_id,
                ),
                allowed=_("equal components on devices that hold the same shard"),
                cure=_("Give the replicas equal values, or shard the axis on which they differ."),
            )
