"""The process of one task, behind a guard that ends it with this process, and the files that it writes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_lib.i18n import _
from lessons.lesson_11_many_processes.cluster import guard
from lessons.lesson_11_many_processes.cluster.report import MARKER, Told, marked

_LAST_OF_STDOUT, _LAST_OF_STDERR = 12, 3


@dataclass(frozen=True, repr=False)
class Written:
    """All that a task wrote; it shows stdout, then stderr."""

    stdout: str
    stderr: str

    def __repr__(self) -> str:
        return self.stdout + self.stderr


class Process:
    """A process of one command, which can be started again and again.

    Nothing outlives the last reference to this object: the guard's pipe closes with it.

    Attributes:
        task: its name, such as "worker 1".

    Args:
        task: its name.
        command: the whole command line.
        environment: all of its variables.
        folder: for what it writes, run after run.
    """

    def __init__(
        self, task: str, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        self.task = task
        self._command, self._environment = command, environment
        self._stdout, self._stderr = folder / f"{task}.out", folder / f"{task}.err"
        self.start()

    def start(self) -> None:
        """Starts it; it does not run."""
        with self._stdout.open("ab") as stdout, self._stderr.open("ab") as stderr:
            self._asked_to_end, self._lines_before = False, len(self._lines())
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *self._command],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env=self._environment,
                start_new_session=True,  # what is sent to the kernel's process group must not reach it
            )

    @property
    def status(self) -> int | None:
        """The exit status of its last run, below 0 the signal that ended it; None while it runs."""
        return self._guard.poll()

    @property
    def failed(self) -> bool:
        """Whether it ended with an error, and nobody asked for its end."""
        return bool(self.status) and not self._asked_to_end

    def kill(self) -> None:
        """Kills it, with all of its process group; returns when it is dead."""
        if self.status is None:
            self._asked_to_end = True
            self._guard.communicate()  # closes the guard's pipe

    def terminate(self) -> None:
        """Sends SIGTERM, after which its end is no failure."""
        if self.status is None:
            self._asked_to_end = True
            self._guard.terminate()

    def has_said(self, words: str) -> bool:
        """Returns whether its present run wrote a whole line of its own with these words."""
        return any(words in line for line in self._lines()[self._lines_before :])

    def told(self) -> Told:
        """Returns what it has said so far, and whether and how it has ended."""
        lines = self._lines()
        if self.failed and not lines:  # the last line on stderr is mostly the cause
            lines = [_("stderr: {line}", line=line) for line in self.written().stderr.splitlines()[-1:]]
        return Told(self.task, tuple(lines), self.status, failed=self.failed)

    def written(self) -> Written:
        """Returns all that it wrote."""
        return Written(self._stdout.read_text(errors="replace"), self._stderr.read_text(errors="replace"))

    def tail(self) -> list[str]:
        """Returns the last lines: of stdout more, the marked ones without their mark; of stderr few."""
        written = self.written()
        said = [line.removeprefix(MARKER) for line in written.stdout.splitlines()]
        return said[-_LAST_OF_STDOUT:] + written.stderr.splitlines()[-_LAST_OF_STDERR:]

    def _lines(self) -> list[str]:
        """Returns the lines that its program marked as its own; one that is not yet whole is left out."""
        return marked(self.written().stdout.rpartition("\n")[0])
