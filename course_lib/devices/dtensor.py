"""The only place where specs become real DTensor objects, and real tensors become specs and arrays again.

Also what lessons ask of TensorFlow's own objects: who holds what, shown, compared, and sent.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import device_kind, num_devices, start_tensorflow
from course_lib.specs.components import Comparison, Components
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.move import Move

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

Array = npt.NDArray[Any]


def create_mesh(mesh: MeshSpec) -> Any:
    """Returns the real `dtensor.Mesh` of `mesh`, on the first devices of the kind that `setup` was given.

    Raises:
        CourseError: the mesh has more places than there are devices.
    """
    kind = device_kind()
    if mesh.size > num_devices():
        raise CourseError(
            _("There is no device {kind}:{device_id}.", kind=kind, device_id=mesh.size - 1),
            allowed=_("as many devices as there are: {count}", count=num_devices()),
            cure=_("Use fewer devices, or ask for more in setup(devices=...) and restart the kernel."),
        )
    return dtensor.create_mesh(list(mesh.dims), devices=[f"{kind}:{at}" for at in range(mesh.size)])


def to_layout(layout: LayoutSpec, mesh: Any | None = None) -> Any:
    """Returns the real `dtensor.Layout` of `layout`, by default on the mesh that `create_mesh` makes."""
    return dtensor.Layout(list(layout.sharding_specs), create_mesh(layout.mesh) if mesh is None else mesh)


def mesh_spec(mesh: Any) -> MeshSpec:
    """Returns the specification of a real mesh."""
    return MeshSpec((name, mesh.dim_size(name)) for name in mesh.dim_names)


def layout_spec(layout: Any) -> LayoutSpec:
    """Returns the specification of a real layout."""
    return LayoutSpec(layout.sharding_specs, mesh_spec(layout.mesh))


def pack(value: npt.ArrayLike, layout: Any, mesh: Any | None = None) -> Any:
    """Returns `value` as a DTensor, having sent each device only its own component.

    Args:
        value: the whole tensor on the host, `[...] global`.
        layout: how it is to be split: a specification, or a real `dtensor.Layout`.
        mesh: the real mesh to put it on, as for `to_layout`; a real layout has its own.

    Raises:
        CourseError: the layout does not fit the tensor.
    """
    is_real = isinstance(layout, dtensor.Layout)
    spec, real = (layout_spec(layout), layout) if is_real else (layout, to_layout(layout, mesh))
    sent: dict[tuple[int, ...], Any] = {}  # devices with equal blocks share one tensor on the host
    for device_id, component in enumerate(spec.of(np.shape(value)).split(value)):
        sent.setdefault(spec.block(device_id), component)
    tensors = {block: tf.constant(component) for block, component in sent.items()}
    return dtensor.pack([tensors[spec.block(device_id)] for device_id in range(spec.mesh.size)], real)


def unpack(tensor: Any) -> list[Array]:
    """Returns the real component of each device, `[...] local` each, in the order of the devices."""
    return [component.numpy() for component in dtensor.unpack(_read(tensor))]


def fetch_layout(tensor: Any) -> LayoutSpec:
    """Returns the layout that a real DTensor or DVariable has.

    Raises:
        CourseError: it is none.
    """
    try:
        return layout_spec(dtensor.fetch_layout(_read(tensor)))
    except (AttributeError, TypeError, ValueError, tf.errors.InvalidArgumentError):
        raise CourseError(
            _("{given} is not laid out on a mesh.", given=type(tensor).__name__),
            allowed=_("a DTensor or a DVariable"),
            cure=_("Make one with dtensor.pack or dtensor.copy_to_mesh."),
        ) from None


def to_numpy(tensor: Any) -> Array:
    """Returns the whole tensor, `[...] global`, put together from the components on the host."""
    return Components.of(fetch_layout(tensor), unpack(tensor)).whole


def _read(tensor: Any) -> Any:
    return tensor.value() if isinstance(tensor, tf.Variable) else tensor


def no_combining() -> AbstractContextManager[object]:
    """Returns a block in which DTensor, where it compiles a function, leaves each all-reduce by itself."""
    return patch.dict(os.environ, {"DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE": "1"})


def show(thing: Any, global_shape: Sequence[int] | None = None, *, before: Any = None) -> DrawsItself:
    """Returns what a notebook draws of a mesh, of a layout with a shape, or of what devices hold of a tensor.

    Args:
        thing: a `dtensor.Mesh`, a `dtensor.Layout` (with `global_shape`), or a DTensor or DVariable.
        global_shape: the shape of the whole tensor that the layout is for.
        before: the DTensor that it was before it got another layout: what each device kept and received.

    Raises:
        CourseError: something else, or a layout without a shape that fits it.
    """
    if isinstance(thing, dtensor.Mesh):
        return mesh_spec(thing)
    if isinstance(thing, dtensor.Layout):
        return layout_spec(thing).of(() if global_shape is None else global_shape)
    if before is not None:
        return Move(fetch_layout(before).of(before.shape), fetch_layout(thing).of(thing.shape))
    return Components.of(fetch_layout(thing), unpack(thing))


def compare(whole: npt.ArrayLike, tensor: Any) -> Comparison:
    """Returns what each device should hold of an array beside what it holds. It draws itself.

    Args:
        whole: the array, `[...] global`.
        tensor: the DTensor or DVariable that was made of it; a wrong shape is shown, too.

    Raises:
        CourseError: no DTensor, or a layout that does not fit the array.
    """
    return Comparison(fetch_layout(tensor).of(np.shape(whole)), whole, unpack(tensor))


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
    return pack(whole, layout)
