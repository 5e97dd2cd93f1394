"""The process of one task, behind a guard that ends it with this process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lessons.lesson_11_many_processes.cluster import guard
from lessons.lesson_11_many_processes.cluster.logs import Log
from lessons.lesson_11_many_processes.cluster.report import Told


class Process:
    """A process of one command, which can be started again and again.

    Nothing outlives the last reference to this object: the guard's pipe closes with it.

    Attributes:
        task: its name, such as "worker 1".
        log: what it writes.
        status: the exit status of its last run, below 0 the signal that ended it; None while it runs.

    Args:
        task: its name.
        command: the whole command line.
        environment: all of its variables.
        folder: for the log.
    """

    def __init__(
        self, task: str, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        self.task = task
        self.status: int | None = None
        self.log = Log(folder, task)
        self._command, self._environment = command, environment
        self._guard: subprocess.Popen[bytes] | None = None
        self._asked_to_end = False

    def start(self) -> None:
        """Starts it; it does not run."""
        self.status, self._asked_to_end = None, False
        with self.log.stdout.open("ab") as stdout, self.log.stderr.open("ab") as stderr:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *self._command],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env=self._environment,
                start_new_session=True,  # what is sent to the kernel's process group must not reach it
            )

    def look(self) -> bool:
        """Returns whether it has ended; notes the status."""
        if self._guard is not None and self.status is None:
            self.status = self._guard.poll()
        return self.status is not None

    def let_go(self) -> None:
        """Closes the guard's pipe: it kills the process with its group, and this does not wait for it."""
        if self._guard is not None and self._guard.stdin is not None and not self.look():
            self._asked_to_end = True
            self._guard.stdin.close()

    def kill(self) -> None:
        """Kills it, with all of its process group; returns when it is dead."""
        self.let_go()
        if self._guard is not None:
            self.status = self._guard.wait()

    def terminate(self) -> None:
        """Sends SIGTERM, after which its end is no failure."""
        if self._guard is not None and not self.look():
            self._asked_to_end = True
            self._guard.terminate()

    @property
    def failed(self) -> bool:
        """Whether it ended with an error, and nobody asked for its end."""
        return bool(self.status) and not self._asked_to_end

    def told(self) -> Told:
        """Returns what it has said so far, and whether and how it has ended."""
        return Told(
            self.task,
            tuple(self.log.lines()),
            self.status,
            asked_to_end=self._asked_to_end,
            last_words=self.log.last_words(),
        )
