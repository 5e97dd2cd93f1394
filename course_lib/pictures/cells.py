"""The cell that every picture is made of: a face in the colour of its data, an edge, lines in its middle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from course_lib.pictures import shapes
from course_lib.pictures.shapes import Node

_WORDS = 10.0
Place = tuple[float, float, float, float]  # left, upper edge, width, height


@dataclass(frozen=True)
class Line:
    """A line of text in the middle of a cell, its baseline so far `down` below that.

    A halo keeps stripes off its letters.
    """

    content: str
    down: float = 4
    size: float = 12
    bold: bool = False
    monospace: bool = False
    halo: bool = False


def colour(data: int | None) -> str:
    """Returns the colour of a number of data: equal data has equal colour; None is data that is no block."""
    return "#FFFFFF" if data is None else shapes.PALETTE[data % len(shapes.PALETTE)]


def shade(data: int) -> str:
    """Returns a colour for a number of data; those that the palette lacks are its colours, made lighter."""
    strong = shapes.PALETTE[data % len(shapes.PALETTE)]
    if data < len(shapes.PALETTE):
        return strong
    channels = (int(strong[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{(channel + 2 * 255) // 3:02X}" for channel in channels)


def words_in(place: Place, content: str) -> list[Line]:
    """Returns words in the middle of a cell, on as many lines as its width asks for."""
    words = content.split()
    if not words:
        return []
    _x, _y, width, height = place
    on_a_line = max(int((width - 2) / (_WORDS * 0.58 * (max(map(len, words)) + 1))), 1)
    on_a_line = math.ceil(len(words) / math.ceil(len(words) / on_a_line))  # lines of about one length
    lines = [" ".join(words[at : at + on_a_line]) for at in range(0, len(words), on_a_line)]
    size = min(_WORDS, height / (1.1 * len(lines)), (width - 2) / (0.64 * max(map(len, lines))))
    top = -size * 1.1 * len(lines) / 2
    return [Line(line, top + size * (1.1 * row + 0.9), size, bold=True) for row, line in enumerate(lines)]


def cell(
    place: Place, *lines: Line, fill: str | int | None, stripes: Node | None = None, **edge: Any
) -> tuple[Node, ...]:
    """Returns a cell: a block of a tensor, a value, a chunk, a box of a task.

    Args:
        place: left, upper edge, width and height.
        lines: what it says.
        fill: the colour of its face, or the number of the data that it stands for.
        stripes: what marks a partial sum: it lies between face and edge.
        edge: how `shapes.rectangle` draws the edge, by default in soft ink.
    """
    edge = {"stroke": shapes.SOFT_INK, **edge}
    face = fill if isinstance(fill, str) else colour(fill)
    middle, height = place[0] + place[2] / 2, place[1] + place[3] / 2
    texts = [shapes.text(middle, height, anchor="middle", **vars(line)) for line in lines]
    if stripes is None:
        return (shapes.rectangle(*place, fill=face, **edge), *texts)
    behind = () if face == "none" else (shapes.rectangle(*place, fill=face, stroke_width=0),)
    return (*behind, stripes, shapes.rectangle(*place, fill="none", **edge), *texts)
