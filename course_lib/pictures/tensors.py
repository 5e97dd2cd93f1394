"""Drawings of tensors cut in blocks, and of components with their values.

The last axis runs to the right, the one before runs down, as NumPy prints arrays. Blocks along the axis
before these two make planes next to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, Place, cell, colour
from course_lib.pictures.shapes import Node, node, number
from course_lib.pictures.text import axis_notes, form_value
from course_lib.specs.blocks import Block
from course_lib.specs.components import Array
from course_lib.specs.sharding import Sharding

_SHEET_OFFSET = 4.0
_MOST_SHEETS = 4
_LABEL_SIZE, _VALUE_SIZE, _VALUE_HEIGHT = 15.0, 10.5, 17.0
_GRID_LINE, _LEAST_CELL = "#1B1F2433", 7.0
_SIDE, _SMALL_SIDE, _THUMBNAIL_SIDE = 170.0, 110.0, 44.0


def tensor_drawing(sharding: Sharding, *, outlines: bool = False) -> Drawing:
    """Returns the whole tensor, of 0 to 3 axes, cut in its blocks.

    Args:
        sharding: the tensor and how it is cut.
        outlines: whether to add a hidden outline of each block, for pages that mark a block.
    """
    size, numbers = _element_size(sharding, _SIDE), range(len(sharding.blocks))
    parts = [_labelled_block(sharding.blocks, at, size) for at in numbers]
    over = [_outline(sharding.blocks, at, size) for at in numbers] if outlines else []
    return _planes(sharding, parts, _SIDE, over)


def small_tensor(sharding: Sharding, *, partial: bool = False) -> Drawing:
    """Returns the whole tensor at a smaller size, striped where each device has only a part of its sum.

    Its blocks have small letters, since pictures of several tensors call these A and B.
    """
    size = _element_size(sharding, _SMALL_SIDE)
    blocks = [replace(block, label=block.label.lower()) for block in sharding.blocks]
    part = _striped_block if partial else _labelled_block
    return _planes(sharding, [part(blocks, at, size) for at in range(len(blocks))], _SMALL_SIDE)


def thumbnail(sharding: Sharding, block: int | None) -> Drawing:
    """Returns a small map of the tensor in which only one block has its colour."""
    size = _element_size(sharding, _THUMBNAIL_SIDE)
    parts = [
        cell(_place(each, size), fill=at if at == block else shapes.EMPTY, stroke_width=0.6)[0]
        for at, each in enumerate(sharding.blocks)
    ]
    return _planes(sharding, parts, _THUMBNAIL_SIDE)


def annotated_tensor(sharding: Sharding) -> Drawing:
    """Returns the tensor with a line for each axis that says where it runs."""
    notes = arranging.lines_of_text(axis_notes(sharding), size=11, max_width=240, fill=shapes.SOFT_INK)
    return arranging.stacked([tensor_drawing(sharding), notes], 6)


def value_width(components: Sequence[Array], form: Callable[[object], str] = form_value) -> float:
    """Returns how wide a cell must be for every value of all components."""
    values = (form(value) for component in components for value in component.reshape(-1).tolist())
    return max([18.0, *(len(value) * _VALUE_SIZE * 0.62 + 6 for value in values)])


def values_drawing(
    component: Array,
    fill: str,
    width: float,
    form: Callable[[object], str] = form_value,
    *,
    halo: bool = False,
) -> Drawing:
    """Returns a component with the value of each element in its cell, planes of 3 axes under each other.

    Args:
        component: the values, `[...] local`.
        fill: the colour of the cells.
        width: of a cell.
        form: writes one value.
        halo: whether the values stand on stripes.
    """
    last = component.shape[-1] if component.ndim else 1
    values = [form(value) for value in component.reshape(-1).tolist()]
    nodes: list[Node] = []
    for at, value in enumerate(values):
        place = at % last * width, at // last * _VALUE_HEIGHT, width, _VALUE_HEIGHT
        nodes += cell(place, Line(value, size=_VALUE_SIZE, monospace=True, halo=halo), fill=fill)
    return Drawing(width * last, _VALUE_HEIGHT * max(len(values) // max(last, 1), 1), tuple(nodes))


def _planes(sharding: Sharding, parts: Sequence[Node], side: float, outlines: Sequence[Node] = ()) -> Drawing:
    """Returns the blocks, each drawn as its part, on the planes that they belong to."""
    width, height = _element_size(sharding, side)
    _depth, rows, columns = _as_planes(sharding.global_shape)
    grid = _grid_lines(rows, columns, width, height)
    by_plane: dict[tuple[int, int], list[int]] = {}
    for at, block in enumerate(sharding.blocks):
        plane, *_rest = _as_slices(block)
        by_plane.setdefault((plane.start, plane.stop), []).append(at)
    drawings = []
    for (start, stop), numbers in by_plane.items():
        over = [outlines[at] for at in numbers] if outlines else []
        nodes = (*(parts[at] for at in numbers), *grid, *over)
        front = Drawing(columns * width, rows * height, nodes)
        drawings.append(_on_sheets(front, max(min(stop - start, _MOST_SHEETS) - 1, 0)))
    return arranging.beside(drawings, side / 14)


def _labelled_block(blocks: Sequence[Block], at: int, element_size: tuple[float, float]) -> Node:
    block, place = blocks[at], _place(blocks[at], element_size)
    size = max(8.0, min(_LABEL_SIZE, place[2] * 0.7 / len(block.label), place[3] * 0.8))
    label = Line(block.label, size * 0.36, size, bold=True)
    data = {"data_device": str(block.devices[0]), "data_block": str(at)}
    return node("g", *cell(place, label, fill=at, stroke_width=1.2), class_="part", **data)


def _striped_block(blocks: Sequence[Block], at: int, element_size: tuple[float, float]) -> Node:
    x, y, width, height = place = _place(blocks[at], element_size)
    stripes = Drawing(width, height, (shapes.stripes(width, height, stroke=colour(at)),)).at(x, y)
    label = Line(blocks[at].label, size=11, bold=True, halo=True)
    return node("g", *cell(place, label, fill="none", stripes=stripes, stroke_width=1.2), class_="partial")


def _outline(blocks: Sequence[Block], at: int, element_size: tuple[float, float]) -> Node:
    place = dict(zip(("x", "y", "width", "height"), _place(blocks[at], element_size), strict=True))
    return node("rect", class_="outline", data_block=str(at), **place, fill="none", visibility="hidden")


def _place(block: Block, element_size: tuple[float, float]) -> Place:
    """Returns where a block lies on its plane."""
    _plane, rows, columns = _as_slices(block)
    width, height = element_size
    across, down = columns.stop - columns.start, rows.stop - rows.start
    return columns.start * width, rows.start * height, across * width, down * height


def _on_sheets(front: Drawing, num_sheets: int) -> Drawing:
    """Returns the front of a pile: sheets behind it show that a plane is several indices deep."""
    depth = num_sheets * _SHEET_OFFSET
    sheets: list[Node] = []
    for offset in (sheet * _SHEET_OFFSET for sheet in range(num_sheets, 0, -1)):
        place = offset, depth - offset, front.width, front.height
        sheets += cell(place, fill=shapes.EMPTY, stroke_width=0.7)
    return Drawing(front.width + depth, front.height + depth, (*sheets, front.at(0, depth)))


def _grid_lines(rows: int, columns: int, width: float, height: float) -> tuple[Node, ...]:
    """Returns the lines between the elements as one path, unless these are too small to tell apart."""
    if min(width, height) < _LEAST_CELL or rows * columns <= 1:
        return ()
    down = [f"M{number(at * width)} 0v{number(rows * height)}" for at in range(1, columns)]
    across = [f"M0 {number(at * height)}h{number(columns * width)}" for at in range(1, rows)]
    return (node("path", class_="grid", d="".join([*down, *across]), stroke=_GRID_LINE, stroke_width=0.5),)


def _element_size(sharding: Sharding, side: float) -> tuple[float, float]:
    """Returns the width and height of an element: square, unless an edge or a block would become too thin."""
    _depth, rows, columns = _as_planes(sharding.global_shape)
    square = min(side / max(rows, columns, 1), side / 4)
    thinnest = side / 6 if min(rows, columns) == 1 else side / 3.5
    _planes, row_cuts, column_cuts = (
        len({(part.start, part.stop) for part in parts})
        for parts in zip(*map(_as_slices, sharding.blocks), strict=True)
    )
    least_width, least_height = (max(thinnest, cuts * side / 12) for cuts in (column_cuts, row_cuts))
    return max(square, least_width / max(columns, 1)), max(square, least_height / max(rows, 1))


def _as_planes(global_shape: Sequence[int]) -> tuple[int, int, int]:
    depth, rows, columns = (1, 1, 1, *global_shape)[-3:]
    return depth, rows, columns


def _as_slices(block: Block) -> tuple[slice, slice, slice]:
    one = slice(0, 1)
    depth, rows, columns = (one, one, one, *block.index)[-3:]
    return depth, rows, columns
