"""The picture of loss scaling: what each replica returns, and the wrong gradient beside the right one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import colour
from course_lib.pictures.figures import Figure, draw, framed
from course_lib.pictures.shapes import Node, number
from lessons.lesson_10_custom_training import loss_scaling_text as words
from lessons.lesson_10_custom_training.loss_scaling import LossScaling

_LEAST_WIDTH, _SIZE = 440.0, 12.0
_CELL, _CELL_HEIGHT, _CELL_GAP = 34.0, 26.0, 3.0
_ARROWS, _ARROW_HEIGHT, _HEAD, _BETWEEN = 200.0, 20.0, 8.0, 12.0


@draw.register
def _loss_scaling_figure(scaling: LossScaling) -> Figure:
    title, says = words.title(scaling), _plain(words.sentences(scaling))
    told = _("Divided by: {divisor}", divisor=words.division_text(scaling.division))
    parts = [parts_drawing(scaling), *result_drawings(scaling)]
    width = max(_LEAST_WIDTH, *(part.width for part in parts))
    fill = shapes.INK if says[0].startswith("✓") else shapes.ALARM
    drawings = [
        arranging.lines_of_text([title], size=14, max_width=width),
        arranging.lines_of_text([told], size=_SIZE, max_width=width, fill=shapes.SOFT_INK),
        *parts,
        arranging.lines_of_text(says, size=13, max_width=width, fill=fill),
    ]
    return framed(title, drawings, [told, "", *lines(scaling), "", *says])


def lines(scaling: LossScaling) -> list[str]:
    """Returns what each replica returns, and the losses and gradients that come of it."""
    shown = [_("Each replica returns")]
    for at in range(scaling.num_replicas):
        shown.append(f"  {words.replica_text(at)}  {words.calculation(scaling, at)}")
    for heading, rows in words.results(scaling).items():
        shown += ["", heading]
        shown += [f"  {words.number_text(value):>6}  {_plain([name])[0]}" for name, value in rows]
    return shown


def parts_drawing(scaling: LossScaling) -> Drawing:
    """Returns each replica with the losses of its examples, and what it returns."""
    names = [words.replica_text(at) for at in range(scaling.num_replicas)]
    left = max(text_width(name, _SIZE) for name in names) + _BETWEEN
    most = max(map(len, scaling.losses))
    return arranging.stacked([_part(scaling, at, left, most) for at in range(scaling.num_replicas)], 6)


def result_drawings(scaling: LossScaling) -> list[Drawing]:
    """Returns arrows as long as the losses, and as the gradients: the right one first."""
    return [arranging.titled(heading, _arrows(rows)) for heading, rows in words.results(scaling).items()]


def _part(scaling: LossScaling, replica: int, left: float, most: int) -> Drawing:
    nodes, middle = [shapes.text(0, _CELL_HEIGHT / 2 + 4, words.replica_text(replica))], _CELL_HEIGHT / 2 + 4
    step = _CELL + _CELL_GAP
    for at, loss in enumerate(scaling.losses[replica]):
        x = left + at * step
        face = shapes.rectangle(x, 0, _CELL, _CELL_HEIGHT, fill=colour(replica), stroke=shapes.SOFT_INK)
        value = shapes.text(x + _CELL / 2, middle, words.number_text(loss), anchor="middle")
        nodes += [face, value]
    if not scaling.losses[replica]:
        nodes.append(shapes.rectangle(left, 0, _CELL, _CELL_HEIGHT, fill="none", dashes="3 3"))
    told, end = words.calculation(scaling, replica), left + most * step + _BETWEEN
    wrong = math.isnan(scaling.reports[replica])
    nodes.append(shapes.text(end, middle, told, fill=shapes.ALARM if wrong else shapes.INK))
    return Drawing(end + text_width(told, _SIZE), _CELL_HEIGHT, tuple(nodes))


def _arrows(rows: Sequence[tuple[str, float]]) -> Drawing:
    """Returns an arrow for each value on one scale, those below zero to the left; none for NaN."""
    values = [value for _name, value in rows if not math.isnan(value)]
    lowest, highest = min(0.0, *values), max(0.0, *values)
    scale = _ARROWS / ((highest - lowest) or 1.0)
    names = _plain([name for name, _value in rows])
    zero = max(text_width(name, _SIZE) for name in names) + _BETWEEN - lowest * scale
    end, nodes, right = zero + highest * scale + _BETWEEN, list[Node](), rows[0][1]
    for at, (name, (_name, value)) in enumerate(zip(names, rows, strict=True)):
        y, same = at * _ARROW_HEIGHT + _ARROW_HEIGHT / 2, math.isclose(value, right, rel_tol=1e-9)
        fill = shapes.INK if same else shapes.ALARM
        nodes += [shapes.text(0, y + 4, name), shapes.text(end, y + 4, words.number_text(value), fill=fill)]
        nodes += _arrow(zero, y, 0.0 if math.isnan(value) else value * scale, fill)
    width = end + max(text_width(words.number_text(value), _SIZE) for _name, value in rows)
    return Drawing(width, len(rows) * _ARROW_HEIGHT, tuple(nodes))


def _arrow(zero: float, y: float, length: float, fill: str) -> list[Node]:
    """Returns an arrow from zero; a dot where there is no length for one."""
    if abs(length) < _HEAD:
        return [shapes.node("circle", cx=zero, cy=y, r=3, fill=fill)]
    back = math.copysign(_HEAD, length)
    shaft = f"M{number(zero)} {number(y)}H{number(zero + length - back)}"
    head = f"M{number(zero + length - back)} {number(y - 5)}v10l{number(back)} -5z"
    return [
        shapes.node("path", d=shaft, stroke=fill, stroke_width=3),
        shapes.node("path", d=head, fill=fill),
    ]


def _plain(texts: Sequence[str]) -> list[str]:
    """Returns texts without the backticks, which only pages turn into code."""
    return [text.replace("`", "") for text in texts]
