"""The one walk over a mesh's grid of devices, for pictures and for text.

The last mesh dimension runs to the right, the one before runs down, as NumPy prints arrays; what comes before
these two makes planes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from course_lib.specs.mesh import MeshSpec


@dataclass(frozen=True)
class Plane:
    """Two dimensions of a mesh, or its only one.

    Attributes:
        name: the position along the dimensions before these two, or "".
        rows: the position along the dimension that runs down, or one "" if there is none.
        columns: the position along the last dimension.
        devices: the devices, row by row.
    """

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    devices: tuple[tuple[int, ...], ...]


def planes(mesh: MeshSpec) -> tuple[Plane, ...]:
    """Returns the planes of a mesh in the order of its devices.

    >>> plane, = planes(MeshSpec([("x", 2), ("y", 2)]))
    >>> plane.rows, plane.columns, plane.devices
    (('x=0', 'x=1'), ('y=0', 'y=1'), ((0, 1), (2, 3)))
    """
    *outer, column_dim = mesh.dims
    row_dim = outer.pop() if outer else None
    rows, columns = _places(row_dim) if row_dim else ("",), _places(column_dim)
    starts = range(0, mesh.size, len(columns))
    devices = (tuple(range(start, start + len(columns))) for start in starts)
    return tuple(
        Plane(", ".join(places), rows, columns, tuple(itertools.islice(devices, len(rows))))
        for places in itertools.product(*map(_places, outer))
    )


def _places(dim: tuple[str, int]) -> tuple[str, ...]:
    name, size = dim
    return tuple(f"{name}={place}" for place in range(size))
