"""Pictures of who takes part in a training: rows of boxes with bars between them, or lanes over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line as Label
from course_lib.pictures.cells import cell, colour
from course_lib.pictures.figures import Figure, framed
from course_lib.pictures.shapes import Node, node
from course_lib.widgets import pieces

WIDTH = 660.0  # that no row exceeds
_HEAD, _LINE, _PAD, _GAP, _SIZE, _LEAST_LINK = 24.0, 24.0, 8.0, 12.0, 12.0, 300.0
_LANE, _LEFT = 30.0, 80.0  # of a timeline


@dataclass(frozen=True)
class Line:
    """A line in a box.

    Attributes:
        text: what is there.
        data: which data it is: what is equal has equal numbers. None for what has no colour.
        waits: whether it is a partial sum that waits for those of others.
    """

    text: str
    data: int | None = None
    waits: bool = False


@dataclass(frozen=True)
class Box:
    """One that takes part: a device, or a process.

    Attributes:
        name: how it is called.
        lines: what is there.
        colour: of its head.
        note: what stands beside the name of the one that is marked.
    """

    name: str
    lines: tuple[Line, ...]
    colour: str = shapes.EMPTY
    note: str = ""

    def text(self) -> str:
        """Returns the same in words.

        >>> Box("GPU:0", (Line("variables"), Line("gradients"))).text()
        'GPU:0: variables, gradients'
        """
        lines = _(", ").join(line.text for line in self.lines)
        words = f"{self.name}: {lines}"
        return _("{text} ({note})", text=words, note=self.note) if self.note else words


# From the top down: rows of boxes, and sentences that say what goes from one to the other.
Scheme = Sequence[Sequence[Box] | str]


def boxes_of(scheme: Scheme) -> list[Box]:
    """Returns the boxes of all rows."""
    return [box for row in scheme if not isinstance(row, str) for box in row]


def scheme_image(scheme: Scheme, *, fits: bool = False) -> Node:
    """Returns the picture, described by its boxes, then its sentences; it shrinks to fit, or can be moved."""
    boxes, drawing = boxes_of(scheme), scheme_drawing(scheme)
    described = "\n".join([*(box.text() for box in boxes), *(row for row in scheme if isinstance(row, str))])
    return pieces.image(drawing, described) if fits else pieces.images([drawing], described)


def scheme_figure(title: str, scheme: Scheme) -> Figure:
    """Returns the picture for a notebook, and in words from the top down."""
    rows = [[row] if isinstance(row, str) else [box.text() for box in row] for row in scheme]
    return framed(title, [scheme_drawing(scheme)], list(chain(*rows)))


def scheme_drawing(scheme: Scheme) -> Drawing:
    """Returns all boxes equally wide, and bars as wide as the widest row."""
    boxes = boxes_of(scheme)
    texts = [f"{box.name}  {box.note}" for box in boxes]
    texts += [line.text for box in boxes for line in box.lines]
    width = max(text_width(each, _SIZE) for each in texts) + 4 * _PAD
    rows = [
        row if isinstance(row, str) else arranging.flowing([_box(box, width) for box in row], _GAP, WIDTH)
        for row in scheme
    ]
    widest = max(row.width for row in rows if not isinstance(row, str))
    return arranging.stacked([_link(row, widest) if isinstance(row, str) else row for row in rows], 8)


def _box(box: Box, width: float) -> Drawing:
    """Returns a box: its name above, and a bar for each line."""
    height = _HEAD + (_LINE + 6) * len(box.lines) + 4
    stroke, stroke_width = (shapes.INK, 3) if box.note else (shapes.SOFT_INK, 1)
    frame = (0.5, 0.5, width - 1, height - 1)
    nodes = [
        shapes.rectangle(*frame, fill=shapes.PANEL, stroke_width=0, radius=6),
        shapes.tab(1, 1, width - 2, _HEAD - 2, fill=box.colour, radius=5),
        shapes.rectangle(*frame, fill="none", stroke=stroke, stroke_width=stroke_width, radius=6),
        shapes.text(_PAD, 16, box.name, size=_SIZE, bold=True),
        shapes.text(width - _PAD, 16, box.note, size=_SIZE, anchor="end"),
    ]
    for at, line in enumerate(box.lines):
        nodes.append(_bar(line, width - 2 * _PAD).at(_PAD, _HEAD + 3 + (_LINE + 6) * at))
    return Drawing(width, height, (node("g", *nodes, class_="holder this" if box.note else "holder"),))


def _bar(line: Line, width: float) -> Drawing:
    fill = shapes.PANEL if line.data is None else colour(line.data)
    striped = shapes.stripes(width, _LINE, stroke=shapes.PALETTE[-1]) if line.waits else None
    face = cell((0, 0, width, _LINE), fill=fill, stripes=striped, radius=2)
    label = shapes.text(_PAD, 16, line.text, size=_SIZE, halo=line.waits)
    return Drawing(width, _LINE, (*face, label))


def _link(sentence: str, width: float) -> Drawing:
    words = arranging.lines_of_text([sentence], size=_SIZE, max_width=max(width, _LEAST_LINK) - 2 * _PAD)
    wide, height = max(width, words.width + 2 * _PAD), words.height + 8
    bar = cell((0.5, 0.5, wide - 1, height - 1), fill=shapes.EMPTY, dashes="4 3")
    return Drawing(wide, height, (*bar, words.at(_PAD, 3)))


# What one does for some time: what the bar says, its units of time, the fill of its cell, its edge.
Span = tuple[str, int, str | int, dict[str, Any]]
WAITING: dict[str, Any] = {"dashes": "4 3"}  # an edge


def timeline(heading: str, lanes: Mapping[str, Sequence[Span]], unit: float) -> tuple[Drawing, list[str]]:
    """Returns lanes under a heading, a unit of time `unit` wide, and the same in words."""
    nodes, words, width = list[Node](), [heading], _LEFT
    for at, (name, spans) in enumerate(lanes.items()):
        x, y = _LEFT, at * _LANE
        nodes.append(shapes.text(0, y + 16, name))
        for says, units, fill, edge in spans:
            nodes += cell((x, y, units * unit, _LINE), Label(says), fill=fill, **edge)
            x += units * unit
        width = max(width, x)
        words.append(f"{name}: " + _(", ").join(span[0] for span in spans))
    return arranging.titled(heading, Drawing(width, len(lanes) * _LANE, tuple(nodes))), words


def arrow(x: float, top: float, bottom: float, says: str = "", left: bool = False) -> tuple[Node, ...]:
    """Returns an arrow from `top` to `bottom`, which may lie above, and what goes along it."""
    back = 7 if bottom > top else -7
    line = f"M{x} {top}V{bottom}M{x - 5} {bottom - back}L{x} {bottom}L{x + 5} {bottom - back}"
    aside, anchor = (x - 8, "end") if left else (x + 8, "start")
    label = shapes.text(aside, (top + bottom) / 2 + 4, says, anchor=anchor)
    return node("path", d=line, fill="none", stroke=shapes.INK, stroke_width=1.5), label
