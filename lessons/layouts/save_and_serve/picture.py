"""The picture of this lesson: the way from a text to an answer, and what each arrow of it needs."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, framed
from course_lib.pictures.shapes import Node

_BOX, _GAP, _HIGH = 100.0, 52.0, 36.0
_ROW, _WEIGHTS = 1, 0  # the colours of the two halves


def path_picture() -> Figure:
    """Returns the stations between a text and an answer, and below each arrow what it takes."""
    stations = [_("text"), _("1,200 numbers"), _("hidden units"), _("logits"), _("answer")]
    arrows = [("?",), ("W1", "b1"), ("W2", "b2"), ("softmax",)]
    halves = [(_("not in the checkpoint"), _ROW, 0, 1), (_("in the checkpoint"), _WEIGHTS, 1, 3)]
    nodes: list[Node] = []
    for at, name in enumerate(stations):
        left = at * (_BOX + _GAP)
        nodes += cell((left, 0, _BOX, _HIGH), Line(name), fill=shapes.EMPTY, radius=4)
    for at, needed in enumerate(arrows):
        start, middle = at * (_BOX + _GAP) + _BOX + 4, _HIGH / 2
        end = start + _GAP - 8
        line = f"M{start} {middle}H{end}M{end - 6} {middle - 5}L{end} {middle}L{end - 6} {middle + 5}"
        nodes.append(shapes.node("path", d=line, stroke=shapes.SOFT_INK, stroke_width=1.5, fill="none"))
        for row, what in enumerate(needed):
            nodes.append(shapes.text((start + end) / 2, 56 + 16 * row, what, anchor="middle", bold=True))
    for name, colour, first, last in halves:
        left, right = (at * (_BOX + _GAP) + _BOX / 2 + 6 * side for at, side in ((first, 1), (last, -1)))
        nodes += cell((left, 84, right - left, 24), Line(name), fill=colour, radius=4)
    told = [f"{name} → " for name in stations[:-1]]
    lines = ["".join([*told, stations[-1]])]
    for name, _colour, first, last in halves:
        lines.append(f"{name}: {' | '.join(', '.join(needed) for needed in arrows[first:last])}")
    drawing = Drawing(5 * _BOX + 4 * _GAP, 110, tuple(nodes))
    return framed(_("From a text to an answer"), [drawing], lines)
