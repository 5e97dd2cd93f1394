"""Confusion matrices: how many examples of each class a model takes for which class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _, ngettext
from course_lib.specs.classes import to_names, to_numbers
from course_lib.specs.drawing import DrawsItself

Counts = npt.NDArray[np.int64]

MOST_CLASSES = 20
_AXES = 2


@dataclass(frozen=True)
class Confusion:
    """A kind of mistake.

    Attributes:
        label: the name of the class that the examples show.
        prediction: the name of the class that the model takes them for.
        count: how many examples.
    """

    label: str
    prediction: str
    count: int


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ConfusionMatrix(DrawsItself):
    """How many examples of each class a model takes for which class. It draws itself.

    >>> matrix = ConfusionMatrix.of([0, 0, 1, 1, 1], [0, 1, 1, 1, 0], names=["coat", "bag"])
    >>> matrix.counts.tolist(), matrix.accuracy
    ([[1, 1], [1, 2]], 0.6)

    Attributes:
        counts: `[true class, predicted class]`, int64.
        names: of the classes.

    Raises:
        CourseError: counts that are no square of whole numbers from 0, no class, too many of them, or not one
            name for each.
    """

    drawn_by = "lessons.lesson_10_custom_training.confusion_picture"

    counts: Counts
    names: tuple[str, ...]

    def __init__(self, counts: npt.ArrayLike, names: Iterable[str] | None = None) -> None:
        """Takes the counts, and the names of the classes; without them the numbers are the names."""
        checked = _to_counts(counts)
        object.__setattr__(self, "counts", checked)
        object.__setattr__(self, "names", _names(names, len(checked)))

    @classmethod
    def of(
        cls, labels: npt.ArrayLike, predictions: npt.ArrayLike, names: Iterable[str] | None = None
    ) -> ConfusionMatrix:
        """Returns the matrix of a model's predictions.

        Args:
            labels: the number of the class that each example shows, `[examples]`.
            predictions: the number of the class that the model takes it for, `[examples]`.
            names: of the classes; if left out, there are as many as the greatest number says.

        Raises:
            CourseError: what is no class number, or not one prediction for each label.
        """
        known = None if names is None else to_names(names)
        most = MOST_CLASSES if known is None else len(known)
        true, told = to_numbers(labels, most), to_numbers(predictions, most)
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
        num_classes = int(max(true.max(), told.max())) + 1 if known is None else len(known)
        counts = np.zeros((num_classes, num_classes), np.int64)
        np.add.at(counts, (true, told), 1)
        return cls(counts, known)

    @property
    def num_examples(self) -> int:
        """How many examples were counted."""
        return int(self.counts.sum())

    @property
    def num_right(self) -> int:
        """How many the model takes for what they are: the diagonal."""
        return int(np.trace(self.counts))

    @property
    def accuracy(self) -> float:
        """The part that the model takes for what it is."""
        return self.num_right / self.num_examples

    def most_confused(self, count: int = 3) -> tuple[Confusion, ...]:
        """Returns the most frequent mistakes, the most frequent first; fewer if there are not so many.

        >>> ConfusionMatrix([[5, 0, 1], [2, 4, 0], [0, 1, 6]], ["shirt", "coat", "bag"]).most_confused(1)
        (Confusion(label='coat', prediction='shirt', count=2),)

        Args:
            count: how many kinds of mistakes at most; of equally frequent ones, those of the first classes.

        Raises:
            CourseError: `count` is no whole number from 1.
        """
        most = whole_number(
            count,
            _("{count!r} kinds of mistakes cannot be listed.", count=count),
            least=1,
            cure=_("Ask for the three most frequent, for example."),
        )
        mistakes = np.where(np.eye(len(self.counts), dtype=bool), 0, self.counts)
        order = np.argsort(-mistakes, axis=None, kind="stable")[:most]
        pairs = (divmod(int(place), len(self.counts)) for place in order)
        found = ((true, told, int(mistakes[true, told])) for true, told in pairs)
        return tuple(
            Confusion(self.names[true], self.names[told], many) for true, told, many in found if many
        )

    @property
    def sentence(self) -> str:
        """How many examples were counted, in how many classes: what no training changes."""
        examples = ngettext("{count} example", "{count} examples", self.num_examples)
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


def _to_counts(given: npt.ArrayLike) -> Counts:
    try:
        counts = np.asarray(given)
    except ValueError:  # rows of unlike lengths
        counts = np.zeros(0)
    if counts.ndim != _AXES or counts.shape[0] != counts.shape[1] or not 0 < len(counts) <= MOST_CLASSES:
        raise CourseError(
            _("Counts of the shape {shape} are no confusion matrix.", shape=counts.shape),
            allowed=_("as many rows as columns, {least} to {most}", least=1, most=MOST_CLASSES),
            cure=_("Give a row for each true class and a column for each predicted class."),
        )
    if counts.dtype.kind not in "iu" or counts.min() < 0 or not counts.any():
        raise CourseError(
            _("A confusion matrix cannot be made of these counts: {counts}.", counts=counts.tolist()),
            allowed=_("whole numbers from 0, of which one at least is greater"),
            cure=_("Count examples, or let ConfusionMatrix.of(labels, predictions) count them."),
        )
    return counts.astype(np.int64)


def _names(given: Iterable[str] | None, num_classes: int) -> tuple[str, ...]:
    names = tuple(map(str, range(num_classes))) if given is None else to_names(given)
    if len(names) != num_classes:
        raise CourseError(
            _(
                "The number of names is {names}, the number of classes {classes}.",
                names=len(names),
                classes=num_classes,
            ),
            allowed=_("one name for each class"),
            cure=_("Leave out the names, or give one for each class."),
        )
    return names
