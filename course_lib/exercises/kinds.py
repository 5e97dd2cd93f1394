"""The kind of value that an exercise asks for: that of its right answer."""

from __future__ import annotations

from typing import Any

from course_lib.errors import CourseError
from course_lib.exercises.answers import is_number
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Sharding

_KINDS: dict[str, type | tuple[type, ...]] = {
    "truth": bool,
    "number": (int, float),
    "text": str,
    "numbers": tuple,
    "dictionary": dict,
    "layout": LayoutSpec,
    "mesh": MeshSpec,
    "choice": (Sharding, CourseError),
}


def wrong_kind(answer: Any, right: object, given: object) -> str | None:
    """Returns which kind of value is asked for, or None where the answer is of that kind.

    Args:
        answer: what the reader gave, as a plain value.
        right: the right answer, as a plain value.
        given: what the reader gave, as it was.
    """
    if isinstance(answer, CourseError) and isinstance(right, Sharding):
        return _("The explorer refuses this choice: {problem}", problem=answer.problem)
    if _fits(answer, right):
        return None
    if isinstance(right, tuple) and isinstance(given, (tuple, list)):
        at = next(at for at, part in enumerate(answer) if not any(_fits(part, each) for each in right))
        example = right[min(at, len(right) - 1)]
        text = wrong_kind(answer[at], example, given[at]) or asked_for(example, given[at])
        return _("In place {at}: {text}", at=at, text=text)
    return asked_for(right, given)


def asked_for(right: object, given: object) -> str:
    """Returns the sentence that says which kind of value is asked for, and the type of what was given."""
    kind = _kind(right)
    if isinstance(right, tuple) and not all(is_number(part) for part in right):
        kind = "list"
    texts = {
        "truth": _("Answer with True or False."),
        "number": _("Answer with a number."),
        "text": _("Answer with a text in quotes."),
        "numbers": _("Answer with a tuple or list of numbers."),
        "list": _("Answer with a tuple or list."),
        "dictionary": _("Answer with a dictionary."),
        "layout": _("Answer with a layout: LayoutSpec(entries, mesh)."),
        "mesh": _("Answer with a mesh: MeshSpec([(name, size), (name, size)])."),
        "choice": _("Give the explorer itself to the check."),
        "function": _("Answer with a function: its name, not a call of it."),
        "": _("Read once more what kind of value is asked for."),
    }
    return _(
        "The check cannot read this value of the type `{given}`. {text}",
        given=type(given).__name__,
        text=texts[kind],
    )


def _kind(value: object) -> str:
    """Returns the name of the kind of a plain value; "" for one that has none."""
    found = next((kind for kind, types in _KINDS.items() if isinstance(value, types)), "")
    return found or ("function" if callable(value) else "")


def _fits(answer: object, right: object) -> bool:
    """Returns whether an answer is of the kind of the right one, and the parts of a tuple of its parts'."""
    if not isinstance(right, tuple):
        return _kind(right) in ("", _kind(answer))
    return isinstance(answer, tuple) and all(
        not right or any(_fits(part, example) for example in right) for part in answer
    )
