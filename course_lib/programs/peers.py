"""What is told when another process of the cluster is lost, or does not go on."""

from __future__ import annotations

import contextlib
import importlib
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.programs.lines import FAILED, leave, tell

_TASK = re.compile(r"/job:(\w+)/replica:0/task:(\d+)")


@contextlib.contextmanager
def explaining_lost_peers(name: str, names: Iterable[str]) -> Iterator[None]:
    """Says in one sentence that another process is lost, when TensorFlow says so in many.

    Args:
        name: of this process.
        names: of all processes, such as "worker 1".

    Raises:
        CourseError: an operation of TensorFlow's failed.
    """
    tf = importlib.import_module("tensorflow")
    others = [other for other in names if other != name]
    try:
        yield
    except (tf.errors.OpError, CourseError) as error:
        cause = error if isinstance(error, tf.errors.OpError) else error.__cause__
        if not others or not isinstance(cause, _signs_of_loss(tf)):
            raise
        raise lost(str(cause), others) from error


@contextlib.contextmanager
def within(seconds: float, names: Iterable[str]) -> Iterator[None]:
    """Ends this process where the block takes longer: TensorFlow waits in it, an hour or for ever.

    Args:
        seconds: how long it may take.
        names: of the processes for which TensorFlow waits.
    """

    def give_up() -> None:
        error = CourseError(
            _("TensorFlow waits in vain for {names}.", names=_(", ").join(names)),
            allowed=_("processes that all start TensorFlow, and find each other, within this time"),
            cure=_("Look at the output of those, and see that no firewall is between the addresses."),
        )
        tell(error)
        leave(FAILED)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def lost(message: str, others: Sequence[str]) -> CourseError:
    """Returns what to tell of a message of TensorFlow's: which process it speaks of, and what to do."""
    return CourseError(
        _("{name} no longer answers.", name=named_in(message, others)),
        allowed=_("processes that all run until the training is done"),
        cure=_("Start all of them again, with the same arguments: they go on from the newest checkpoint."),
    )


def named_in(message: str, others: Sequence[str]) -> str:
    """Returns the name of the process that a message speaks of.

    >>> named_in("from /job:worker/replica:0/task:2: Socket closed", ["worker 0", "worker 2"])
    'worker 2'
    """
    found = [f"{job} {index}" for job, index in _TASK.findall(message)]
    unnamed = others[0] if len(others) == 1 else _("another process")
    return next((name for name in found if name in others), unnamed)


def _signs_of_loss(tf: Any) -> tuple[type[Exception], ...]:
    errors = tf.errors
    return errors.UnavailableError, errors.AbortedError, errors.InternalError, errors.CancelledError
