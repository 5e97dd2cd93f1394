"""The course's own lines in the output of a process: the same in every run, and easily told from the rest."""

from __future__ import annotations

import itertools
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.received import ReceivedExamples
from lessons.lesson_11_many_processes.cluster.report import MARKER, marked

_DONE = "done"  # how the last line ends where nothing failed
_STEP = re.compile(r"step (\d+) loss (\S+)")
_BATCH = re.compile(r"(\w+) batch (\d+) examples((?: \d+)*)")


def say(text: str) -> None:
    """Prints a line of the course's own, at once: no port, process id, path or time stands in it."""
    print(MARKER + text, flush=True)


def losses(output: str) -> dict[int, float]:
    r"""Returns the loss of each step that a process told.

    >>> losses("course: step 1 loss 2.3026\ncourse: step 2 loss 2.25")
    {1: 2.3026, 2: 2.25}

    Args:
        output: what it printed.

    Raises:
        CourseError: it told none, and did not end well.
    """
    lines = marked(output)
    losses_of_steps = {int(match[1]): float(match[2]) for match in map(_STEP.fullmatch, lines) if match}
    if not losses_of_steps and not (lines and lines[-1].endswith(_DONE)):
        raise CourseError(
            _("The process told no loss, and not why."),
            allowed=_("what a process wrote that trained"),
            cure=_("Read all that it wrote: print(cluster.log(task))"),
        )
    return losses_of_steps


def received(outputs: Sequence[str], policy: str) -> ReceivedExamples:
    """Returns who got which example, as the processes told it, each in an output of its own. It draws itself.

    >>> received(["course: file batch 0 examples 0 1", "course: file batch 0 examples 2"], "file").batches
    (((0, 1), (2,)),)

    Args:
        outputs: what each worker printed, in their order. A worker that told of fewer batches got nothing of
            the others.
        policy: how the data set was divided: what is told of others is left out.
    """
    parts = []
    for output in outputs:
        batches = filter(None, map(_BATCH.fullmatch, marked(output)))
        parts.append([tuple(map(int, batch[3].split())) for batch in batches if batch[1] == policy])
    return ReceivedExamples(itertools.zip_longest(*parts, fillvalue=()))


def run(main: Callable[[], None]) -> None:
    """Runs a program. What goes wrong in the reader's own terms becomes lines, and the exit status 1.

    TensorFlow's threads may wait for processes that are gone, so that after an error nothing is waited for.
    """
    for proxy in ("grpc_proxy", "https_proxy", "http_proxy"):  # processes reach each other without one
        os.environ.pop(proxy, None)
    try:
        main()
    except CourseError as error:
        if error.__cause__ is not None:
            traceback.print_exc()  # what TensorFlow said of it, in full
        tell(error)
        leave(1)
    except (Exception, KeyboardInterrupt):
        traceback.print_exc()
        leave(1)


def tell(error: CourseError) -> None:
    """Prints what went wrong, what is allowed and what to do, a line each, in the reader's language."""
    for line in _("error: {problem}", problem=error).splitlines():
        say(line)


def leave(status: int) -> None:
    """Ends this process at once, whatever its threads wait for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
