"""Clusters of local processes: started, waited for, killed and restarted, and ended in every case."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.cluster import given, problems
from lessons.lesson_11_many_processes.cluster.logs import Written
from lessons.lesson_11_many_processes.cluster.ports import HeldPorts, opened
from lessons.lesson_11_many_processes.cluster.processes import Processes
from lessons.lesson_11_many_processes.cluster.program import TF_CONFIG, Program, command_of, environment_of
from lessons.lesson_11_many_processes.cluster.report import Report
from lessons.lesson_11_many_processes.cluster_jobs import EVALUATOR
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Task

LIMIT_SECONDS = 180.0
GRACE_SECONDS = 30.0  # for what the others have to say once one has failed


class Cluster:
    """Processes of one program on this machine, each told its place in the cluster.

    with Cluster(["train.py", "--steps", "20"], {"worker": 2}) as cluster:
        report = cluster.wait(120)
    report

    At the end of the block every process has ended, with all that it started: also after an exception or an
    interrupt, and when this process itself is killed. Without a block, `start` it and `close` it; it is
    closed with the kernel, or when nothing refers to it any more. Whatever is raised while it waits closes
    it too.

    Args:
        program: what stands behind `python` on the command line: a script, or "-m" and a module, and its
            arguments.
        tasks: how many processes of each job, such as `{"chief": 1, "worker": 2, "ps": 1}`, which get free
            ports; or a `ClusterSpec` with addresses of this machine.
        others: by the names of tasks what these run instead, None for those that are not started: for drills
            with a worker that is not like the others, or does not come.
        variables: which variables tell a process its place: "TF_CONFIG", or "DTENSOR" for those of DTensor.
        environment: what else is set for each. Tasks see no GPU unless CUDA_VISIBLE_DEVICES stands here: each
            would take the whole memory of the one that all see.
        python: the interpreter.
        logs: the folder for what they write, which stays; by default one that goes with this object.

    Attributes:
        spec: the tasks and their addresses.

    Raises:
        CourseError: no such program, cluster or variables, a port that is taken, or no folder for logs.
    """

    def __init__(
        self,
        program: Program,
        tasks: Mapping[str, int] | ClusterSpec,
        *,
        others: Mapping[str, Program | None] | None = None,
        variables: str = TF_CONFIG,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
        logs: str | os.PathLike[str] | None = None,
    ) -> None:
        problems.require_system()
        self._ports = HeldPorts()
        self._started: Processes | None = None
        with self._or_closed():
            self.spec = self._ports.of(tasks)
            names = list(map(str, self.spec.tasks))
            instead = {str(self.spec.task(task)): other for task, other in given.others(others).items()}
            self._absent = {task for task, other in instead.items() if other is None}
            programs = {task: instead[task] if instead.get(task) is not None else program for task in names}
            self._commands = {task: command_of(each, python) for task, each in programs.items()}
            self._environments = {
                str(task): environment_of(self.spec, task, variables, environment) for task in self.spec.tasks
            }
            self._temporary = tempfile.TemporaryDirectory(prefix="cluster-") if logs is None else None
            self._folder = Path(self._temporary.name) if self._temporary else given.folder_for_logs(logs)

    def start(self) -> Self:
        """Starts all processes, and returns this cluster.

        Raises:
            CourseError: it was started before, or the working directory is gone.
        """
        if self._started is not None:
            raise problems.started_before()
        addresses = {self.spec.address(each): str(each) for each in self.spec.tasks if each.job != EVALUATOR}
        with self._or_closed():
            self._started = Processes(self._commands, self._environments, addresses, self._folder)
            weakref.finalize(self, self._started.guard.close)  # when nothing refers to it, at the end of all
            for task in self._commands:
                if task not in self._absent:
                    self._started.start(task)
        return self

    def close(self) -> None:
        """Ends every process of the cluster, with all that it started; later calls do nothing."""
        try:
            if self._started is not None:
                self._started.guard.close()
        finally:
            self._ports.release()

    def wait(
        self, limit_seconds: float = LIMIT_SECONDS, *tasks: Task | str, grace_seconds: float = GRACE_SECONDS
    ) -> Report:
        """Returns what all said and how they ended, once those have ended that end by themselves.

        Where one has failed, the others have some time left to say so; then it returns without their end.
        Shows the last lines of each meanwhile.

        Args:
            limit_seconds: the longest that it may take.
            tasks: whose end to wait for; by default of all that end by themselves: where there are parameter
                servers the chief, else the chief and the workers.
            grace_seconds: how long to wait for the others once one has failed.

        Raises:
            CourseError: the time is over; it names who has not ended, and who never opened its port.
        """
        given.seconds(limit_seconds)
        given.seconds(grace_seconds)
        named = tasks or [task for task in self.spec.ending if self._processes.was_started(str(task))]
        awaited = [str(self.spec.task(task)) for task in named]
        grace_is_over = self._processes.grace(grace_seconds)

        def over() -> bool:
            return grace_is_over() or all(map(self._processes.has_ended, awaited))

        with self._or_closed():
            self._processes.wait_until(over, limit_seconds, lambda: self._too_late(awaited, limit_seconds))
        return self.report()

    def wait_for(self, task: Task | str, words: str, limit_seconds: float = LIMIT_SECONDS) -> None:
        """Waits until a task says a line of its own with these words, in its present run.

        Where another one fails, it waits for 30 s more: the task may wait for that one.

        Args:
            task: such as "worker 1".
            words: such as "step 5".
            limit_seconds: the longest that it may take.

        Raises:
            CourseError: the task ended without saying it, another one failed, or the time is over.
        """
        given.seconds(limit_seconds)
        name = str(self.spec.task(task))
        log, processes = self._processes.logs[name], self._processes
        if not isinstance(words, str):
            raise problems.not_said(name, words)

        grace_is_over = processes.grace(GRACE_SECONDS)

        def over() -> bool:
            return log.end_of(words) is not None or processes.has_ended(name) or grace_is_over()

        def not_said() -> CourseError:
            return problems.not_said(name, words, self.report().failed)

        with self._or_closed():
            processes.wait_until(over, limit_seconds, not_said)
            if log.end_of(words) is None:
                raise not_said()

    def kill(self, task: Task | str, *, after: str = "", limit_seconds: float = LIMIT_SECONDS) -> None:
        """Kills a task with SIGKILL, and all that it started; it can do nothing about it.

        Args:
            task: such as "worker 1".
            after: words of a line after which it is killed. What it says later, before it is dead, is dropped
                from its log, so that the log is the same in every run.
            limit_seconds: how long to wait for that line.

        Raises:
            CourseError: the task never said these words, it is not running, or it lives on.
        """
        name = self._alive(task)
        if after:
            self.wait_for(task, after, limit_seconds)
        self._processes.kill(name)
        place = self._processes.logs[name].end_of(after) if after else None
        if place is not None:
            self._processes.logs[name].cut(place)

    def terminate(self, task: Task | str) -> None:
        """Sends a task SIGTERM, as a machine does that is soon taken away; the task may save first.

        Raises:
            CourseError: the task is not running.
        """
        self._processes.terminate(self._alive(task))

    def restart(self, task: Task | str) -> None:
        """Starts a task that has ended, at its address again; or one that was not started before.

        Raises:
            CourseError: the task still runs.
        """
        name = str(self.spec.task(task))
        if self._processes.was_started(name) and not self._processes.has_ended(name):
            raise problems.still_runs(name)
        self._processes.logs[name].begin(_("(started again)"))
        self._processes.start(name)

    def report(self) -> Report:
        """Returns what each task has said so far, addresses replaced by tasks, and how it has ended."""
        return self._processes.report()

    def log(self, task: Task | str) -> Written:
        """Returns all that a task wrote, to stdout and to stderr."""
        return self._processes.logs[str(self.spec.task(task))].written()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Cluster({', '.join(self._commands)})"

    @property
    def _processes(self) -> Processes:
        if self._started is None:
            raise problems.not_started()
        return self._started

    @contextlib.contextmanager
    def _or_closed(self) -> Iterator[None]:
        """Closes the cluster where something is raised inside: a notebook keeps what was raised, and this."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _alive(self, task: Task | str) -> str:
        name = str(self.spec.task(task))
        if self._processes.has_ended(name) or not self._processes.was_started(name):
            raise problems.not_running(name)
        return name

    def _too_late(self, awaited: Sequence[str], limit_seconds: float) -> CourseError:
        """Returns an error that names who has not ended, and whom the others may wait for."""
        running = [str(task) for task in self.spec.tasks if not self._processes.has_ended(str(task))]
        left = [task for task in awaited if task in running]
        unseen = [task for task in running if not self._opened(task)]
        return problems.too_late(awaited, left, unseen, limit_seconds)

    def _opened(self, task: str) -> bool:
        named = self.spec.task(task)
        return named.job == EVALUATOR or opened(self.spec.address(named))
