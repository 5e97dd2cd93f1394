"""Predictions: a question of a lesson's source, in the reader's language, and the reader's answer to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from course_lib.exercises import checks, lesson_files
from course_lib.exercises.asked import Answer, Asked
from course_lib.exercises.values import settled, shown
from course_lib.i18n import translated


@dataclass(frozen=True)
class Option:
    """A plausible answer, in the reader's language.

    Attributes:
        value: the answer.
        comment: what there is to say to the reader who chose it.
        label: the text that is shown, where it is not the value itself.
    """

    value: object
    comment: str
    label: str = ""

    @property
    def text(self) -> str:
        """The answer as the reader sees it."""
        return self.label or f"`{shown(self.value)}`"


@dataclass(frozen=True)
class Prediction:
    """A question with its right answer.

    Attributes:
        prediction_id: the lesson's topic, then what it asks, such as "mesh_and_layout-hybrid".
        asked: the question as the source has it.
    """

    prediction_id: str
    asked: Asked

    @property
    def question(self) -> str:
        """The question."""
        return translated(self.asked.question)

    @property
    def why(self) -> str:
        """Why the right answer is right: what there is to say to it."""
        return translated(self.asked.right.comment)

    @property
    def is_typed(self) -> bool:
        """Whether the reader types a number; the options are then the numbers with a comment of their own."""
        return bool(self.asked.otherwise)

    def options(self) -> list[Option]:
        """Returns the options by their values, so that their order tells nothing."""
        options = [_option(answer) for answer in self.asked.answers]
        try:
            return sorted(options, key=lambda option: option.value)  # type: ignore[arg-type,return-value]
        except TypeError:  # numbers first, in their order
            return sorted(options, key=lambda option: _place(option.value))

    def is_right(self, option: Option) -> bool:
        """Returns whether an option is the right answer."""
        return checks.same(option.value, self.asked.right.value)

    def fits_measured(self, measured: object) -> bool:
        """Returns whether `measured` is the value that the question is about. Never raises."""
        right = self.asked.right
        if isinstance(right.value, str) and isinstance(measured, str):
            return measured == right.value or measured.startswith(f"{right.value}: ")  # an error's message
        if right.off_by:
            return _near(measured, right.value, right.off_by)
        return equal(measured, right.value)

    def answer(self, chosen: Any) -> Option | None:
        """Returns the answer that the reader chose; None where there is none.

        Args:
            chosen: the place of an option in `options()`, or the number in the field; None for no choice.
        """
        if chosen is None:
            return None
        return self._of_number(chosen) if self.is_typed else self.options()[chosen]

    def _of_number(self, number: float) -> Option:
        """Returns the option of a number, with the right one's comment where the number is as right."""
        options = self.options()
        known = next((option for option in options if equal(number, option.value)), None)
        if known is None and self.fits_measured(number):
            known = Option(self.asked.right.value, self.why, label=f"`{shown(number)}`")
        return known or Option(number, translated(self.asked.otherwise))


def find(prediction_id: object) -> Prediction | None:
    """Returns the prediction of that id; `None` where there is none."""
    asked = lesson_files.asked("predict", prediction_id)
    return None if asked is None else Prediction(str(prediction_id), asked)


def predictions(lesson: object) -> tuple[Prediction, ...]:
    """Returns the predictions of a lesson, such as "a_run", in the order in which they are asked."""
    return tuple(known for name in lesson_files.predictions(lesson) if (known := find(name)))


def equal(measured: object, expected: object) -> bool:
    """Returns whether two values are the same as far as they are shown. Never raises.

    >>> equal(4 / 27, 0.148), equal([2, 4], (2, 4)), equal(0.149, 0.148)
    (True, True, False)
    """
    try:
        return checks.same(settled(measured), settled(expected))
    except Exception:
        return False


def _near(measured: Any, value: Any, off_by: float) -> bool:
    """Returns whether a number, or each number of a dictionary, is as near as it must be."""
    if isinstance(value, dict):
        return isinstance(measured, dict) and all(
            name in measured and _near(measured[name], part, off_by) for name, part in value.items()
        )
    try:
        return bool(abs(float(measured) - value) <= off_by)
    except (TypeError, ValueError):
        return False


def _place(value: object) -> tuple[bool, float, str]:
    """Returns where an option stands among values of unlike types: numbers first, by their size."""
    if isinstance(value, int | float):
        return False, float(value), ""
    return True, 0.0, shown(value)


def _option(answer: Answer) -> Option:
    return Option(answer.value, translated(answer.comment), translated(answer.label))
