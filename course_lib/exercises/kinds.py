"""The kind of value that an exercise asks for: that of its right answer."""

from __future__ import annotations

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.sharding import Sharding


def wrong_kind(answer: object, right: object, given: object) -> str | None:
    """Returns which kind of value is asked for, or None where the answer is of that kind.

    Args:
        answer: what the reader gave, as a plain value.
        right: the right answer, as a plain value.
        given: what the reader gave, as it was.
    """
    if isinstance(answer, CourseError) and isinstance(right, Sharding):
        return _("The explorer refuses this choice: {problem}", problem=answer.problem)
    return None if _asked_for(answer) == _asked_for(right) else unreadable(right, given)


def unreadable(right: object, given: object) -> str:
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
