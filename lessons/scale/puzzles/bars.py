"""Limits as bars that fill: of what a quantity is made up, where its limit lies, and where par."""

from __future__ import annotations

from collections.abc import Mapping

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import cell
from course_lib.pictures.shapes import Node, node

WIDTH = 300.0
_HEIGHT, _TOP, _BELOW, _SIZE = 14.0, 14.0, 20.0, 11.0
_STRIPED = 5.0
_SHOWN = 1.5  # how many times the limit a bar can show


def limit_bar(
    parts: Mapping[str, float], limit: float, par: float | None, colours: Mapping[str, str]
) -> Drawing:
    """Returns a bar of parts in their colours, stripes under what is beyond its limit, and a star at par.

    Args:
        parts: what the quantity is made up of.
        limit: of all together.
        par: the least that a solution has, if it is this quantity that par is of.
        colours: of the parts.
    """
    scale = WIDTH / (_SHOWN * limit or 4)  # of none at all a bar shows four
    nodes: list[Node] = [*cell((0, _TOP, WIDTH, _HEIGHT), fill=shapes.PANEL, stroke=shapes.LINE)]
    x = 0.0
    for part, value in parts.items():
        width = min(scale * value, WIDTH - x)
        nodes.append(
            shapes.rectangle(x, _TOP, width, _HEIGHT, fill=colours[part], stroke=shapes.INK, stroke_width=0.6)
        )
        x += width
    at = scale * limit
    if x > at:
        stripes = shapes.stripes(x - at, _STRIPED, stroke=shapes.ALARM)
        nodes.append(Drawing(x - at, _STRIPED, (stripes,)).at(at, _TOP + _HEIGHT + 1))
    nodes.append(shapes.rectangle(at - 1, _TOP - 3, 2, _HEIGHT + 6, fill=shapes.INK, stroke_width=0))
    told = _("limit")
    middle = max(at, text_width(told, _SIZE) / 2)
    nodes.append(shapes.text(middle, _TOP + _HEIGHT + _SIZE + 6, told, size=_SIZE, anchor="middle"))
    if scale * sum(parts.values()) > WIDTH + 0.01:
        nodes.append(
            shapes.text(WIDTH - 3, _TOP + _HEIGHT - 3, "»", size=14, anchor="end", bold=True, halo=True)
        )
    if par is not None:
        nodes.append(shapes.text(scale * par, _TOP - 2, "★", size=12, anchor="middle"))
    return Drawing(WIDTH, _TOP + _HEIGHT + _BELOW, tuple(nodes))


def key(colours: Mapping[str, str], words: Mapping[str, str]) -> Drawing:
    """Returns what each colour stands for, with its words."""
    entries = []
    for part, told in words.items():
        nodes = *cell((0, 1, 14, 12), fill=colours[part]), shapes.text(19, 11, told, size=_SIZE)
        entries.append(Drawing(22 + text_width(told, _SIZE), _HEIGHT, nodes))
    return arranging.flowing(entries, 8, WIDTH)


def held_bar(share: float, told: str, whole: float, colour: str) -> Drawing:
    """Returns a bar as long as what a group of devices keeps, filled as far as one of them does."""
    nodes = (
        *cell((0, 0, whole, _HEIGHT), fill=shapes.EMPTY, stroke=shapes.LINE, dashes="3 2"),
        shapes.rectangle(
            0, 0, max(whole * share, 1.5), _HEIGHT, fill=colour, stroke=shapes.INK, stroke_width=0.6
        ),
        node("g", shapes.text(0, _HEIGHT + _SIZE + 2, told, size=_SIZE)),
    )
    return Drawing(max(whole, text_width(told, _SIZE)), _HEIGHT + _BELOW, nodes)
