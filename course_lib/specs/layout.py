"""Layouts: which mesh dimension splits which axis of a tensor, and who then holds what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _, ngettext
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Index = tuple[slice, ...]


@dataclass(frozen=True)
class LayoutSpec:
    """One mesh dimension or `UNSHARDED` for each axis of a tensor.

    The tensor is replicated over every mesh dimension that the layout does not use.

    >>> mesh = MeshSpec([("x", 2), ("y", 3)])
    >>> layout = LayoutSpec(["x", UNSHARDED], mesh)
    >>> layout.local_shape((4, 6))
    (2, 6)
    >>> layout.replicas
    3

    Attributes:
        sharding_specs: the mesh dimension of each axis, or `UNSHARDED`.
        mesh: the mesh that the tensor lives on.

    Raises:
        CourseError: a bare string instead of one entry an axis, an unknown mesh dimension, or one mesh
            dimension on two axes.

    Source: https://www.tensorflow.org/guide/dtensor_overview (Layout).
    """

    sharding_specs: tuple[str, ...]
    mesh: MeshSpec

    def __init__(self, sharding_specs: Iterable[str], mesh: MeshSpec) -> None:
        object.__setattr__(self, "sharding_specs", _entries(sharding_specs))
        object.__setattr__(self, "mesh", _checked_mesh(mesh))
        for name in self.sharded_dims:
            one_of(
                name,
                [*mesh.names, UNSHARDED],
                _("The mesh has no dimension {name!r}.", name=name),
                cure=_("Use one of these names, or add the dimension to the mesh."),
            )
            if self.sharding_specs.count(name) > 1:
                raise CourseError(
                    _("The mesh dimension {name!r} splits two axes.", name=name),
                    allowed=_("each mesh dimension on one axis at most"),
                    cure=_('Use another mesh dimension or "unsharded" for one of the axes.'),
                )

    @classmethod
    def replicated(cls, mesh: MeshSpec, num_axes: int) -> LayoutSpec:
        """Returns the layout that gives every device the whole tensor."""
        return cls([UNSHARDED] * num_axes, mesh)

    @classmethod
    def sharded_on(cls, mesh: MeshSpec, name: str, axis: int, num_axes: int) -> LayoutSpec:
        """Returns the layout that splits only `axis`, over mesh dimension `name`.

        Raises:
            CourseError: the tensor has no such axis, or the mesh no such dimension.
        """
        sharded = whole_number(
            axis,
            ngettext(
                "A tensor of {count} axis has no axis {axis!r}.",
                "A tensor of {count} axes has no axis {axis!r}.",
                num_axes,
                axis=axis,
            ),
            most=num_axes - 1,
            cure=_("Choose one of the tensor's axes."),
        )
        return cls([name if at == sharded else UNSHARDED for at in range(num_axes)], mesh)

    @property
    def num_axes(self) -> int:
        """The number of axes of the tensors that the layout fits."""
        return len(self.sharding_specs)

    @property
    def sharded_dims(self) -> tuple[str, ...]:
        """The mesh dimensions that split an axis, in the order of the axes."""
        return tuple(name for name in self.sharding_specs if name != UNSHARDED)

    @property
    def replicated_dims(self) -> tuple[str, ...]:
        """The mesh dimensions over which the tensor is replicated, in the order of the mesh."""
        return tuple(name for name in self.mesh.names if name not in self.sharding_specs)

    @property
    def replicas(self) -> int:
        """How many devices hold each element."""
        return math.prod(self.mesh.dim_size(name) for name in self.replicated_dims)

    def num_shards(self, axis: int) -> int:
        """Returns into how many parts `axis` is split."""
        name = self.sharding_specs[axis]
        return 1 if name == UNSHARDED else self.mesh.dim_size(name)

    def local_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of one device's component.

        Args:
            global_shape: the shape of the whole tensor.

        Raises:
            CourseError: another number of axes than the layout has, a length that is not a whole number, or
                an axis that does not divide.
        """
        lengths = _lengths(global_shape)
        self._check_lengths(lengths)
        return tuple(length // self.num_shards(axis) for axis, length in enumerate(lengths))

    def shards(self, global_shape: Sequence[int]) -> dict[int, Index]:
        """Returns, for each device, the part of the tensor that it holds, as one slice an axis.

        Args:
            global_shape: the shape of the whole tensor.

        Raises:
            CourseError: as `local_shape`.
        """
        local_shape = self.local_shape(global_shape)
        return {
            device_id: tuple(
                slice(block * length, (block + 1) * length)
                for block, length in zip(self.block(device_id), local_shape, strict=True)
            )
            for device_id in range(self.mesh.size)
        }

    def block(self, device_id: int) -> tuple[int, ...]:
        """Returns the position of a device's shard among the shards, along each axis.

        Devices with equal blocks hold equal data.
        """
        coords = self.mesh.coords(device_id)
        return tuple(coords.get(name, 0) for name in self.sharding_specs)

    def __str__(self) -> str:
        return "[" + ", ".join(self.sharding_specs) + "]"

    def _check_lengths(self, global_shape: tuple[int, ...]) -> None:
        if len(global_shape) != self.num_axes:
            raise CourseError(
                ngettext(
                    "The layout {layout} has {count} axis, the tensor {global_shape} has {given}.",
                    "The layout {layout} has {count} axes, the tensor {global_shape} has {given}.",
                    self.num_axes,
                    layout=self,
                    global_shape=global_shape,
                    given=len(global_shape),
                ),
                allowed=_("as many entries in the layout as the tensor has axes"),
                cure=_('Give each axis a mesh dimension or "unsharded".'),
            )
        for axis, length in enumerate(global_shape):
            if length % self.num_shards(axis):
                raise CourseError(
                    ngettext(
                        "Axis {axis} of length {length} does not split in {count} part over {name!r}.",
                        "Axis {axis} of length {length} does not split in {count} parts over {name!r}.",
                        self.num_shards(axis),
                        axis=axis,
                        length=length,
                        name=self.sharding_specs[axis],
                    ),
                    allowed=_("lengths that divide by {num_shards}", num_shards=self.num_shards(axis)),
                    cure=_("Change the length, pad it, or leave this axis unsharded."),
                )


def _entries(sharding_specs: Iterable[str]) -> tuple[str, ...]:
    if isinstance(sharding_specs, str):  # its letters would pass for the entries
        raise CourseError(
            _("{given!r} is one string, not a list with an entry for each axis.", given=sharding_specs),
            allowed=_("a list of mesh dimensions and UNSHARDED"),
            cure=_("Put it in square brackets: [{given!r}].", given=sharding_specs),
        )
    if not isinstance(sharding_specs, Iterable):
        raise CourseError(
            _("{given!r} is not a list with an entry for each axis.", given=sharding_specs),
            allowed=_("a list of mesh dimensions and UNSHARDED"),
            cure=_('Write for example LayoutSpec(["batch", UNSHARDED], MeshSpec([("batch", 8)])).'),
        )
    return tuple(sharding_specs)


def _checked_mesh(mesh: MeshSpec) -> MeshSpec:
    if not isinstance(mesh, MeshSpec):
        raise CourseError(
            _("{mesh!r} is not a MeshSpec.", mesh=mesh),
            allowed=_("a MeshSpec: the names and sizes of the mesh dimensions"),
            cure=_('Write for example LayoutSpec(["batch", UNSHARDED], MeshSpec([("batch", 8)])).'),
        )
    return mesh


def _lengths(global_shape: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(global_shape, Iterable):
        raise CourseError(
            _("{given!r} is not the shape of a tensor.", given=global_shape),
            allowed=_("a list with the length of each axis"),
            cure=_("Put it in square brackets: [{given!r}].", given=global_shape),
        )
    return tuple(
        whole_number(
            length,
            _("Axis {axis} has the length {length!r}.", axis=axis, length=length),
            cure=_("Give the number of elements along this axis."),
        )
        for axis, length in enumerate(global_shape)
    )
