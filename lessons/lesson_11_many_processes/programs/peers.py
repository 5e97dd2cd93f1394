"""What is told when another process of the cluster is lost, or does not go on."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.cluster.ports import opened
from lessons.lesson_11_many_processes.programs.lines import as_lines
from lessons.lesson_11_many_processes.programs.places import Peers

# Waits for the end of its input, so many seconds; then prints lines, and kills a process.
_WATCHER = """
import os, select, signal, sys
if not select.select([sys.stdin], [], [], float(sys.argv[1]))[0]:
    try:
        sys.stdout.reconfigure(errors="replace")
        print(*sys.argv[3:], sep="\\n", flush=True)
    finally:
        os.kill(int(sys.argv[2]), signal.SIGKILL)
"""
_LOOK_SECONDS = 0.1
_TASK = re.compile(r"/job:(\w+)/replica:0/task:(\d+)")


@contextlib.contextmanager
def explaining_lost_peers(others: Sequence[str]) -> Iterator[None]:
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
        gone = tf.errors.UnavailableError, tf.errors.AbortedError
        if not others or not (isinstance(cause, gone) or _named(str(cause), others)):
            raise
        raise lost(str(cause), others) from error


@contextlib.contextmanager
def within(seconds: float, names: Iterable[str]) -> Iterator[None]:
    """Kills this process where the block takes longer: TensorFlow waits in it for an hour.

    While it waits it lets no other thread of Python run, nor a handler of a signal. So another process looks
    after this one: it ends when its input does, which is at the end of the block or of this process. An
    interrupt, which this process hears only when TensorFlow waits no longer, does not reach it.

    Args:
        seconds: how long it may take.
        names: of the processes for which TensorFlow waits; where there are none, nothing is bounded.
    """
    names = list(names)
    if not names:
        yield
        return
    error = CourseError(
        _("TensorFlow waits in vain for {names}.", names=_(", ").join(names)),
        allowed=_("processes that all start TensorFlow, and find each other, within this time"),
        cure=_(
            "Look at the output of those, see that no firewall is between the addresses, or wait longer:"
            " --start."
        ),
    )
    command = [sys.executable, "-c", _WATCHER, str(seconds), str(os.getpid()), *as_lines(error)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as watcher:
        try:
            yield
        finally:
            watcher.communicate()  # closes its input


def pause(step: int, peers: Peers, seconds: float, hold: int | None) -> None:
    """Waits after a step, so that one can watch, or kill a process before it can do another step.

    Args:
        step: the one that is done.
        peers: this process and the others.
        seconds: how long after each step.
        hold: after which step to wait until another process is gone.
    """
    time.sleep(seconds)
    addresses = [peers.addresses[name] for name in peers.others]
    while step == hold and addresses and all(map(opened, addresses)):
        time.sleep(_LOOK_SECONDS)


def lost(message: str, others: Sequence[str]) -> CourseError:
    """Returns what to tell of a message of TensorFlow's: which process it speaks of, and what to do."""
    return CourseError(
        _("{name} no longer answers.", name=named_in(message, others)),
        allowed=_("processes that all run until the training is done"),
        cure=_(
            "Start all of them again, with the same arguments: with --checkpoints they go on from the newest."
        ),
    )


def named_in(message: str, others: Sequence[str]) -> str:
    """Returns the name of the process that a message speaks of.

    >>> named_in("from /job:worker/replica:0/task:2: Socket closed", ["worker 0", "worker 2"])
    'worker 2'
    """
    unnamed = others[0] if len(others) == 1 else _("another process")
    return next(iter(_named(message, others)), unnamed)


def _named(message: str, others: Sequence[str]) -> list[str]:
    found = [f"{job} {index}" for job, index in _TASK.findall(message)]
    return [name for name in found if name in others]
