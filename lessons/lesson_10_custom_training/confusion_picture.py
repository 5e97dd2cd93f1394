"""The picture of a confusion matrix: a row for each true class, a column for each predicted one."""

from __future__ import annotations

import math

import numpy as np

from course_lib.i18n import _, ngettext, num_columns, padded
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.figures import Figure, draw, framed
from course_lib.pictures.shapes import Node, node, number
from lessons.lesson_10_custom_training.confusion import ConfusionMatrix

_CELL_WIDTH, _CELL_HEIGHT, _GAP, _WIDTH = 36.0, 24.0, 8.0, 500.0
_SIZE, _COUNT_SIZE = 12.0, 11.0
_SLOPE = 45.0  # degrees: the names over the columns rise
_DARKEST_MISTAKE = 0.5  # of the alarm colour: dark letters stay readable on it
_NONE = "·"


@draw.register
def _confusion_figure(matrix: ConfusionMatrix) -> Figure:
    told = [
        _(
            "Accuracy {accuracy:.4f}: {right} of {examples} are on the diagonal.",
            accuracy=matrix.accuracy,
            right=matrix.num_right,
            examples=matrix.num_examples,
        ),
        _("A row is what the examples show, a column is what the model takes them for."),
    ]
    mistakes = _mistakes(matrix)
    drawings = [
        arranging.lines_of_text([matrix.sentence], size=14, max_width=_WIDTH),
        arranging.lines_of_text(told, size=12, max_width=_WIDTH, fill=shapes.SOFT_INK),
        _table(matrix),
        arranging.lines_of_text(mistakes, size=12, max_width=_WIDTH),
    ]
    return framed(matrix.sentence, drawings, [*told, "", *_rows(matrix), "", *mistakes])


def _mistakes(matrix: ConfusionMatrix) -> list[str]:
    """Returns a line for each of the most frequent mistakes."""
    found = matrix.most_confused()
    if not found:
        return [_("No example is taken for another class.")]
    lines = [
        ngettext(
            "{label} is taken for {prediction}: {count} example",
            "{label} is taken for {prediction}: {count} examples",
            each.count,
            label=each.label,
            prediction=each.prediction,
        )
        for each in found
    ]
    return [_("The most frequent mistakes:"), *(f"  {line}" for line in lines)]


def _rows(matrix: ConfusionMatrix) -> list[str]:
    """Returns the matrix in letters: columns have the numbers of their classes, rows also their names."""
    numbers = [str(at) for at in range(len(matrix.names))]
    labels = [at if name == at else f"{at} {name}" for at, name in zip(numbers, matrix.names, strict=True)]
    rows = [[str(count) if count else _NONE for count in row] for row in matrix.counts.tolist()]
    left = max(map(num_columns, labels))
    wide = max(len(cell) for cells in [numbers, *rows] for cell in cells)
    table = [("", numbers), *zip(labels, rows, strict=True)]
    return [
        f"  {padded(label, left)}  " + "  ".join(f"{cell:>{wide}}" for cell in cells)
        for label, cells in table
    ]


def _table(matrix: ConfusionMatrix) -> Drawing:
    left = max(text_width(name, _SIZE) for name in matrix.names) + _GAP
    rise = math.sin(math.radians(_SLOPE))
    longest = max(text_width(name, _SIZE) for name in matrix.names) * rise
    top = longest + _SIZE + _GAP
    num_classes = len(matrix.names)
    width, height = left + num_classes * _CELL_WIDTH, top + num_classes * _CELL_HEIGHT
    nodes = []
    for at, name in enumerate(matrix.names):
        down = top + (at + 0.5) * _CELL_HEIGHT + _SIZE / 3
        nodes.append(shapes.text(left - _GAP, down, name, size=_SIZE, anchor="end"))
        nodes.append(_rising(left + (at + 0.5) * _CELL_WIDTH, top - _GAP, name))
        nodes += [
            each
            for column in range(num_classes)
            for each in _cell(matrix, at, column, left + column * _CELL_WIDTH, top + at * _CELL_HEIGHT)
        ]
    return Drawing(width + longest, height, tuple(nodes))


def _rising(x: float, y: float, name: str) -> Node:
    turned = f"translate({number(x)} {number(y)}) rotate({number(-_SLOPE)})"
    return node("g", shapes.text(0, 0, name, size=_SIZE), transform=turned)


def _cell(matrix: ConfusionMatrix, true: int, told: int, x: float, y: float) -> list[Node]:
    """Returns a cell: the darker, the greater its part of the row.

    Mistakes have another colour, whose darkest shade is that of the greatest mistake: next to what is right
    most are small.
    """
    count, right = int(matrix.counts[true, told]), true == told
    parts = matrix.counts / np.maximum(1, matrix.counts.sum(axis=1, keepdims=True))
    greatest = np.where(np.eye(len(parts), dtype=bool), 0, parts).max()
    colour, most = (shapes.PALETTE[0], 1.0) if right else (shapes.ALARM, _DARKEST_MISTAKE / (greatest or 1))
    frame = shapes.rectangle(
        x, y, _CELL_WIDTH, _CELL_HEIGHT, fill="#FFFFFF", stroke_width=2 if right else 1, class_="cell"
    )
    shade = node(
        "rect",
        x=x + 1,
        y=y + 1,
        width=_CELL_WIDTH - 2,
        height=_CELL_HEIGHT - 2,
        fill=colour,
        fill_opacity=float(parts[true, told] * most),
    )
    words = shapes.text(
        x + _CELL_WIDTH / 2,
        y + _CELL_HEIGHT / 2 + _COUNT_SIZE / 3,
        str(count) if count else _NONE,
        size=_COUNT_SIZE,
        anchor="middle",
        bold=right,
        fill=shapes.INK if count else shapes.SOFT_INK,
    )
    return [frame, shade, words]
