"""The processes of a cluster: started through their guard, with a log and an end for each."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from course_lib.errors import CourseError
from lessons.lesson_11_many_processes.cluster import given, problems
from lessons.lesson_11_many_processes.cluster.guarding import Guard, gone
from lessons.lesson_11_many_processes.cluster.live import LiveLogs
from lessons.lesson_11_many_processes.cluster.logs import Log
from lessons.lesson_11_many_processes.cluster.report import Report, Told

_TICK_SECONDS, _KILL_SECONDS = 0.1, 10.0


class Processes:
    """Processes of one command, each with its own environment, by the names of their tasks.

    Attributes:
        guard: what starts and ends them.
        logs: what each writes.

    Args:
        commands: for each task its whole command line.
        environments: for each task its variables.
        addresses: for each address its task: reports name the task, since a port differs from run to run.
        folder: for the logs; it is there.
    """

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],
        environments: Mapping[str, Mapping[str, str]],
        addresses: Mapping[str, str],
        folder: Path,
    ) -> None:
        self._addresses = addresses
        self._commands, self._environments = commands, environments
        self._started: set[str] = set()
        self._asked_to_end: set[str] = set()
        self.logs = {task: Log(folder, task) for task in environments}
        self.guard = Guard(folder / "guard.err")

    def start(self, task: str) -> None:
        """Starts a task, for the first time or again.

        Raises:
            CourseError: the guard is gone, or the working directory, or nothing is heard of the task.
        """
        log = self.logs[task]
        self._started.add(task)
        self._asked_to_end.discard(task)
        order = {
            "command": list(self._commands[task]),
            "environment": dict(self._environments[task]),
            "folder": given.working_folder(),
            "stdout": str(log.stdout.absolute()),
            "stderr": str(log.stderr.absolute()),
        }
        self.guard.start(task, order)

    def kill(self, task: str) -> None:
        """Kills a task and all that it started; returns when it is dead.

        Raises:
            CourseError: the guard is gone, or the task lives on.
        """
        self._asked_to_end.add(task)
        self.guard.kill(task)
        if not self.guard.wait(lambda: self.has_ended(task), _KILL_SECONDS):
            raise gone() if self.guard.over else problems.lives_on(task, _KILL_SECONDS)

    def terminate(self, task: str) -> None:
        """Sends SIGTERM to a task, whose end is no failure then.

        Raises:
            CourseError: the guard is gone.
        """
        self._asked_to_end.add(task)
        self.guard.send(task, signal.SIGTERM)

    def was_started(self, task: str) -> bool:
        """Returns whether a task was ever started."""
        return task in self._started

    def has_ended(self, task: str) -> bool:
        """Returns whether a task has ended."""
        return task in self.guard.statuses

    def has_failed(self) -> bool:
        """Returns whether any task has."""
        return any(told.failed for told in map(self._told, self.logs))

    def grace(self, seconds: float) -> Callable[[], bool]:
        """Returns what tells whether a task has failed and the others have had so many seconds since."""
        failed_at: list[float] = []

        def is_over() -> bool:
            if not failed_at and self.has_failed():
                failed_at.append(time.monotonic())
            return bool(failed_at) and time.monotonic() >= failed_at[0] + seconds

        return is_over

    def report(self) -> Report:
        """Returns what each task has said so far, and whether and how it has ended."""
        told = (
            self._told(task, tuple(map(self._named, log.lines())), self._named(log.last_words()))
            for task, log in self.logs.items()
        )
        return Report(tuple(told), tuple(self.guard.statuses))

    def wait_until(
        self, holds: Callable[[], bool], seconds: float, too_late: Callable[[], CourseError]
    ) -> None:
        """Waits until something holds, and shows the logs meanwhile.

        Raises:
            CourseError: the time is over, as `too_late` says, or the guard was killed.
        """
        live, until = LiveLogs(self._tails), time.monotonic() + seconds
        try:
            while not holds():
                if time.monotonic() >= until:
                    raise too_late()
                if self.guard.over:
                    raise gone()
                self.guard.wait(holds, _TICK_SECONDS)
                live.refresh()
        finally:
            live.finish()

    def _told(self, task: str, lines: tuple[str, ...] = (), last_words: str = "") -> Told:
        status = self.guard.statuses.get(task)
        stopped = status is None and self.guard.over
        return Told(
            task,
            lines,
            status,
            asked_to_end=task in self._asked_to_end,
            stopped=stopped,
            absent=task not in self._started,
            last_words=last_words,
        )

    def _named(self, line: str) -> str:
        for address, task in self._addresses.items():
            line = re.sub(rf"{re.escape(address)}(?!\d)", task, line)  # not the beginning of another port
        return line

    def _tails(self) -> dict[str, list[str]]:
        return {self._told(task).heading(): log.tail() for task, log in self.logs.items()}
