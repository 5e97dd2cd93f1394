"""Drawings of tensors cut in blocks, and of components with their values.

The last axis runs to the right, the one before runs down, as NumPy prints arrays. Blocks along the axis
before these two make planes next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, Place, cell, colour
from course_lib.pictures.shapes import Node, node, number
from course_lib.pictures.text import form_value
from course_lib.specs.components import Array
from course_lib.specs.move import Move
from course_lib.specs.sharding import Block, Index, Sharding

_SHEET_OFFSET = 4.0
_MOST_SHEETS = 4
_LABEL_SIZE, _VALUE_SIZE, _VALUE_HEIGHT = 15.0, 10.5, 17.0
_GRID_LINE, _LEAST_CELL = "#1B1F2433", 7.0
_SIDE, _SMALL_SIDE, _MOVED_SIDE, _THUMBNAIL_SIDE = 170.0, 110.0, 88.0, 44.0


def tensor_drawing(sharding: Sharding, *, outlines: bool = False) -> Drawing:
    """Returns the whole tensor, of 0 to 3 axes, cut in its blocks.

    Pages that mark a block need hidden `outlines` of all.
    """
    cut = _cut(sharding, _SIDE)
    parts = [
        _labelled(block, at, block.label, place)
        for at, (block, place) in enumerate(zip(sharding.blocks, cut.places, strict=True))
    ]
    return cut.drawing(
        parts, [_outline(at, place) for at, place in enumerate(cut.places)] if outlines else []
    )


def small_tensor(sharding: Sharding, *, partial: bool = False) -> Drawing:
    """Returns the whole tensor at a smaller size, striped where each device has only a part of its sum.

    Its blocks have small letters, since pictures of several tensors call these A and B.
    """
    cut, part = _cut(sharding, _SMALL_SIDE), _striped if partial else _labelled
    return cut.drawing(
        [
            part(block, at, block.label.lower(), place)
            for at, (block, place) in enumerate(zip(sharding.blocks, cut.places, strict=True))
        ]
    )


def thumbnails(sharding: Sharding) -> dict[int | None, Drawing]:
    """Returns for each block a small map of the tensor in which it alone is coloured; for None, none is."""
    cut = _cut(sharding, _THUMBNAIL_SIDE)
    empty = [cell(place, fill=shapes.EMPTY, stroke_width=0.6)[0] for place in cut.places]
    maps: dict[int | None, Drawing] = {None: cut.drawing(empty)}
    for at, place in enumerate(cut.places):
        maps[at] = cut.drawing([*empty[:at], *cell(place, fill=at, stroke_width=0.6), *empty[at + 1 :]])
    return maps


def pieces_drawing(move: Move, device_id: int) -> Drawing:
    """Returns a map of the tensor with what a device has of it after a move, and dashes where its part was.

    A piece has the colour of the block that it was in. One that stays has a thick edge; to others an arrow
    points from the device that sends them.
    """
    cut, (rows, columns) = _cut(move.before, _MOVED_SIDE), (1, *move.before.global_shape)[-2:]
    width, height = cut.width / max(columns, 1), cut.height / max(rows, 1)

    def place(index: Index) -> Place:
        (top, bottom), (left, right) = [(part.start, part.stop) for part in (slice(0, 1), *index)[-2:]]
        return left * width, top * height, (right - left) * width, (bottom - top) * height

    nodes = [*cell((0, 0, cut.width, cut.height), fill=shapes.EMPTY, stroke_width=0.6)]
    for index, block, source in move.pieces(device_id):
        stays = source == device_id
        label = [] if stays else [Line(f"←{source}", 3.5, 9.5)]
        nodes += cell(place(index), *label, fill=block, stroke_width=2 if stays else 0.6)
    nodes += cell(place(move.before.shards[device_id]), fill="none", stroke=shapes.INK, dashes="3 3")
    return Drawing(cut.width, cut.height, tuple(nodes))


def value_width(components: Sequence[Array]) -> float:
    """Returns how wide a cell must be for every value of all components."""
    values = (form_value(value) for component in components for value in component.reshape(-1).tolist())
    return max([18.0, *(len(value) * _VALUE_SIZE * 0.62 + 6 for value in values)])


def values_drawing(component: Array, fill: str, width: float) -> Drawing:
    """Returns a component with the value of each element in its cell, planes of 3 axes under each other.

    Args:
        component: the values, `[...] local`.
        fill: the colour of the cells.
        width: of a cell.
    """
    last = component.shape[-1] if component.ndim else 1
    values = [form_value(value) for value in component.reshape(-1).tolist()]
    nodes: list[Node] = []
    for at, value in enumerate(values):
        place = at % last * width, at // last * _VALUE_HEIGHT, width, _VALUE_HEIGHT
        nodes += cell(place, Line(value, size=_VALUE_SIZE, monospace=True), fill=fill)
    return Drawing(width * last, _VALUE_HEIGHT * max(len(values) // max(last, 1), 1), tuple(nodes))


@dataclass(frozen=True)
class _Cut:
    """A tensor on its planes, and where each block lies.

    Attributes:
        places: of each block, on its plane.
        planes: for each plane how many indices deep it is, and the numbers of its blocks.
        width: of a plane.
        height: of a plane.
        gap: between planes.
        grid: the lines between the elements.
    """

    places: list[Place]
    planes: list[tuple[int, list[int]]]
    width: float
    height: float
    gap: float
    grid: tuple[Node, ...]

    def drawing(self, parts: Sequence[Node], outlines: Sequence[Node] = ()) -> Drawing:
        """Returns the planes next to each other, each block drawn as its part."""
        piles = []
        for depth, numbers in self.planes:
            over = [outlines[at] for at in numbers] if outlines else []
            front = Drawing(self.width, self.height, (*[parts[at] for at in numbers], *self.grid, *over))
            piles.append(_on_sheets(front, min(depth, _MOST_SHEETS) - 1))
        return arranging.beside(piles, self.gap)


def _cut(sharding: Sharding, side: float) -> _Cut:
    """Returns the planes of a tensor whose longer edge takes about `side`."""
    _depth, rows, columns = (1, 1, 1, *sharding.global_shape)[-3:]
    one = slice(0, 1)
    indices = [(one, one, one, *block.index)[-3:] for block in sharding.blocks]
    width, height = _element_size(indices, rows, columns, side)
    places: list[Place] = []
    planes: dict[int, tuple[int, list[int]]] = {}
    for at, (plane, down, across) in enumerate(indices):
        left, top = across.start * width, down.start * height
        places.append((left, top, (across.stop - across.start) * width, (down.stop - down.start) * height))
        planes.setdefault(plane.start, (plane.stop - plane.start, []))[1].append(at)
    grid = _grid_lines(rows, columns, width, height)
    return _Cut(places, list(planes.values()), columns * width, rows * height, side / 14, grid)


def _labelled(block: Block, at: int, label: str, place: Place) -> Node:
    size = max(8.0, min(_LABEL_SIZE, place[2] * 0.7 / len(label), place[3] * 0.8))
    line = Line(label, size * 0.36, size, bold=True)
    data = {"data_device": str(block.devices[0]), "data_block": str(at)}
    return node("g", *cell(place, line, fill=at, stroke_width=1.2), class_="part", **data)


def _striped(_block: Block, at: int, label: str, place: Place) -> Node:
    x, y, width, height = place
    stripes = Drawing(width, height, (shapes.stripes(width, height, stroke=colour(at)),)).at(x, y)
    line = Line(label, size=11, bold=True, halo=True)
    return node("g", *cell(place, line, fill="none", stripes=stripes, stroke_width=1.2), class_="partial")


def _outline(at: int, place: Place) -> Node:
    x, y, width, height = place
    data = {"class_": "outline", "data_block": str(at), "visibility": "hidden"}
    return node("rect", x=x, y=y, width=width, height=height, fill="none", **data)


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


def _element_size(
    indices: Sequence[tuple[slice, ...]], rows: int, columns: int, side: float
) -> tuple[float, float]:
    """Returns the width and height of an element: square, unless an edge or a block would become too thin."""
    square = min(side / max(rows, columns, 1), side / 4)
    thinnest = side / 6 if min(rows, columns) == 1 else side / 3.5
    row_cuts, column_cuts = (len({index[axis].start for index in indices}) for axis in (1, 2))
    least_width, least_height = (max(thinnest, cuts * side / 12) for cuts in (column_cuts, row_cuts))
    return max(square, least_width / max(columns, 1)), max(square, least_height / max(rows, 1))
