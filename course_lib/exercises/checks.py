"""Exercises that check themselves: an answer in, right or a hint out, in the reader's language.

Those of a lesson are in `checks.py` in its folder, and found by the beginning of their ids; a simple answer
stands in the lesson's source (`course_lib.exercises.questions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from course_lib import syllabus
from course_lib.errors import CourseError
from course_lib.exercises import questions
from course_lib.exercises.faults import fault, stumbled_over_a_stub
from course_lib.exercises.values import NotAnswered, answered, plain, same
from course_lib.i18n import _, translated
from course_lib.pictures.shapes import markup, node
from course_lib.specs.sharding import Sharding
from course_lib.widgets.pieces import words

Verify = Callable[[Any], str | None]


class Status(Enum):
    """How an answer stands; the value is the mark that it is shown with."""

    RIGHT = "✓"
    WRONG = "✗"
    OPEN = "…"


@dataclass(frozen=True)
class Exercise:
    """An exercise with its check, as `exercise` registers it."""

    verify: Verify
    right: object
    unanswered: object = None


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
        mark = node("strong", self.status.value)
        return markup(node("div", mark, " ", *words(self.message), role="status")).replace("\n", "<br>")


_registry: dict[str, Exercise] = {}


def exercise(exercise_id: str, *, right: object, unanswered: object = None) -> Callable[[Verify], Verify]:
    """Registers the decorated function, which stays as it is, as the check of an exercise.

    It gets the answer as a plain value, and returns a hint, or None for a right answer.

    Args:
        exercise_id: the lesson's topic, then what it asks, such as "mesh_and_layout-local-shape".
        right: an answer that is right, the function that answers are compared with, or `Callable` for any
            function. An answer of another kind is refused before: the reader is told which is asked for.
        unanswered: for an explorer, the sharding that it shows first.
    """

    def register(verify: Verify) -> Verify:
        _registry[exercise_id] = Exercise(verify, right, unanswered)
        return verify

    return register


def find(exercise_id: str) -> Exercise | None:
    """Returns the exercise of that id; `None` where there is none."""
    place = syllabus.find(exercise_id.partition("-")[0])
    if exercise_id not in _registry and place is not None and (place.folder / "checks.py").exists():
        syllabus.module(f"{place.topic}.checks")  # it registers its exercises
    return _registry.get(exercise_id) or _of_source(exercise_id)


def _of_source(exercise_id: str) -> Exercise | None:
    """Returns an exercise whose simple answer stands in the lesson's source; None where there is none."""
    question = questions.find("check", exercise_id)
    if question is None:
        return None

    def verify(answer: object) -> str | None:
        known = next((option for option in question.options if same(answer, plain(option.value))), None)
        if known is None:
            return translated(question.otherwise)
        return None if known.right else known.said

    return Exercise(verify, question.right.value)


def check(exercise_id: str, answer: object) -> Result:
    """Returns how `answer` stands: right, wrong with a hint, or not answered yet. Never raises.

    >>> check("mesh_and_layout-no-such-exercise", 8)
    ✗ There is no exercise 'mesh_and_layout-no-such-exercise'. Restore the id in this cell.
    """
    known = find(exercise_id) if isinstance(exercise_id, str) else None
    if known is None:
        hint = _(
            "There is no exercise {exercise_id!r}. Restore the id in this cell.", exercise_id=exercise_id
        )
        return Result(Status.WRONG, hint)
    try:
        hint_or_none = _hint(known, answer)
    except NotAnswered:
        return Result(Status.OPEN, _not_answered(known, answer))
    except CourseError as error:
        return Result(Status.WRONG, str(error))
    except (Exception, SystemExit) as error:
        return _failed(known, answer, error)
    return Result(Status.RIGHT, _("Right.")) if hint_or_none is None else Result(Status.WRONG, hint_or_none)


def yours_or_ours(exercise_id: str, answer: Any) -> Any:
    """Returns the reader's answer where it is right, and else one that is: for a lesson that goes on with it.

    Raises:
        LookupError: there is no such exercise.
    """
    if check(exercise_id, answer).passed:
        return answer
    known = find(exercise_id)
    if known is None:
        raise LookupError(f"there is no exercise {exercise_id!r}")
    return known.right


def _hint(known: Exercise, given: object) -> str | None:
    """Returns what is wrong with an answer: its kind, or what the exercise's own check says."""
    answer, right = plain(answered(given)), plain(known.right)
    if known.unanswered is not None and same(answer, known.unanswered):
        raise NotAnswered
    if isinstance(answer, CourseError) and isinstance(right, Sharding):
        return _("The explorer refuses this choice: {problem}", problem=answer.problem)
    return known.verify(answer) if _asked_for(answer) == _asked_for(right) else _unreadable(right, given)


def _failed(known: Exercise, answer: object, error: BaseException) -> Result:
    """Returns what to say of an error: a function's own, or else which kind of value is asked for."""
    if not (callable(known.right) and callable(answer)):
        return Result(Status.WRONG, _unreadable(plain(known.right), answer))
    if stumbled_over_a_stub(error):
        return Result(Status.OPEN, _not_answered(known, answer))
    return Result(Status.WRONG, _("Your function fails.") + "\n" + fault(error))


def _not_answered(known: Exercise, given: object) -> str:
    if isinstance(given, dict):
        missing = [f"`{name}`" for name, value in given.items() if value is ...]
        if 0 < len(missing) < len(given):
            names = _(", ").join(missing)
            return _(
                "Not answered yet: {names}. Replace `...` in the cell above, then run it and this one.",
                names=names,
            )
    if known.unanswered is None:
        return _("Not answered yet. Replace `...` in the cell above, then run it and this one.")
    return _("Not answered yet. Choose in the explorer above, then run this cell.")


def _unreadable(right: object, given: object) -> str:
    """Returns the sentence that says which kind of value is asked for, and the type of what was given."""
    return _(
        "The check cannot read this value of the type `{given}`. {text}",
        given=type(given).__name__,
        text=_asked_for(right),
    )


def _asked_for(right: object) -> str:
    """Returns what is said where a plain value of such a kind is asked for; "" where none is."""
    texts: dict[type | tuple[type, ...], str] = {
        bool: _("Answer with True or False."),
        (int, float): _("Answer with a number."),
        str: _("Answer with a text in quotes."),
        tuple: _("Answer with a tuple or list."),
        dict: _("Answer with a dictionary."),
        Sharding: _("Give the explorer itself to the check."),
    }
    function = _("Answer with a function: its name, not a call of it.") if callable(right) else ""
    return next((text for types, text in texts.items() if isinstance(right, types)), function)
