"""What the reader is told after devices failed to exchange data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

_SIGNS_OF_AN_ABORT = (
    "Collective ops is aborted by",
    "BufRendezvous",
    "Restart your program to reset",
    "Function was cancelled before it was started",
)
_collectives = {"aborted": False}


@contextlib.contextmanager
def explaining_aborts() -> Iterator[None]:
    """Says in the reader's words what to do when TensorFlow reports aborted collectives; also a decorator.

    One collective that fails aborts every later one of the process, whatever computes it, and they do not all
    name the reason: so once one did, every error of TensorFlow's is taken for a consequence.

    Raises:
        CourseError: TensorFlow fails, and a collective was aborted, now or earlier in this process.
    """
    try:
        yield
    except tf.errors.OpError as error:
        _collectives["aborted"] |= any(sign in str(error) for sign in _SIGNS_OF_AN_ABORT)
        if not _collectives["aborted"]:
            raise
        raise CourseError(
            _("The devices can no longer send each other data, because one such exchange failed before."),
            allowed=_("until the kernel is restarted, only what each device computes by itself"),
            cure=_(
                "Restart the kernel and run the cells again from the first: after one failure TensorFlow"
                " refuses every later exchange between devices."
            ),
        ) from error
