"""Confusion matrices: how many examples of each class a model takes for which class, and their picture."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext, num_columns, padded
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.figures import Figure, draw, framed
from course_lib.pictures.shapes import Node, node, number
from course_lib.specs.classes import to_names, to_numbers
from course_lib.specs.drawing import DrawsItself

_CELL_WIDTH, _CELL_HEIGHT, _GAP, _WIDTH = 36.0, 24.0, 8.0, 500.0
_SIZE, _COUNT_SIZE = 12.0, 11.0
_SLOPE = 45.0  # degrees: the names over the columns rise
_DARKEST_MISTAKE = 0.5  # of the alarm colour: dark letters stay readable on it
_NONE = "·"


@dataclass(frozen=True, repr=False, eq=False)
class ConfusionMatrix(DrawsItself):
    """How many examples of each class a model takes for which class. It draws itself.

    >>> matrix = ConfusionMatrix.of([0, 0, 1, 1, 1], [0, 1, 1, 1, 0], names=["coat", "bag"])
    >>> matrix.counts.tolist(), matrix.accuracy
    ([[1, 1], [1, 2]], 0.6)

    Attributes:
        counts: `[true class, predicted class]`, int64.
        names: of the classes.
    """

    drawn_by = "lessons.lesson_10_custom_training.confusion"

    counts: npt.NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, labels: npt.ArrayLike, predictions: npt.ArrayLike, names: Iterable[str]) -> ConfusionMatrix:
        """Returns the matrix of a model's predictions.

        Args:
            labels: the number of the class that each example shows, `[examples]`.
            predictions: the number of the class that the model takes it for, `[examples]`.
            names: of the classes.

        Raises:
            CourseError: what is no class number, or not one prediction for each label.
        """
        known = to_names(names)
        true, told = to_numbers(labels, len(known)), to_numbers(predictions, len(known))
        if len(true) != len(told) or not len(true):
            raise CourseError(
                _(
                    "The number of labels is {labels}, the number of predictions {told}.",
                    labels=len(true),
                    told=len(told),
                ),
                allowed=_("one prediction for each label, and one label at least"),
                cure=_("Take labels and predictions of the same examples."),
            )
        counts = np.zeros((len(known), len(known)), np.int64)
        np.add.at(counts, (true, told), 1)
        return cls(counts, known)

    @property
    def accuracy(self) -> float:
        """The part that the model takes for what it is: the diagonal."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def sentence(self) -> str:
        """How many examples were counted, in how many classes: what no training changes."""
        examples = ngettext("{count} example", "{count} examples", int(self.counts.sum()))
        classes = ngettext("{count} class", "{count} classes", len(self.names))
        return _("Confusion matrix: {examples}, {classes}", examples=examples, classes=classes)

    def __repr__(self) -> str:
        return f"ConfusionMatrix(counts {self.counts.shape}, names={list(self.names)})"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the picture, and as text what is the same on every machine.

        What a trained model predicts is not, so that it stands in the picture and in its description.
        """
        del options
        return self._not_compared(self.sentence)


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
    """Returns a line for each of the most frequent mistakes, equal ones in the order of the classes."""
    wrong, lines = np.where(np.eye(len(matrix.counts), dtype=bool), 0, matrix.counts), []
    for at in np.argsort(-wrong, axis=None, kind="stable")[:3]:
        true, told = np.unravel_index(at, wrong.shape)
        line = ngettext(
            "{label} is taken for {prediction}: {count} example",
            "{label} is taken for {prediction}: {count} examples",
            int(wrong[true, told]),
            label=matrix.names[true],
            prediction=matrix.names[told],
        )
        lines += [f"  {line}"] if wrong[true, told] else []
    return (
        [_("The most frequent mistakes:"), *lines] if lines else [_("No example is taken for another class.")]
    )


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
        turned = f"translate({number(x + _CELL_WIDTH / 2)} {number(top - _GAP)}) rotate({number(-_SLOPE)})"
        nodes.append(node("g", shapes.text(0, 0, name, size=_SIZE), transform=turned))
        for column, count in enumerate(matrix.counts[row].tolist()):
            # Next to what is right most mistakes are few: the darkest shade is that of the most frequent.
            most = 1.0 if row == column else _DARKEST_MISTAKE / greatest
            shade = float(parts[row, column] * most)
            nodes += _cell(count, shade, left + column * _CELL_WIDTH, y, right=row == column)
    size = len(matrix.names)
    return Drawing(left + size * _CELL_WIDTH + rise, top + size * _CELL_HEIGHT, tuple(nodes))


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
