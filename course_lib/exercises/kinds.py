"""The kind of value that an exercise asks for: that of its right answer."""

from __future__ import annotations

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.sharding import Sharding

_KINDS: dict[str, type | tuple[type, ...]] = {
    "truth": bool,
    "number": (int, float),
    "text": str,
    "list": tuple,
    "dictionary": dict,
    "choice": (Sharding, CourseError),
}


def wrong_kind(answer: object, right: object, given: object) -> str | None:
    """Returns which kind of value is asked for, or None where the answer is of that kind.

    Args:
        answer: what the reader gave, as a plain value.
        right: the right answer, as a plain value.
        given: what the reader gave, as it was.
    """
    if isinstance(answer, CourseError) and isinstance(right, Sharding):
        return _("The explorer refuses this choice: {problem}", problem=answer.problem)
    return None if _kind(answer) == _kind(right) else asked_for(right, given)


def asked_for(right: object, given: object) -> str:
    """Returns the sentence that says which kind of value is asked for, and the type of what was given."""
    texts = {
        "truth": _("Answer with True or False."),
        "number": _("Answer with a number."),
        "text": _("Answer with a text in quotes."),
        "list": _("Answer with a tuple or list."),
        "dictionary": _("Answer with a dictionary."),
        "choice": _("Give the explorer itself to the check."),
        "function": _("Answer with a function: its name, not a call of it."),
    }
    return _(
        "The check cannot read this value of the type `{given}`. {text}",
        given=type(given).__name__,
        text=texts[_kind(right)],
    )


def _kind(value: object) -> str:
    """Returns the name of the kind of a plain value; "" for one that has none."""
    found = next((kind for kind, types in _KINDS.items() if isinstance(value, types)), "")
    return found or ("function" if callable(value) else "")
