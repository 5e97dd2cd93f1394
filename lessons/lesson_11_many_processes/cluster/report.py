"""What the tasks of a cluster said and how they ended, side by side."""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.i18n import NEVER_FIRST, _, num_columns, padded

MARKER = "course: "  # how lines begin that are for the reader; all others are TensorFlow's, or Python's

_WIDEST = 88  # columns of text, as many as a page shows at once
_GAP = "  "
_WIDE = "[\u3000-\u9fff\uff01-\uff60]"
_PIECE = re.compile(rf" *(?:{_WIDE}|(?:(?!{_WIDE})\S)+)[{NEVER_FIRST}]*")  # a line may be folded between two


def marked(output: str) -> list[str]:
    r"""Returns the lines of an output that a program marked as its own, without the mark.

    >>> marked("W0000 gRPC is up\ncourse: step 1 loss 2.3026\n")
    ['step 1 loss 2.3026']
    """
    return [line.removeprefix(MARKER) for line in output.splitlines() if line.startswith(MARKER)]


@dataclass(frozen=True)
class Told:
    """What is known of a task.

    Attributes:
        task: its name, such as "worker 1".
        lines: its own lines; of a task that failed without any the last one on stderr.
        status: its exit status, or the negative number of the signal that ended it; None while it runs.
        failed: whether it ended with an error, and nobody asked for its end.
    """

    task: str
    lines: tuple[str, ...]
    status: int | None = None
    failed: bool = False

    def heading(self) -> str:
        """Returns its name and how it ended, in the reader's language.

        >>> Told("worker 0", (), -9).heading(), Told("worker 1", ()).heading()
        ('worker 0: ended by SIGKILL', 'worker 1: runs')
        """
        if self.status is None:
            ending = _("runs")
        elif self.status < 0:
            ending = _("ended by {signal}", signal=signal.Signals(-self.status).name)
        else:
            ending = _("ended with exit status {status}", status=self.status) if self.status else _("ended")
        return _("{task}: {ending}", task=self.task, ending=ending)


@dataclass(frozen=True, repr=False)
class Report:
    """What the tasks of a cluster said and how they ended. It shows itself side by side.

    >>> Report((Told("worker 0", ("step 1",), 0), Told("worker 1", ("step 1", "step 2"))))
    worker 0: ended  worker 1: runs
    ---------------  --------------
    step 1           step 1
                     step 2

    Attributes:
        told: what is known of each task, in the order of the cluster.
        ended: the names of the tasks that have ended, in the order in which they did.
    """

    told: tuple[Told, ...]
    ended: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the tasks that failed, the first one first: it may be why the others did."""
        return tuple(task for task in self.ended if self[task].failed)

    def __getitem__(self, task: str) -> Told:
        """Returns what is known of a task."""
        return next(told for told in self.told if told.task == task)

    def __repr__(self) -> str:
        columns = [[each.heading(), *each.lines] for each in self.told]
        if len(_GAP.join("-" * width for width in _widths(columns))) > _WIDEST:
            room = (_WIDEST + len(_GAP)) // len(columns) - len(_GAP)
            columns = [[part for line in column for part in _folded(line, room)] for column in columns]
        widths = _widths(columns)
        ruled = [[column[0], "-" * width, *column[1:]] for column, width in zip(columns, widths, strict=True)]
        rows = itertools.zip_longest(*ruled, fillvalue="")
        return "\n".join(_GAP.join(map(padded, row, widths)).rstrip() for row in rows)


def _widths(columns: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(num_columns, column)) for column in columns]


def _folded(line: str, columns: int) -> list[str]:
    """Returns a line in parts of at most so many columns, later ones further in; long words stay whole.

    >>> _folded("  start all of them", 14)
    ['  start all of', '    them']
    """
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    parts = [""]
    for piece in _PIECE.findall(line):
        if parts[-1].strip() and num_columns(parts[-1] + piece) > columns:
            parts.append(indent + piece.lstrip())
        else:
            parts[-1] += piece
    return parts
