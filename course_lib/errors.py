"""The one kind of error that the course raises for a reader's input."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral

from course_lib.i18n import _


class CourseError(ValueError):
    """Says what is wrong, what is allowed and what to do, in the reader's language.

    Attributes:
        problem: one sentence that names the offending value.
        allowed: what would have been accepted; "" where the problem says it.
        cure: what the reader can do now; "" where that is plain.
    """

    def __init__(self, problem: str, *, allowed: str = "", cure: str = "") -> None:
        super().__init__(problem, allowed, cure)
        self.problem = problem
        self.allowed = allowed
        self.cure = cure

    def __str__(self) -> str:
        allowed = _("  Allowed: {allowed}", allowed=self.allowed) if self.allowed else ""
        cure = _("  What to do: {cure}", cure=self.cure) if self.cure else ""
        return "\n".join(filter(None, (self.problem, allowed, cure)))


def whole_number(value: object, problem: str, *, least: int = 0, most: int | None = None, cure: str) -> int:
    """Returns `value` as Python's int, also where it is NumPy's.

    Raises:
        CourseError: it is no whole number, a truth value, or out of bounds.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if least <= number and (most is None or number <= most):
            return number
    allowed = _("whole numbers from {least}", least=least)
    if most is not None:
        allowed = _("whole numbers from {least} to {most}", least=least, most=most)
    raise CourseError(problem, allowed=allowed, cure=cure)


def one_of(value: object, allowed: Iterable[object], problem: str, *, cure: str) -> None:
    """Checks that `value` is one of those allowed.

    Raises:
        CourseError: it is none of them; the message lists them.
    """
    offered = list(allowed)
    if value not in offered:
        raise CourseError(problem, allowed=_(", ").join(map(str, offered)), cure=cure)
