"""Drawings of tensors cut in blocks and of meshes of devices.

The last axis, and the last mesh dimension, run to the right, the one before runs down, as NumPy prints
arrays. What comes before these two makes planes next to each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from course_lib.pictures import svg
from course_lib.pictures.svg import Drawing
from course_lib.pictures.text import form_value
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Array, Block

_SHEET_OFFSET = 4.0
_MOST_SHEETS = 4
_LABEL_SIZE, _VALUE_SIZE, _INDEX_SIZE, _VALUE_HEIGHT = 15.0, 10.5, 10.0, 17.0
_CARD_HEAD = 20.0


def colour(block: int | None) -> str:
    """Returns the colour of a block: equal data has equal colour, None is data that is no block."""
    return "#FFFFFF" if block is None else svg.PALETTE[block % len(svg.PALETTE)]


def tensor_drawing(
    global_shape: Sequence[int], blocks: Sequence[Block], *, side: float, only: int | None = None
) -> Drawing:
    """Returns the whole tensor cut in its blocks.

    Args:
        global_shape: the shape of the whole tensor, of 0 to 3 axes.
        blocks: its blocks.
        side: about how long the longer edge becomes.
        only: colour this block alone, without its label: the small map in a device.
    """
    cell_width, cell_height = _cell(global_shape, blocks, side)
    _depth, rows, columns = _as_planes(global_shape)
    by_plane: dict[tuple[int, int], list[int]] = {}
    for number, block in enumerate(blocks):
        plane, *_rest = _as_slices(block)
        by_plane.setdefault((plane.start, plane.stop), []).append(number)
    planes = []
    for (start, stop), numbers in by_plane.items():
        sheets = _backing_sheets(
            min(stop - start, _MOST_SHEETS) - 1, columns * cell_width, rows * cell_height
        )
        parts = "".join(_block_part(number, blocks, cell_width, cell_height, only) for number in numbers)
        grid = _grid_lines(rows, columns, cell_width, cell_height)
        front = Drawing(columns * cell_width, rows * cell_height, parts + grid)
        planes.append(
            Drawing(sheets.width, sheets.height, sheets.body + front.at(0, sheets.height - front.height))
        )
    return svg.beside(planes, side / 14)


def annotated_tensor(
    global_shape: Sequence[int], blocks: Sequence[Block], axis_label: Callable[[int], str]
) -> Drawing:
    """Returns the tensor with a line for each axis that says where it runs."""
    drawing = tensor_drawing(global_shape, blocks, side=170)
    arrows = ["↗", "↓", "→"][-len(global_shape) :] if global_shape else []
    notes = [f"{arrow} {axis_label(axis)}" for axis, arrow in enumerate(arrows)]
    return svg.stacked([drawing, svg.lines_of_text(notes, size=11, max_width=240, fill=svg.SOFT_INK)], 6)


def mesh_drawing(mesh: MeshSpec, cards: Sequence[Drawing]) -> Drawing:
    """Returns the grid of devices, each drawn as its card, with the position along each dimension."""
    *plane_dims, row_dim, column_dim = [("", 1), *mesh.dims] if len(mesh.dims) == 1 else list(mesh.dims)
    devices = iter(range(mesh.size))
    planes = []
    for places in itertools.product(*(range(size) for _name, size in plane_dims)):
        grid = _mesh_plane(
            row_dim, column_dim, [cards[next(devices)] for _ in range(row_dim[1] * column_dim[1])]
        )
        name = ", ".join(f"{dim}={place}" for (dim, _size), place in zip(plane_dims, places, strict=True))
        planes.append(svg.titled(name, grid) if name else grid)
    return svg.flowing(planes, 20, 660)


def device_card(
    device_id: int,
    block: int | None,
    label: str,
    picture: Drawing,
    notes: Sequence[str],
    *,
    wrong: bool = False,
) -> Drawing:
    """Returns one device: its number and its block above in the block's colour, what it holds below."""
    notes_height = 13.0 * len(notes)
    width = max([54.0, picture.width + 14, *(len(note) * _INDEX_SIZE * 0.62 + 10 for note in notes)])
    height = _CARD_HEAD + picture.height + 14 + notes_height
    stroke, stroke_width, dashes = (svg.ALARM, 2, "4 3") if wrong else (svg.SOFT_INK, 1, "")
    body = svg.rectangle(0.5, 0.5, width - 1, height - 1, fill=svg.PANEL, stroke_width=0, radius=6)
    body += svg.tab(0.5, 0.5, width - 1, _CARD_HEAD, fill=colour(block), radius=6)
    body += svg.rectangle(
        *(0.5, 0.5, width - 1, height - 1),
        fill="none",
        stroke=stroke,
        stroke_width=stroke_width,
        radius=6,
        dashes=dashes,
    )
    body += svg.text(8, 15, str(device_id), size=12, bold=True)
    body += svg.text(width - 8, 15, label, size=12, anchor="end", bold=True)
    body += picture.at((width - picture.width) / 2, _CARD_HEAD + 7)
    for row, note in enumerate(notes):
        y = height - notes_height + 13 * row + 6
        body += svg.text(width / 2, y, note, size=_INDEX_SIZE, anchor="middle", monospace=True)
    return Drawing(width, height, body)


def plain_card(device_id: int) -> Drawing:
    """Returns one device with nothing on it."""
    body = svg.rectangle(0.5, 0.5, 51, 39, fill=svg.EMPTY, stroke=svg.SOFT_INK, radius=6)
    return Drawing(52, 40, body + svg.text(26, 25, str(device_id), size=14, anchor="middle", bold=True))


def values_drawing(component: Array, block: int | None) -> Drawing:
    """Returns a component with the value of each element in its cell, planes of 3 axes under each other."""
    last = component.shape[-1] if component.ndim else 1
    values = [form_value(value) for value in component.reshape(-1).tolist()]
    width = max([18.0, *(len(value) * _VALUE_SIZE * 0.62 + 6 for value in values)])
    body = ""
    for at, value in enumerate(values):
        x, y = at % last * width, at // last * _VALUE_HEIGHT
        body += svg.rectangle(x, y, width, _VALUE_HEIGHT, fill=colour(block), stroke=svg.SOFT_INK)
        body += svg.text(x + width / 2, y + 12.5, value, size=_VALUE_SIZE, anchor="middle", monospace=True)
    return Drawing(width * last, _VALUE_HEIGHT * max(len(values) // max(last, 1), 1), body)


def _mesh_plane(row_dim: tuple[str, int], column_dim: tuple[str, int], cards: Sequence[Drawing]) -> Drawing:
    (row_name, num_rows), (column_name, num_columns) = row_dim, column_dim
    width, height = max(card.width for card in cards), max(card.height for card in cards)
    margin = svg.text_width(f"{row_name}={num_rows - 1}", 12) + 8 if row_name else 0.0
    gap, header = 6.0, 18.0
    body = ""
    for column in range(num_columns):
        x = margin + column * (width + gap) + width / 2
        body += svg.text(x, 12, f"{column_name}={column}", anchor="middle", fill=svg.SOFT_INK)
    for row in range(num_rows):
        y = header + row * (height + gap)
        body += svg.text(0, y + height / 2 + 4, f"{row_name}={row}", fill=svg.SOFT_INK) if row_name else ""
        for column in range(num_columns):
            card = cards[row * num_columns + column]
            body += card.at(margin + column * (width + gap) + (width - card.width) / 2, y)
    return Drawing(margin + num_columns * (width + gap) - gap, header + num_rows * (height + gap) - gap, body)


def _as_planes(global_shape: Sequence[int]) -> tuple[int, int, int]:
    depth, rows, columns = (1, 1, 1, *global_shape)[-3:]
    return depth, rows, columns


def _as_slices(block: Block) -> tuple[slice, slice, slice]:
    one = slice(0, 1)
    depth, rows, columns = (one, one, one, *block.index)[-3:]
    return depth, rows, columns


def _cell(global_shape: Sequence[int], blocks: Sequence[Block], side: float) -> tuple[float, float]:
    """Returns the width and height of an element: square, unless an edge or a block would become too thin."""
    _depth, rows, columns = _as_planes(global_shape)
    cell = min(side / max(rows, columns, 1), side / 4)
    thinnest = side / 6 if min(rows, columns) == 1 else side / 3.5
    _planes, row_cuts, column_cuts = (
        len({(part.start, part.stop) for part in parts})
        for parts in zip(*map(_as_slices, blocks), strict=True)
    )
    least_width, least_height = (max(thinnest, cuts * side / 12) for cuts in (column_cuts, row_cuts))
    return max(cell, least_width / max(columns, 1)), max(cell, least_height / max(rows, 1))


def _backing_sheets(count: int, width: float, height: float) -> Drawing:
    """Returns sheets behind the front one, which show that a plane is several indices deep."""
    body = "".join(
        svg.rectangle(
            at * _SHEET_OFFSET,
            (count - at) * _SHEET_OFFSET,
            width,
            height,
            fill=svg.EMPTY,
            stroke=svg.SOFT_INK,
            stroke_width=0.7,
        )
        for at in range(count, 0, -1)
    )
    return Drawing(width + count * _SHEET_OFFSET, height + count * _SHEET_OFFSET, body)


def _block_part(
    number: int, blocks: Sequence[Block], cell_width: float, cell_height: float, only: int | None
) -> str:
    _plane, rows, columns = _as_slices(blocks[number])
    x, y = columns.start * cell_width, rows.start * cell_height
    width, height = (columns.stop - columns.start) * cell_width, (rows.stop - rows.start) * cell_height
    fill = colour(number) if only in (None, number) else svg.EMPTY
    body = svg.rectangle(
        x, y, width, height, fill=fill, stroke=svg.SOFT_INK, stroke_width=1.2 if only is None else 0.6
    )
    if only is None:
        label = blocks[number].label
        size = max(8.0, min(_LABEL_SIZE, width * 0.7 / len(label), height * 0.8))
        body += svg.text(
            x + width / 2, y + height / 2 + size * 0.36, label, size=size, anchor="middle", bold=True
        )
    return body


def _grid_lines(rows: int, columns: int, cell_width: float, cell_height: float) -> str:
    """Returns the lines between the elements, unless these are too small to tell apart."""
    if min(cell_width, cell_height) < 7:  # noqa: PLR2004
        return ""
    width, height = columns * cell_width, rows * cell_height
    down = [
        svg.line(at * cell_width, 0, at * cell_width, height, stroke="#1B1F2433") for at in range(1, columns)
    ]
    across = [
        svg.line(0, at * cell_height, width, at * cell_height, stroke="#1B1F2433") for at in range(1, rows)
    ]
    return "".join([*down, *across])
