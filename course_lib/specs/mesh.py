"""Meshes: named Cartesian grids of devices, described without TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _
from course_lib.specs.drawing import DrawsItself

UNSHARDED = "unsharded"


@dataclass(frozen=True, repr=False)
class MeshSpec(DrawsItself):
    """A grid of devices with a name and a size for each mesh dimension.

    Devices are numbered row by row: the last dimension changes fastest. It draws itself.

    >>> mesh = MeshSpec([("batch", 2), ("model", 3)])
    >>> mesh.size
    6
    >>> mesh.coords(4)
    {'batch': 1, 'model': 1}
    >>> mesh.groups("batch")
    ((0, 3), (1, 4), (2, 5))

    Attributes:
        dims: `(name, size)` of each mesh dimension, in order.

    Raises:
        CourseError: no dimension, a name that is empty, repeated or reserved, or a size below 1.

    Source: https://www.tensorflow.org/guide/dtensor_overview (Mesh).
    """

    dims: tuple[tuple[str, int], ...]

    def __init__(self, dims: Iterable[tuple[str, int]]) -> None:
        object.__setattr__(self, "dims", tuple((name, _size(name, size)) for name, size in dims))
        known = {name for name in self.names if str(name).isidentifier() and name != UNSHARDED}
        if not self.dims or len(known) < len(self.dims):
            raise CourseError(
                _("{names} cannot name the dimensions of a mesh.", names=list(self.names)),
                allowed=_('one or more names of letters, digits and "_", each once, and not "unsharded"'),
                cure=_('Write for example MeshSpec([("batch", 4), ("model", 2)]).'),
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the mesh dimensions, in order."""
        return tuple(name for name, _size in self.dims)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the mesh dimensions, in order."""
        return tuple(size for _name, size in self.dims)

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.sizes)

    def dim_size(self, name: str) -> int:
        """Returns how many devices lie along mesh dimension `name`.

        Raises:
            CourseError: the mesh has no dimension of that name.
        """
        one_of(
            name,
            self.names,
            _("The mesh has no dimension {name!r}.", name=name),
            cure=_("Use one of these names, or add the dimension to the mesh."),
        )
        return dict(self.dims)[name]

    def coords(self, device_id: int) -> dict[str, int]:
        """Returns the position of a device along each mesh dimension."""
        position: dict[str, int] = {}
        for name, size in reversed(self.dims):
            device_id, position[name] = divmod(device_id, size)
        return {name: position[name] for name in self.names}

    def groups(self, *names: str) -> tuple[tuple[int, ...], ...]:
        """Returns the devices that differ only along the mesh dimensions `names`, group by group.

        A collective over these dimensions runs once inside each group.
        """
        groups: dict[tuple[int, ...], list[int]] = {}
        for device_id in range(self.size):
            fixed = tuple(at for name, at in self.coords(device_id).items() if name not in names)
            groups.setdefault(fixed, []).append(device_id)
        return tuple(tuple(group) for group in groups.values())

    def __str__(self) -> str:
        return " × ".join(f"{name} {size}" for name, size in self.dims)

    def __repr__(self) -> str:
        return f"MeshSpec({list(self.dims)})"


def _size(name: str, size: int) -> int:
    return whole_number(
        size,
        _("Mesh dimension {name!r} has the size {size!r}.", name=name, size=size),
        least=1,
        cure=_("Give the number of devices along this dimension."),
    )
