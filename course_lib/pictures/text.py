"""The text form of figures: what a terminal shows, a screen reader reads and a golden test compares."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Array, Block

MOST_VALUES = 12
UNKNOWN = "?"


def form_value(value: object) -> str:
    """Returns one element in few characters.

    >>> form_value(3.0), form_value(0.123456), form_value(7), form_value(True)
    ('3', '0.1235', '7', 'True')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def array_text(array: Array) -> str:
    """Returns the values of an array on one line, or its shape if they are too many.

    >>> import numpy as np
    >>> array_text(np.arange(6.0).reshape(2, 3)), array_text(np.zeros((100, 8)))
    ('[[0 1 2] [3 4 5]]', '(100, 8)')
    """
    return _nested(array.tolist()) if array.size <= MOST_VALUES else str(array.shape)


def mesh_grid(mesh: MeshSpec, cells: Sequence[str]) -> list[str]:
    r"""Returns the lines of a grid with one cell a device and the position along each mesh dimension.

    >>> print("\n".join(mesh_grid(MeshSpec([("x", 2), ("y", 2)]), ["A", "B", "A", "B"])))
           y=0  y=1
      x=0    A    B
      x=1    A    B
    """
    *plane_dims, row_dim, column_dim = [("", 1), *mesh.dims] if len(mesh.dims) == 1 else list(mesh.dims)
    remaining = iter(cells)
    lines: list[str] = []
    for places in itertools.product(*(range(size) for _name, size in plane_dims)):
        plane = ", ".join(f"{name}={place}" for (name, _size), place in zip(plane_dims, places, strict=True))
        taken = list(itertools.islice(remaining, row_dim[1] * column_dim[1]))
        lines += [*([""] if lines else []), *_plane_lines(plane, row_dim, column_dim, taken)]
    return lines


def holding_cells(blocks: Sequence[Block], holdings: Sequence[int | None]) -> list[str]:
    """Returns for each device its number and the label of the block that it holds, all of one width."""
    labels = [label_of(blocks, block) for block in holdings]
    width, label_width = len(str(len(labels) - 1)), max(map(len, labels))
    return [f"{device_id:>{width}}: {label:<{label_width}}" for device_id, label in enumerate(labels)]


def label_of(blocks: Sequence[Block], block: int | None) -> str:
    """Returns the label of a block, or a question mark for data that is no block."""
    return UNKNOWN if block is None else blocks[block].label


def block_lines(blocks: Sequence[Block], values: Sequence[str] | None = None) -> list[str]:
    """Returns one line a block: its label, where it lies, who holds it, and its values if they are given."""
    label_width = max(len(block.label) for block in blocks)
    index_width = max(len(block.index_text) for block in blocks)
    lines = []
    for number, block in enumerate(blocks):
        devices = devices_text(block.devices)
        line = f"  {block.label:<{label_width}}  {block.index_text:<{index_width}}  {devices}"
        lines.append(line if values is None else f"{line}  {values[number]}")
    return lines


def join_sentences(sentences: Sequence[str]) -> str:
    """Returns the sentences one after the other; after a full-width stop there is no space.

    >>> join_sentences(["One.", "Two."]), join_sentences(["一。", "二。"])
    ('One. Two.', '一。二。')
    """
    return " ".join(sentences).replace("。 ", "。")


def devices_text(devices: Sequence[int]) -> str:
    """Returns the numbers of the devices as words.

    >>> devices_text([3]), devices_text([0, 2])
    ('device 3', 'devices 0, 2')
    """
    numbers = ", ".join(map(str, devices))
    if len(devices) == 1:
        return _("device {device_id}", device_id=numbers)
    return _("devices {devices}", devices=numbers)


def _plane_lines(
    plane: str, row_dim: tuple[str, int], column_dim: tuple[str, int], cells: Sequence[str]
) -> list[str]:
    (row_name, num_rows), (column_name, num_columns) = row_dim, column_dim
    rows = [f"{row_name}={row}" if row_name else "" for row in range(num_rows)]
    columns = [f"{column_name}={column}" for column in range(num_columns)]
    left, width = max(map(len, [plane, *rows])), max(map(len, [*columns, *cells]))
    table = [(plane, columns)]
    table += [(name, list(cells[at * num_columns : (at + 1) * num_columns])) for at, name in enumerate(rows)]
    indent = "  " if left else ""
    return [
        "  " + (f"{name:<{left}}{indent}" + "  ".join(f"{cell:>{width}}" for cell in row)).rstrip()
        for name, row in table
    ]


def _nested(values: object) -> str:
    if isinstance(values, list):
        return "[" + " ".join(_nested(value) for value in values) + "]"
    return form_value(values)
