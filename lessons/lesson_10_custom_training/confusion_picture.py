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
            right=int(np.trace(matrix.counts)),
            examples=int(matrix.counts.sum()),
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
            count,
            label=label,
            prediction=prediction,
        )
        for label, prediction, count in found
    ]
    return [_("The most frequent mistakes:"), *(f"  {line}" for line in lines)]


def _rows(matrix: ConfusionMatrix) -> list[str]:
    """Returns the matrix in letters: columns have the numbers of their classes, rows also their names."""
    numbers = [str(at) for at in range(len(matrix.names))]
    labels = [f"{at} {name}" for at, name in enumerate(matrix.names)]
    rows = [[str(count) if count else _NONE for count in row] for row in matrix.counts.tolist()]
    left = max(map(num_columns, labels))
    wide = max(len(cell) for cells in [numbers, *rows] for cell in cells)
    table = [("", numbers), *zip(labels, rows, strict=True)]
    return [
        f"  {padded(label, left)}  " + "  ".join(f"{cell:>{wide}}" for cell in cells)
        for label, cells in table
    ]


def _table(matrix: ConfusionMatrix) -> Drawing:
    longest = max(text_width(name, _SIZE) for name in matrix.names)
    rise = longest * math.sin(math.radians(_SLOPE))
    left, top = longest + _GAP, rise + _SIZE + _GAP
    parts = matrix.counts / np.maximum(1, matrix.counts.sum(axis=1, keepdims=True))
    greatest = np.where(np.eye(len(parts), dtype=bool), 0, parts).max() or 1.0
    nodes = []
    for row, name in enumerate(matrix.names):
        y, x = top + row * _CELL_HEIGHT, left + row * _CELL_WIDTH
        nodes.append(
            shapes.text(left - _GAP, y + _CELL_HEIGHT / 2 + _SIZE / 3, name, size=_SIZE, anchor="end")
        )
        nodes.append(_rising(x + _CELL_WIDTH / 2, top - _GAP, name))
        for column, count in enumerate(matrix.counts[row].tolist()):
            # Next to what is right most mistakes are few: the darkest shade is that of the most frequent.
            most = 1.0 if row == column else _DARKEST_MISTAKE / greatest
            shade = float(parts[row, column] * most)
            nodes += _cell(count, shade, left + column * _CELL_WIDTH, y, right=row == column)
    size = len(matrix.names)
    return Drawing(left + size * _CELL_WIDTH + rise, top + size * _CELL_HEIGHT, tuple(nodes))


def _rising(x: float, y: float, name: str) -> Node:
    turned = f"translate({number(x)} {number(y)}) rotate({number(-_SLOPE)})"
    return node("g", shapes.text(0, 0, name, size=_SIZE), transform=turned)


def _cell(count: int, shade: float, x: float, y: float, *, right: bool) -> list[Node]:
    """Returns a cell with its count, as dark as `shade` says; mistakes have another colour."""
    frame = shapes.rectangle(
        x, y, _CELL_WIDTH, _CELL_HEIGHT, fill="#FFFFFF", stroke_width=2 if right else 1, class_="cell"
    )
    face = node(
        "rect",
        x=x + 1,
        y=y + 1,
        width=_CELL_WIDTH - 2,
        height=_CELL_HEIGHT - 2,
        fill=shapes.PALETTE[0] if right else shapes.ALARM,
        fill_opacity=shade,
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
    return [frame, face, words]
