"""What can be wrong with an order to a cluster, said to the reader."""

from __future__ import annotations

import os
from collections.abc import Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _, join_sentences
from lessons.lesson_11_many_processes.cluster.logs import MARKER


def require_system() -> None:
    """Raises unless this system can run the processes of a cluster.

    Raises:
        CourseError: it cannot.
    """
    if not hasattr(os, "fork"):
        raise CourseError(
            _("This system cannot run the processes of a cluster."),
            allowed=_("Linux or macOS"),
            cure=_("Run this lesson on Colab, or in the Windows Subsystem for Linux."),
        )


def started_before() -> CourseError:
    """Returns the error of a cluster that is started twice."""
    return CourseError(
        _("This cluster was started before."),
        allowed=_("one start; then kill and restart its tasks"),
        cure=_("Make a new Cluster."),
    )


def not_started() -> CourseError:
    """Returns the error of a cluster that is asked for something too early."""
    return CourseError(
        _("The cluster has not been started."),
        allowed=_("a cluster that runs"),
        cure=_("Write `with Cluster(...) as cluster:`, or call its start()."),
    )


def still_runs(task: str) -> CourseError:
    """Returns the error of a task that cannot be started again yet."""
    return CourseError(
        _("{task} has not ended.", task=task),
        allowed=_("a task that has ended"),
        cure=_("End it first: cluster.kill({task!r})", task=task),
    )


def not_running(task: str) -> CourseError:
    """Returns the error of a task that cannot be ended, since it has ended or was never started."""
    return CourseError(
        _("{task} is not running.", task=task),
        allowed=_("a task that runs"),
        cure=_("Start it first: cluster.restart({task!r})", task=task),
    )


def lives_on(task: str, limit_seconds: float) -> CourseError:
    """Returns the error of a task that was killed and has not ended."""
    return _too_slow(
        _("{task} was killed, but had not ended after {limit:g} s.", task=task, limit=limit_seconds)
    )


def not_there(task: str, limit_seconds: float) -> CourseError:
    """Returns the error of a task of whose start nothing is heard."""
    return _too_slow(_("{task} had not started after {limit:g} s.", task=task, limit=limit_seconds))


def not_said(task: str, words: object, failed: Sequence[str] = ()) -> CourseError:
    """Returns the error of words that were waited for.

    Args:
        task: who was to say them.
        words: what was waited for.
        failed: which tasks have failed, the first one first: the task may have waited for them.
    """
    problem = _("{task} did not say {words!r}.", task=task, words=words)
    cause = _("{tasks} ended with an error.", tasks=_(", ").join(failed))
    return CourseError(
        join_sentences([problem, *([cause] if failed else [])]),
        allowed=_("words in a line that begins with {marker!r}", marker=MARKER),
        cure=_read([*failed, task][0]),
    )


def too_late(
    awaited: Sequence[str], left: Sequence[str], unseen: Sequence[str], limit_seconds: float
) -> CourseError:
    """Returns the error of a wait whose time is over.

    Args:
        awaited: whose end was waited for.
        left: which of them had not ended.
        unseen: which tasks have not opened their ports, running or never started.
        limit_seconds: the time that they had.
    """
    problem = _("{tasks} had not ended after {limit:g} s.", tasks=_(", ").join(left), limit=limit_seconds)
    waited_for = _("{tasks} never opened a port: the others may wait for it.", tasks=_(", ").join(unseen))
    return CourseError(
        join_sentences([problem, *([waited_for] if unseen else [])]),
        allowed=_("an end of {tasks} within the limit", tasks=_(", ").join(awaited)),
        cure=_read([*unseen, *left][0]),
    )


def _too_slow(problem: str) -> CourseError:
    return CourseError(
        problem,
        allowed=_("a start or an end within this time"),
        cure=_("End what else keeps this machine busy, then make a new Cluster."),
    )


def _read(task: str) -> str:
    return _("Read what it wrote: print(cluster.log({task!r}))", task=task)
