"""Confusion matrices: how many examples of each class a model takes for which class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.specs.classes import to_names, to_numbers
from course_lib.specs.drawing import DrawsItself


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

    drawn_by = "lessons.lesson_10_custom_training.confusion_picture"

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

    def most_confused(self, count: int = 3) -> list[tuple[str, str, int]]:
        """Returns the most frequent mistakes: what the examples show, what they are taken for, how many.

        >>> counts = np.array([[5, 0, 1], [2, 4, 0], [0, 1, 6]])
        >>> ConfusionMatrix(counts, ("shirt", "coat", "bag")).most_confused(1)
        [('coat', 'shirt', 2)]
        """
        mistakes = np.where(np.eye(len(self.counts), dtype=bool), 0, self.counts)
        order = np.argsort(-mistakes, axis=None, kind="stable")[:count]
        pairs = zip(*np.unravel_index(order, mistakes.shape), strict=True)
        return [
            (self.names[true], self.names[told], int(mistakes[true, told]))
            for true, told in pairs
            if mistakes[true, told]
        ]

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
