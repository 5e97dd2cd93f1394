"""A limit for a reader's code: what does not end is ended, and the kernel lives on."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from course_lib.errors import CourseError
from course_lib.i18n import _

SECONDS = 20.0  # for one call of a reader's function: many times what the slowest right one takes


class TooLong(CourseError):  # noqa: N818
    """A reader's function did not end in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            _("Your function still ran after {seconds:g} s.", seconds=seconds),
            allowed=_("a function that ends"),
            cure=_("Look at its loops: does each come to its end, for example by `step += 1`?"),
        )


class Over(BaseException):
    """The time is over: an error that no `except Exception` of the reader's catches."""


@contextlib.contextmanager
def time_limit(seconds: float = 0) -> Iterator[None]:
    """Ends the code in the block after so many seconds, or `SECONDS`; the inner one of two limits holds.

    It does so where cells run, in the main thread on Linux or macOS; elsewhere there is no limit.

    Raises:
        TooLong: the time was over.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    seconds = seconds or SECONDS
    before = signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except Over:
        raise TooLong(seconds) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Over
