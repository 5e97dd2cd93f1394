"""The only place where specs become real DTensor objects, and real tensors become specs and arrays again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.components import same_values
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

Array = npt.NDArray[Any]


def create_mesh(mesh: MeshSpec, devices: Sequence[int] | None = None) -> Any:
    """Returns the real `dtensor.Mesh` of `mesh` on virtual CPUs.

    Args:
        mesh: the names and sizes of the mesh dimensions.
        devices: the numbers of the CPUs to use, one for each place on the mesh, row by row.
            The first `mesh.size` CPUs if left out.

    Raises:
        CourseError: another number of devices than the mesh has places, a device given twice, or a
            device that is not configured.
    """
    configured = len(tf.config.list_logical_devices("CPU"))
    if devices is None:
        devices = range(mesh.size)
    mesh.require_size(len(devices))
    for device_id in devices:
        _check_device(device_id, list(devices), configured)
    return dtensor.create_mesh(list(mesh.dims), devices=[f"CPU:{device_id}" for device_id in devices])


def to_layout(layout: LayoutSpec, mesh: Any | None = None) -> Any:
    """Returns the real `dtensor.Layout` of `layout`.

    Args:
        layout: the specification.
        mesh: the real mesh to put it on; by default that of `create_mesh(layout.mesh)`.
    """
    return dtensor.Layout(list(layout.sharding_specs), create_mesh(layout.mesh) if mesh is None else mesh)


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


def pack(value: npt.ArrayLike, layout: LayoutSpec, mesh: Any | None = None) -> Any:
    """Returns `value` as a DTensor, having sent each device only its own component.

    Args:
        value: the whole tensor on the host, `[...] global`.
        layout: how it is to be split.
        mesh: the real mesh to put it on; by default that of `create_mesh(layout.mesh)`.

    Raises:
        CourseError: the layout does not fit the tensor.
    """
    sent: dict[tuple[int, ...], Any] = {}  # devices with equal blocks share one tensor on the host
    for device_id, component in enumerate(split(value, layout)):
        sent.setdefault(layout.block(device_id), component)
    tensors = {block: tf.constant(component) for block, component in sent.items()}
    components = [tensors[layout.block(device_id)] for device_id in range(layout.mesh.size)]
    return dtensor.pack(components, to_layout(layout, mesh))


def pack_components(components: Sequence[npt.ArrayLike], layout: LayoutSpec, mesh: Any | None = None) -> Any:
    """Returns one DTensor made of a component for each device.

    Args:
        components: `[...] local` each, one a device, in the order of the devices.
        layout: how the whole tensor is split.
        mesh: the real mesh to put it on; by default that of `create_mesh(layout.mesh)`.

    Raises:
        CourseError: another number of components than devices (none at all would end the process inside
            TensorFlow), components of unlike shapes, or replicas that differ.
    """
    arrays = [np.asarray(component) for component in components]
    _check_components(arrays, layout)
    return dtensor.pack([tf.constant(array) for array in arrays], to_layout(layout, mesh))


def unpack(tensor: Any) -> list[Array]:
    """Returns the real component of each device, `[...] local` each, in the order of the devices."""
    return [component.numpy() for component in dtensor.unpack(_read(tensor))]


def fetch_layout(tensor: Any) -> LayoutSpec:
    """Returns the layout that a real DTensor or DVariable has."""
    return layout_spec(dtensor.fetch_layout(_read(tensor)))


def to_numpy(tensor: Any) -> Array:
    """Returns the whole tensor, `[...] global`, put together from the components on the host."""
    return fetch_layout(tensor).observed(unpack(tensor)).whole


def _read(tensor: Any) -> Any:
    return tensor.read_value() if isinstance(tensor, tf.Variable) else tensor


def _check_device(device_id: int, devices: list[int], configured: int) -> None:
    if device_id not in range(configured):
        raise CourseError(
            _("There is no device CPU:{device_id}.", device_id=device_id),
            allowed=_("CPU:0 to CPU:{last}", last=configured - 1),
            cure=_("Use fewer devices, or ask for more in setup(devices=...) and restart the kernel."),
        )
    if devices.count(device_id) > 1:
        raise CourseError(
            _("The device CPU:{device_id} is given twice.", device_id=device_id),
            allowed=_("each device once"),
            cure=_("Give another device. TensorFlow would accept this and compute something wrong."),
        )


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
