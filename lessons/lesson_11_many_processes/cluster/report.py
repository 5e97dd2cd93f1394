"""What the tasks of a cluster said and how they ended, side by side."""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.i18n import NEVER_FIRST, _, num_columns, padded

_WIDEST = 88  # columns of text, as many as a page shows at once
_LEAST = 40  # of a task whose lines are folded; where they would get fewer, tasks stand one below the other
_GAP = "  "
_WIDE = "[\u3000-\u9fff\uff01-\uff60]"
_PIECE = re.compile(rf" *(?:{_WIDE}|(?:(?!{_WIDE})\S)+)[{NEVER_FIRST}]*")  # a line may be folded between two


@dataclass(frozen=True)
class Told:
    """What is known of a task.

    Attributes:
        task: its name, such as "worker 1".
        lines: its own lines.
        status: its exit status, or the negative number of the signal that ended it; None while it runs.
        asked_to_end: whether it was killed or terminated on purpose.
        last_words: the last line on stderr of a task that said nothing of its own.
    """

    task: str
    lines: tuple[str, ...]
    status: int | None = None
    asked_to_end: bool = False
    last_words: str = ""

    @property
    def failed(self) -> bool:
        """Whether it ended with an error, and nobody asked for its end."""
        return bool(self.status) and not self.asked_to_end

    def ending(self) -> str:
        """Returns how it ended, in the reader's language.

        >>> Told("worker 0", (), -9).ending(), Told("worker 1", ()).ending()
        ('ended by SIGKILL', 'runs')
        """
        if self.status is None:
            return _("runs")
        if self.status < 0:
            return _("ended by {signal}", signal=signal.Signals(-self.status).name)
        return _("ended with exit status {status}", status=self.status) if self.status else _("ended")

    def heading(self) -> str:
        """Returns its name and how it ended."""
        return _("{task}: {ending}", task=self.task, ending=self.ending())

    def shown(self) -> tuple[str, ...]:
        """Returns its own lines; of a task that failed without any the last one on stderr: mostly the cause.

        >>> Told("worker 0", (), 1, last_words="ValueError: no").shown()
        ('stderr: ValueError: no',)
        """
        if self.failed and self.last_words:
            return (*self.lines, _("stderr: {line}", line=self.last_words))
        return self.lines


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
        columns = [[each.heading(), *each.shown()] for each in self.told]
        room = (_WIDEST + len(_GAP)) // len(columns) - len(_GAP)
        folded = [[part for line in column for part in _folded(line, room)] for column in columns]
        for beside in (columns, folded) if room >= _LEAST else (columns,):
            widths = [max(map(num_columns, column)) for column in beside]
            if sum(widths) + len(_GAP) * (len(widths) - 1) <= _WIDEST:
                return _side_by_side(beside, widths)
        return "\n".join(
            part
            for heading, *lines in columns
            for part in [heading, *(part for line in lines for part in _folded(f"  {line}", _WIDEST))]
        )


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


def _side_by_side(columns: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    ruled = [[column[0], "-" * width, *column[1:]] for column, width in zip(columns, widths, strict=True)]
    rows = itertools.zip_longest(*ruled, fillvalue="")
    return "\n".join(_GAP.join(map(padded, row, widths)).rstrip() for row in rows)
