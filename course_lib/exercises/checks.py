"""Exercises that check themselves: an answer in, right or a hint out, in the reader's language.

The exercises of lesson 01 are in `course_lib.exercises.lesson_01`, found by the beginning of their ids.
"""

from __future__ import annotations

import html
import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from course_lib.i18n import _

Verify = Callable[[Any], str | None]


class NotAnswered(Exception):  # noqa: N818 - it is a state, not a fault
    """An answer still holds the `...` that the notebook came with."""


class Status(Enum):
    """How an answer stands; the value is the mark that it is shown with."""

    RIGHT = "✓"
    WRONG = "✗"
    OPEN = "…"


@dataclass(frozen=True)
class Exercise:
    """An exercise with the answers that prove its check.

    Attributes:
        exercise_id: two digits of the lesson, then what it asks, such as "01-local-shape".
        verify: returns `None` for a right answer and otherwise a hint.
        right: an answer that is right.
        wrong: plausible wrong answers, each with words that its hint must hold in English.
    """

    exercise_id: str
    verify: Verify
    right: object
    wrong: tuple[tuple[object, str], ...]


@dataclass(frozen=True)
class Result:
    """What the reader sees after a check: the same text in a terminal, a notebook and the book."""

    status: Status
    message: str

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.status is Status.RIGHT

    def __repr__(self) -> str:
        return f"{self.status.value} {self.message}"

    def _repr_html_(self) -> str:
        message = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(self.message, quote=False))
        message = message.replace("\n", "<br>")
        return f'<div role="status"><strong>{self.status.value}</strong> {message}</div>'


_registry: dict[str, Exercise] = {}


def exercise(
    exercise_id: str, *, right: object, wrong: Iterable[tuple[object, str]]
) -> Callable[[Verify], Verify]:
    """Registers the decorated function as the check of an exercise.

    Args:
        exercise_id: two digits of the lesson, then what it asks.
        right: an answer that is right.
        wrong: plausible wrong answers, each with words that its hint must hold in English.

    Returns:
        The decorator; the function stays as it is.

    Raises:
        ValueError: another function has this id.
    """

    def register(verify: Verify) -> Verify:
        known = _registry.get(exercise_id)
        if known and (known.verify.__module__, known.verify.__qualname__) != (
            verify.__module__,
            verify.__qualname__,
        ):
            raise ValueError(f"two exercises have the id {exercise_id!r}")
        _registry[exercise_id] = Exercise(exercise_id, verify, right, tuple(wrong))
        return verify

    return register


def find(exercise_id: str) -> Exercise | None:
    """Returns the exercise of that id; `None` where there is none."""
    if exercise_id not in _registry and re.fullmatch(r"\d\d-[a-z0-9-]*", exercise_id):
        name = f"course_lib.exercises.lesson_{exercise_id[:2]}"
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    return _registry.get(exercise_id)


def exercises(lesson: str) -> tuple[Exercise, ...]:
    """Returns the exercises of a lesson, such as "01", in the order in which they are written."""
    find(f"{lesson}-")
    return tuple(known for known in _registry.values() if known.exercise_id.startswith(f"{lesson}-"))


def check(exercise_id: str, answer: object) -> Result:
    """Returns how `answer` stands: right, wrong with a hint, or not answered yet. Never raises.

    >>> check("01-no-such-exercise", 8)
    ✗ There is no exercise '01-no-such-exercise'. Restore the id in this cell.
    """
    known = find(exercise_id) if isinstance(exercise_id, str) else None
    if known is None:
        hint = _(
            "There is no exercise {exercise_id!r}. Restore the id in this cell.", exercise_id=exercise_id
        )
        return Result(Status.WRONG, hint)
    try:
        hint_or_none = known.verify(answered(answer))
    except NotAnswered:
        return Result(
            Status.OPEN, _("Not answered yet. Replace `...` in the cell above, then run it and this one.")
        )
    except Exception:
        return Result(Status.WRONG, _unreadable(answer))
    return Result(Status.RIGHT, _("Right.")) if hint_or_none is None else Result(Status.WRONG, hint_or_none)


def answered(value: Any) -> Any:
    """Returns `value` as it is.

    Raises:
        NotAnswered: it is `...`, or a tuple, list or dict with `...` in it.
    """
    parts: Sequence[object] = ()
    if isinstance(value, (tuple, list)):
        parts = value
    elif isinstance(value, dict):
        parts = list(value.values())
    if value is ... or any(part is ... for part in parts):
        raise NotAnswered
    return value


def same(answer: object, expected: object) -> bool:
    """Returns whether an answer is the expected one, however it is written. Never raises.

    Lists, NumPy arrays and TensorShapes count as tuples and 2.0 as 2, but `True` not as 1.

    >>> same([2, 6.0], (2, 6)), same(np.array([2, 6]), (2, 6)), same(True, 1)
    (True, True, False)
    """
    try:
        return _same(_plain(answer), _plain(expected))
    except Exception:
        return False


def _same(answer: object, expected: object) -> bool:
    if isinstance(expected, tuple):
        return (
            isinstance(answer, tuple)
            and len(answer) == len(expected)
            and all(_same(ours, theirs) for ours, theirs in zip(answer, expected, strict=True))
        )
    if isinstance(answer, bool) is not isinstance(expected, bool):
        return False
    return (answer == expected) is True


def _plain(value: object) -> object:
    """Returns a value with every list-like in it as a tuple and every NumPy number as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    if callable(getattr(type(value), "as_list", None)):  # a TensorShape, without importing TensorFlow
        return _plain(value.as_list())  # type: ignore[attr-defined]
    return value


def _unreadable(answer: object) -> str:
    return _(
        "The check cannot read this answer of type `{kind}`. Read once more what kind of value is asked for.",
        kind=type(answer).__name__,
    )
