"""What is told when another process of the cluster is lost."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _

_TASK = re.compile(r"/job:(\w+)/replica:0/task:(\d+)")


@contextlib.contextmanager
def explaining_lost_peers(names: Sequence[str]) -> Iterator[None]:
    """Says in one sentence that another process is lost, when TensorFlow says so in many.

    Args:
        names: of all processes, such as "worker 1".

    Raises:
        CourseError: an operation of TensorFlow's failed.
    """
    import tensorflow as tf

    try:
        yield
    except (tf.errors.OpError, CourseError) as error:
        cause = error if isinstance(error, tf.errors.OpError) else error.__cause__
        if len(names) < 2 or not isinstance(cause, tf.errors.OpError):
            raise
        print(repr(str(cause)), type(cause))
        raise lost(str(cause), names) from error


def lost(message: str, names: Sequence[str]) -> CourseError:
    """Returns what to tell of a message of TensorFlow's: which process it speaks of, and what to do."""
    return CourseError(
        _("{name} no longer answers.", name=named_in(message, names)),
        allowed=_("processes that all run until the training is done"),
        cure=_("Start all of them again, with the same arguments: they go on from the newest checkpoint."),
    )


def named_in(message: str, names: Sequence[str]) -> str:
    """Returns the name of the process that a message speaks of.

    >>> named_in("UNAVAILABLE: from /job:worker/replica:0/task:1: Socket closed", ["worker 0", "worker 1"])
    'worker 1'
    """
    found = [f"{job} {index}" for job, index in _TASK.findall(message)]
    return next((name for name in found if name in names), _("another process"))
