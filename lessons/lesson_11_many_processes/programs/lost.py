"""What is said when another process of the cluster is lost."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Collection, Iterator

from course_lib.errors import CourseError
from course_lib.i18n import _

_TASK = re.compile(r"/job:(\w+)/replica:0/task:(\d+)")


@contextlib.contextmanager
def explaining_lost_peers(others: Collection[str]) -> Iterator[None]:
    """Says in one sentence that another process is lost, when TensorFlow says so in many.

    Args:
        others: the names of the other processes, such as "worker 1".

    Raises:
        CourseError: an operation of TensorFlow's failed.
    """
    tf = importlib.import_module("tensorflow")
    try:
        yield
    except (tf.errors.OpError, CourseError) as error:
        cause = error if isinstance(error, tf.errors.OpError) else error.__cause__
        names, gone = named_in(str(cause), others), (tf.errors.UnavailableError, tf.errors.AbortedError)
        if not names and not (others and isinstance(cause, gone)):
            raise
        unnamed = others if len(others) == 1 else [_("another process")]
        raise CourseError(
            _("{name} no longer answers.", name=next(iter(names or unnamed))),
            allowed=_("processes that all run until the training is done"),
            cure=_(
                "Start all of them again, with the same arguments: with --checkpoints they go on from the"
                " newest."
            ),
        ) from error


def named_in(message: str, others: Collection[str]) -> list[str]:
    """Returns the names of the processes that a message speaks of.

    >>> named_in("from /job:worker/replica:0/task:2: Socket closed", ["worker 0", "worker 2"])
    ['worker 2']
    """
    names = [f"{job} {index}" for job, index in _TASK.findall(message)]
    return [name for name in names if name in others]
