"""The one kind of error that the course raises for a reader's input, and its one kind of warning."""

from __future__ import annotations

from course_lib.i18n import _


class CourseWarning(UserWarning):
    """Says, in the reader's language, that the course went on in another way than planned."""


class CourseError(ValueError):
    """Says what is wrong, what is allowed and what to do, in the reader's language.

    Attributes:
        problem: one sentence that names the offending value.
        allowed: what would have been accepted.
        cure: what the reader can do now.
    """

    def __init__(self, problem: str, *, allowed: str, cure: str) -> None:
        super().__init__(problem, allowed, cure)
        self.problem = problem
        self.allowed = allowed
        self.cure = cure

    def __str__(self) -> str:
        return "\n".join(
            [
                self.problem,
                _("  Allowed: {allowed}", allowed=self.allowed),
                _("  What to do: {cure}", cure=self.cure),
            ]
        )
