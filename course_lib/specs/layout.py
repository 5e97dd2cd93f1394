"""Layouts: which mesh dimension splits which axis of a tensor, and who then holds what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding


@dataclass(frozen=True, repr=False)
class LayoutSpec:
    """One mesh dimension or `UNSHARDED` for each axis of a tensor.

    The tensor is replicated over every mesh dimension that the layout does not use.

    >>> mesh = MeshSpec([("x", 2), ("y", 3)])
    >>> layout = LayoutSpec(["x", UNSHARDED], mesh)
    >>> layout.of((4, 6)).local_shape, layout.of((4, 6)).copies
    ((2, 6), 3)

    Attributes:
        sharding_specs: the mesh dimension of each axis, or `UNSHARDED`.
        mesh: the mesh that the tensor lives on.

    Raises:
        CourseError: an unknown mesh dimension, or one mesh dimension on two axes.

    Source: https://www.tensorflow.org/guide/dtensor_overview (Layout).
    """

    sharding_specs: tuple[str, ...]
    mesh: MeshSpec

    def __init__(self, sharding_specs: Iterable[str], mesh: MeshSpec) -> None:
        object.__setattr__(self, "sharding_specs", tuple(sharding_specs))
        object.__setattr__(self, "mesh", mesh)
        for name in self.sharding_specs:
            one_of(
                name,
                [*mesh.names, UNSHARDED],
                _("The mesh has no dimension {name!r}.", name=name),
                cure=_("Use one of these names, or add the dimension to the mesh."),
            )
            if name != UNSHARDED and self.sharding_specs.count(name) > 1:
                raise CourseError(
                    _("The mesh dimension {name!r} splits two axes.", name=name),
                    allowed=_("each mesh dimension on one axis at most"),
                    cure=_('Use another mesh dimension or "unsharded" for one of the axes.'),
                )

    @property
    def num_axes(self) -> int:
        """The number of axes of the tensors that the layout fits."""
        return len(self.sharding_specs)

    def num_shards(self, axis: int) -> int:
        """Returns into how many parts `axis` is split."""
        name = self.sharding_specs[axis]
        return 1 if name == UNSHARDED else self.mesh.dim_size(name)

    def of(self, global_shape: Sequence[int], *, element_bytes: int | None = None) -> Sharding:
        """Returns the sharding of a tensor of this shape: who holds which part of it.

        Args:
            global_shape: the shape of the whole tensor.
            element_bytes: how many bytes an element takes (4 for float32), to say what a device holds.

        Raises:
            CourseError: the layout does not fit the shape.
        """
        return Sharding(self, global_shape, element_bytes)

    def block(self, device_id: int) -> tuple[int, ...]:
        """Returns the position of a device's shard among the shards, along each axis.

        Devices with equal blocks hold equal data.
        """
        coords = self.mesh.coords(device_id)
        return tuple(coords.get(name, 0) for name in self.sharding_specs)

    def __str__(self) -> str:
        return "[" + ", ".join(self.sharding_specs) + "]"

    def __repr__(self) -> str:
        return f"LayoutSpec({list(self.sharding_specs)}, {self.mesh!r})"
