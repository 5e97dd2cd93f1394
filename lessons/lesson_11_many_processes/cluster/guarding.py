"""The owner's side of a guard: gives it orders, hears what became of tasks, and closes it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.cluster import guard, problems

_CLOSING_SECONDS = 40.0  # the guard itself gives up after 30
_START_SECONDS = 30.0


class Guard:
    """A process that starts and ends the tasks of one cluster, and outlives whoever uses this object.

    Attributes:
        groups: the process group of each task that runs.
        statuses: the exit status of each task that has ended; below 0 the signal that ended it.

    Args:
        errors: the file for what the guard itself has to say, which is nothing unless it breaks.
    """

    def __init__(self, errors: Path) -> None:
        self.groups: dict[str, int] = {}
        self.statuses: dict[str, int] = {}
        self._owner = os.getpid()
        self._mark = uuid.uuid4().hex
        self._changed = threading.Condition()
        self._closing = self._gone = False
        with errors.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, f"{self._mark}/"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,  # what is sent to the kernel's process group must not reach it
            )
        self._orders = cast(IO[bytes], self._process.stdin)
        threading.Thread(target=self._listen, args=[self._process.stdout], daemon=True).start()

    @property
    def over(self) -> bool:
        """Whether it was closed, or has ended, and the tasks with it."""
        return self._closing or self._gone

    def start(self, task: str, order: dict[str, Any]) -> None:
        """Starts a task, and returns when it is known in which process group.

        Args:
            task: its name.
            order: the command, its environment and folder, and the files for stdout and stderr.

        Raises:
            CourseError: the guard is gone, or says nothing of the task.
        """
        mark = {guard.MARK: f"{self._mark}/{task}/"}
        self.statuses.pop(task, None)
        self._order({"do": "start", "task": task, **order, "environment": {**order["environment"], **mark}})
        if not self.wait(lambda: task in self.groups or task in self.statuses, _START_SECONDS):
            raise gone() if self.over else problems.not_there(task, _START_SECONDS)

    def kill(self, task: str) -> None:
        """Kills a task and all that it started.

        Raises:
            CourseError: the guard is gone.
        """
        self._order({"do": "kill", "task": task})

    def send(self, task: str, number: int) -> None:
        """Sends a signal to a task and all in its process group.

        Raises:
            CourseError: the guard is gone.
        """
        self._order({"do": "signal", "task": task, "signal": int(number)})

    def wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Returns whether something about the tasks holds, after so many seconds at most."""
        with self._changed:
            return self._changed.wait_for(lambda: self._gone or holds(), seconds) and holds()

    def close(self) -> None:
        """Ends all tasks and the guard; later calls do nothing. What a task left of itself is ended too."""
        if self._closing or os.getpid() != self._owner:  # a fork of the owner is not the owner
            return
        self._closing = True
        with contextlib.suppress(BrokenPipeError):
            self._orders.close()  # from here on the guard ends all, even if this process ends now
        try:
            self._process.wait(_CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._process.wait() != 0:
            self._kill_all()

    def _order(self, order: dict[str, Any]) -> None:
        try:
            self._orders.write(json.dumps(order).encode() + b"\n")
            self._orders.flush()
        except (OSError, ValueError) as error:
            raise gone() from error

    def _listen(self, told: IO[bytes]) -> None:
        """Notes what the guard tells, in a thread of its own; where it was killed, ends what it left."""
        with told:
            for line in told:
                self._note(json.loads(line))
        if not self._closing:
            self._kill_all()
        with self._changed:
            self._gone = True
            self._changed.notify_all()

    def _note(self, event: dict[str, Any]) -> None:
        if self._closing:
            return  # what ends now is ended by closing
        with self._changed:
            if event["told"] == "started":
                self.groups[event["task"]] = event["group"]
            else:
                self.groups.pop(event["task"], None)
                self.statuses[event["task"]] = event["status"]
            self._changed.notify_all()

    def _kill_all(self) -> None:
        for task, group in list(self.groups.items()):
            guard.kill(group, f"{self._mark}/{task}/")
        guard.kill_marked(f"{self._mark}/")


def gone() -> CourseError:
    """Returns the error of a cluster that has ended, whoever ended it."""
    return CourseError(
        _("The cluster has ended: the process that guards it is gone."),
        allowed=_("a cluster that runs"),
        cure=_("Make a new Cluster and start it."),
    )
