"""Who trains now: one training lab at a time in the process, and none beside a run that a cell watches.

Two trainings that exchange data over the same devices at the same time could wait for each other for ever.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from course_lib.errors import CourseError
from course_lib.i18n import _

_watched: set[int] = set()  # the runs that cells watch, by `id`
_stop_of_the_lab: list[Callable[[], None]] = []  # of the lab that trains, if one does
_lock = threading.Lock()


def anything() -> bool:
    """Returns whether a cell watches a run or a lab trains."""
    return bool(_watched or _stop_of_the_lab)


def a_lab() -> bool:
    """Returns whether a lab trains."""
    return bool(_stop_of_the_lab)


@contextlib.contextmanager
def watching(run: object) -> Iterator[None]:
    """Marks a run as watched by a cell.

    Raises:
        CourseError: a lab trains.
    """
    if a_lab():
        raise _a_training_runs()
    _watched.add(id(run))
    try:
        yield
    finally:
        _watched.remove(id(run))


def begin_lab(stop: Callable[[], None]) -> None:
    """Marks that a lab trains from now on.

    Args:
        stop: ends its training soon.

    Raises:
        CourseError: another lab trains, or a cell watches a run.
    """
    with _lock:
        if anything():
            raise _a_training_runs()
        _stop_of_the_lab.append(stop)


def end_lab() -> None:
    """Marks that the lab has ended its training."""
    _stop_of_the_lab.clear()


def stop_lab() -> None:
    """Ends the training of the lab that trains, if one does."""
    for stop in tuple(_stop_of_the_lab):
        stop()


def _a_training_runs() -> CourseError:
    return CourseError(
        _("Another training runs in this notebook."),
        allowed=_("one training at a time: two would wait for each other's devices"),
        cure=_("Wait until it ends, or press Stop."),
    )
