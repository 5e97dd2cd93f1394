"""What a device has to write its own update with: two collectives and an optimizer.

The collectives work while a check runs the update on small arrays, device by device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _

Collective = Callable[[bool, Any], Any]
_running: list[Collective] = []


@contextlib.contextmanager
def running(collective: Collective) -> Iterator[None]:
    """Runs the collectives of one device by a function: of whether it gathers, and of an array."""
    _running.append(collective)
    try:
        yield
    finally:
        _running.pop()


def _run(gathers: bool, array: Any) -> Any:
    if not _running:
        raise CourseError(
            _("No other device takes part in this collective."),
            cure=_("Call it inside the function that you hand to check: it runs that on every device."),
        )
    return _running[-1](gathers, array)


def reduce_scatter(array: Any) -> Any:
    """Adds up the arrays of all devices; returns this device's rows of the sum."""
    return _run(False, array)


def all_gather(rows: Any) -> Any:
    """Puts the rows of all devices together, and returns the whole on each."""
    return _run(True, rows)


def momentum(weight: Any, velocity: Any, gradient: Any) -> tuple[Any, Any]:
    """Returns the new weight and the new velocity of some rows."""
    velocity = 0.5 * velocity + gradient
    return weight - 0.25 * velocity, velocity
