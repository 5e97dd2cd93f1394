"""What the tasks of a cluster printed, and how each ended."""

from __future__ import annotations

import itertools
import re
import signal
from dataclasses import dataclass

from course_lib.errors import one_of
from course_lib.i18n import _
from lessons.strategies.global_batches import ReceivedExamples

_MANY_DIGITS = re.compile(r"\d+\.\d{3,}")


@dataclass(frozen=True)
class TaskReport:
    """What is known of a task.

    Attributes:
        task: its name, such as "worker 1".
        lines: what it printed, of all of its runs.
        status: its exit status, or the negative number of the signal that ended it; None while it runs.
        error: the name of the error that ended it, such as "ValueError".
        message: what the error says; of one of TensorFlow's own nothing, for there are ports in it.
    """

    task: str
    lines: tuple[str, ...]
    status: int | None = None
    error: str = ""
    message: str = ""

    @property
    def losses(self) -> dict[int, float]:
        """The loss of each step, of lines such as "step 1 loss 2.3026".

        >>> TaskReport("worker 0", ("worker 0 of 2", "step 1 loss 2.3026")).losses
        {1: 2.3026}
        """
        lines = (line.split() for line in self.lines if line.startswith("step "))
        return {int(words[1]): float(words[3]) for words in lines}

    def heading(self) -> str:
        """Returns its name and how it ended, in the reader's language.

        >>> TaskReport("worker 0", (), -9).heading(), TaskReport("worker 1", ()).heading()
        ('worker 0: ended by SIGKILL', 'worker 1: runs')
        """
        if self.status is None:
            ending = _("runs")
        elif self.status < 0:
            ending = _("ended by {signal}", signal=signal.Signals(-self.status).name)
        elif self.error:
            ending = _("ended by {error}", error=self.error)
        else:
            ending = _("ended with exit status {status}", status=self.status) if self.status else _("ended")
        return _("{task}: {ending}", task=self.task, ending=ending)


@dataclass(frozen=True, repr=False)
class Report:
    """What the tasks of a cluster printed and how they ended. It shows itself, with two decimals of a number.

    >>> Report((TaskReport("worker 0", ("step 1 loss 1.751",), 0), TaskReport("worker 1", (), -9)))
    worker 0: ended
      step 1 loss 1.75
    worker 1: ended by SIGKILL

    Attributes:
        tasks: what is known of each task, in the order of the cluster.
    """

    tasks: tuple[TaskReport, ...]

    def __getitem__(self, task: str) -> TaskReport:
        """Returns what is known of a task."""
        tasks = {each.task: each for each in self.tasks}
        problem = _("There is no task {task!r}.", task=task)
        one_of(task, tasks, problem, cure=_("Show the report: it tells what each task printed."))
        return tasks[task]

    def __repr__(self) -> str:
        tasks = ([each.heading(), *each.lines, *filter(None, [each.message])] for each in self.tasks)
        text = "\n".join("\n  ".join(lines) for lines in tasks)
        return _MANY_DIGITS.sub(lambda number: f"{float(number[0]):.2f}", text)

    def received_examples(self, rule: str) -> ReceivedExamples:
        """Returns who got which example of each batch; it draws itself.

        Each task printed a line for each batch: the rule, and the numbers of its examples. Lines of other
        rules are left out.

        >>> files = Report((TaskReport("worker 0", ("", "FILE 0 1")), TaskReport("worker 1", ("FILE 4 5",))))
        >>> files.received_examples("FILE").batches
        (((0, 1), (4, 5)),)
        """
        lines = [[line.split() for line in each.lines if line.strip()] for each in self.tasks]
        rules = dict.fromkeys(words[0] for of_task in lines for words in of_task)
        problem = _("No line begins with {rule!r}.", rule=rule)
        one_of(rule, rules, problem, cure=_("Show the report: it tells what each task printed."))
        parts = ([map(int, numbers) for name, *numbers in of_task if name == rule] for of_task in lines)
        return ReceivedExamples(itertools.zip_longest(*parts, fillvalue=()))
