"""The cell that every picture is made of: a face in the colour of its data, an edge, lines in its middle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from course_lib.pictures import shapes
from course_lib.pictures.shapes import Node

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
    texts = [
        shapes.text(
            middle,
            height + line.down,
            line.content,
            size=line.size,
            anchor="middle",
            bold=line.bold,
            monospace=line.monospace,
            halo=line.halo,
        )
        for line in lines
    ]
    if stripes is None:
        return (shapes.rectangle(*place, fill=face, **edge), *texts)
    behind = () if face == "none" else (shapes.rectangle(*place, fill=face, stroke_width=0),)
    return (*behind, stripes, shapes.rectangle(*place, fill="none", **edge), *texts)
