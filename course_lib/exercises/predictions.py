"""Predictions as data: a question, its plausible answers with a comment on each, and the one that is right.

The predictions of lesson 01 are in `course_lib.exercises.lesson_01`, found by the beginning of their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.exercises import checks
from course_lib.exercises.values import settled, shown

Fits = Callable[[Any], bool]


@dataclass(frozen=True)
class Option:
    """A plausible answer.

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
class Question:
    """What is asked, in the reader's language.

    Attributes:
        text: the question.
        options: the plausible answers.
        field: whether the reader types a number; `options` are then the numbers with a comment of their own.
        otherwise: the comment on any other number.
    """

    text: str
    options: Sequence[Option]
    field: bool = False
    otherwise: str = ""


@dataclass(frozen=True)
class Prediction:
    """A question with its right answer.

    Attributes:
        prediction_id: two digits of the lesson, then what it asks, such as "01-hybrid".
        ask: returns the question in the reader's language.
        right: the value of the right option.
        fits: returns whether a measured value, or a typed number, is the right one.
    """

    prediction_id: str
    ask: Callable[[], Question]
    right: object
    fits: Fits

    def options(self) -> list[Option]:
        """Returns the options by their values, so that their order tells nothing."""
        options = list(self.ask().options)
        try:
            return sorted(options, key=lambda option: option.value)  # type: ignore[arg-type,return-value]
        except TypeError:
            return sorted(options, key=lambda option: shown(option.value))

    def is_right(self, option: Option) -> bool:
        """Returns whether an option is the right answer."""
        return checks.same(option.value, self.right)

    def fits_measured(self, measured: object) -> bool:
        """Returns whether `measured` is the value that the question is about. Never raises."""
        try:
            return bool(self.fits(measured))
        except Exception:
            return False

    def answer(self, chosen: Any) -> Option | None:
        """Returns the answer that the reader chose; None where there is none.

        Args:
            chosen: the place of an option in `options()`, or the number in the field; None for no choice.
        """
        if chosen is None:
            return None
        return self._of_number(chosen) if self.ask().field else self.options()[chosen]

    def _of_number(self, number: float) -> Option:
        """Returns the option of a number, with the right one's comment where the number is as right."""
        options = self.options()
        known = next((option for option in options if equal(number, option.value)), None)
        if known is None and self.fits_measured(number):
            comment = next(option.comment for option in options if self.is_right(option))
            known = Option(self.right, comment, label=f"`{shown(number)}`")
        return known or Option(number, self.ask().otherwise)


_registry: dict[str, Prediction] = {}


def prediction(
    prediction_id: str, *, right: object, fits: Fits | None = None
) -> Callable[[Callable[[], Question]], Callable[[], Question]]:
    """Registers the decorated function as the question of a prediction.

    Args:
        prediction_id: two digits of the lesson, then what it asks.
        right: the value of the right option.
        fits: returns whether a measured value is the right one; by default those do that are shown as `right`
            is, with three significant digits.

    Returns:
        The decorator; the function stays as it is.

    Raises:
        ValueError: another function has this id.
    """

    def register(ask: Callable[[], Question]) -> Callable[[], Question]:
        known = _registry.get(prediction_id)
        if known and (known.ask.__module__, known.ask.__qualname__) != (ask.__module__, ask.__qualname__):
            raise ValueError(f"two predictions have the id {prediction_id!r}")
        judge = fits or (lambda measured: equal(measured, right))
        _registry[prediction_id] = Prediction(prediction_id, ask, right, judge)
        return ask

    return register


def equal(measured: object, expected: object) -> bool:
    """Returns whether two values are the same as far as they are shown. Never raises.

    >>> equal(4 / 27, 0.148), equal([2, 4], (2, 4)), equal(0.149, 0.148)
    (True, True, False)
    """
    try:
        return checks.same(settled(measured), settled(expected))
    except Exception:
        return False


def find(prediction_id: object) -> Prediction | None:
    """Returns the prediction of that id; `None` where there is none."""
    if not isinstance(prediction_id, str):
        return None
    checks.find(prediction_id)  # loads the lesson's file
    return _registry.get(prediction_id)


def predictions(lesson: object) -> tuple[Prediction, ...]:
    """Returns the predictions of a lesson, such as "01", in the order in which they are written."""
    if not isinstance(lesson, str):
        return ()
    find(f"{lesson}-")
    return tuple(known for known in _registry.values() if known.prediction_id.startswith(f"{lesson}-"))
