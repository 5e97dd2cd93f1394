"""Drawings: shapes with a size, put side by side, under headings, and on one light panel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.i18n import num_columns
from course_lib.pictures import shapes
from course_lib.pictures.shapes import Node, node, number

_PADDING = 16.0
_WIDE, _CLOSING = "\u1100-\uffef", "、。，．：；！？）］｝」』】〉》〕…ー"
# A line may break after a space or a wide character, but not before a mark that closes.
_PIECE = re.compile(f"[^ {_WIDE}]*(?:[{_WIDE}][{_CLOSING}]*| )|[^ {_WIDE}]+")


@dataclass(frozen=True)
class Drawing:
    """Shapes that fill the rectangle from (0, 0) to (`width`, `height`)."""

    width: float
    height: float
    nodes: tuple[Node, ...]

    def at(self, x: float, y: float) -> Node:
        """Returns the drawing moved to (`x`, `y`)."""
        return node("g", *self.nodes, transform=f"translate({number(x)} {number(y)})")


def text_width(content: str, size: float) -> float:
    """Returns about how wide a line of text becomes, East Asian characters counted as full squares."""
    wide = num_columns(content) - len(content)
    return size * (wide + 0.58 * (len(content) - wide))


def lines_of_text(lines: Sequence[str], *, size: float, max_width: float, fill: str = shapes.INK) -> Drawing:
    """Returns lines of text under each other, broken where they would become wider than `max_width`."""
    broken = [part for content in lines for part in _broken(content, size, max_width)]
    nodes = tuple(
        shapes.text(0, size * (1.45 * row + 1), part, size=size, fill=fill) for row, part in enumerate(broken)
    )
    width = max((text_width(part, size) for part in broken), default=0.0)
    return Drawing(width, size * 1.45 * len(broken), nodes)


def titled(title: str, drawing: Drawing) -> Drawing:
    """Returns the drawing under a heading."""
    size, gap = 12.0, 10.0
    heading = shapes.text(0, size, title, size=size, fill=shapes.SOFT_INK, bold=True)
    width = max(drawing.width, text_width(title, size))
    return Drawing(width, size + gap + drawing.height, (heading, drawing.at(0, size + gap)))


def stacked(drawings: Sequence[Drawing], gap: float) -> Drawing:
    """Returns the drawings under each other."""
    nodes, y = [], 0.0
    for drawing in drawings:
        nodes.append(drawing.at(0, y))
        y += drawing.height + gap
    return Drawing(max(drawing.width for drawing in drawings), y - gap, tuple(nodes))


def beside(drawings: Sequence[Drawing], gap: float) -> Drawing:
    """Returns the drawings next to each other, their upper edges in line."""
    nodes, x = [], 0.0
    for drawing in drawings:
        nodes.append(drawing.at(x, 0))
        x += drawing.width + gap
    return Drawing(x - gap, max(drawing.height for drawing in drawings), tuple(nodes))


def flowing(drawings: Sequence[Drawing], gap: float, max_width: float) -> Drawing:
    """Returns the drawings in rows like words in a paragraph: a new row where `max_width` is reached."""
    rows: list[list[Drawing]] = [[]]
    for drawing in drawings:
        width = sum(placed.width + gap for placed in rows[-1]) + drawing.width
        if rows[-1] and width > max_width:
            rows.append([])
        rows[-1].append(drawing)
    return stacked([beside(row, gap) for row in rows], gap)


def document(drawing: Drawing, title: str) -> Node:
    """Returns a whole SVG image: the drawing on a light panel that reads well on dark pages too."""
    width, height = drawing.width + 2 * _PADDING, drawing.height + 2 * _PADDING
    panel = shapes.rectangle(0.5, 0.5, width - 1, height - 1, fill=shapes.PANEL, stroke="#DDE1E6", radius=10)
    return node(
        "svg",
        node("title", title),
        panel,
        drawing.at(_PADDING, _PADDING),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        **_size(width, height),
        style="max-width:100%;height:auto",
        font_family=shapes.SANS,
    )


def part_of_a_page(drawing: Drawing, **attributes: str) -> Node:
    """Returns the drawing as an SVG element that a page lays out and lets the reader use."""
    return node("svg", *drawing.nodes, **attributes, **_size(drawing.width, drawing.height))


def _size(width: float, height: float) -> dict[str, str]:
    across, down = number(width), number(height)
    return {"width": across, "height": down, "viewBox": f"0 0 {across} {down}"}


def _broken(content: str, size: float, max_width: float) -> list[str]:
    if text_width(content, size) <= max_width:
        return [content]
    lines = [""]
    for piece in _PIECE.findall(content):
        if lines[-1].strip() and text_width((lines[-1] + piece).rstrip(), size) > max_width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return lines
