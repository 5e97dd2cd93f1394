"""What can be wrong with a cluster, said to the reader."""

from __future__ import annotations

import os
from collections.abc import Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _, join_sentences
from lessons.lesson_11_many_processes.cluster.logs import MARKER


def require_system() -> None:
    """Checks that this system can run the processes of a cluster.

    Raises:
        CourseError: it cannot.
    """
    if not hasattr(os, "fork"):
        raise CourseError(
            _("This system cannot run the processes of a cluster."),
            allowed=_("Linux or macOS"),
            cure=_("Run this lesson on Colab, or in the Windows Subsystem for Linux."),
        )


def not_said(task: str, words: str, failed: Sequence[str]) -> CourseError:
    """Returns the error of words that were waited for; the task may have waited for one that failed."""
    problem = _("{task} did not say {words!r}.", task=task, words=words)
    cause = _("{tasks} ended with an error.", tasks=_(", ").join(failed))
    return CourseError(
        join_sentences([problem, *([cause] if failed else [])]),
        allowed=_("words in a line that begins with {marker!r}", marker=MARKER),
        cure=_("Read what it wrote: print(cluster.log({task!r}))", task=[*failed, task][0]),
    )


def too_late(awaited: Sequence[str], left: Sequence[str], limit_seconds: float) -> CourseError:
    """Returns the error of a wait whose time is over."""
    return CourseError(
        _("{tasks} had not ended after {limit:g} s.", tasks=_(", ").join(left), limit=limit_seconds),
        allowed=_("an end of {tasks} within the limit", tasks=_(", ").join(awaited)),
        cure=_("Read what it wrote: print(cluster.log({task!r}))", task=left[0]),
    )
